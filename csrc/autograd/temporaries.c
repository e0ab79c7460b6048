#include "autograd/temporaries.h"

#include <math.h>
#include <stdlib.h>

#include "autograd/recorded.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/ops.h"

void dt_scope_end(dt_scope *scope)
{
    for (int i = 0; i < scope->count; i++)
        dt_tensor_clear(&scope->slots[i]);
    while (scope->more) {
        dt_scope *next = scope->more;
        scope->more = next->more;
        for (int i = 0; i < next->count; i++)
            dt_tensor_clear(&next->slots[i]);
        free(next);
    }
    scope->count = 0;
}

dt_tensor *dt_scope_slot(dt_scope *scope)
{
    dt_scope *chunk = scope;
    if (chunk->count == DT_SCOPE_SLOTS) {
        chunk = scope->more;
        if (!chunk || chunk->count == DT_SCOPE_SLOTS) {
            chunk = malloc(sizeof *chunk);
            if (!chunk) {
                scope->failed = true;
                dt_fail(DT_ERROR_HOST_MEMORY, "backward: no memory is left; free some");
                return NULL;
            }
            dt_scope_begin(chunk);
            chunk->more = scope->more;
            scope->more = chunk;
        }
    }
    dt_tensor *slot = &chunk->slots[chunk->count++];
    slot->storage = NULL;
    return slot;
}

/* The value of a formula's part that needs no tensor: of numbers, or of one of args.
 * Fails for what no derivative asks for. */
static bool value_of(dt_elementwise_op op, const dt_arg *args, dt_arg *out)
{
    const dt_tensor *x = args[0].tensor, *y = NULL;
    int arity = dt_elementwise_rows[op].arity;
    double a = x ? 0 : dt_scalar_as_double(args[0].scalar), b = 0;
    if (arity > 1) {
        y = args[1].tensor;
        b = y ? 0 : dt_scalar_as_double(args[1].scalar);
    }
    switch (op) {
    case DT_OP_where:
        *out = a ? args[1] : args[2];
        return !x;
    case DT_OP_logical_and:
        *out = x ? (b ? args[0] : args[1]) : a ? args[1] : args[0];
        return !x || !y;
    case DT_OP_logical_or:
        *out = x ? (b ? args[1] : args[0]) : a ? args[0] : args[1];
        return !x || !y;
    case DT_OP_pow:
        *out = args[0];
        return !y && b == 1;
    case DT_OP_mul:
        *out = x ? args[0] : dt_arg_scalar(dt_scalar_float(a * b));
        return !y && (!x || b == 1);
#define OF_NUMBERS(name, value)                                                        \
    case DT_OP_##name:                                                                 \
        *out = dt_arg_scalar(value);                                                   \
        return !x && !y;
        OF_NUMBERS(add, dt_scalar_float(a + b))
        OF_NUMBERS(sub, dt_scalar_float(a - b))
        OF_NUMBERS(div, dt_scalar_float(a / b))
        OF_NUMBERS(neg, dt_scalar_float(-a))
        OF_NUMBERS(log, dt_scalar_float(log(a)))
        OF_NUMBERS(eq, dt_scalar_bool(a == b))
        OF_NUMBERS(ne, dt_scalar_bool(a != b))
        OF_NUMBERS(le, dt_scalar_bool(a <= b))
        OF_NUMBERS(ge, dt_scalar_bool(a >= b))
    default:
        return false;
    }
}

dt_arg dt_scope_elementwise(dt_scope *scope, dt_elementwise_op op, const dt_arg *args)
{
    dt_arg value;
    bool has_tensor = false;
    if (scope->failed)
        return args[0];
    if (value_of(op, args, &value))
        return value;
    for (int i = 0; i < dt_elementwise_rows[op].arity; i++)
        has_tensor |= args[i].tensor != NULL;
    dt_tensor *slot = has_tensor ? dt_scope_slot(scope) : NULL;
    if (!has_tensor)
        dt_fail(DT_ERROR_RUNTIME, "backward: %s of numbers is not supported",
                dt_elementwise_rows[op].name);
    if (!slot || dt_recorded_elementwise(op, slot, args) < 0) {
        scope->failed = true;
        return args[0];
    }
    return dt_arg_tensor(slot);
}

dt_tensor *dt_scope_tensor(dt_scope *scope, dt_arg value, const dt_tensor *like)
{
    if (scope->failed)
        return NULL;
    if (value.tensor)
        return (dt_tensor *)value.tensor;
    dt_tensor *slot = dt_scope_slot(scope);
    if (!slot || dt_full("backward", slot, (dt_dtype)like->dtype, like->ndim,
                         like->shape, dt_tensor_device(like), value.scalar) < 0) {
        scope->failed = true;
        return NULL;
    }
    return slot;
}
