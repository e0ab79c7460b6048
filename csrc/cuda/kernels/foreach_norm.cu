#include "cuda/kernels/reduce_kernels.h"
#include "cuda/kernels/tensor_table.h"

namespace {

struct NormTensor {
    const void *data;
    int64_t numel;
    int64_t first; /* of its partial results in this launch */
};
POINTERS_OF(NormTensor, f(s.data);)

/* A block for each partial result. */
template <typename T, class Table>
__global__ void __launch_bounds__(BLOCK, 4)
    norm_kernel(T *partials, GRID_CONSTANT(Table) table, GRID_CONSTANT(Reduction) c)
{
    const NormTensor &row = row_of_block(table);
    const char *data = (const char *)row.data;
    int64_t begin = ((int64_t)blockIdx.x - row.first) * DT_FOREACH_NORM_CHUNK;
    int64_t end = begin + DT_FOREACH_NORM_CHUNK;
    end = end < row.numel ? end : row.numel;
    size_t bytes = pack_of<T> * (size_t)c.from.size;
    Runs<T, T, pack_of<T>> mine;
    reduce_elements(c, data, is_aligned(data, bytes), begin, end, zero_of<T, T>(c.op),
                    mine);
    T acc = meet<T>(c.op, mine.chains, BLOCK);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = acc;
}

template <typename T, class Table>
int start_norms(dt_stream stream, dt_reduce_op op, const dt_foreach_norm_call *call,
                const Table &table, int64_t begin, int64_t blocks)
{
    Reduction c = {};
    c.op = op;
    c.parameter = call->parameter;
    c.mapped = true;
    c.f.threads = BLOCK;
    c.f.reduced.ndim = 1;
    c.from = stored_as(call->stored);
    c.f.reduced.strides[0][0] = c.from.size;
    return START_BARRIERS("starting a norm", stream, (norm_kernel<T, Table>), blocks,
                          (T *)call->partials + call->entries[begin].first, table, c);
}

} // namespace

int dt_cuda_foreach_norm(dt_stream stream, dt_reduce_op op,
                         const dt_foreach_norm_call *call)
{
    return for_tables<NormTensor>(
        call->count,
        [&](int64_t i, NormTensor &row) {
            row.data = call->entries[i].data;
            row.numel = call->entries[i].numel;
            return (row.numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
        },
        [&](const auto &table, int64_t begin, int64_t blocks) {
            if (call->dtype == DT_FLOAT32)
                return start_norms<float>(stream, op, call, table, begin, blocks);
            if (call->dtype == DT_FLOAT64)
                return start_norms<double>(stream, op, call, table, begin, blocks);
            return dt_fail(DT_ERROR_RUNTIME, "norm: not defined for tensors of type %s",
                           dt_dtype_name(call->dtype));
        });
}
