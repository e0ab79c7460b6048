/* Matrix products. Derivatives: for C = A B, dA = dC B' and dB = A' dC. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"
#include "tensor/ops/matmul.h"

typedef int (*product_fn)(dt_tensor *, const dt_tensor *, const dt_tensor *);

static dt_tensor *call(dt_scope *scope, product_fn product, const dt_tensor *a,
                       const dt_tensor *b)
{
    dt_tensor *out = a && b ? dt_scope_slot(scope) : NULL;
    return out && product(out, a, b) == 0 ? out : NULL;
}

/* The last two dimensions exchanged. */
static dt_tensor *flipped(dt_scope *scope, const dt_tensor *t)
{
    dt_tensor *out = t ? dt_scope_slot(scope) : NULL;
    return out && dt_recorded_transpose(out, t, -1, -2) == 0 ? out : NULL;
}

/* Whether a matrix, or each of a batch, lies column by column. */
static bool lies_in_columns(const dt_tensor *t)
{
    int n = t->ndim;
    return n > 1 && !t->contiguous && t->strides[n - 2] == 1 &&
           t->strides[n - 1] >= t->shape[n - 2];
}

/* x y, column by column where columns says so: as a factor whose gradient it is lies.
 */
static dt_tensor *laid(dt_scope *scope, product_fn product, const dt_tensor *x,
                       const dt_tensor *y, bool columns)
{
    if (!columns)
        return call(scope, product, x, y);
    return flipped(scope, call(scope, product, flipped(scope, y), flipped(scope, x)));
}

/* Which of the factors lie column by column. */
typedef struct layouts {
    bool columns[2];
} layouts;

/* Both factors are kept where the other's gradient needs them. */
static int record(const char *name, const dt_node_type *type, dt_tensor *out,
                  const dt_tensor *a, const dt_tensor *b)
{
    const dt_tensor *inputs[] = {a, b};
    dt_node *node = dt_record_node(type, name, 2, inputs, 2, 1, sizeof(layouts));
    for (int i = 0; node && i < 2; i++)
        ((layouts *)node->data)->columns[i] = lies_in_columns(inputs[i]);
    if (node && dt_node_wants(node, 1))
        dt_node_save(node, 0, a, -1);
    if (node && dt_node_wants(node, 0))
        dt_node_save(node, 1, b, -1);
    return dt_record_steal(out, node);
}

static bool is_recorded(const dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    return (dt_recording(a) || dt_recording(b)) &&
           dt_dtype_is_float((dt_dtype)out->dtype);
}

/* --- matrices, and batches of them --- */

static int matrices_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                          dt_tensor **into, product_fn product)
{
    const dt_tensor *g = gradients[0];
    const layouts *lie = node->data;
    if (!g)
        return 0;
    if (dt_node_wants(node, 0)) {
        const dt_tensor *b = dt_node_saved(node, 1, scope);
        into[0] = laid(scope, product, g, flipped(scope, b), lie->columns[0]);
        if (!into[0])
            return -1;
    }
    if (dt_node_wants(node, 1)) {
        const dt_tensor *a = dt_node_saved(node, 0, scope);
        into[1] = laid(scope, product, flipped(scope, a), g, lie->columns[1]);
        if (!into[1])
            return -1;
    }
    return 0;
}

static int mm_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                    dt_tensor **into)
{
    return matrices_apply(node, scope, gradients, into, dt_recorded_mm);
}
static const dt_node_type mm_type = {mm_apply, NULL};

int dt_recorded_mm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    if (dt_mm(out, a, b) < 0)
        return -1;
    return is_recorded(out, a, b) ? record("MmBackward0", &mm_type, out, a, b) : 0;
}

static int bmm_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                     dt_tensor **into)
{
    return matrices_apply(node, scope, gradients, into, dt_recorded_bmm);
}
static const dt_node_type bmm_type = {bmm_apply, NULL};

int dt_recorded_bmm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    if (dt_bmm(out, a, b) < 0)
        return -1;
    return is_recorded(out, a, b) ? record("BmmBackward0", &bmm_type, out, a, b) : 0;
}

/* --- with vectors --- */

