/* Convolutions. A convolution is linear in x and in w, so its derivatives are the two other
 * parts of device/convolution.h, and theirs the remaining ones. */
#include "tensor/ops/convolution.h"

#include <string.h>

#include "autograd/grad.h"
#include "autograd/formula.h"

/* The sizes of parameter i without batch and channels. */
static dt_value spatial(const dt_grad *g, int i)
{
    const dt_result *like = dt_grad_like(g, i);
    return dt_value_ints(like->ndim - 2, like->shape + 2);
}

int dt_convolve_backward(dt_grad *g)
{
    const dt_value *v = g->args;
    bool transposed = v[6].b;
    SET_WANTED(0, CALL_OP(convolve, TENSOR(GRAD), TENSOR(dt_grad_factor(g, 1)),
                          spatial(g, 0), v[3], v[4], v[5], dt_value_bool(!transposed),
                          v[7]));
    if (dt_grad_wants(g, 1)) {
        dt_arg input = dt_grad_factor(g, 0);
        dt_grad_set(g, 1,
                    CALL_OP(convolve_weight, TENSOR(transposed ? GRAD : input),
                            TENSOR(transposed ? input : GRAD), spatial(g, 1), v[3],
                            v[4], v[5], v[7]));
    }
    static const int64_t others[] = {0, 2, 3, 4};
    SET_WANTED(8, CALL_OP(sum, TENSOR(GRAD), dt_value_ints(v[2].count + 1, others),
                          dt_value_bool(false)));
    return dt_grad_flat(g, 1 | 2, DT_FLAT_NONE);
}

int dt_convolve_weight_backward(dt_grad *g)
{
    const dt_value *v = g->args;
    SET_WANTED(0, CALL_OP(convolve, TENSOR(dt_grad_factor(g, 1)), TENSOR(GRAD),
                          spatial(g, 0), v[3], v[4], v[5], dt_value_bool(true), v[6]));
    SET_WANTED(1, CALL_OP(convolve, TENSOR(dt_grad_factor(g, 0)), TENSOR(GRAD),
                          spatial(g, 1), v[3], v[4], v[5], dt_value_bool(false), v[6]));
    return 0;
}

/* --- the public forms --- */

static int convolve(dt_call *c, dt_convolution_args *a)
{
    dt_convolution_sizes s;
    if (dt_convolution_check(c->name, a, &s))
        return -1;
    return DT_CALL(convolve, c->out[0], dt_value_tensor(a->input),
                   dt_value_tensor(a->weight), dt_value_ints(s.ndim, s.size),
                   dt_value_ints(s.ndim, s.stride), dt_value_ints(s.ndim, s.padding),
                   dt_value_ints(s.ndim, s.dilation), dt_value_bool(a->transposed),
                   dt_value_int(a->groups), dt_value_tensor(a->bias));
}

/* Over `ndim` dimensions, with or without a batch. */
static int batched(dt_call *c, dt_convolution_args *a, int ndim)
{
    const dt_tensor *x = a->input, *w = a->weight;
    char text[DT_SHAPE_TEXT];
    if (w->ndim != ndim + 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the weight has shape %s; it has to have %d dimensions: two "
                       "of channels, then those of the kernel",
                       c->name, dt_shape_text(w->ndim, w->shape, text, sizeof text),
                       ndim + 2);
    if (x->ndim == ndim + 2)
        return convolve(c, a);
    if (x->ndim != ndim + 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input has shape %s; it has to have %d dimensions, or "
                       "%d with a batch before the channels",
                       c->name, dt_shape_text(x->ndim, x->shape, text, sizeof text),
                       ndim + 1, ndim + 2);
    DT_LOCAL(one);
    DT_LOCAL(result);
    dt_call inner = *c;
    const int64_t first = 0;
    inner.out[0] = &result;
    a->input = &one;
    return DT_CALL(unsqueeze, &one, dt_value_tensor(x), dt_value_int(0)) ||
                   convolve(&inner, a) ||
                   DT_CALL_AS("SqueezeBackward1", squeeze, c->out[0],
                              dt_value_tensor(&result), dt_value_ints(1, &first))
               ? -1
               : 0;
}

static int conv(dt_call *c, int ndim, bool named)
{
    const dt_value *v = c->args;
    dt_convolution_args a = {.input = v[0].tensor,
                             .weight = v[1].tensor,
                             .bias = v[2].tensor,
                             .stride = &v[3],
                             .padding = named ? NULL : &v[4],
                             .padding_text = !named      ? NULL
                                             : v[4].text ? v[4].text
                                                         : "valid",
                             .dilation = &v[5],
                             .groups = v[6].i};
    return batched(c, &a, ndim);
}

static int conv_transpose(dt_call *c, int ndim)
{
    const dt_value *v = c->args;
    dt_convolution_args a = {.input = v[0].tensor,
                             .weight = v[1].tensor,
                             .bias = v[2].tensor,
                             .stride = &v[3],
                             .padding = &v[4],
                             .output_padding = &v[5],
                             .groups = v[6].i,
                             .dilation = &v[7],
                             .transposed = true};
    return batched(c, &a, ndim);
}

int dt_convolution_forward(dt_call *c)
{
    const dt_value *v = c->args;
    const dt_tensor *x = v[0].tensor, *w = v[1].tensor;
    char text[DT_SHAPE_TEXT];
    dt_convolution_args a = {.input = x,
                             .weight = w,
                             .bias = v[2].tensor,
                             .stride = &v[3],
                             .padding = &v[4],
                             .dilation = &v[5],
                             .transposed = v[6].b,
                             .output_padding = &v[7],
                             .groups = v[8].i};
    if (w->ndim < 3 || w->ndim > 5)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the weight has shape %s; it has to have 3 to 5 dimensions: "
                       "two of channels, then those of the kernel",
                       c->name, dt_shape_text(w->ndim, w->shape, text, sizeof text));
    if (x->ndim != w->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input has shape %s; it has to have %d dimensions, as "
                       "the weight",
                       c->name, dt_shape_text(x->ndim, x->shape, text, sizeof text),
                       w->ndim);
    return convolve(c, &a);
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/convolution.def"
