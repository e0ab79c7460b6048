#include "cuda/kernels/foreach_norm.h"

#include <stdlib.h>

#include "cuda/runtime/allocator.h"
#include "cuda/kernels/reduce_kernels.h"
#include "cuda/runtime/transfer.h"

namespace {

/* What a block has to know of a tensor; a table of these lies in device memory. */
struct NormTensor {
    const void *data;
    int64_t numel;
    int64_t first; /* of its partial results */
};

/* A block for each partial result. */
template <typename T>
__global__ void ENOUGH_BLOCKS norm_kernel(T *partials, const NormTensor *rows,
                                          int64_t count, GRID_CONSTANT(Reduction) c,
                                          Followed)
{
    const NormTensor &row = row_of_block(rows, count);
    const char *data = FOLLOW((const char *)row.data);
    int64_t begin = ((int64_t)blockIdx.x - row.first) * DT_FOREACH_NORM_CHUNK;
    int64_t end = begin + DT_FOREACH_NORM_CHUNK;
    end = end < row.numel ? end : row.numel;
    T acc = fold_elements<T>(c, data, is_aligned(data, chains_of<T> * sizeof(T)),
                             begin + threadIdx.x * chains_of<T>, end,
                             BLOCK * chains_of<T>, zero_of<T, T>(c.op));
    acc = meet<T>(c.op, acc, BLOCK);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = acc;
}

template <typename T>
static int norm_start(cudaStream_t stream, dt_reduce_op op,
                      const dt_foreach_norm_call *call, const NormTensor *rows,
                      void **pointers)
{
    const dt_foreach_norm_entry &last = call->entries[call->count - 1];
    int64_t blocks =
        last.first + (last.numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
    Reduction c = {};
    c.op = op;
    c.parameter = call->parameter;
    c.mapped = true;
    c.f.folded.ndim = 1;
    c.f.folded.strides[0][0] = sizeof(T);
    CUDA_TRY("starting a norm",
             LAUNCH_BARRIERS((norm_kernel<T>), blocks, BLOCK, 0, stream,
                             (T *)call->partials, rows, call->count, c,
                             FOLLOWED(pointers, call->count)));
    return 0;
}

} // namespace

int foreach_norm_run(dt_stream stream, dt_reduce_op op,
                     const dt_foreach_norm_call *call)
{
    if (device_use(stream.device))
        return -1;
    size_t bytes = (size_t)call->count * sizeof(NormTensor);
    NormTensor *rows = (NormTensor *)calloc((size_t)call->count, sizeof(NormTensor));
    void **pointers = (void **)malloc((size_t)call->count * sizeof(void *));
    cudaStream_t handle = (cudaStream_t)stream.handle;
    void *table = nullptr;
    int status = -1;
    if (!rows || !pointers) {
        dt_fail(DT_ERROR_HOST_MEMORY, "norm: no memory is left; free some");
        goto done;
    }
    for (int64_t i = 0; i < call->count; i++) {
        rows[i] = {call->entries[i].data, call->entries[i].numel,
                   call->entries[i].first};
        pointers[i] = (void *)call->entries[i].data;
    }
    if (allocator_allocate(stream, bytes, &table) ||
        transfer_to_device_staged(stream, table, rows, bytes))
        goto done;
    switch (call->dtype) {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        status =                                                                       \
            norm_start<type>(handle, op, call, (const NormTensor *)table, pointers);   \
        break;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
    default:
        dt_fail(DT_ERROR_RUNTIME, "norm: elements of type %s have none",
                dt_dtype_name(call->dtype));
    }
done:
    if (table)
        allocator_release(stream.device, table, bytes);
    free(pointers);
    free(rows);
    return status;
}
