#include "cuda/fold.h"

#include <stdlib.h>

#include "cuda/reduce_kernels.h"
#include "cuda/transfer.h"

/* What a block has to know of a tensor; a table of these lies in device memory. */
struct FoldRow {
    const void *data;
    int64_t numel;
    int64_t first; /* of its partial results */
};

/* A block for each partial result. */
template <class Op, typename T>
__global__ void fold_kernel(typename Op::Acc *partials, const FoldRow *rows,
                            int64_t count, double parameter, Followed)
{
    typedef typename Op::Acc Acc;
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (rows[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    const T *data = FOLLOW((const T *)rows[low].data);
    int64_t begin = ((int64_t)blockIdx.x - rows[low].first) * DT_FOLD_CHUNK;
    int64_t end = begin + DT_FOLD_CHUNK;
    end = end < rows[low].numel ? end : rows[low].numel;
    Acc acc = Op::zero();
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
        acc = Op::combine(acc, Op::map(data[i], parameter));
    acc = meet<Op>(acc, BLOCK);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = acc;
}

template <class Op, typename T>
static int launch(cudaStream_t stream, const dt_fold_call *call, const FoldRow *rows,
                  void **pointers)
{
    const dt_fold_entry &last = call->entries[call->count - 1];
    int64_t blocks = last.first + (last.numel + DT_FOLD_CHUNK - 1) / DT_FOLD_CHUNK;
    CUDA_TRY("starting a norm",
             LAUNCH_BARRIERS((fold_kernel<Op, T>), blocks, BLOCK, 0, stream,
                             (typename Op::Acc *)call->partials, rows, call->count,
                             call->parameter, FOLLOWED(pointers, call->count)));
    return 0;
}

template <typename T>
static int launch_op(cudaStream_t stream, dt_reduce_op op, const dt_fold_call *call,
                     const FoldRow *rows, void **pointers)
{
    /* Only norms are asked for. */
#define LAUNCH_ROW(name)                                                               \
    return launch<reduce_##name<T>, T>(stream, call, rows, pointers)
#define CASE_TOTAL(name) break
#define CASE_FLOAT(name) break
#define CASE_ORDER(name) break
#define CASE_TRUTH(name) break
#define CASE_NORM(name)  LAUNCH_ROW(name)
    switch (op) {
#define REDUCE(name, class, identity, map, combine, finish, doc)                       \
    case DT_REDUCE_##name:                                                             \
        CASE_##class(name);
#include "ops/reduce.def"
#undef REDUCE
    case DT_NREDUCE:
        break;
    }
    return dt_fail(DT_ERROR_RUNTIME, "norm: this reduction does not take many tensors");
}

int fold_run(dt_queue queue, dt_reduce_op op, const dt_fold_call *call)
{
    if (device_use(queue.device))
        return -1;
    size_t bytes = (size_t)call->count * sizeof(FoldRow);
    FoldRow *rows = (FoldRow *)calloc((size_t)call->count, sizeof(FoldRow));
    void **pointers = (void **)malloc((size_t)call->count * sizeof(void *));
    cudaStream_t stream = (cudaStream_t)queue.stream;
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
    if (allocator_allocate(queue, bytes, &table) ||
        transfer_upload_table(queue, table, rows, bytes))
        goto done;
    switch (call->dtype) {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        status = launch_op<type>(stream, op, call, (const FoldRow *)table, pointers);  \
        break;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
    default:
        dt_fail(DT_ERROR_RUNTIME, "norm: elements of type %s have none",
                dt_dtype_name(call->dtype));
    }
done:
    if (table)
        allocator_release(queue.device, table, bytes);
    free(pointers);
    free(rows);
    return status;
}
