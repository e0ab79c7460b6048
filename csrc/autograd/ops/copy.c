/* Copies, conversions and fills. */
#include "autograd/grad.h"
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

int dt_recorded_to_format(dt_tensor *out, const dt_tensor *x, dt_dtype dtype,
                          dt_device device, dt_format format, bool non_blocking)
{
    return dt_recording(x) ? DT_CALL(to_copy, out, dt_value_tensor(x),
                                     dt_value_dtype(dtype), dt_value_device(device),
                                     dt_value_bool(non_blocking), dt_value_int(format))
                           : dt_to_format(out, x, dtype, device, format, non_blocking);
}

int dt_recorded_to(dt_tensor *out, const dt_tensor *x, dt_dtype dtype, dt_device device)
{
    return dt_recorded_to_format(out, x, dtype, device, DT_FORMAT_PRESERVE, false);
}

int dt_recorded_copy_into(const char *op_name, dt_tensor *target,
                          const dt_tensor *source)
{
    const dt_value values[] = {dt_value_tensor(target), dt_value_tensor(source)};
    return !target->history && !dt_recording(source)
               ? dt_copy_into(op_name, target, source)
               : dt_call_into(DT_RECORD(copy), op_name, target, 2, values);
}

/* The gradient as it is: the engine gives it the type and device of its input, and sums it
 * over the dimensions that were broadcast. */
int dt_pass_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, GRAD);
}

int dt_flat_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, GRAD) ? -1 : dt_grad_flat(g, 1, DT_FLAT_ZERO);
}

/* --- writes that ignore what was there --- */

/* The gradient of what was overwritten is zero; so is that of the probabilities of random
 * numbers. */
int dt_overwrite_backward(dt_grad *g)
{
    for (int i = 0; i < g->op->info->schema.count; i++)
        if (dt_grad_edge(g, i) >= 0)
            SET_WANTED(i, dt_grad_zeros(g, i));
    return 0;
}

int dt_unknown_backward(dt_grad *g)
{
    return dt_grad_not_implemented(DT_ERROR_RUNTIME, g->op->info->schema.name);
}

int dt_fill_backward(dt_grad *g)
{
    SET_WANTED(0, dt_grad_zeros(g, 0));
    SET_WANTED(1, GRAD);
    return 0;
}
