#include "python/threads.h"

#include "autograd/variable.h"
#include "base/interrupt.h"
#include "python/errors.h"
#include "tensor/ops/copy.h"

int dt_held_begin(dt_held *held, size_t room)
{
    held->count = 0;
    held->tensors = held->here;
    if (room > DT_HELD_HERE && !(held->tensors = malloc(room * sizeof *held->tensors)))
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "no memory left for a call with %zu tensors; free some", room);
    held->yielded = dt_gil_yield(true);
    held->due = dt_interrupt_set_due(DT_INTERRUPT_LATER);
    return 0;
}

void dt_held_add(dt_held *held, const dt_tensor **operand)
{
    const dt_tensor *original = *operand;
    dt_held_tensor *next = &held->tensors[held->count];
    if (!original)
        return;
    /* A tensor that is given twice has one alias, so that it is known to be the same. */
    const dt_tensor *alias = NULL;
    for (int i = 0; i < held->count && i < DT_HELD_HERE && !alias; i++)
        if (held->tensors[i].original == original)
            alias = *held->tensors[i].operand;
    next->operand = operand;
    next->original = original;
    if (alias)
        next->alias.storage = NULL;
    else
        dt_variable_alias(&next->alias, original);
    *operand = alias ? alias : &next->alias;
    held->count++;
}

int dt_hold(dt_held *held, size_t count, const dt_tensor **const *operands)
{
    if (dt_held_begin(held, count - 1) < 0)
        return -1;
    for (size_t i = 1; i < count; i++)
        if (operands[i])
            dt_held_add(held, operands[i]);
    return 0;
}

void dt_held_end(dt_held *held)
{
    dt_interrupt_set_due(held->due);
    dt_gil_yield(held->yielded);
    for (int i = 0; i < held->count; i++) {
        dt_held_tensor *h = &held->tensors[i];
        /* Autograd metadata is not part of the tensor's value. */
        dt_tensor *original = (dt_tensor *)h->original;
        *h->operand = original;
        if (h->alias.storage && h->alias.storage == original->storage &&
            !original->history) {
            original->history = h->alias.history;
            h->alias.history = NULL;
        }
    }
    /* Last, as this may run Python code. */
    for (int i = 0; i < held->count; i++)
        dt_tensor_clear(&held->tensors[i].alias);
    if (held->tensors != held->here)
        free(held->tensors);
}

static __attribute__((noinline)) int item_of_gpu(const char *function,
                                                 const dt_tensor *t, dt_scalar *out)
{
    int status;
    DT_RUN(status, true, dt_item(function, t, out), &t);
    return status;
}

int dt_python_item(const char *function, const dt_tensor *t, dt_scalar *out)
{
    int status = !dt_device_has_streams(dt_tensor_device(t))
                     ? dt_item(function, t, out)
                     : item_of_gpu(function, t, out);
    return status < 0 ? dt_raise_status() : 0;
}
