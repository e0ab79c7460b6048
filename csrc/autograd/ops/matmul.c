/* Matrix products. For C = A B: dA = dC B' and dB = A' dC. */
#include <string.h>

#include "autograd/grad.h"
#include "autograd/formula.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

static dt_arg product(dt_scope *scope, dt_op *op, dt_arg a, dt_arg b)
{
    const dt_value args[] = {TENSOR(a), TENSOR(b)};
    return dt_scope_call(scope, op, 2, args);
}

/* The last two dimensions exchanged. */
static dt_arg transposed(dt_scope *scope, dt_arg a)
{
    return SCOPE_CALL(scope, transpose, TENSOR(a), dt_value_int(-1), dt_value_int(-2));
}

/* The gradients of two factors, parameters `first` and first + 1, times alpha. Each is
 * stored as its factor is, so that the gradient of a transposed weight needs no copy. */
static int factors_backward(dt_grad *g, dt_op *op, int first, dt_arg alpha)
{
    dt_scope *scope = g->scope;
    for (int i = 0; i < 2; i++) {
        if (!dt_grad_wants(g, first + i))
            continue;
        dt_arg other = transposed(scope, dt_grad_factor(g, first + 1 - i));
        dt_arg a = i ? other : GRAD, b = i ? GRAD : other;
        dt_arg c = g->args[first + i].column_major
                       ? transposed(scope, product(scope, op, transposed(scope, b),
                                                   transposed(scope, a)))
                       : product(scope, op, a, b);
        dt_grad_set(g, first + i, MUL(c, alpha));
    }
    return 0;
}

int dt_mm_backward(dt_grad *g)
{
    return factors_backward(g, DT_RECORD(mm), 0, ONE);
}

int dt_bmm_backward(dt_grad *g)
{
    return factors_backward(g, DT_RECORD(bmm), 0, ONE);
}

int dt_addmm_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    SET_WANTED(0, MUL(GRAD, dt_grad_number(g, 3)));
    return factors_backward(g, DT_RECORD(mm), 1, dt_grad_number(g, 4));
}

int dt_mv_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    SET_WANTED(0, MUL(CALL_OP(unsqueeze, TENSOR(GRAD), dt_value_int(1)),
                      dt_grad_factor(g, 1)));
    SET_WANTED(1, product(scope, DT_RECORD(mv), transposed(scope, dt_grad_factor(g, 0)),
                          GRAD));
    return 0;
}

int dt_dot_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    for (int i = 0; i < 2; i++)
        SET_WANTED(i, MUL(GRAD, dt_grad_factor(g, 1 - i)));
    return 0;
}

/* --- matmul --- */

static dt_arg reshaped(dt_scope *scope, dt_arg a, int ndim, const int64_t *shape)
{
    return SCOPE_CALL(scope, reshape, TENSOR(a), dt_value_ints(ndim, shape));
}

/* The result of a product in its final shape. */
static int finish_product(dt_scope *scope, const char *node, dt_tensor *out, dt_arg c,
                          int ndim, const int64_t *shape)
{
    if (scope->failed)
        return -1;
    return DT_CALL_AS(node, reshape_result, out, TENSOR(c), dt_value_ints(ndim, shape));
}

/* (..., m, k) times a matrix or a vector: one product with the rows of all matrices. */
static int rows_product(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                        const dt_tensor *b)
{
    int64_t shape[DT_MAX_NDIM], rows = 1;
    int ndim = a->ndim - 1;
    for (int d = 0; d < ndim; d++) {
        shape[d] = a->shape[d];
        rows *= a->shape[d];
    }
    int64_t flat[] = {rows, a->shape[ndim]};
    if (b->ndim == 2)
        shape[ndim++] = b->shape[1];
    dt_arg c = product(scope, b->ndim == 2 ? DT_RECORD(mm) : DT_RECORD(mv),
                       reshaped(scope, dt_arg_tensor(a), 2, flat), dt_arg_tensor(b));
    return finish_product(scope, "UnsafeViewBackward0", out, c, ndim, shape);
}

/* t as a batch of `count` matrices. */
static dt_arg as_batch(dt_scope *scope, const dt_tensor *t, int ndim,
                       const int64_t *batch, int64_t count)
{
    int64_t wide[DT_MAX_NDIM];
    for (int d = 0; d < ndim; d++)
        wide[d] = batch[d];
    wide[ndim] = t->shape[t->ndim - 2];
    wide[ndim + 1] = t->shape[t->ndim - 1];
    int64_t three[] = {count, wide[ndim], wide[ndim + 1]};
    dt_arg expanded =
        SCOPE_CALL(scope, expand, dt_value_tensor(t), dt_value_ints(ndim + 2, wide));
    return reshaped(scope, expanded, 3, three);
}

