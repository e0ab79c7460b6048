/* Pooling: a thread for each window, or in the backward pass for each element of the
 * input, which collects from the windows that have it. */
#include "cuda/kernels/layout.h"

#include "device/pooling.h"

#define DT_FN static __device__ __forceinline__
#include "ops/pooling.h"

namespace {

using pooling::Span;

/* The call, and how results are numbered. */
struct Pooling : dt_pooling_call {
    LongDivider sizes[pooling::DILATION + 1][DT_WINDOW_DIMS];
    pooling::Size result;
    int64_t numel;
    int64_t plane; /* elements of a plane of x */
};
POINTERS_OF(Pooling, f(s.x); f(s.y); f(s.index);)

static __device__ __forceinline__ int64_t divided(const Pooling &p, pooling::Size size,
                                                  int d, int64_t n)
{
    return divide(n, p.sizes[size][d]);
}

/* The plane of result `number`; at: its place there. */
static __device__ __forceinline__ int64_t place_of(const Pooling &p, int64_t number,
                                                   int64_t *at)
{
    ROLLED
    for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
        const int64_t outer = divided(p, p.result, d, number);
        at[d] = number - outer * p.sizes[p.result][d].divisor;
        number = outer;
    }
    return number;
}

template <typename T, bool max>
__global__ void pooling_kernel(GRID_CONSTANT(Pooling) p)
{
    const int64_t number = thread_number();
    int64_t at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    const T *plane = (const T *)p.x + place_of(p, number, at) * p.plane;
    const Span d = pooling::span_of(p, 0, at[0]), h = pooling::span_of(p, 1, at[1]),
               w = pooling::span_of(p, 2, at[2]);
    if constexpr (max) {
        const pooling::Found<T> best = pooling::max_of(p, plane, d, h, w);
        ((T *)p.y)[number] = best.value;
        if (p.index)
            p.index[number] = best.at;
    } else {
        ((T *)p.y)[number] = pooling::average_of(p, plane, d, h, w);
    }
}

template <typename T>
__global__ void average_backward_kernel(GRID_CONSTANT(Pooling) p)
{
    const int64_t number = thread_number();
    int64_t at[DT_WINDOW_DIMS];
    if (number >= p.numel)
        return;
    const T *plane = (const T *)p.x + place_of(p, number, at) * p.plane;
    const pooling::Windows d = pooling::windows_of(p, 0, at[0]),
                           h = pooling::windows_of(p, 1, at[1]),
                           w = pooling::windows_of(p, 2, at[2]);
    T sum = 0;
    for (int64_t i = d.first; i < d.end; i++) {
        const Span depth = pooling::span_of(p, 0, i);
        for (int64_t j = h.first; j < h.end; j++) {
            const Span height = pooling::span_of(p, 1, j);
            const T *row = plane + (i * p.window.output[1] + j) * p.window.output[2];
            ROLLED
            for (int64_t k = w.first; k < w.end; k++)
                sum += pooling::average(
                    row[k],
                    pooling::divisor_of(p, depth, height, pooling::span_of(p, 2, k)));
        }
    }
    ((T *)p.y)[number] = sum;
}

template <typename T>
int run(dt_stream stream, const dt_pooling_call *call)
{
    const bool backward = call->op == DT_POOLING_AVERAGE_BACKWARD;
    const dt_window &w = call->window;
    Pooling p = {*call,
                 {},
                 backward ? pooling::INPUT : pooling::OUTPUT,
                 call->planes * dt_window_volume(backward ? w.input : w.output),
                 dt_window_volume(backward ? w.output : w.input)};
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        p.sizes[pooling::INPUT][d] = long_divider_for(w.input[d]);
        p.sizes[pooling::OUTPUT][d] = long_divider_for(w.output[d]);
        p.sizes[pooling::STRIDE][d] = long_divider_for(w.stride[d]);
        p.sizes[pooling::DILATION][d] = long_divider_for(w.dilation[d]);
    }
    if (backward)
        return START("starting an average pooling's backward pass", stream,
                     (average_backward_kernel<T>), p.numel, p);
    if (call->op == DT_POOLING_MAX)
        return START("starting a max pooling", stream, (pooling_kernel<T, true>),
                     p.numel, p);
    return START("starting an average pooling", stream, (pooling_kernel<T, false>),
                 p.numel, p);
}

} // namespace

int dt_cuda_pooling(dt_stream stream, const dt_pooling_call *call)
{
    return call->dtype == DT_FLOAT32   ? run<float>(stream, call)
           : call->dtype == DT_FLOAT64 ? run<double>(stream, call)
                                       : run<int64_t>(stream, call);
}
