/* Pooling and resampling, which but for the maximum are linear: each is the derivative of
 * its own backward pass. */
#include "tensor/ops/pooling.h"

#include <string.h>

#include "autograd/autocast.h"
#include "autograd/grad.h"
#include "autograd/recorded.h"
#include "ops/window.h"

/* --- resampling --- */

int dt_resample_backward(dt_grad *g)
{
    dt_value args[DT_MAX_PARAMETERS];
    int64_t dim = g->args[1].i, ndim = dt_grad_like(g, 0)->ndim;
    const int64_t *size = dt_grad_like(g, 0)->shape + (dim < 0 ? dim + ndim : dim);
    memcpy(args, g->args, 11 * sizeof *args);
    args[0] = TENSOR(GRAD);
    args[2] = dt_value_int(*size);
    args[8] = dt_value_bool(!g->args[8].b);
    if (g->args[9].i >= 0)
        args[9] = dt_value_int(size[-1]);
    dt_grad_set(g, 0, dt_scope_call(g->scope, g->op, 11, args));
    const char *mode = g->args[3].text;
    bool pads = !strcmp(mode, "reflect") || !strcmp(mode, "replicate");
    return pads ? dt_grad_flat(g, 1, DT_FLAT_ZERO) : 0;
}

/* --- maxima --- */

int dt_max_pool_forward(dt_call *c)
{
    return dt_max_pool(c, c->args[8].b || dt_recording(c->args[0].tensor));
}

/* The maxima of a window over the last ndim dimensions: kernel_size, stride, padding,
 * dilation and ceil_mode; or, adaptive, the number of windows and nothing. The index, which
 * the backward pass needs too, is a result where `indexed`. Autocast takes float32 for
 * volumes on the CPU, but not for those with an index, except if adaptive. */
static int maxima(dt_call *c, int ndim, const dt_value *window, bool adaptive,
                  bool indexed)
{
    DT_LOCAL(cast);
    const dt_tensor *x = c->args[0].tensor;
    if (ndim == 3 && (adaptive || !indexed))
        x = dt_autocast_as(&cast, x, DT_CASTS_FLOAT_ON_CPU);
    if (!x)
        return -1;
    const dt_value args[] = {dt_value_tensor(x),
                             dt_value_int(ndim),
                             window[0],
                             window[1],
                             window[2],
                             window[3],
                             window[4],
                             dt_value_bool(adaptive),
                             dt_value_bool(indexed)};
    if (dt_call_overload(DT_RECORD(max_pool), c, 9, args) < 0)
        return -1;
    if (!indexed)
        dt_tensor_clear(c->out[1]);
    return 0;
}

static int max_pool(dt_call *c, int ndim, bool indexed)
{
    return maxima(c, ndim, c->args + 1, false, indexed);
}

/* The same of a function with one result. */
static int max_pool_alone(dt_call *c, int ndim)
{
    DT_LOCAL(index);
    c->out[1] = &index;
    return max_pool(c, ndim, false);
}

/* The number of windows in each of the last ndim dimensions, with the input's size for
 * None. */
static int adaptive_sizes(const dt_call *c, int ndim, int64_t *sizes)
{
    const dt_value *given = &c->args[1];
    const dt_tensor *x = c->args[0].tensor;
    const bool one = given->count == 1 && given->ints[0] != DT_KEPT;
    if (given->count >= 0 && given->count != 1 && given->count != ndim)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s(): output_size has %d numbers; give one, or %d: one for each "
            "of the last dimensions",
            c->name, given->count, ndim);
    if (x->ndim <= ndim && !one)
        return dt_fail(DT_ERROR_VALUE,
                       "%s(): the input has %d dimensions; give one of at least %d",
                       c->name, x->ndim, ndim + 1);
    for (int d = 0; d < ndim; d++) {
        sizes[d] = given->count <= 0   ? DT_KEPT
                   : given->count == 1 ? given->ints[0]
                                       : given->ints[d];
        if (sizes[d] == DT_KEPT)
            sizes[d] = x->shape[x->ndim - ndim + d];
    }
    return 0;
}

static int adaptive_max_pool(dt_call *c, int ndim, bool indexed)
{
    int64_t sizes[DT_WINDOW_DIMS];
    if (adaptive_sizes(c, ndim, sizes) < 0)
        return -1;
    const dt_value window[5] = {dt_value_ints(ndim, sizes), dt_value_none(),
                                dt_value_none(), dt_value_none(), dt_value_bool(false)};
    return maxima(c, ndim, window, true, indexed);
}

