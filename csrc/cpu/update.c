#include "cpu/update.h"

#include "cpu/kernels.h"
#include "cpu/loop.h"
#include "cpu/pool.h"

typedef struct work {
    const dt_update_call *call;
    dt_update_kernel *kernel;
    size_t size; /* of an element */
} work;

/* Elements begin to end-1 of all tensors, one tensor after the other. */
static void run(void *context, int64_t begin, int64_t end)
{
    const work *w = context;
    const dt_update_call *call = w->call;
    int64_t low = 0, high = call->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (call->entries[middle].first <= begin)
            low = middle;
        else
            high = middle - 1;
    }
    for (; begin < end; low++) {
        const dt_update_entry *e = &call->entries[low];
        int64_t from = begin - e->first, to = end - e->first;
        to = to < e->numel ? to : e->numel;
        size_t skip = (size_t)from * w->size;
        void *states[DT_UPDATE_STATES];
        for (int k = 0; k < DT_UPDATE_STATES; k++)
            states[k] = e->states[k] ? (char *)e->states[k] + skip : NULL;
        w->kernel(to - from, (char *)e->parameter + skip,
                  (const char *)e->gradient + skip, states, call->numbers, e->own,
                  call->scale);
        begin += to - from;
    }
}

int dt_cpu_update(dt_queue queue, const dt_update_call *call)
{
    (void)queue;
    dt_update_kernel *const *kernels = dt_cpu_kernels.update->update[call->dtype];
    if (!kernels)
        return dt_fail(DT_ERROR_RUNTIME,
                       "update: elements of type %s are not supported on the CPU",
                       dt_dtype_name(call->dtype));
    work w = {call, kernels[call->op], dt_dtype_size(call->dtype)};
    const dt_update_entry *last = &call->entries[call->count - 1];
    int64_t numel = last->first + last->numel;
    if (numel < 2 * DT_LOOP_GRAIN)
        run(&w, 0, numel);
    else
        dt_pool_run(run, &w, numel, DT_LOOP_GRAIN);
    return 0;
}