static int batch_product(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                         const dt_tensor *b)
{
    int64_t batch[DT_MAX_NDIM], count = 1;
    int ndim;
    if (dt_shape_broadcast("matmul", a->ndim - 2, a->shape, b->ndim - 2, b->shape,
                           &ndim, batch) < 0)
        return -1;
    for (int d = 0; d < ndim; d++)
        count *= batch[d];
    dt_arg c = product(scope, DT_RECORD(bmm), as_batch(scope, a, ndim, batch, count),
                       as_batch(scope, b, ndim, batch, count));
    batch[ndim] = a->shape[a->ndim - 2];
    batch[ndim + 1] = b->shape[b->ndim - 1];
    return finish_product(scope, "UnsafeViewBackward0", out, c, ndim + 2, batch);
}

/* A vector and a batch: the vector becomes a matrix, whose added size is removed. */
static int vector_product(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                          const dt_tensor *b)
{
    bool left = a->ndim == 1;
    dt_arg vector = SCOPE_CALL(scope, unsqueeze, dt_value_tensor(left ? a : b),
                               dt_value_int(left ? 0 : 1));
    dt_arg c = product(scope, DT_RECORD(matmul), left ? vector : dt_arg_tensor(a),
                       left ? dt_arg_tensor(b) : vector);
    if (scope->failed)
        return -1;
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0, added = c.tensor->ndim - (left ? 2 : 1);
    for (int d = 0; d < c.tensor->ndim; d++)
        if (d != added)
            shape[ndim++] = c.tensor->shape[d];
    return finish_product(
        scope, c.tensor->ndim == 2 ? "SqueezeBackward4" : "UnsafeViewBackward0", out, c,
        ndim, shape);
}

/* Where a gradient is wanted, matmul is made of the strict products. */
int dt_matmul_forward(dt_call *c)
{
    const dt_tensor *a = c->args[0].tensor, *b = c->args[1].tensor;
    dt_tensor *out = c->out[0];
    if ((!dt_recording(a) && !dt_recording(b)) || !a->ndim || !b->ndim ||
        a->shape[a->ndim - 1] != b->shape[b->ndim > 1 ? b->ndim - 2 : 0])
        return dt_matmul(out, a, b); /* which raises for shapes that do not fit */
    if (a->ndim == 1 && b->ndim == 1)
        return DT_CALL(dot, out, c->args[0], c->args[1]);
    if (a->ndim == 2 && b->ndim <= 2)
        return dt_call_values(b->ndim == 2 ? DT_RECORD(mm) : DT_RECORD(mv), out, 2,
                              c->args);
    dt_scope scope;
    dt_scope_begin(&scope);
    int status = b->ndim <= 2 && a->ndim > 2  ? rows_product(&scope, out, a, b)
                 : a->ndim > 1 && b->ndim > 1 ? batch_product(&scope, out, a, b)
                                              : vector_product(&scope, out, a, b);
    dt_scope_end(&scope);
    return status;
}

/* --- nn.functional.linear --- */

/* A matrix for the leading dimensions of input, or for a vector. */
static int as_rows(dt_tensor *out, const dt_value *input)
{
    return input->tensor->ndim > 1
               ? DT_CALL(flatten, out, *input, dt_value_int(0), dt_value_int(-2))
               : DT_CALL(unsqueeze, out, *input, dt_value_int(0));
}

int dt_linear_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *weight = c->args[1].tensor;
    const int last = x->ndim - 1, inner = weight->ndim - 1;
    char given[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (inner != 0 && inner != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "linear(): weight has %d dimensions; give a matrix, or a vector",
                       weight->ndim);
    if (last < 0 || x->shape[last] != weight->shape[inner])
        return dt_fail(DT_ERROR_RUNTIME,
                       "linear(): the input has shape %s; for a weight of shape %s its "
                       "last size has to be %lld",
                       dt_shape_text(x->ndim, x->shape, given, sizeof given),
                       dt_shape_text(weight->ndim, weight->shape, wants, sizeof wants),
                       (long long)weight->shape[inner]);
    DT_LOCAL(turned);
    DT_LOCAL(rows);
    DT_LOCAL(sums);
    if (DT_CALL(t, &turned, c->args[1]) < 0)
        return -1;
    const dt_value factor = dt_value_tensor(&turned);
    if (!c->args[2].tensor)
        return DT_CALL_OVERLOAD(matmul, c, c->args[0], factor);
    if (x->ndim == 2)
        return DT_CALL_OVERLOAD(addmm, c, c->args[2], c->args[0], factor);
    int64_t shape[DT_MAX_NDIM];
    if (as_rows(&rows, &c->args[0]) < 0 ||
        DT_CALL(addmm, &sums, c->args[2], dt_value_tensor(&rows), factor) < 0)
        return -1;
    memcpy(shape, x->shape, sizeof shape);
    shape[last] = weight->shape[0];
    return DT_CALL_OVERLOAD(reshape, c, dt_value_tensor(&sums),
                            dt_value_ints(x->ndim, shape));
}
