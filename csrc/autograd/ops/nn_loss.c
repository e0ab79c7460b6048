/* Losses over classes: a kernel for the first derivative, from two numbers a row that the
 * forward pass keeps instead of its softmax, and formulas for higher ones. */
#include "tensor/ops/nn.h"

#include <string.h>

#include "autograd/grad.h"
#include "autograd/formula.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

/* A call's options and saved tensors. */
typedef struct loss {
    dt_grad *g;
    dt_loss_options options;
    dt_loss_kept kept;                    /* borrowed; may hold nothing */
    const dt_tensor *x, *target, *weight; /* weight may be NULL */
    int dim;                              /* of the classes */
} loss;

/* The factor of each log-probability in the loss, negated: a tensor like x. Class
 * probabilities have a gradient, class indices have none. */
static dt_arg factors(const loss *l)
{
    dt_scope *scope = l->g->scope;
    const dt_loss_options *o = &l->options;
    if (o->shares) {
        double classes = (double)l->x->shape[l->dim];
        dt_arg part = ADD(MUL(dt_arg_tensor(l->target), NUMBER(1 - o->smoothing)),
                          NUMBER(o->smoothing / classes));
        return l->weight ? MUL(part, dt_grad_along(l->g, l->weight, l->x, l->dim))
                         : part;
    }
    dt_loss_options plain = *o;
    dt_loss_kept kept = l->kept;
    plain.scores = false;
    plain.reduction = DT_LOSS_SUM;
    kept.total.storage = NULL;
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    dt_tensor *one = out ? dt_scope_slot(scope) : NULL;
    if (!one ||
        dt_full(o->op_name, one, (dt_dtype)l->x->dtype, 0, NULL, dt_tensor_device(l->x),
                dt_scalar_float(-1)) < 0 ||
        dt_class_loss_gradient(out, one, &kept, l->x, l->target, l->weight, &plain) <
            0) {
        scope->failed = true;
        return ZERO;
    }
    return dt_arg_tensor(out);
}

/* The gradient of each row's loss, so that it broadcasts against x. */
static dt_arg row_gradients(const loss *l)
{
    dt_grad *g = l->g;
    dt_scope *scope = g->scope;
    switch (l->options.reduction) {
    case DT_LOSS_SUM:
        return GRAD;
    case DT_LOSS_MEAN:
        if (!l->options.shares)
            return DIV(GRAD, dt_arg_tensor(&l->kept.total));
        return DIV(GRAD, NUMBER((double)l->x->numel / (double)l->x->shape[l->dim]));
    default:
        return CALL_OP(unsqueeze, TENSOR(GRAD), dt_value_int(l->dim));
    }
}

static int set_recorded(const loss *l, bool wants_input, bool wants_target)
{
    dt_grad *g = l->g;
    dt_scope *scope = g->scope;
    const dt_value x = dt_value_tensor(l->x), dim = dt_value_int(l->dim);
    dt_arg G = row_gradients(l);
    if (wants_input) {
        dt_arg part = factors(l), down = NEG(part);
        if (l->options.scores) {
            int64_t dims[] = {l->dim};
            dt_arg all =
                CALL_OP(sum, TENSOR(part), dt_value_ints(1, dims), dt_value_bool(true));
            down = SUB(MUL(all, CALL_OP(softmax, x, dim)), part);
        }
        dt_grad_set(g, 0, MUL(G, down));
        if (!l->options.scores && dt_grad_flat(g, 1, DT_FLAT_ZERO) < 0)
            return -1;
    }
    if (!wants_target)
        return 0;
    dt_arg logs = CALL_OP(log_softmax, x, dim);
    if (l->weight)
        logs = MUL(logs, dt_grad_along(g, l->weight, l->x, l->dim));
    return dt_grad_set(g, 1, MUL(MUL(G, NUMBER(-(1 - l->options.smoothing))), logs));
}

int dt_class_loss_backward(dt_grad *g)
{
    loss l = {.g = g,
              .x = dt_grad_input(g, 0).tensor,
              .target = dt_grad_input(g, 1).tensor,
              .weight = dt_grad_input(g, 2).tensor};
    const dt_tensor *max = dt_grad_output(g, 1).tensor,
                    *log_sum = dt_grad_output(g, 2).tensor,
                    *total = dt_grad_output(g, 3).tensor;
    if (g->scope->failed ||
        dt_loss_options_of(&l.options, g->op == DT_RECORD(cross_entropy), g->args, l.x,
                           l.target) < 0)
        return -1;
    if (max)
        l.kept.max = *max;
    if (log_sum)
        l.kept.log_sum = *log_sum;
    if (total)
        l.kept.total = *total;
    l.dim = dt_loss_dim(l.x->ndim);
    bool wants_input = dt_grad_wants(g, 0);
    bool wants_target = l.options.shares && dt_grad_wants(g, 1);
    if (!l.x->numel)
        return wants_input ? dt_grad_set(g, 0, dt_grad_zeros(g, 0)) : 0;
    if (dt_recording(g->gradients[0]) || dt_recording(l.x) || dt_recording(l.target))
        return set_recorded(&l, wants_input, wants_target);
    if (wants_input) {
        dt_tensor *out = dt_scope_slot(g->scope);
        if (!out || dt_class_loss_gradient(out, g->gradients[0], &l.kept, l.x, l.target,
                                           l.weight, &l.options) < 0)
            return -1;
        dt_grad_set(g, 0, dt_arg_tensor(out));
    }
    return wants_target ? set_recorded(&l, false, true) : 0;
}
