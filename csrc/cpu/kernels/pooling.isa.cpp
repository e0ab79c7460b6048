/* Pooling for this instruction set: windows inside of a row are computed a vector at a
 * time, side by side. */
#include <string.h>

#include "cpu/kernels/kernels.h"

#define DT_FN static DT_INLINE
#include "ops/pooling.h"

namespace {

using Span = pooling::Span<int64_t>;

/* Bytes of a vector. */
#ifdef __AVX__
constexpr int VECTOR = 32;
#else
constexpr int VECTOR = 16;
#endif

template <typename T>
constexpr int lanes = VECTOR / (int)sizeof(T);
template <typename T>
using Lanes __attribute__((vector_size(VECTOR))) = T;
/* Integers of the same size: what a comparison gives. */
template <typename T>
using Mask = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/* Every step-th element. Reads no element behind the last one. */
template <int step, typename T>
DT_FN Lanes<T> load(const T *x, int64_t stride)
{
    constexpr int N = lanes<T>;
    Lanes<T> v;
    if constexpr (step == 1) {
        memcpy(&v, x, sizeof v);
    } else if constexpr (step == 2 && N >= 4) {
        Lanes<T> low, high;
        memcpy(&low, x, sizeof low);
        memcpy(&high, x + N - 1, sizeof high);
        if constexpr (N == 8)
            v = __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
        else
            v = __builtin_shufflevector(low, high, 0, 2, 5, 7);
    } else {
        for (int l = 0; l < N; l++)
            v[l] = x[l * stride];
    }
    return v;
}

/* Calls f(offset, taps) for each row of taps of a window: the row begins at `offset` of the
 * plane. */
template <class F>
DT_FN void each_row(const dt_window &w, const Span &d, const Span &h, F f)
{
    for (int64_t i = d.first; i < d.end; i += w.dilation[0])
        for (int64_t j = h.first; j < h.end; j += w.dilation[1])
            f((i * w.input[1] + j) * w.input[2]);
}

/* The windows that begin at `left` and every stride on. */
template <int step, bool indexed, typename T>
DT_FN void max_block(const dt_pooling_call &c, const T *plane, const Span &d,
                     const Span &h, int64_t left, T *y, int64_t *index)
{
    const dt_window &w = c.window;
    const int64_t taps = w.kernel[2], dilation = w.dilation[2], stride = w.stride[2];
    typedef Mask<T> I;
    Lanes<T> best = Lanes<T>{} - (T)INFINITY;
    Lanes<I> at =
        Lanes<I>{} + (I)((d.first * w.input[1] + h.first) * w.input[2] + left);
    each_row(w, d, h, [&](int64_t row) {
        for (int64_t k = 0; k < taps; k++) {
            const int64_t place = row + left + k * dilation;
            const Lanes<T> v = load<step>(plane + place, stride);
            const Lanes<I> wins = (v > best) | (v != v);
            best = wins ? v : best;
            if (indexed)
                at = wins ? Lanes<I>{} + (I)place : at;
        }
    });
    memcpy(y, &best, sizeof best);
    for (int l = 0; indexed && l < lanes<T>; l++)
        index[l] = (int64_t)at[l] + l * stride;
}

template <int step, typename T>
DT_FN void average_block(const dt_pooling_call &c, const T *plane, const Span &d,
                         const Span &h, int64_t left, T divisor, T *y)
{
    const dt_window &w = c.window;
    const int64_t taps = w.kernel[2], stride = w.stride[2];
    Lanes<T> sum = {};
    each_row(w, d, h, [&](int64_t row) {
        for (int64_t k = 0; k < taps; k++)
            sum += load<step>(plane + row + left + k, stride);
    });
    sum /= Lanes<T>{} + divisor;
    memcpy(y, &sum, sizeof sum);
}

/* A row of windows. step: 1 or 2 where that is the stride, 3 for any other; 0: no two
 * windows are computed side by side. */
template <bool max, bool indexed, int step, typename T>
__attribute__((flatten)) void run_row(const dt_pooling_call &c, int64_t number)
{
    const dt_window &w = c.window;
    const int64_t width = w.output[2], height = w.output[1];
    const int64_t above = number / height, depth = above % w.output[0];
    const T *plane = (const T *)c.x + above / w.output[0] * dt_window_volume(w.input);
    T *y = (T *)c.y + number * width;
    int64_t *index = indexed ? c.index + number * width : nullptr;
    const Span d = pooling::span_of(c, 0, depth);
    const Span h = pooling::span_of(c, 1, number % height);
    int64_t o = 0;
    auto single = [&](int64_t end) {
        for (; o < end; o++) {
            const Span s = pooling::span_of(c, 2, o);
            if constexpr (max) {
                const pooling::Found<T, int64_t> best =
                    pooling::max_of<T>(c, plane, d, h, s);
                y[o] = best.value;
                if (indexed)
                    index[o] = best.at;
            } else {
                y[o] = pooling::average_of<T>(c, plane, d, h, s);
            }
        }
    };
    if constexpr (step > 0) {
        /* The windows inside: from `begin` to end-1. */
        const int64_t stride = w.stride[2];
        const int64_t room =
            w.input[2] + w.padding[2] - (w.kernel[2] - 1) * w.dilation[2] - 1;
        int64_t begin = (w.padding[2] + stride - 1) / stride;
        int64_t end = room < 0 ? 0 : room / stride + 1;
        end = end < width ? end : width;
        begin = begin < end ? begin : end;
        if (end - begin >= lanes<T> && d.first < d.end && h.first < h.end) {
            const Span inside = {0, w.kernel[2], w.kernel[2]};
            const T divisor = pooling::divisor_of<T>(c, d, h, inside);
            single(begin);
            for (; o < end; o += lanes<T>) {
                /* The last vector overlaps the one before. */
                o = o + lanes<T> > end ? end - lanes<T> : o;
                const int64_t left = o * stride - w.padding[2];
                if constexpr (max)
                    max_block<step, indexed>(c, plane, d, h, left, y + o,
                                             indexed ? index + o : nullptr);
                else
                    average_block<step>(c, plane, d, h, left, divisor, y + o);
            }
        }
    }
    single(width);
}

template <bool max, bool indexed, int step, typename T>
void run_rows(const dt_pooling_call &c, int64_t begin, int64_t end)
{
    for (int64_t number = begin; number < end; number++)
        run_row<max, indexed, step, T>(c, number);
}

template <typename T>
void spread_averages(const dt_pooling_call &c, int64_t begin, int64_t end)
{
    const dt_window &w = c.window;
    const int64_t inputs = dt_window_volume(w.input);
    const T *x = (const T *)c.x + begin * dt_window_volume(w.output);
    for (int64_t number = begin; number < end; number++) {
        T *plane = (T *)c.y + number * inputs;
        memset(plane, 0, (size_t)inputs * sizeof(T));
        for (int64_t i = 0; i < w.output[0]; i++) {
            const Span d = pooling::span_of(c, 0, i);
            for (int64_t j = 0; j < w.output[1]; j++) {
                const Span h = pooling::span_of(c, 1, j);
                for (int64_t k = 0; k < w.output[2]; k++, x++) {
                    const Span s = pooling::span_of(c, 2, k);
                    const T divisor = pooling::divisor_of<T>(c, d, h, s);
                    const T part = divisor ? pooling::average(*x, divisor) : 0;
                    each_row(w, d, h, [&](int64_t row) {
                        for (int64_t at = s.first; at < s.end; at++)
                            plane[row + at] += part;
                    });
                }
            }
        }
    }
}

template <typename T>
void spread_maxima(const dt_pooling_call &c, int64_t begin, int64_t end)
{
    const int64_t inputs = dt_window_volume(c.window.input),
                  windows = dt_window_volume(c.window.output);
    for (int64_t number = begin; number < end; number++) {
        const T *x = (const T *)c.x + number * windows;
        const int64_t *index = c.index + number * windows;
        T *plane = (T *)c.y + number * inputs;
        memset(plane, 0, (size_t)inputs * sizeof(T));
        for (int64_t i = 0; i < windows; i++)
            if ((uint64_t)index[i] < (uint64_t)inputs) /* else overwritten by NumPy */
                plane[index[i]] += x[i];
    }
}

template <bool max, bool indexed, typename T>
void choose_step(const dt_pooling_call &c, int64_t begin, int64_t end)
{
    if constexpr (!std::is_integral_v<T>) {
        /* Places of the maximum are integers of T's size. */
        const bool side_by_side =
            !c.adaptive && dt_window_volume(c.window.input) < INT32_MAX;
        if (side_by_side && c.window.stride[2] == 1)
            return run_rows<max, indexed, 1, T>(c, begin, end);
        if (side_by_side && c.window.stride[2] == 2)
            return run_rows<max, indexed, 2, T>(c, begin, end);
        if (side_by_side)
            return run_rows<max, indexed, 3, T>(c, begin, end);
    }
    run_rows<max, indexed, 0, T>(c, begin, end);
}

template <typename T>
void run_type(const dt_pooling_call &c, int64_t begin, int64_t end)
{
    if (c.op == DT_POOLING_AVERAGE_BACKWARD)
        spread_averages<T>(c, begin, end);
    else if (c.op == DT_POOLING_MAX_BACKWARD)
        spread_maxima<T>(c, begin, end);
    else if (c.op == DT_POOLING_AVERAGE)
        choose_step<false, false, T>(c, begin, end);
    else if (c.index)
        choose_step<true, true, T>(c, begin, end);
    else
        choose_step<true, false, T>(c, begin, end);
}

void run_pooling(const dt_pooling_call *c, int64_t begin, int64_t end)
{
    if (c->dtype == DT_FLOAT32)
        run_type<float>(*c, begin, end);
    else if (c->dtype == DT_FLOAT64)
        run_type<double>(*c, begin, end);
    else
        run_type<int64_t>(*c, begin, end);
}

} // namespace

const dt_pooling_kernels DT_ISA_NAME(dt_pooling) = {run_pooling};
