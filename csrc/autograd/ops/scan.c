/* Cumulative functions: their gradients scan from the other end. */
#include "autograd/grad.h"
#include "autograd/factors.h"
#include "autograd/formula.h"

#define SUM(x)         CALL_OP(cumsum, TENSOR(x), g->args[1])
#define REVERSE_SUM(x) CALL_OP(reverse_cumsum, TENSOR(x), g->args[1])

int dt_cumsum_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, REVERSE_SUM(GRAD));
}

int dt_reverse_cumsum_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, SUM(GRAD));
}

/* The same from the factors, in a time and memory that grow as the square. */
static int cumprod_of_zeros(dt_grad *g, dt_arg G, dt_arg X)
{
    dt_scope *scope = g->scope;
    int64_t dim = g->args[1].i;
    dim += dim < 0 ? X.tensor->ndim : 0;
    const int64_t next = dim + 1;
    dt_arg products =
        CALL_OP(cumprod, TENSOR(dt_grad_factors(g, X, dim)), dt_value_int(next));
    dt_arg weights = WHERE(dt_grad_factors_from(g, X, dim),
                           CALL_OP(unsqueeze, TENSOR(G), dt_value_int(dim)), ZERO);
    return dt_grad_set(
        g, 0, CALL_OP(sum, TENSOR(MUL(products, weights)), dt_value_ints(1, &next)));
}

/* Element i gets the sum of G * Y / X[i] over the elements of Y from i on. Beyond the
 * first zero of a row Y is 0; for that zero itself the product is computed anew, with 1
 * in its place. */
int dt_cumprod_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg G = GRAD, X = dt_grad_input(g, 0), Y = dt_grad_output(g, 0);
    if (g->scope->failed || X.tensor->numel < 2)
        return dt_grad_set(g, 0, G);
    if (dt_dtype_is_complex((dt_dtype)X.tensor->dtype)) {
        X = CONJ(X);
        Y = CONJ(Y);
    }
    if (dt_grad_factors_needed(g, X))
        return cumprod_of_zeros(g, G, X);
    dt_arg zero = EQ(X, ZERO), zeros = SUM(zero);
    dt_arg first =
        dt_scope_elementwise(scope, DT_OP_bitwise_and, DT_ARGS(zero, EQ(zeros, ONE)));
    dt_arg others = CALL_OP(cumprod, TENSOR(WHERE(first, ONE, X)), g->args[1]);
    dt_arg before = DIV(REVERSE_SUM(MUL(G, Y)), WHERE(zero, ONE, X));
    dt_arg at = REVERSE_SUM(MUL(G, others));
    return dt_grad_set(g, 0, WHERE(EQ(zeros, ZERO), before, WHERE(first, at, ZERO)));
}

/* The sum of G * exp(X - Y) over the elements that follow, as logarithms, separately for
 * the positive and the negative part of G. The logarithm of 0 is a number of the type, not
 * -inf, of which higher derivatives would subtract another. */
int dt_logcumsumexp_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg G = GRAD, X = dt_grad_input(g, 0), Y = dt_grad_output(g, 0);
    if (g->scope->failed || !X.tensor->ndim)
        return dt_grad_set(g, 0, G);
    dt_op *op = g->op == DT_RECORD(logcumsumexp) ? DT_RECORD(reverse_logcumsumexp)
                                                 : DT_RECORD(logcumsumexp);
#define SCAN(x) dt_scope_call(scope, op, 2, (const dt_value[]){TENSOR(x), g->args[1]})
    /* Half of the range: what is added to it stays in the other half. */
    dt_arg lowest =
        NUMBER(-dt_dtype_limits(dt_dtype_part((dt_dtype)G.tensor->dtype)).max / 2);
    if (dt_dtype_is_complex((dt_dtype)G.tensor->dtype)) {
        dt_arg none = EQ(G, ZERO);
        dt_arg weights = WHERE(none, lowest, LOG(WHERE(none, ONE, CONJ(G))));
        return dt_grad_set(g, 0, CONJ(EXP(ADD(SCAN(SUB(weights, Y)), X))));
    }
    dt_arg positive = GT(G, ZERO), negative = LT(G, ZERO);
    dt_arg up = LOG(WHERE(positive, G, ONE)), down = LOG(WHERE(negative, NEG(G), ONE));
    up = SCAN(SUB(WHERE(positive, up, lowest), Y));
    down = SCAN(SUB(WHERE(negative, down, lowest), Y));
#undef SCAN
    return dt_grad_set(g, 0, SUB(EXP(ADD(up, X)), EXP(ADD(down, X))));
}

int dt_cummax_backward(dt_grad *g)
{
    return dt_grad_scatter(g, 0, DT_INDEX_ADD, g->args[1].i, dt_grad_output(g, 1));
}
