/* The geometry of windows for a kernel. Integers of 64 bits take a GPU several instructions:
 * I has 32 bits where all that the kernel computes is below 2^31. */
#ifndef DT_CUDA_KERNELS_WINDOW_H
#define DT_CUDA_KERNELS_WINDOW_H

#include <type_traits>

#include "cuda/kernels/layout.h"
#include "ops/window.h"

template <typename I>
using DividerOf = std::conditional_t<std::is_same_v<I, int32_t>, Divider, LongDivider>;

template <typename I>
static inline DividerOf<I> divider_of(int64_t divisor)
{
    if constexpr (std::is_same_v<I, int32_t>)
        return divider_for((unsigned)divisor);
    else
        return long_divider_for(divisor);
}

/* The quotient of n, which becomes what is left. */
template <typename I>
static __device__ __forceinline__ I divide_from(I *n, const DividerOf<I> &by)
{
    I quotient = (I)divide(*n, by);
    *n -= quotient * (I)by.divisor;
    return quotient;
}
/* The place of element `number` of sizes `by`: at[1], at[2], and at[0] with all planes
 * before it. */
template <typename I>
static __device__ __forceinline__ void find_place(I number, const DividerOf<I> *by,
                                                  I *at)
{
    at[2] = number;
    at[1] = divide_from(&at[2], by[2]);
    at[0] = divide_from(&at[1], by[1]);
}

template <typename I>
struct Window {
    I input[DT_WINDOW_DIMS], output[DT_WINDOW_DIMS], kernel[DT_WINDOW_DIMS],
        stride[DT_WINDOW_DIMS], padding[DT_WINDOW_DIMS], dilation[DT_WINDOW_DIMS];
    DividerOf<I> by[DT_NDIVISORS][DT_WINDOW_DIMS];
};

template <typename I>
Window<I> window_of(const dt_window &w)
{
    Window<I> window;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        window.input[d] = (I)w.input[d];
        window.output[d] = (I)w.output[d];
        window.kernel[d] = (I)w.kernel[d];
        window.stride[d] = (I)w.stride[d];
        window.padding[d] = (I)w.padding[d];
        window.dilation[d] = (I)w.dilation[d];
        window.by[DT_BY_INPUT][d] = divider_of<I>(w.input[d]);
        window.by[DT_BY_OUTPUT][d] = divider_of<I>(w.output[d]);
        window.by[DT_BY_STRIDE][d] = divider_of<I>(w.stride[d]);
        window.by[DT_BY_DILATION][d] = divider_of<I>(w.dilation[d]);
    }
    return window;
}

/* Whether the places of a window's elements, and of windows, are below 2^31 in each
 * dimension, also if one is multiplied by a size of the other; and all elements, windows
 * and taps of so many planes. */
static inline bool fits_int32(const dt_window &w, double planes)
{
    const double limit = INT32_MAX;
    bool fits = planes * (double)dt_window_volume(w.input) < limit &&
                planes * (double)dt_window_volume(w.output) < limit &&
                (double)dt_window_volume(w.kernel) < limit;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        double reach = (double)w.input[d] + 2. * (double)w.padding[d] +
                       (double)w.kernel[d] * (double)w.dilation[d] +
                       (double)w.stride[d];
        fits = fits && ((double)w.output[d] + 1) * reach < limit;
    }
    return fits;
}

#endif