int dt_max_pool_backward(dt_grad *g)
{
    const dt_result *x = dt_grad_like(g, 0);
    dt_value args[DT_MAX_PARAMETERS];
    int ndim = (int)g->args[1].i;
    memcpy(args, g->args, 8 * sizeof *args);
    args[0] = TENSOR(GRAD);
    args[8] = dt_value_ints(ndim, x->shape + x->ndim - ndim);
    args[9] = TENSOR(dt_grad_output(g, 1));
    dt_grad_set(g, 0, dt_scope_call(g->scope, DT_RECORD(max_pool_backward), 10, args));
    return dt_grad_flat(g, 1, DT_FLAT_ZERO);
}

/* A sum's derivative is 1 at the maximum of each window. */
int dt_max_pool_backward_backward(dt_grad *g)
{
    dt_arg index = dt_grad_input(g, 9);
    if (g->scope->failed)
        return -1;
    const dt_tensor *at = index.tensor;
    int first = at->ndim - (int)g->args[1].i;
    dt_value from = dt_value_int(first), to = dt_value_int(-1);
    dt_arg planes = CALL_OP(flatten, TENSOR(GRAD), from, to);
    dt_arg flat = CALL_OP(flatten, TENSOR(index), from, to);
    dt_arg found = CALL_OP(gather, TENSOR(planes), to, TENSOR(flat));
    return dt_grad_set(
        g, 0, CALL_OP(reshape, TENSOR(found), dt_value_ints(at->ndim, at->shape)));
}

/* --- averages --- */

static int avg_pool(dt_call *c, int ndim)
{
    const bool divides = ndim > 1 && c->args[6].given;
    if (divides && !c->args[6].i)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): divisor_override is 0; give another number, or None",
                       c->name);
    return DT_CALL_OVERLOAD(avg_pool, c, c->args[0], dt_value_int(ndim), c->args[1],
                            c->args[2], c->args[3], c->args[4], c->args[5],
                            dt_value_int(divides ? c->args[6].i : 0));
}

int dt_avg_pool_backward(dt_grad *g)
{
    dt_value args[DT_MAX_PARAMETERS];
    const dt_result *x = dt_grad_like(g, 0);
    int ndim = (int)g->args[1].i;
    memcpy(args, g->args, 10 * sizeof *args);
    args[0] = TENSOR(GRAD);
    args[9] = g->args[9].count > 0 ? dt_value_none()
                                   : dt_value_ints(ndim, x->shape + x->ndim - ndim);
    dt_grad_set(g, 0, dt_scope_call(g->scope, g->op, 10, args));
    return dt_grad_flat(g, 1, DT_FLAT_ZERO);
}

/* One window is a mean, in two dimensions and three. */
static int adaptive_avg_pool(dt_call *c, int ndim)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t sizes[DT_WINDOW_DIMS], dims[DT_WINDOW_DIMS];
    if (adaptive_sizes(c, ndim, sizes) < 0)
        return -1;
    bool one = ndim > 1 && (x->ndim == ndim + 1 || x->ndim == ndim + 2) &&
               dt_dtype_is_float((dt_dtype)x->dtype);
    for (int d = 0; d < ndim; d++) {
        dims[d] = d - ndim;
        one = one && sizes[d] == 1 && x->shape[x->ndim - ndim + d];
    }
    if (one)
        return DT_CALL_OVERLOAD(mean, c, c->args[0], dt_value_ints(ndim, dims),
                                dt_value_bool(true));
    return DT_CALL_OVERLOAD(avg_pool, c, c->args[0], dt_value_int(ndim),
                            dt_value_ints(ndim, sizes), dt_value_none(),
                            dt_value_none(), dt_value_bool(false), dt_value_bool(true),
                            dt_value_int(0), dt_value_bool(true));
}

/* --- padding --- */

int dt_constant_pad_nd_backward(dt_grad *g)
{
    int64_t pad[2 * DT_MAX_NDIM];
    int count = g->args[1].count;
    for (int i = 0; i < count; i++)
        pad[i] = -g->args[1].ints[i];
    return dt_grad_set(
        g, 0, CALL_OP(constant_pad_nd, TENSOR(GRAD), dt_value_ints(count, pad)));
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/pooling.def"