static int mv_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                    dt_tensor **into)
{
    const dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    if (dt_node_wants(node, 0)) {
        const dt_tensor *v = dt_node_saved(node, 1, scope);
        dt_tensor *column = v ? dt_scope_slot(scope) : NULL;
        if (!column || dt_recorded_unsqueeze(column, g, 1) < 0)
            return -1;
        into[0] =
            dt_scope_tensor(scope, MUL(dt_arg_tensor(column), dt_arg_tensor(v)), g);
        if (!into[0])
            return -1;
    }
    if (dt_node_wants(node, 1)) {
        const dt_tensor *m = dt_node_saved(node, 0, scope);
        into[1] = call(scope, dt_recorded_mv, flipped(scope, m), g);
        if (!into[1])
            return -1;
    }
    return 0;
}
static const dt_node_type mv_type = {mv_apply, NULL};

int dt_recorded_mv(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    if (dt_mv(out, a, b) < 0)
        return -1;
    return is_recorded(out, a, b) ? record("MvBackward0", &mv_type, out, a, b) : 0;
}

static int dot_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                     dt_tensor **into)
{
    if (!gradients[0])
        return 0;
    for (int i = 0; i < 2; i++) {
        if (!dt_node_wants(node, i))
            continue;
        const dt_tensor *other = dt_node_saved(node, 1 - i, scope);
        if (!other)
            return -1;
        into[i] = dt_scope_tensor(
            scope, MUL(dt_arg_tensor(gradients[0]), dt_arg_tensor(other)), other);
        if (!into[i])
            return -1;
    }
    return 0;
}
static const dt_node_type dot_type = {dot_apply, NULL};

int dt_recorded_dot(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    if (dt_dot(out, a, b) < 0)
        return -1;
    return is_recorded(out, a, b) ? record("DotBackward0", &dot_type, out, a, b) : 0;
}

/* --- matmul, made of the others where it is recorded --- */

/* (..., m, k) times a matrix or vector: the batch's matrices lie under each other. */
static int folded(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                  const dt_tensor *b)
{
    int64_t shape[DT_MAX_NDIM], k = a->shape[a->ndim - 1], rows = 1;
    int ndim = a->ndim - 1;
    for (int d = 0; d < a->ndim - 1; d++) {
        shape[d] = a->shape[d];
        rows *= a->shape[d];
    }
    if (b->ndim == 2)
        shape[ndim++] = b->shape[1];
    int64_t flat[] = {rows, k};
    dt_tensor *matrix = dt_scope_slot(scope);
    if (!matrix || dt_recorded_reshape(matrix, a, 2, flat) < 0)
        return -1;
    dt_tensor *product =
        call(scope, b->ndim == 2 ? dt_recorded_mm : dt_recorded_mv, matrix, b);
    return product ? dt_recorded_shape_of_result("UnsafeViewBackward0", out, product,
                                                 ndim, shape)
                   : -1;
}

/* t as a batch of `batch` matrices. */
static dt_tensor *as_batch(dt_scope *scope, const dt_tensor *t, int ndim,
                           const int64_t *batch, int64_t count)
{
    int64_t wide[DT_MAX_NDIM];
    dt_tensor *expanded = dt_scope_slot(scope), *flat = dt_scope_slot(scope);
    for (int d = 0; d < ndim; d++)
        wide[d] = batch[d];
    wide[ndim] = t->shape[t->ndim - 2];
    wide[ndim + 1] = t->shape[t->ndim - 1];
    int64_t three[] = {count, wide[ndim], wide[ndim + 1]};
    if (!flat || dt_recorded_expand("matmul", expanded, t, ndim + 2, wide) < 0 ||
        dt_recorded_reshape(flat, expanded, 3, three) < 0)
        return NULL;
    return flat;
}

static int batched(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                   const dt_tensor *b)
{
    int64_t batch[DT_MAX_NDIM], count = 1;
    int ndim;
    if (dt_shape_broadcast("matmul", a->ndim - 2, a->shape, b->ndim - 2, b->shape,
                           &ndim, batch) < 0)
        return -1;
    for (int d = 0; d < ndim; d++)
        count *= batch[d];
    dt_tensor *x = as_batch(scope, a, ndim, batch, count);
    dt_tensor *y = x ? as_batch(scope, b, ndim, batch, count) : NULL;
    dt_tensor *product = call(scope, dt_recorded_bmm, x, y);
    if (!product)
        return -1;
    batch[ndim] = a->shape[a->ndim - 2];
    batch[ndim + 1] = b->shape[b->ndim - 1];
    return dt_recorded_shape_of_result("UnsafeViewBackward0", out, product, ndim + 2,
                                       batch);
}

