/* Copies, conversions and fills. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"

/* The engine gives a gradient the type and device of its input. */
static int pass_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    (void)scope;
    if (dt_node_wants(node, 0))
        into[0] = gradients[0];
    return 0;
}
static const dt_node_type pass_type = {pass_apply, NULL};

static int record_pass(const char *name, dt_tensor *out, const dt_tensor *x)
{
    if (!dt_recording(x) || !dt_dtype_is_float((dt_dtype)out->dtype))
        return 0;
    return dt_record_steal(out, dt_record_node(&pass_type, name, 1, &x, 0, 1, 0));
}

int dt_recorded_to(dt_tensor *out, const dt_tensor *x, dt_dtype dtype, dt_device device)
{
    bool same =
        dtype == (dt_dtype)x->dtype && dt_device_equal(device, dt_tensor_device(x));
    if (dt_to(out, x, dtype, device) < 0)
        return -1;
    return record_pass(same ? "CloneBackward0" : "ToCopyBackward0", out, x);
}

int dt_recorded_to_non_blocking(dt_tensor *out, const dt_tensor *x, dt_device device)
{
    if (dt_to_non_blocking(out, x, device) < 0)
        return -1;
    return record_pass("ToCopyBackward0", out, x);
}

int dt_recorded_pin(dt_tensor *out, const dt_tensor *x, int device)
{
    if (dt_pin(out, x, device) < 0)
        return -1;
    return record_pass("PinMemoryBackward0", out, x);
}

int dt_recorded_contiguous(dt_tensor *out, const dt_tensor *x)
{
    if (x->contiguous) {
        dt_variable_alias(out, x);
        return 0;
    }
    if (dt_contiguous(out, x) < 0)
        return -1;
    return record_pass("CloneBackward0", out, x);
}

/* Edge 0 led to what was overwritten, which gets a gradient of zeros. */
static int copy_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    (void)scope;
    if (node->nedges > 1 && dt_node_wants(node, 1))
        into[1] = gradients[0];
    return 0;
}
static const dt_node_type copy_type = {copy_apply, NULL};

int dt_recorded_copy_into(const char *what, dt_tensor *target, const dt_tensor *source)
{
    if (!target->history && !dt_recording(source))
        return dt_copy_into(what, target, source);
    if (dt_in_place_check(what, target) < 0)
        return -1;
    if ((!dt_recording(source) && !dt_recording(target)) ||
        !dt_dtype_is_float((dt_dtype)target->dtype))
        return dt_copy_into(what, target, source);
    const dt_tensor *inputs[] = {target, source};
    dt_node *node = dt_record_node(&copy_type, "CopyBackwards", 2, inputs, 0, 1, 0);
    if (!node || dt_copy_into(what, target, source) < 0) {
        dt_node_release(node);
        return -1;
    }
    return dt_in_place_steal(target, node);
}

/* --- writes that ignore what was there --- */

/* The gradient of what was overwritten is zero. */
int dt_overwrite_backward(dt_grad *g)
{
    (void)g;
    return 0;
}

int dt_fill_backward(dt_grad *g)
{
    return dt_grad_wants(g, 1) ? dt_grad_set(g, 1, GRAD) : 0;
}

/* --- triangles --- */

int dt_tril_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, CALL_OP(tril, TENSOR(GRAD), g->args[1]));
}

int dt_triu_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, CALL_OP(triu, TENSOR(GRAD), g->args[1]));
}
