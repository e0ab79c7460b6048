/* Normalization layers: kernels for the first derivative, from the mean and 1 / std that
 * the forward pass keeps, and formulas for higher ones. */
#include "tensor/ops/nn.h"

#include "autograd/grad.h"
#include "autograd/formula.h"

/* A layer's call, its saved tensors and which dimensions it averages over. */
typedef struct layer {
    dt_grad *g;
    dt_tensor *grad;
    const dt_tensor *x, *weight, *mean, *rstd; /* weight may be NULL */
    int count; /* dimensions of a row of layer_norm; 0: batch_norm */
    bool training;
    double eps;
    int params[2]; /* the parameters weight and bias */
} layer;

/* The dimensions of one mean (within), or the others. */
static int dims_of(const layer *l, bool within, int64_t *dims)
{
    int count = 0;
    for (int d = 0; d < l->x->ndim; d++) {
        bool in = l->count ? d >= l->x->ndim - l->count : d != 1;
        if (in == within)
            dims[count++] = d;
    }
    return count;
}

static dt_arg reduce(dt_grad *g, dt_op *op, dt_arg x, int count, const int64_t *dims,
                     bool keepdim)
{
    const dt_value values[] = {TENSOR(x), dt_value_ints(count, dims),
                               dt_value_bool(keepdim)};
    return count ? dt_scope_call(g->scope, op, 3, values) : x;
}

/* t, with one element a channel, so that it broadcasts against x. */
static dt_arg along_channels(const layer *l, const dt_tensor *t)
{
    return dt_grad_along(l->g, t, l->x, 1);
}

static int set_recorded(const layer *l)
{
    dt_grad *g = l->g;
    dt_scope *scope = g->scope;
    int64_t within[DT_MAX_NDIM], across[DT_MAX_NDIM];
    int nwithin = dims_of(l, true, within), nacross = dims_of(l, false, across);
    /* The parameters' gradients are sums over the rows of a layer, and over the elements
     * of a channel. */
    const int64_t *summed = l->count ? across : within;
    int nsummed = l->count ? nacross : nwithin;
    dt_arg G = GRAD, X = dt_arg_tensor(l->x), centred, scale;
#define AVERAGE(a) reduce(g, DT_RECORD(mean), a, nwithin, within, true)
#define TOTAL(a)   reduce(g, DT_RECORD(sum), a, nsummed, summed, false)
    if (l->training) {
        centred = SUB(X, AVERAGE(X));
        scale = DIV(ONE, SQRT(ADD(AVERAGE(MUL(centred, centred)), NUMBER(l->eps))));
    } else {
        centred = SUB(X, along_channels(l, l->mean));
        scale = along_channels(l, l->rstd);
    }
    dt_arg normal = MUL(centred, scale);
    if (dt_grad_wants(g, 0)) {
        dt_arg part = G;
        if (l->weight)
            part = MUL(G, l->count ? dt_arg_tensor(l->weight)
                                   : along_channels(l, l->weight));
        if (l->training)
            part =
                SUB(SUB(part, AVERAGE(part)), MUL(normal, AVERAGE(MUL(part, normal))));
        dt_grad_set(g, 0, MUL(part, scale));
    }
    SET_WANTED(l->params[0], TOTAL(MUL(G, normal)));
    SET_WANTED(l->params[1], TOTAL(G));
    return 0;
#undef AVERAGE
#undef TOTAL
}

static int set_gradients(const layer *l)
{
    dt_grad *g = l->g;
    const int at[] = {0, l->params[0], l->params[1]};
    dt_tensor *wanted[3] = {NULL};
    if (g->scope->failed)
        return -1;
    if (l->x->numel && (dt_recording(l->grad) || dt_recording(l->x) ||
                        (l->weight && dt_recording(l->weight))))
        return set_recorded(l);
    for (int i = 0; i < 3; i++)
        if (dt_grad_wants(g, at[i]) && !(wanted[i] = dt_scope_slot(g->scope)))
            return -1;
    int status =
        l->count
            ? dt_layer_norm_gradients(wanted[0], wanted[1], wanted[2], l->grad, l->x,
                                      l->count, l->weight, l->mean, l->rstd)
            : dt_batch_norm_gradients(wanted[0], wanted[1], wanted[2], l->grad, l->x,
                                      l->weight, l->mean, l->rstd, l->training);
    for (int i = 0; i < 3 && !status; i++)
        if (wanted[i])
            status = dt_grad_set(g, at[i], dt_arg_tensor(wanted[i]));
    return status;
}

int dt_layer_norm_backward(dt_grad *g)
{
    const layer l = {.g = g,
                     .grad = g->gradients[0],
                     .x = dt_grad_input(g, 0).tensor,
                     .weight = dt_grad_input(g, 2).tensor,
                     .mean = dt_grad_output(g, 1).tensor,
                     .rstd = dt_grad_output(g, 2).tensor,
                     .count = g->args[1].count,
                     .training = true,
                     .eps = g->args[4].f,
                     .params = {2, 3}};
    return set_gradients(&l) ? -1 : dt_grad_flat(g, 1 | 4 | 8, DT_FLAT_NONE);
}

int dt_batch_norm_backward(dt_grad *g)
{
    const layer l = {.g = g,
                     .grad = g->gradients[0],
                     .x = dt_grad_input(g, 0).tensor,
                     .weight = dt_grad_input(g, 1).tensor,
                     .mean = dt_grad_output(g, 1).tensor,
                     .rstd = dt_grad_output(g, 2).tensor,
                     .training = g->args[5].b,
                     .eps = g->args[7].f,
                     .params = {1, 2}};
    return set_gradients(&l) ? -1 : dt_grad_flat(g, 1 | 2, DT_FLAT_NONE);
}

int dt_batch_norm_forward(dt_call *c)
{
    for (int i = 3; i <= 4; i++)
        if (c->args[i].tensor && dt_recording(c->args[i].tensor))
            return dt_fail(DT_ERROR_RUNTIME,
                           "batch_norm: the running statistics require a gradient, but "
                           "get none; detach() them");
    return dt_batch_norm(c);
}

int dt_dropout_backward(dt_grad *g)
{
    return dt_grad_set(
        g, 0, CALL_OP(dropout, TENSOR(GRAD), g->args[1], TENSOR(dt_grad_output(g, 1))));
}

int dt_nn_layer_norm_forward(dt_call *c)
{
    return dt_call_overload(DT_RECORD(layer_norm), c, 5, c->args);
}
