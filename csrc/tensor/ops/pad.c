#include <inttypes.h>
#include <string.h>

#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

#define LARGEST (INT64_MAX / 4) /* padding, of which sums do not overflow */

/* Sets `from` to the part of x that remains along dim, and `to` to its part of out; both
 * are borrowed. */
static void set_parts(dt_tensor *to, dt_tensor *from, int dim, int64_t before,
                      int64_t after)
{
    int64_t cut = before < 0 ? -before : 0;
    from->offset += cut * from->strides[dim];
    to->offset += (before > 0 ? before : 0) * to->strides[dim];
    from->shape[dim] -= cut + (after < 0 ? -after : 0);
    to->shape[dim] = from->shape[dim];
}

int dt_constant_pad_nd_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *pad = &c->args[1];
    int64_t shape[DT_MAX_NDIM];
    dt_tensor *out = c->out[0];
    dt_arg value;
    DT_LOCAL(number);
    if (pad->count % 2 || pad->count > 2 * x->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: pad has %d numbers for a Tensor of %d dimensions; give two "
                       "for each of the last dimensions: before and after it",
                       c->name, pad->count, x->ndim);
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    for (int i = 0; i < pad->count; i += 2) {
        int dim = x->ndim - 1 - i / 2;
        int64_t before = pad->ints[i], after = pad->ints[i + 1], least = -x->shape[dim];
        if (before > LARGEST || after > LARGEST || before < least || after < least ||
            (before < 0 && after < 0 && before + after < least))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d of size %" PRId64
                           " cannot be padded by %" PRId64 " and %" PRId64
                           "; remove no more elements than it has",
                           c->name, dim, x->shape[dim], before, after);
        shape[dim] += before + after;
    }
    if (dt_call_number(c, 2, (dt_dtype)x->dtype, &number, &value) ||
        dt_full(c->name, out, (dt_dtype)x->dtype, x->ndim, shape, dt_tensor_device(x),
                value.tensor ? dt_scalar_int(0) : value.scalar) ||
        (value.tensor && dt_copy_into(c->name, out, value.tensor)))
        return -1;
    dt_tensor to = *out, from = *x;
    for (int i = 0; i < pad->count; i += 2)
        set_parts(&to, &from, x->ndim - 1 - i / 2, pad->ints[i], pad->ints[i + 1]);
    dt_tensor_update(&to);
    dt_tensor_update(&from);
    if (to.numel && dt_copy_part(c->name, &to, &from))
        return -1;
    out->storage->version = 0;
    return 0;
}
