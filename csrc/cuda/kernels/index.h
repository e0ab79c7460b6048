/* An index tensor as kernels see it, and what kernels of index.cu leave to those of
 * index_ordered.cu. */
#ifndef DT_CUDA_KERNELS_INDEX_H
#define DT_CUDA_KERNELS_INDEX_H

#include "cuda/kernels/compute.h"
#include "cuda/runtime/kernel_errors.h"

/* dt_cuda_index() with the same result in every run, for all but DT_INDEX_READ. The
 * call has one index, and arithmetic on floats only. */
int index_in_order(dt_stream stream, dt_index_op op, const dt_index_call *s,
                   KernelReport *report);

namespace {

/* An index as a kernel sees it. */
struct Index {
    const char *op_name; /* the host's, for the report */
    const char *data;
    int64_t low, size; /* valid indices: low to size - 1, negative ones from the end */
    int64_t stride;    /* bytes from one index to the next */
    int dim;           /* -1: what is out of range has been reported */
};
POINTERS_OF(Index, f(s.data);)

static Index index_of(const dt_index_call *s, int nth)
{
    const dt_index_dims &index = s->indices[nth];
    return {s->op_name,
            (const char *)index.data,
            s->wraps ? -index.size : 0,
            index.size,
            index.stride,
            index.dim};
}

static __device__ __forceinline__ bool is_place(int64_t place, const Index &index)
{
    return (uint64_t)(place - index.low) < (uint64_t)(index.size - index.low);
}
/* In bytes of the table. */
static __device__ __forceinline__ int64_t place_offset(int64_t place,
                                                       const Index &index)
{
    return (place + (place < 0 ? index.size : 0)) * index.stride;
}

static __device__ __forceinline__ void report_place(KernelReport *report, int64_t place,
                                                    const Index &index)
{
    if (index.dim >= 0)
        report_range(report, index.op_name, place, index.low, index.size, index.dim);
}

/* Byte offset of an element by its number; ndim is 1 or more. */
static __device__ __forceinline__ int64_t strided_offset(unsigned number, int ndim,
                                                         const Divider *sizes,
                                                         const int64_t *strides)
{
    int64_t offset = 0;
    ROLLED
    for (int d = ndim - 1;; d--) {
        unsigned outer = divide(number, sizes[d]);
        offset += (number - outer * sizes[d].divisor) * strides[d];
        number = outer;
        if (!d)
            return offset;
    }
}

} // namespace

#endif
