/* Reductions: the derivatives of ops/reduce.def, variances, composites. */
#include <string.h>

#include "autograd/grad.h"
#include "autograd/factors.h"
#include "autograd/formula.h"
#include "autograd/recorded.h"
#include "ops/reduce_ops.h"
#include "tensor/ops/nn.h"
#include "tensor/ops/ops.h"

/* --- which dimensions were reduced --- */

typedef struct reduction {
    dt_grad *g;
    const dt_result *input; /* its shape */
    int ndims;              /* the dimensions reduced: */
    int64_t dims[DT_MAX_NDIM];
    int64_t kept[DT_MAX_NDIM]; /* the input's shape with 1 for them */
    double count;              /* elements that one result is made of */
} reduction;

/* Parameter i names the dimensions: one (an int) or several (Dims). */
static reduction reduction_of(dt_grad *g, int i, bool one_dim)
{
    const dt_value *dim = &g->args[i];
    int count = one_dim ? dim->given : dim->count;
    const int64_t *dims = one_dim ? &dim->i : dim->ints;
    reduction r = {.g = g, .input = dt_grad_like(g, 0), .count = 1};
    int ndim = r.input->ndim;
    memcpy(r.kept, r.input->shape, (size_t)ndim * sizeof *r.kept);
    r.ndims = count > 0 && ndim ? count : ndim;
    for (int k = 0; k < r.ndims; k++) {
        int64_t d = count <= 0 ? k : dims[k] < 0 ? dims[k] + ndim : dims[k];
        r.dims[k] = d;
        r.count *= (double)r.kept[d];
        r.kept[d] = 1;
    }
    return r;
}

/* t, in the shape of the result, so that it broadcasts against the input. */
static dt_arg kept(const reduction *r, dt_arg t)
{
    dt_grad *g = r->g;
    if (g->scope->failed || !t.tensor->ndim || t.tensor->ndim == r->input->ndim)
        return t;
    return CALL_OP(reshape, TENSOR(t), dt_value_ints(r->input->ndim, r->kept));
}

/* x reduced over the same dimensions, which stay. */
#define AGAIN(id, x)                                                                   \
    CALL_OP(id, TENSOR(x), dt_value_ints(r->ndims, r->dims), dt_value_bool(true))

static dt_arg share(const reduction *r, dt_arg G, dt_arg among)
{
    dt_grad *g = r->g;
    dt_scope *scope = g->scope;
    return MUL(among, DIV(G, AGAIN(sum, among)));
}

/* The product of the other elements. With one 0 among them, only that element's is not
 * 0. */
static dt_arg others(const reduction *r, dt_arg X)
{
    dt_grad *g = r->g;
    dt_scope *scope = g->scope;
    if (scope->failed || !X.tensor->ndim)
        return ONE;
    if (dt_dtype_is_complex((dt_dtype)X.tensor->dtype))
        X = CONJ(X);
    if (dt_grad_factors_needed(g, X)) {
        const bool one = r->ndims == 1;
        const int64_t dim = one ? r->dims[0] : 0;
        dt_arg line = one ? X : CALL_OP(flatten, TENSOR(X));
        dt_arg products =
            CALL_OP(prod, TENSOR(dt_grad_factors(g, line, dim)), dt_value_int(dim + 1));
        return CALL_OP(reshape, TENSOR(products),
                       dt_value_ints(r->input->ndim, r->input->shape));
    }
    dt_arg zero = EQ(X, ZERO), zeros = AGAIN(sum, zero);
    dt_arg rest = WHERE(zero, ADD(MUL(X, ZERO), ONE), X);
    /* prod() reduces one dimension, or all. */
    rest = r->ndims == 1 ? CALL_OP(prod, TENSOR(rest), dt_value_int(r->dims[0]),
                                   dt_value_bool(true))
                         : CALL_OP(prod, TENSOR(rest));
    dt_arg alone = WHERE(EQ(zeros, ONE), rest, ZERO);
    return WHERE(zero, alone, WHERE(EQ(zeros, ZERO), DIV(rest, X), ZERO));
}

/* Sets the gradient of the input, broadcast to its shape. */
static int set(const reduction *r, dt_arg value)
{
    dt_grad *g = r->g;
    if (!g->scope->failed && !value.tensor)
        value = dt_grad_zeros(g, 0);
    if (!g->scope->failed && !dt_shape_equal(value.tensor->ndim, value.tensor->shape,
                                             r->input->ndim, r->input->shape))
        value = CALL_OP(expand, TENSOR(value),
                        dt_value_ints(r->input->ndim, r->input->shape));
    return dt_grad_set(g, 0, value);
}

/* --- the rows of ops/reduce.def --- */

#define X           dt_grad_input(r->g, 0)
#define Y           kept(r, dt_grad_output(r->g, 0))
#define G           kept(r, dt_arg_tensor(r->g->gradients[0]))
#define SHARE(g, c) share(r, g, c)
#define OTHERS(x)   others(r, x)
#define NONE        ZERO
#define DERIVATIVE(name, derivative)                                                   \
    static dt_arg name##_derivative(const reduction *r, double p)                      \
    {                                                                                  \
        dt_scope *scope = r->g->scope;                                                 \
        double count = r->count;                                                       \
        (void)scope, (void)count, (void)p;                                             \
        return derivative;                                                             \
    }
