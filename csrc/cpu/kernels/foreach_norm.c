#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"
#include "cpu/runtime/pool.h"

typedef struct work {
    const dt_foreach_norm_call *call;
    const dt_reduce_kernel *kernel;
    size_t size; /* of an element, and of a partial result */
} work;

/* Partial results begin to end-1. */
static void run_norms(void *context, int64_t begin, int64_t end)
{
    const work *w = context;
    const dt_foreach_norm_call *call = w->call;
    int64_t low = 0, high = call->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (call->entries[middle].first <= begin)
            low = middle;
        else
            high = middle - 1;
    }
    for (int64_t i = begin; i < end; i++) {
        while (low + 1 < call->count && call->entries[low + 1].first <= i)
            low++;
        const dt_foreach_norm_entry *e = &call->entries[low];
        int64_t from = (i - e->first) * DT_FOREACH_NORM_CHUNK, n = e->numel - from;
        w->kernel->run(n < DT_FOREACH_NORM_CHUNK ? n : DT_FOREACH_NORM_CHUNK,
                       (const char *)e->data + (size_t)from * w->size, call->parameter,
                       (char *)call->partials + (size_t)i * w->size);
    }
}

int dt_cpu_foreach_norm(dt_stream stream, dt_reduce_op op,
                        const dt_foreach_norm_call *call)
{
    (void)stream;
    const dt_reduce_kernel *kernels = dt_cpu_kernels.reduce->rows[call->dtype];
    if (!kernels || !kernels[op].run)
        return dt_fail(DT_ERROR_RUNTIME, "norm: not defined for tensors of type %s",
                       dt_dtype_name(call->dtype));
    work w = {call, &kernels[op], dt_dtype_size(call->dtype)};
    int64_t numel = 0, partials = 0;
    for (int64_t i = 0; i < call->count; i++)
        numel += call->entries[i].numel;
    const dt_foreach_norm_entry *last = &call->entries[call->count - 1];
    partials =
        last->first + (last->numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
    if (numel < 2 * DT_LOOP_GRAIN)
        run_norms(&w, 0, partials);
    else
        return dt_pool_try(run_norms, &w, partials,
                           1 + partials * DT_LOOP_GRAIN / numel);
    return 0;
}
