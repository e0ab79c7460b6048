#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"
#include "cpu/runtime/pool.h"

typedef struct work {
    const dt_optim_call *call;
    dt_optim_kernel *kernel;
    size_t size; /* of an element */
} work;

/* Elements begin to end-1 of all tensors, one tensor after the other. */
static void run_update(void *context, int64_t begin, int64_t end)
{
    const work *w = context;
    const dt_optim_call *call = w->call;
    int64_t low = 0, high = call->count - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (call->entries[middle].first <= begin)
            low = middle;
        else
            high = middle - 1;
    }
    for (; begin < end; low++) {
        const dt_optim_entry *e = &call->entries[low];
        int64_t from = begin - e->first, to = end - e->first;
        to = to < e->numel ? to : e->numel;
        size_t skip = (size_t)from * w->size;
        void *states[DT_OPTIM_STATES];
        for (int k = 0; k < DT_OPTIM_STATES; k++)
            states[k] = e->states[k] ? (char *)e->states[k] + skip : NULL;
        w->kernel(to - from, (char *)e->parameter + skip,
                  (const char *)e->gradient + skip, states, call->numbers, e->own,
                  call->scale, call->found);
        begin += to - from;
    }
}

int dt_cpu_optim_step(dt_stream stream, const dt_optim_call *call)
{
    (void)stream;
    const dt_optim_kernels *families = dt_cpu_kernels.optim;
    dt_optim_kernel *const *kernels =
        call->dtype == DT_FLOAT32 ? families->float32 : families->float64;
    work w = {call, kernels[call->op], dt_dtype_size(call->dtype)};
    const dt_optim_entry *last = &call->entries[call->count - 1];
    int64_t numel = last->first + last->numel;
    if (numel < 2 * DT_LOOP_GRAIN)
        run_update(&w, 0, numel);
    else
        dt_pool_run(run_update, &w, numel, DT_LOOP_GRAIN);
    return 0;
}
