/* Reductions, and where the extremes are. */
#ifndef DT_CUDA_REDUCE_H
#define DT_CUDA_REDUCE_H

#include "cuda/layout.h"
#include "device/backend.h"

/* How the work is laid out: results numbered along x, and for each result some threads that
 * share its elements; where results are few, its elements are cut into parts, whose results
 * are folded by a second kernel. The cut depends on sizes alone, so a sum is the same each time. */
typedef struct Folding {
    int64_t results, elements; /* kept_numel, folded_numel */
    int64_t parts, part;       /* elements of a part */
    int threads;               /* for a result: 1, 32 or BLOCK */
    Layout<1> kept, folded;
} Folding;
NO_POINTERS(Folding)

/* Plans the folding of a reduction; sizes beyond a Layout's are an error. */
int reduce_plan(const dt_reduction *call, Folding *out);
/* The second stage: `results` results of `parts` elements that follow one another. */
Folding reduce_plan_parts(int64_t results, int64_t parts, size_t item);

static inline int64_t reduce_blocks(const Folding *f)
{
    int64_t each = BLOCK / f->threads;
    return (f->results + each - 1) / each * f->parts;
}

typedef int (*reduce_fn)(dt_queue queue, const dt_reduction *call);

/* The rows for one input type; NULL where a row's class does not take it. */
typedef struct reduce_table {
    reduce_fn rows[DT_NREDUCE];
} reduce_table;
#define DT_DTYPE(ID, name, alias, type, class) extern const reduce_table reduce_##ID;
#include "ops/dtype.def"

int reduce_run(dt_queue queue, dt_reduce_op op, const dt_reduction *call);
int reduce_arg(dt_queue queue, bool greatest, const dt_reduction *call);

/* The place of a thread: its result, its part, the elements first, first + threads, ... below
 * end. False where it has none. */
struct Place {
    int64_t result, part, first, end;
    bool live;
};
static __device__ __forceinline__ Place place_of(const Folding &f)
{
    Place p;
    int64_t each = BLOCK / f.threads;
    int64_t blocks = (f.results + each - 1) / each;
    int64_t block = blockIdx.x;
    p.part = block / blocks;
    p.result = (block - p.part * blocks) * each + threadIdx.x / (unsigned)f.threads;
    p.first = p.part * f.part + threadIdx.x % (unsigned)f.threads;
    p.end = (p.part + 1) * f.part < f.elements ? (p.part + 1) * f.part : f.elements;
    p.live = p.result < f.results;
    return p;
}
static __device__ __forceinline__ int64_t offset_in(const Layout<1> &layout, int64_t index)
{
    if (layout.ndim == 1)
        return index * layout.strides[0][0];
    int64_t at[1] = {0};
    layout_offsets(layout, (unsigned)index, at);
    return at[0];
}

#endif
