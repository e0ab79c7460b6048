/* Attention: kernels for the first derivative, the composition for higher ones. */
#include "tensor/ops/attention.h"

#include <math.h>

#include "autograd/grad.h"
#include "autograd/formula.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

/* Less than all other scores, and finite: exponentials of differences stay numbers where
 * a row has nothing else. */
#define LEFT_OUT NUMBER(a->query->dtype == DT_FLOAT16 ? -6e4 : -1e30)

#define PRODUCT(a, b) CALL_OP(matmul, TENSOR(a), TENSOR(b))
#define TRANSPOSED(a) CALL_OP(transpose, TENSOR(a), dt_value_int(-2), dt_value_int(-1))
#define SUM(x, dim, ...)                                                               \
    CALL_OP(sum, TENSOR(x), dt_value_ints(1, &(int64_t){dim}), ##__VA_ARGS__)

/* Shape (..., heads, n, m) of keys and values becomes that of the query's heads, and for
 * gradients back. */
static dt_arg grouped(dt_grad *g, dt_arg x, int64_t groups, bool back)
{
    int64_t shape[DT_MAX_NDIM + 1], dim;
    if (groups == 1 || g->scope->failed)
        return x;
    int ndim = x.tensor->ndim, heads = ndim - 3;
    for (int d = 0; d < ndim; d++)
        shape[d + (d > heads)] = x.tensor->shape[d];
    shape[heads] = back ? x.tensor->shape[heads] / groups : x.tensor->shape[heads];
    shape[heads + 1] = back ? groups : 1;
    dt_arg split = CALL_OP(reshape, TENSOR(x), dt_value_ints(ndim + 1, shape));
    dim = heads + 1;
    if (back)
        return SUM(split, dim);
    shape[heads + 1] = groups;
    dt_arg wide = CALL_OP(expand, TENSOR(split), dt_value_ints(ndim + 1, shape));
    for (int d = heads + 1; d < ndim; d++)
        shape[d] = x.tensor->shape[d];
    shape[heads] = x.tensor->shape[heads] * groups;
    return CALL_OP(reshape, TENSOR(wide), dt_value_ints(ndim, shape));
}

/* Which scores count, as a bool tensor; no tensor: all. */
static dt_arg counting(dt_grad *g, const dt_attention *a)
{
    dt_scope *scope = g->scope;
    dt_arg none = dt_arg_tensor(NULL);
    if (a->causal) {
        const int64_t shape[] = {a->query->shape[a->query->ndim - 2],
                                 a->key->shape[a->key->ndim - 2]};
        dt_tensor *ones = dt_scope_slot(scope);
        if (ones && (dt_tensor_empty("ones", ones, DT_BOOL, 2, shape,
                                     dt_tensor_device(a->query)) ||
                     dt_fill_into("ones", ones, dt_scalar_int(1))))
            scope->failed = true;
        return scope->failed ? none : CALL_OP(tril, dt_value_tensor(ones));
    }
    if (!a->mask)
        return none;
    dt_arg mask = dt_arg_tensor(a->mask);
    return a->mask->dtype == DT_BOOL ? mask : NE(mask, NUMBER(-(double)INFINITY));
}

/* By the mask of a call whose heads are those of shares and value, broadcast. */
int dt_attention_dropout_forward(dt_call *c)
{
    const dt_tensor *shares = c->args[0].tensor, *value = c->args[1].tensor;
    const double dropout = c->args[2].f;
    int64_t shape[DT_MAX_NDIM];
    int leading;
    DT_LOCAL(mask);
    if (shares->ndim < 2 || value->ndim < 2)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "attention: shares have %d and value %d dimensions; give (..., L, "
            "S) and (..., S, Ev)",
            shares->ndim, value->ndim);
    if (dt_shape_broadcast("attention", shares->ndim - 2, shares->shape,
                           value->ndim - 2, value->shape, &leading, shape))
        return -1;
    shape[leading] = shares->shape[shares->ndim - 2];
    shape[leading + 1] = shares->shape[shares->ndim - 1];
    if (dt_attention_mask(&mask, dt_tensor_device(shares), leading + 2, shape, dropout,
                          c->args[3].tensor))
        return -1;
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    dt_arg factor = NUMBER(dropout < 1 ? 1 / (1 - dropout) : 0);
    dt_arg scaled = MUL(dt_arg_tensor(shares), factor);
    int status =
        scope->failed
            ? -1
            : dt_recorded_elementwise(DT_OP_where, c->out[0],
                                      DT_ARGS(dt_arg_tensor(&mask), scaled, ZERO));
    dt_scope_end(scope);
    return status;
}

static int set_recorded(dt_grad *g, const dt_attention *a)
{
    dt_scope *scope = g->scope;
    dt_arg Q = dt_arg_tensor(a->query),
           K = grouped(g, dt_arg_tensor(a->key), a->groups, false),
           V = grouped(g, dt_arg_tensor(a->value), a->groups, false), G = GRAD,
           scale = NUMBER(a->scale);
    dt_arg counts = counting(g, a), scores = MUL(PRODUCT(Q, TRANSPOSED(K)), scale);
    if (a->mask && a->mask->dtype != DT_BOOL)
        scores = ADD(scores, dt_arg_tensor(a->mask));
    if (counts.tensor)
        scores = WHERE(counts, scores, LEFT_OUT);
    dt_arg shares = CALL_OP(softmax, TENSOR(scores), dt_value_int(-1));
    if (counts.tensor)
        shares = WHERE(counts, shares, ZERO);
    dt_arg kept = shares;
    if (a->start)
        kept = CALL_OP(attention_dropout, TENSOR(shares), TENSOR(V), g->args[7],
                       dt_value_tensor(a->start));
    SET_WANTED(2, grouped(g, PRODUCT(TRANSPOSED(kept), G), a->groups, true));
    dt_arg part = MUL(kept, PRODUCT(G, TRANSPOSED(V)));
    dt_arg products =
        MUL(SUB(part, MUL(shares, SUM(part, -1, dt_value_bool(true)))), scale);
    SET_WANTED(0, PRODUCT(products, K));
    SET_WANTED(1, grouped(g, PRODUCT(TRANSPOSED(products), Q), a->groups, true));
    return 0;
}

int dt_attention_backward(dt_grad *g)
{
    const dt_attention a = {.query = dt_grad_input(g, 0).tensor,
                            .key = dt_grad_input(g, 1).tensor,
                            .value = dt_grad_input(g, 2).tensor,
                            .mask = dt_grad_input(g, 3).tensor,
                            .causal = g->args[4].b,
                            .scale = g->args[5].f,
                            .groups = g->args[6].i,
                            .dropout = g->args[7].f,
                            .start = dt_grad_output(g, 2).tensor};
    const dt_tensor *out = dt_grad_output(g, 0).tensor,
                    *log_sum = dt_grad_output(g, 1).tensor;
    dt_tensor *into[3] = {NULL};
    if (g->scope->failed)
        return -1;
    if (dt_recording(g->gradients[0]) || dt_recording(a.query) || dt_recording(a.key) ||
        dt_recording(a.value))
        return set_recorded(g, &a);
    for (int i = 0; i < 3; i++)
        if (dt_grad_wants(g, i) && !(into[i] = dt_scope_slot(g->scope)))
            return -1;
    int status = dt_attention_gradients(into, g->gradients[0], &a, out, log_sum);
    for (int i = 0; i < 3 && !status; i++)
        if (into[i])
            status = dt_grad_set(g, i, dt_arg_tensor(into[i]));
    return status;
}
