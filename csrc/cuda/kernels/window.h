/* The geometry of windows for a kernel, in integers of 32 bits: those of 64 take a GPU
 * several instructions, and each kernel two to three times the code. */
#ifndef DT_CUDA_KERNELS_WINDOW_H
#define DT_CUDA_KERNELS_WINDOW_H

#include "cuda/kernels/layout.h"
#include "ops/window.h"

/* Divides a product of two sizes, below 2^62, by a size below 2^31, as Divider does. */
struct ProductDivider {
    uint64_t magic;
    unsigned shift;
};

static inline ProductDivider product_divider_for(int64_t divisor)
{
    ProductDivider d = {0, 0};
    while (divisor >> (d.shift + 1))
        d.shift++;
    const unsigned __int128 power = (unsigned __int128)1 << (63 + d.shift);
    d.magic = (uint64_t)((power + (uint64_t)divisor - 1) / (uint64_t)divisor);
    return d;
}

static __device__ __forceinline__ int64_t divide(uint64_t n, const ProductDivider &d)
{
    return (int64_t)((uint64_t)((unsigned __int128)(2 * n) * d.magic >> 64) >> d.shift);
}

/* The quotient of n, which becomes what is left. */
static __device__ __forceinline__ int32_t divide_from(int32_t *n, const Divider &by)
{
    const int32_t quotient = (int32_t)divide((unsigned)*n, by);
    *n -= quotient * (int32_t)by.divisor;
    return quotient;
}
/* The position of element `number` of sizes `by`: at[1], at[2], and at[0] with all planes
 * before it. */
static __device__ __forceinline__ void find_place(int32_t number, const Divider *by,
                                                  int32_t *at)
{
    at[2] = number;
    at[1] = divide_from(&at[2], by[2]);
    at[0] = divide_from(&at[1], by[1]);
}

struct Window {
    int32_t input[DT_WINDOW_DIMS], output[DT_WINDOW_DIMS], kernel[DT_WINDOW_DIMS],
        stride[DT_WINDOW_DIMS], padding[DT_WINDOW_DIMS], dilation[DT_WINDOW_DIMS];
    Divider by[DT_NDIVISORS][DT_WINDOW_DIMS];
};

static __device__ __forceinline__ bool is_below(int32_t n, int32_t end)
{
    return (unsigned)n < (unsigned)end;
}

/* The window of dimension d that has element `at` as its tap k, if there is one. */
static __device__ __forceinline__ bool meets(const Window &w, int d, int32_t at,
                                             int32_t k, int32_t *window)
{
    if (k >= w.kernel[d])
        return false;
    int32_t start = at + w.padding[d] - k * w.dilation[d];
    if (start < 0)
        return false;
    *window = divide_from(&start, w.by[DT_BY_STRIDE][d]);
    return start == 0 && *window < w.output[d];
}

/* The window, and how many planes a kernel takes at a time, so that it numbers fewer than
 * 2^31 elements and windows. -1 after dt_fail, if one plane is too large. */
static inline int window_of(const dt_window &w, Window *out, int64_t *planes)
{
    const double limit = INT32_MAX;
    const double volumes[] = {
        (double)w.input[0] * (double)w.input[1] * (double)w.input[2],
        (double)w.output[0] * (double)w.output[1] * (double)w.output[2],
        (double)w.kernel[0] * (double)w.kernel[1] * (double)w.kernel[2]};
    const double most = volumes[0] > volumes[1] ? volumes[0] : volumes[1];
    bool fits = most < limit && volumes[2] < limit;
    *planes = (int64_t)(limit / most);
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        /* A single window has no stride, a single tap no dilation. */
        const int64_t stride = w.output[d] > 1 ? w.stride[d] : 1,
                      dilation = w.kernel[d] > 1 ? w.dilation[d] : 1;
        const double reach = (double)w.output[d] * (double)stride +
                             (double)w.kernel[d] * (double)dilation +
                             (double)w.input[d] + (double)w.padding[d];
        fits = fits && reach < limit;
        if (!fits)
            return dt_fail(DT_ERROR_RUNTIME,
                           "a GPU takes windows over planes of fewer than 2**31 "
                           "elements, whose padding and strides reach no further; "
                           "compute this on the CPU, or in parts");
        out->input[d] = (int32_t)w.input[d];
        out->output[d] = (int32_t)w.output[d];
        out->kernel[d] = (int32_t)w.kernel[d];
        out->stride[d] = (int32_t)stride;
        out->padding[d] = (int32_t)w.padding[d];
        out->dilation[d] = (int32_t)dilation;
        out->by[DT_BY_INPUT][d] = divider_for((unsigned)w.input[d]);
        out->by[DT_BY_OUTPUT][d] = divider_for((unsigned)w.output[d]);
        out->by[DT_BY_STRIDE][d] = divider_for((unsigned)stride);
        out->by[DT_BY_DILATION][d] = divider_for((unsigned)dilation);
    }
    return 0;
}

#endif