static int compose(dt_scope *scope, dt_tensor *out, const dt_tensor *a,
                   const dt_tensor *b)
{
    if (a->ndim == 1 && b->ndim == 1)
        return dt_recorded_dot(out, a, b);
    if (a->ndim == 2 && b->ndim == 2)
        return dt_recorded_mm(out, a, b);
    if (a->ndim == 2 && b->ndim == 1)
        return dt_recorded_mv(out, a, b);
    if (b->ndim <= 2 && a->ndim > 2)
        return folded(scope, out, a, b);
    /* A vector on either side becomes a matrix, whose added size goes again. */
    dt_tensor *wider = dt_scope_slot(scope);
    if (!wider)
        return -1;
    if (a->ndim > 1 && b->ndim > 1)
        return batched(scope, out, a, b);
    if (dt_recorded_unsqueeze(wider, a->ndim == 1 ? a : b, a->ndim == 1 ? 0 : 1) < 0)
        return -1;
    dt_tensor *product = call(scope, dt_recorded_matmul, a->ndim == 1 ? wider : a,
                              a->ndim == 1 ? b : wider);
    if (!product)
        return -1;
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0, added = product->ndim - (a->ndim == 1 ? 2 : 1);
    for (int d = 0; d < product->ndim; d++)
        if (d != added)
            shape[ndim++] = product->shape[d];
    return dt_recorded_shape_of_result(product->ndim == 2 ? "SqueezeBackward4"
                                                          : "UnsafeViewBackward0",
                                       out, product, ndim, shape);
}

int dt_recorded_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    out->storage = NULL;
    if (!dt_recording(a) && !dt_recording(b))
        return dt_matmul(out, a, b);
    if (!a->ndim || !b->ndim ||
        a->shape[a->ndim - 1] != b->shape[b->ndim > 1 ? b->ndim - 2 : 0])
        return dt_matmul(out, a, b); /* which says what is wrong */
    dt_scope scope;
    dt_scope_begin(&scope);
    int status = compose(&scope, out, a, b);
    dt_scope_end(&scope);
    return status;
}

/* --- addmm --- */

typedef struct addmm_data {
    double beta, alpha;
    layouts lie;
} addmm_data;

/* t times a number; t itself where that is 1. */
static dt_tensor *times(dt_scope *scope, dt_tensor *t, double factor)
{
    return factor == 1 || !t
               ? t
               : dt_scope_tensor(scope, MUL(dt_arg_tensor(t), NUMBER(factor)), t);
}

static int addmm_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const addmm_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    if (dt_node_wants(node, 0)) {
        into[0] = times(scope, g, data->beta);
        if (!into[0])
            return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (!dt_node_wants(node, i + 1))
            continue;
        const dt_tensor *other = dt_node_saved(node, 1 - i, scope);
        dt_tensor *flip = flipped(scope, other);
        dt_tensor *product = laid(scope, dt_recorded_mm, i ? flip : g, i ? g : flip,
                                  data->lie.columns[i]);
        into[i + 1] = times(scope, product, data->alpha);
        if (!into[i + 1])
            return -1;
    }
    return 0;
}
static const dt_node_type addmm_type = {addmm_apply, NULL};

int dt_recorded_addmm(dt_tensor *out, const dt_tensor *input, const dt_tensor *a,
                      const dt_tensor *b, dt_scalar beta, dt_scalar alpha)
{
    if (dt_addmm(out, input, a, b, beta, alpha) < 0)
        return -1;
    if ((!dt_recording(input) && !dt_recording(a) && !dt_recording(b)) ||
        !dt_dtype_is_float((dt_dtype)out->dtype))
        return 0;
    const dt_tensor *inputs[] = {input, a, b};
    dt_node *node = dt_record_node(&addmm_type, "AddmmBackward0", 3, inputs, 2, 1,
                                   sizeof(addmm_data));
    if (node) {
        addmm_data *data = node->data;
        data->beta = dt_scalar_as_double(beta);
        data->alpha = dt_scalar_as_double(alpha);
        data->lie.columns[0] = lies_in_columns(a);
        data->lie.columns[1] = lies_in_columns(b);
        if (dt_node_wants(node, 2))
            dt_node_save(node, 0, a, -1);
        if (dt_node_wants(node, 1))
            dt_node_save(node, 1, b, -1);
    }
    return dt_record_steal(out, node);
}