#define REDUCE(name, class, identity, map, combine, finish, derivative, ...)           \
    DERIVATIVE(name, derivative)
#include "ops/reduce.def"
#undef REDUCE
#undef X
#undef Y
#undef G

#define DIMS false
#define DIM  true
#define BACKWARD(name, dim, ...)                                                       \
    int dt_##name##_backward(dt_grad *g)                                               \
    {                                                                                  \
        reduction r = reduction_of(g, 1, dim);                                         \
        return set(&r, name##_derivative(&r, 0));                                      \
    }
#define BACKWARD_TOTAL BACKWARD
#define BACKWARD_FLOAT BACKWARD
#define BACKWARD_ORDER BACKWARD
#define BACKWARD_TRUTH(...)
#define BACKWARD_NORM(...)
#define REDUCE(name, class, identity, map, combine, finish, derivative, ...)           \
    BACKWARD_##class(name, __VA_ARGS__)
#include "ops/reduce.def"
#undef REDUCE

int dt_norm_backward(dt_grad *g)
{
    static dt_arg (*const derivatives[DT_NREDUCE])(const reduction *, double) = {
#define REDUCE(name, ...) [DT_REDUCE_##name] = name##_derivative,
#include "ops/reduce.def"
#undef REDUCE
    };
    double p = g->args[1].f;
    reduction r = reduction_of(g, 2, false);
    return set(&r, derivatives[dt_norm_row(p)](&r, p));
}

int dt_logsumexp_backward(dt_grad *g)
{
    const reduction reduced = reduction_of(g, 1, false), *r = &reduced;
    dt_scope *scope = g->scope;
    dt_arg X = dt_grad_input(g, 0), Y = dt_grad_output(g, 0), G = GRAD;
    if (scope->failed)
        return -1;
    if (dt_dtype_is_complex((dt_dtype)X.tensor->dtype))
        return set(r, MUL(kept(r, G), CONJ(EXP(SUB(X, kept(r, Y))))));
    if (g->args[1].count == 1 && !dt_recording(G.tensor) && !dt_recording(X.tensor) &&
        X.tensor->dtype == Y.tensor->dtype) {
        dt_tensor *out = dt_scope_slot(scope);
        if (!out || dt_logsumexp_gradient(out, G.tensor, X.tensor, Y.tensor,
                                          r->ndims ? (int)r->dims[0] : 0) < 0)
            return -1;
        return dt_grad_set(g, 0, dt_arg_tensor(out));
    }
    return set(r, MUL(kept(r, G), EXP(SUB(X, kept(r, Y)))));
}

int dt_recorded_sum_to(dt_tensor *out, const dt_tensor *x, int ndim,
                       const int64_t *shape)
{
    int64_t dims[DT_MAX_NDIM];
    int count = 0, extra = x->ndim - ndim;
    for (int d = 0; d < x->ndim; d++)
        if (d < extra || (shape[d - extra] == 1 && x->shape[d] != 1))
            dims[count++] = d;
    if (!count) {
        dt_variable_alias(out, x);
        return 0;
    }
    DT_LOCAL(sum);
    if (DT_CALL(sum, &sum, dt_value_tensor(x), dt_value_ints(count, dims),
                dt_value_bool(true)) < 0)
        return -1;
    return DT_CALL(reshape, out, dt_value_tensor(&sum), dt_value_ints(ndim, shape));
}

/* --- variances --- */

/* Result 0 is the variance or standard deviation, result 1 the mean. */
int dt_var_backward(dt_grad *g)
{
    const reduction reduced = reduction_of(g, 1, false);
    const reduction *r = &reduced;
    dt_scope *scope = g->scope;
    dt_arg total = ZERO;
    double correction = g->args[2].given ? dt_scalar_as_double(g->args[2].scalar) : 1;
    if (g->gradients[0]) {
        dt_arg X = dt_grad_input(g, 0), G = kept(r, GRAD);
        if (g->op->saves & DT_SAVES_OUTPUT(0)) {
            dt_arg Y = kept(r, dt_grad_output(g, 0));
            G = WHERE(EQ(Y, ZERO), ZERO, DIV(G, ADD(Y, Y)));
        }
        total =
            MUL(MUL(G, NUMBER(2 / (r->count - correction))), SUB(X, AGAIN(mean, X)));
    }
    if (g->node->nresults > 1 && g->gradients[1]) {
        dt_arg part = DIV(kept(r, dt_arg_tensor(g->gradients[1])), NUMBER(r->count));
        total = total.tensor ? ADD(total, part) : part;
    }
    return set(r, total);
}

/* --- extrema --- */

static int extremum(dt_call *c, dt_op *amax, const char *node)
{
    if (!c->args[0].tensor->numel)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: a tensor without elements has no extremum; give dim, or "
                       "elements",
                       c->name);
    return dt_call_as(node, amax, c->out[0], 1, c->args);
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/reduce.def"
