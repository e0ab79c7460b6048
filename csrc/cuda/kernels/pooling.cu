/* Pooling: a thread for each window, or in the backward pass for each element of the
 * input, which collects from the windows that have it. */
#include "cuda/kernels/window.h"
#include "device/pooling.h"

#define DT_FN static __device__ __forceinline__
#include "ops/pooling.h"

namespace {

/* `by` of a window has the order of pooling::Size. */
static_assert((int)pooling::INPUT == BY_INPUT && (int)pooling::OUTPUT == BY_OUTPUT &&
              (int)pooling::STRIDE == BY_STRIDE &&
              (int)pooling::DILATION == BY_DILATION);

/* The call, and how results are numbered. */
template <typename I>
struct Pooling {
    const void *x;
    void *y;
    int64_t *index;
    bool adaptive, counts_padding;
    I divisor;
    Window<I> window;
    pooling::Size result;
    int64_t numel;
    int64_t plane; /* elements of a plane of x */
};
template <typename I, class F>
void each_pointer(Pooling<I> &s, F f)
{
    f(s.x);
    f(s.y);
    f(s.index);
}

template <typename I>
static __device__ __forceinline__ I divided(const Pooling<I> &p, pooling::Size size,
                                            int d, I n)
{
    return (I)divide(n, p.window.by[size][d]);
}

/* The plane of result `number`; at: its place there. */
template <typename I>
static __device__ __forceinline__ I place_of(const Pooling<I> &p, I number, I *at)
{
    ROLLED
    for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
        const I outer = divided(p, p.result, d, number);
        at[d] = number - outer * (I)p.window.by[p.result][d].divisor;
        number = outer;
    }
    return number;
}

template <typename T, bool max, typename I>
__global__ void pooling_kernel(GRID_CONSTANT(Pooling<I>) p)
{
    const int64_t number = thread_number();
    I at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    const T *plane = (const T *)p.x + place_of(p, (I)number, at) * p.plane;
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

template <typename T, typename I>
__global__ void average_backward_kernel(GRID_CONSTANT(Pooling<I>) p)
{
    const int64_t number = thread_number();
    I at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    const T *plane = (const T *)p.x + place_of(p, (I)number, at) * p.plane;
    const auto d = pooling::windows_of(p, 0, at[0]),
               h = pooling::windows_of(p, 1, at[1]),
               w = pooling::windows_of(p, 2, at[2]);
    T sum = 0;
    for (I i = d.first; i < d.end; i++) {
        const auto depth = pooling::span_of(p, 0, i);
        for (I j = h.first; j < h.end; j++) {
            const auto height = pooling::span_of(p, 1, j);
            const T *row = plane + (i * p.window.output[1] + j) * p.window.output[2];
            ROLLED
            for (I k = w.first; k < w.end; k++)
                sum += pooling::average(
                    row[k],
                    pooling::divisor_of(p, depth, height, pooling::span_of(p, 2, k)));
        }
    }
    ((T *)p.y)[number] = sum;
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
    p.result = backward ? pooling::INPUT : pooling::OUTPUT;
    p.numel = call->planes * dt_window_volume(backward ? w.input : w.output);
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
