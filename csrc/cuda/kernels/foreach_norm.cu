#include "cuda/kernels/reduce_kernels.h"
#include "cuda/kernels/tensor_table.h"

namespace {

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
    T acc = reduce_elements<T>(c, data, is_aligned(data, chains_of<T> * sizeof(T)),
                               begin + threadIdx.x * chains_of<T>, end,
                               BLOCK * chains_of<T>, zero_of<T, T>(c.op));
    acc = meet<T>(c.op, acc, BLOCK);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = acc;
}

template <typename T>
int start(dt_stream stream, dt_reduce_op op, const dt_foreach_norm_call *call,
          const NormTensor *rows, void **pointers)
{
    const dt_foreach_norm_entry &last = call->entries[call->count - 1];
    int64_t blocks =
        last.first + (last.numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
    Reduction c = {};
    c.op = op;
    c.parameter = call->parameter;
    c.mapped = true;
    c.f.reduced.ndim = 1;
    c.f.reduced.strides[0][0] = sizeof(T);
    return START_BARRIERS("starting a norm", stream, (norm_kernel<T>), blocks,
                          (T *)call->partials, rows, call->count, c,
                          FOLLOWED(pointers, call->count));
}

} // namespace

int dt_cuda_foreach_norm(dt_stream stream, dt_reduce_op op,
                         const dt_foreach_norm_call *call)
{
    return with_table<NormTensor>(
        stream, "norm", call->count, 1,
        [&](NormTensor *rows, void **pointers) {
            for (int64_t i = 0; i < call->count; i++) {
                const dt_foreach_norm_entry &e = call->entries[i];
                rows[i] = {e.data, e.numel, e.first};
                pointers[i] = (void *)e.data;
            }
        },
        [&](const NormTensor *rows, void **pointers) {
            if (call->dtype == DT_FLOAT32)
                return start<float>(stream, op, call, rows, pointers);
            if (call->dtype == DT_FLOAT64)
                return start<double>(stream, op, call, rows, pointers);
            return dt_fail(DT_ERROR_RUNTIME, "norm: elements of type %s have none",
                           dt_dtype_name(call->dtype));
        });
}
