/* Pooling: a thread for each window, or in the backward pass for each element of the
 * input, which collects from the windows that have it. */
#include "cuda/kernels/layout.h"

#include "device/pooling.h"

#define DT_FN static __device__ __forceinline__
#include "ops/pooling.h"

namespace {

template <typename I>
struct Window {
    I input[DT_WINDOW_DIMS], output[DT_WINDOW_DIMS], kernel[DT_WINDOW_DIMS],
        stride[DT_WINDOW_DIMS], padding[DT_WINDOW_DIMS], dilation[DT_WINDOW_DIMS];
};
template <typename I>
using DividerOf = std::conditional_t<std::is_same_v<I, int32_t>, Divider, LongDivider>;

/* The call, and how results are numbered. Integers of 64 bits take a GPU several
 * instructions: I has 32 where that is enough. */
template <typename I>
struct Pooling {
    const void *x;
    void *y;
    int64_t *index;
    bool adaptive, counts_padding;
    I divisor;
    Window<I> window;
    DividerOf<I> sizes[pooling::DILATION + 1][DT_WINDOW_DIMS];
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
    return (I)divide(n, p.sizes[size][d]);
}

/* The plane of result `number`; at: its place there. */
template <typename I>
static __device__ __forceinline__ I place_of(const Pooling<I> &p, I number, I *at)
{
    ROLLED
    for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
        const I outer = divided(p, p.result, d, number);
        at[d] = number - outer * (I)p.sizes[p.result][d].divisor;
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

/* Whether all that the kernels compute is below 2^31. */
static bool fits_int32(const dt_pooling_call &c)
{
    const dt_window &w = c.window;
    const double limit = INT32_MAX, planes = (double)c.planes;
    bool fits = planes * (double)dt_window_volume(w.input) < limit &&
                planes * (double)dt_window_volume(w.output) < limit &&
                (double)dt_window_volume(w.kernel) < limit &&
                (double)c.divisor < limit && (double)c.divisor > -limit;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        double reach = (double)w.input[d] + 2. * (double)w.padding[d] +
                       (double)w.kernel[d] * (double)w.dilation[d] +
                       (double)w.stride[d];
        fits = fits && ((double)w.output[d] + 1) * reach < limit;
    }
    return fits;
}

template <typename I>
static DividerOf<I> divider_of(int64_t divisor)
{
    if constexpr (std::is_same_v<I, int32_t>)
        return divider_for((unsigned)divisor);
    else
        return long_divider_for(divisor);
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
    p.result = backward ? pooling::INPUT : pooling::OUTPUT;
    p.numel = call->planes * dt_window_volume(backward ? w.input : w.output);
    p.plane = dt_window_volume(backward ? w.output : w.input);
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        p.window.input[d] = (I)w.input[d];
        p.window.output[d] = (I)w.output[d];
        p.window.kernel[d] = (I)w.kernel[d];
        p.window.stride[d] = (I)w.stride[d];
        p.window.padding[d] = (I)w.padding[d];
        p.window.dilation[d] = (I)w.dilation[d];
        p.sizes[pooling::INPUT][d] = divider_of<I>(w.input[d]);
        p.sizes[pooling::OUTPUT][d] = divider_of<I>(w.output[d]);
        p.sizes[pooling::STRIDE][d] = divider_of<I>(w.stride[d]);
        p.sizes[pooling::DILATION][d] = divider_of<I>(w.dilation[d]);
    }
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
        return fits_int32(*call) ? run<float, int32_t>(stream, call)
                                 : run<float, int64_t>(stream, call);
    case DT_FLOAT64:
        return run<double, int64_t>(stream, call);
    default:
        return run<int64_t, int64_t>(stream, call);
    }
}
