#include "autograd/temporaries.h"

#include <math.h>
#include <stdlib.h>

#include "autograd/recorded.h"
#include "tensor/ops/create.h"

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

/* A call's result as an operand of a formula. */
static dt_arg value_of(dt_scope *scope, const dt_tensor *t, int status)
{
    if (status < 0)
        scope->failed = true;
    return status < 0 ? dt_arg_scalar(dt_scalar_float(0)) : dt_arg_tensor(t);
}

dt_arg dt_scope_unary(dt_scope *scope, dt_unary_op op, dt_arg x)
{
    if (scope->failed)
        return x;
    if (!x.tensor) {
        double v = dt_scalar_as_double(x.scalar);
        switch (op) {
        case DT_UNARY_neg:
            return dt_arg_scalar(dt_scalar_float(-v));
        case DT_UNARY_log:
            return dt_arg_scalar(dt_scalar_float(log(v)));
        default: /* formulas call the others on tensors only */
            scope->failed = true;
            dt_fail(DT_ERROR_RUNTIME, "backward: %s of a number is not supported",
                    dt_unary_names[op]);
            return x;
        }
    }
    dt_tensor *slot = dt_scope_slot(scope);
    return slot ? value_of(scope, slot, dt_recorded_unary(op, slot, x.tensor)) : x;
}

static bool number_of(dt_binary_op op, double a, double b, dt_scalar *out)
{
    switch (op) {
    case DT_BINARY_add:
        *out = dt_scalar_float(a + b);
        return true;
    case DT_BINARY_sub:
        *out = dt_scalar_float(a - b);
        return true;
    case DT_BINARY_mul:
        *out = dt_scalar_float(a * b);
        return true;
    case DT_BINARY_div:
        *out = dt_scalar_float(a / b);
        return true;
    case DT_BINARY_eq:
        *out = dt_scalar_bool(a == b);
        return true;
    case DT_BINARY_ne:
        *out = dt_scalar_bool(a != b);
        return true;
    case DT_BINARY_le:
        *out = dt_scalar_bool(a <= b);
        return true;
    case DT_BINARY_ge:
        *out = dt_scalar_bool(a >= b);
        return true;
    default:
        return false;
    }
}

dt_arg dt_scope_binary(dt_scope *scope, dt_binary_op op, dt_arg a, dt_arg b)
{
    if (scope->failed)
        return a;
    if (!a.tensor && !b.tensor) {
        dt_scalar result;
        if (number_of(op, dt_scalar_as_double(a.scalar), dt_scalar_as_double(b.scalar),
                      &result))
            return dt_arg_scalar(result);
        scope->failed = true;
        dt_fail(DT_ERROR_RUNTIME, "backward: %s of two numbers is not supported",
                dt_binary_names[op]);
        return a;
    }
    /* Multiplying by 1 and the like needs no pass over memory. */
    if (!b.tensor && dt_scalar_as_double(b.scalar) == 1 &&
        (op == DT_BINARY_mul || op == DT_BINARY_pow))
        return a;
    dt_tensor *slot = dt_scope_slot(scope);
    return slot ? value_of(scope, slot, dt_recorded_binary(op, slot, a, b)) : a;
}

dt_arg dt_scope_where(dt_scope *scope, dt_arg condition, dt_arg a, dt_arg b)
{
    if (scope->failed)
        return condition;
    if (!condition.tensor)
        return condition.scalar.i ? a : b;
    dt_tensor *slot = dt_scope_slot(scope);
    return slot ? value_of(scope, slot, dt_recorded_where(slot, condition.tensor, a, b))
                : a;
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
