/* How a reduction is divided among threads: the plan, and a thread's part in it. */
#ifndef DT_CUDA_KERNELS_REDUCE_PLAN_H
#define DT_CUDA_KERNELS_REDUCE_PLAN_H

#include "cuda/kernels/warp.h"

/* How the work is laid out: results numbered along x, and for each result some threads
 * that share its elements; where results are few, its elements are cut into parts,
 * whose results are reduced by a second kernel. The cut depends on sizes alone, so a sum
 * is the same each time. */
typedef struct ReductionPlan {
    int64_t results, elements; /* kept_numel, reduced_numel */
    int64_t parts, part;       /* elements of a part */
    int threads;               /* for a result: 1, 32 or BLOCK */
    int each;                  /* results of a block */
    int64_t blocks;            /* of a part */
    Layout<1> kept, reduced;
} ReductionPlan;
NO_POINTERS(ReductionPlan)

/* Plans a reduction; sizes beyond a Layout's are an error. Results are divided into parts
 * for `spread` times the threads of a GPU. More parts balance the end of the launch, when
 * only some multiprocessors are busy, and bring concurrent reads closer together; but their
 * results have to be combined. */
int reduce_plan(const dt_reduction *call, ReductionPlan *out, int64_t spread = 8);
/* The second stage: `results` results of `parts` contiguous elements each. */
ReductionPlan reduce_plan_parts(int64_t results, int64_t parts, size_t item);

/* Starts a kernel of a reduction. A result that one thread reduces needs no barrier. More
 * blocks than a grid has are for the launch to refuse. */
#define START_REDUCTION(doing, stream, kernel, f, ...)                                 \
    ((f).threads == 1                                                                  \
         ? START_BLOCKS(doing, stream, kernel, (f).blocks * (f).parts, __VA_ARGS__)    \
         : START_BARRIERS(doing, stream, kernel, (f).blocks * (f).parts, __VA_ARGS__))

/* The part of a thread: its result, its part of it, the elements first, first + threads,
 * ... below end. False where it has none. */
struct Place {
    int64_t result, part, first, end;
    bool live;
};
static __device__ __forceinline__ Place place_of(const ReductionPlan &f)
{
    Place p;
    unsigned blocks = (unsigned)f.blocks, part = blockIdx.x / blocks;
    unsigned block = blockIdx.x - part * blocks;
    p.part = part;
    p.result = (int64_t)block * f.each + threadIdx.x / (unsigned)f.threads;
    p.first = p.part * f.part + threadIdx.x % (unsigned)f.threads;
    p.end = (p.part + 1) * f.part < f.elements ? (p.part + 1) * f.part : f.elements;
    p.live = p.result < f.results;
    return p;
}

static __device__ __forceinline__ int64_t offset_in(const Layout<1> &layout,
                                                    int64_t index)
{
    if (layout.ndim == 1)
        return index * layout.strides[0][0];
    int64_t at[1] = {0};
    layout_offsets(layout, (unsigned)index, at);
    return at[0];
}

#endif
