/* Pooling: a thread for each window, or in the backward pass for some elements of the
 * input, which collects from the windows that have them. */
#include "base/half.h"
#include "cuda/kernels/window.h"
#include "device/pooling.h"

#define DT_FN static __device__ __forceinline__
#include "ops/pooling.h"

namespace {

/* Elements of a row that a thread has in the backward pass. */
enum { EACH = 4 };

/* The call, and how results are numbered. */
struct Pooling {
    const void *x;
    void *y;
    int64_t *index;
    bool adaptive, counts_padding;
    int64_t divisor;
    Window window;
    ProductDivider sizes[2][DT_WINDOW_DIMS]; /* by DT_BY_INPUT and DT_BY_OUTPUT */
    int64_t numel; /* threads: results, or some of a row for each */
    int64_t plane; /* elements of a plane of x */
    Divider columns;
};
POINTERS_OF(Pooling, f(s.x); f(s.y); f(s.index);)

static __device__ __forceinline__ int32_t divided(const Pooling &p, dt_divisor by,
                                                  int d, int32_t n)
{
    return (int32_t)divide((unsigned)n, p.window.by[by][d]);
}
/* A product of sizes. */
static __device__ __forceinline__ int64_t divided(const Pooling &p, dt_divisor by,
                                                  int d, int64_t n)
{
    return divide((uint64_t)n, p.sizes[by][d]);
}

template <typename S, bool max>
__global__ void pooling_kernel(GRID_CONSTANT(Pooling) p)
{
    typedef Computed<S> T;
    const int64_t number = thread_number();
    int32_t at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    find_place((int32_t)number, p.window.by[DT_BY_OUTPUT], at);
    const S *plane =
        (const S *)p.x + divide_from(&at[0], p.window.by[DT_BY_OUTPUT][0]) * p.plane;
    const auto d = pooling::span_of(p, 0, at[0]), h = pooling::span_of(p, 1, at[1]),
               w = pooling::span_of(p, 2, at[2]);
    if constexpr (max) {
        const auto best = pooling::max_of<T>(p, plane, d, h, w);
        ((S *)p.y)[number] = (S)best.value;
        if (p.index)
            p.index[number] = best.at;
    } else {
        ((S *)p.y)[number] = (S)pooling::average_of<T>(p, plane, d, h, w);
    }
}

/* A thread has some elements of a row, p.columns apart. It takes what a maximum's window has
 * where that is the element, and a part of each average. */
template <typename S, bool max>
__global__ void backward_kernel(GRID_CONSTANT(Pooling) p)
{
    typedef Computed<S> T;
    if (thread_number() >= p.numel)
        return;
    int32_t column = (int32_t)thread_number();
    const int32_t row = divide_from(&column, p.columns);
    int32_t y = row;
    int32_t z = divide_from(&y, p.window.by[DT_BY_INPUT][1]);
    const S *plane =
        (const S *)p.x + divide_from(&z, p.window.by[DT_BY_INPUT][0]) * p.plane;
    S *out = (S *)p.y + (int64_t)row * p.window.input[2];
    const int64_t *index = max ? p.index + (plane - (const S *)p.x) : nullptr;
    const int32_t place = (z * p.window.input[1] + y) * p.window.input[2];
    const auto d = pooling::windows_of(p, 0, z), h = pooling::windows_of(p, 1, y);
    ROLLED
    for (; column < p.window.input[2]; column += (int32_t)p.columns.divisor) {
        const auto w = pooling::windows_of(p, 2, column);
        T sum = 0;
        ROLLED
        for (int32_t i = d.first; i < d.end; i++) {
            const auto depth = pooling::span_of(p, 0, i);
            ROLLED
            for (int32_t j = h.first; j < h.end; j++) {
                const auto height = pooling::span_of(p, 1, j);
                const int32_t from = (i * p.window.output[1] + j) * p.window.output[2];
                ROLLED
                for (int32_t k = w.first; k < w.end; k++) {
                    if constexpr (!max)
                        sum += pooling::average(
                            (T)plane[from + k],
                            pooling::divisor_of<T>(p, depth, height,
                                                   pooling::span_of(p, 2, k)));
                    else if (index[from + k] == place + column)
                        sum += (T)plane[from + k];
                }
            }
        }
        out[column] = (S)sum;
    }
}

template <typename S>
int run_pooling(dt_stream stream, const dt_pooling_call *call)
{
    const bool backward = dt_pooling_is_backward(call->op);
    const dt_window &w = call->window;
    const int64_t columns = backward ? (w.input[2] + EACH - 1) / EACH : w.output[2];
    const int64_t each =
        columns * (backward ? w.input[0] * w.input[1] : w.output[0] * w.output[1]);
    const int64_t read = dt_window_volume(backward ? w.output : w.input),
                  written = dt_window_volume(backward ? w.input : w.output);
    Pooling p = {};
    int64_t planes;
    if (window_of(w, &p.window, &planes))
        return -1;
    p.adaptive = call->adaptive;
    p.counts_padding = call->counts_padding;
    p.divisor = call->divisor;
    p.columns = divider_for((unsigned)columns);
    p.plane = read;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        p.sizes[DT_BY_INPUT][d] = product_divider_for(w.input[d]);
        p.sizes[DT_BY_OUTPUT][d] = product_divider_for(w.output[d]);
    }
    for (int64_t first = 0; first < call->planes; first += planes) {
        p.x = (const S *)call->x + first * read;
        p.y = (S *)call->y + first * written;
        p.index =
            call->index ? call->index + first * (backward ? read : written) : nullptr;
        p.numel =
            (call->planes - first < planes ? call->planes - first : planes) * each;
        if (call->op == DT_POOLING_AVERAGE_BACKWARD
                ? START("starting an average pooling's backward pass", stream,
                        (backward_kernel<S, false>), p.numel, p)
            : backward ? START("starting a max pooling's backward pass", stream,
                               (backward_kernel<S, true>), p.numel, p)
            : call->op == DT_POOLING_MAX
                ? START("starting a max pooling", stream, (pooling_kernel<S, true>),
                        p.numel, p)
                : START("starting an average pooling", stream,
                        (pooling_kernel<S, false>), p.numel, p))
            return -1;
    }
    return 0;
}

} // namespace

int dt_cuda_pooling(dt_stream stream, const dt_pooling_call *call)
{
    switch (call->dtype) {
    case DT_FLOAT16:
        return run_pooling<dt_float16>(stream, call);
    case DT_BFLOAT16:
        return run_pooling<dt_bfloat16>(stream, call);
    case DT_FLOAT32:
        return run_pooling<float>(stream, call);
    case DT_FLOAT64:
        return run_pooling<double>(stream, call);
    default:
        return run_pooling<int64_t>(stream, call);
    }
}
