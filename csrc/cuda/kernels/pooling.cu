/* Pooling: a thread for each window, or in the backward pass for some elements of the
 * input, which collects from the windows that have them. */
#include "cuda/kernels/window.h"
#include "device/pooling.h"

#define DT_FN static __device__ __forceinline__
#include "ops/pooling.h"

namespace {

/* Elements of a row that a thread has in the backward pass. */
enum { EACH = 4 };

/* The call, and how results are numbered. */
template <typename I>
struct Pooling {
    const void *x;
    void *y;
    int64_t *index;
    bool adaptive, counts_padding;
    I divisor;
    Window<I> window;
    int64_t numel; /* threads: results, or some of a row for each */
    int64_t plane; /* elements of a plane of x */
    DividerOf<I> columns;
};
template <typename I, class F>
void each_pointer(Pooling<I> &s, F f)
{
    f(s.x);
    f(s.y);
    f(s.index);
}

template <typename I>
static __device__ __forceinline__ I divided(const Pooling<I> &p, dt_divisor by, int d,
                                            I n)
{
    return (I)divide(n, p.window.by[by][d]);
}

template <typename T, bool max, typename I>
__global__ void pooling_kernel(GRID_CONSTANT(Pooling<I>) p)
{
    const int64_t number = thread_number();
    I at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    find_place((I)number, p.window.by[DT_BY_OUTPUT], at);
    const T *plane =
        (const T *)p.x + divide_from(&at[0], p.window.by[DT_BY_OUTPUT][0]) * p.plane;
    const auto d = pooling::span_of(p, 0, at[0]), h = pooling::span_of(p, 1, at[1]),
               w = pooling::span_of(p, 2, at[2]);
    if constexpr (max) {
        const auto best = pooling::max_of(p, plane, d, h, w);
        ((T *)p.y)[number] = best.value;
        if (p.index)
            p.index[number] = best.at;
    } else {
        ((T *)p.y)[number] = pooling::average_of(p, plane, d, h, w);
    }
}

/* A thread has some elements of a row, p.columns apart. */
template <typename T, typename I>
__global__ void average_backward_kernel(GRID_CONSTANT(Pooling<I>) p)
{
    if (thread_number() >= p.numel)
        return;
    I column = (I)thread_number();
    const I row = divide_from(&column, p.columns);
    I y = row;
    I z = divide_from(&y, p.window.by[DT_BY_INPUT][1]);
    const T *plane =
        (const T *)p.x + divide_from(&z, p.window.by[DT_BY_INPUT][0]) * p.plane;
    T *out = (T *)p.y + (int64_t)row * p.window.input[2];
    const auto d = pooling::windows_of(p, 0, z), h = pooling::windows_of(p, 1, y);
    ROLLED
    for (; column < p.window.input[2]; column += (I)p.columns.divisor) {
        const auto w = pooling::windows_of(p, 2, column);
        T sum = 0;
        ROLLED
        for (I i = d.first; i < d.end; i++) {
            const auto depth = pooling::span_of(p, 0, i);
            ROLLED
            for (I j = h.first; j < h.end; j++) {
                const auto height = pooling::span_of(p, 1, j);
                const T *from =
                    plane + (i * p.window.output[1] + j) * p.window.output[2];
                ROLLED
                for (I k = w.first; k < w.end; k++)
                    sum += pooling::average(
                        from[k], pooling::divisor_of(p, depth, height,
                                                     pooling::span_of(p, 2, k)));
            }
        }
        out[column] = sum;
    }
}

template <typename T, typename I>
int run(dt_stream stream, const dt_pooling_call *call)
{
    const bool backward = call->op == DT_POOLING_AVERAGE_BACKWARD;
    const dt_window &w = call->window;
    Pooling<I> p = {};
    p.x = call->x;
    p.y = call->y;
    p.index = call->index;
    p.adaptive = call->adaptive;
    p.counts_padding = call->counts_padding;
    p.divisor = (I)call->divisor;
    p.window = window_of<I>(w);
    const int64_t columns = backward ? (w.input[2] + EACH - 1) / EACH : w.output[2];
    p.columns = divider_of<I>(columns);
    p.numel = call->planes * columns *
              (backward ? w.input[0] * w.input[1] : w.output[0] * w.output[1]);
    p.plane = dt_window_volume(backward ? w.output : w.input);
    if (backward)
        return START("starting an average pooling's backward pass", stream,
                     (average_backward_kernel<T, I>), p.numel, p);
    if (call->op == DT_POOLING_MAX)
        return START("starting a max pooling", stream, (pooling_kernel<T, true, I>),
                     p.numel, p);
    return START("starting an average pooling", stream, (pooling_kernel<T, false, I>),
                 p.numel, p);
}

} // namespace

int dt_cuda_pooling(dt_stream stream, const dt_pooling_call *call)
{
    switch (call->dtype) {
    case DT_FLOAT32:
        return call->divisor == (int32_t)call->divisor &&
                       fits_int32(call->window, (double)call->planes)
                   ? run<float, int32_t>(stream, call)
                   : run<float, int64_t>(stream, call);
    case DT_FLOAT64:
        return run<double, int64_t>(stream, call);
    default:
        return run<int64_t, int64_t>(stream, call);
    }
}
