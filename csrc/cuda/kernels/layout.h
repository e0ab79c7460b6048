/* Index arithmetic for kernels over strided operands: from a running number to byte
 * offsets, dividing by multiplication. */
#ifndef DT_CUDA_KERNELS_LAYOUT_H
#define DT_CUDA_KERNELS_LAYOUT_H

#include "cuda/kernels/divider.h"
#include "cuda/kernels/vector.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"
#include "device/plan.h"

/* Divides by a positive constant where the quotient is below 2^51: small numbers as
 * above, others as doubles, whose quotient is off by one at most. What a compiler makes
 * of a division of 64 bits is a hundred instructions in each kernel that has one. */
struct LongDivider {
    Divider small;
    int64_t divisor;
    double inverse;
};

NO_POINTERS(LongDivider)

static inline LongDivider long_divider_for(int64_t divisor)
{
    bool small = divisor < (int64_t)1 << 31;
    return {divider_for(small ? (unsigned)divisor : 1), divisor, 1 / (double)divisor};
}

static __device__ __forceinline__ int64_t divide(int64_t n, const LongDivider &d)
{
    if ((n | d.divisor) < (int64_t)1 << 31)
        return divide((unsigned)n, d.small);
    int64_t quotient = (int64_t)((double)n * d.inverse);
    int64_t rest = n - quotient * d.divisor;
    return quotient + (rest < 0 ? -1 : rest >= d.divisor);
}

/* Operands of up to N tensors over one iteration space of fewer than 2^31 elements. */
template <int N>
struct Layout {
    int ndim;
    Divider sizes[DT_MAX_NDIM];
    int64_t strides[N][DT_MAX_NDIM]; /* bytes */
};
template <int N, class F>
void each_pointer(Layout<N> &, F)
{
}

/* Byte offsets of element `index` in each operand. Returns its index in the innermost
 * dimension. */
template <int N>
static __device__ __forceinline__ unsigned
layout_offsets(const Layout<N> &layout, unsigned index, int64_t *offsets)
{
    unsigned innermost = index;
    UNROLL
    for (int k = 0; k < N; k++)
        offsets[k] = 0;
    ROLLED
    for (int d = layout.ndim - 1; d > 0; d--) {
        unsigned outer = divide(index, layout.sizes[d]);
        unsigned at = index - outer * layout.sizes[d].divisor;
        if (d == layout.ndim - 1)
            innermost = at;
        /* Peeled: nvcc applies the outer pragma to a loop of one iteration. */
        offsets[0] += at * layout.strides[0][d];
        UNROLL
        for (int k = 1; k < N; k++)
            offsets[k] += at * layout.strides[k][d];
        index = outer;
    }
    /* The rest is the index in the outermost dimension. */
    UNROLL
    for (int k = 0; k < N; k++)
        offsets[k] += index * layout.strides[k][0];
    return innermost;
}

#define MAX_LAYOUT_NUMEL ((int64_t)1 << 31)

/* Calls run(piece) for the plan, or, where it has too many elements for a Layout, for
 * parts of it along the outermost dimension. */
template <class Run>
int each_piece(const dt_plan *plan, Run run)
{
    if (plan->numel < MAX_LAYOUT_NUMEL)
        return run(plan);
    int64_t inner = plan->numel / plan->shape[0];
    /* A power of two: the pieces of one run stay aligned. */
    int64_t rows = MAX_LAYOUT_NUMEL / 2 / inner;
    if (rows < 1)
        rows = 1;
    for (int64_t first = 0; first < plan->shape[0]; first += rows) {
        dt_plan part = *plan;
        part.shape[0] = first + rows > plan->shape[0] ? plan->shape[0] - first : rows;
        part.numel = part.shape[0] * inner;
        for (int k = 0; k < part.noperands; k++)
            if (!part.operands[k].scalar)
                part.operands[k].data =
                    (char *)part.operands[k].data + first * part.operands[k].strides[0];
        if (part.shape[0] == 1 && part.ndim > 1) {
            part.ndim--;
            for (int d = 0; d < part.ndim; d++) {
                part.shape[d] = part.shape[d + 1];
                for (int k = 0; k < part.noperands; k++)
                    part.operands[k].strides[d] = part.operands[k].strides[d + 1];
            }
        }
        if (each_piece(&part, run))
            return -1;
    }
    return 0;
}

template <int N>
Layout<N> layout_of(const dt_plan *plan)
{
    Layout<N> layout;
    layout.ndim = plan->ndim;
    for (int d = 0; d < plan->ndim; d++) {
        layout.sizes[d] = divider_for((unsigned)plan->shape[d]);
        for (int k = 0; k < N; k++)
            layout.strides[k][d] =
                plan->operands[k].scalar ? 0 : plan->operands[k].strides[d];
    }
    return layout;
}

#define BLOCK 256

/* A kernel of many rows takes as many registers as its hungriest: no more than leave
 * room for the threads that keep memory busy, so that the hungriest put some of theirs
 * aside. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MANY_BLOCKS 4
#else
#define MANY_BLOCKS 6
#endif
#define ENOUGH_BLOCKS __launch_bounds__(BLOCK, MANY_BLOCKS)

/* Queues a kernel on a stream: at least `threads` threads in blocks of BLOCK, or that
 * many blocks of threads that share memory, shuffle or wait for each other. Gives 0, or
 * -1 after dt_fail. CUDA loads a kernel at its first launch, which may allocate. */
#define START(doing, stream, kernel, threads, ...)                                     \
    START_BLOCKS(doing, stream, kernel, ((threads) + BLOCK - 1) / BLOCK, ##__VA_ARGS__)
#define START_BLOCKS(doing, stream, kernel, blocks, ...)                               \
    start_result(doing,                                                                \
                 (Relaxed(), LAUNCH(kernel, blocks, BLOCK, 0,                          \
                                    (cudaStream_t)(stream).handle, ##__VA_ARGS__)))
#define START_BARRIERS(doing, stream, kernel, blocks, ...)                             \
    start_result(                                                                      \
        doing,                                                                         \
        (Relaxed(), LAUNCH_BARRIERS(kernel, blocks, BLOCK, 0,                          \
                                    (cudaStream_t)(stream).handle, ##__VA_ARGS__)))
static inline int start_result(const char *doing, cudaError_t error)
{
    return error == cudaSuccess ? 0 : cuda_fail(error, doing);
}

/* The number of the thread that START started. */
static __device__ __forceinline__ int64_t thread_number()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

#endif
