/* Reductions: the rows of ops/reduce.def, norms and extremes. */
#include <math.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"
#include "tensor/ops/create.h"
#include "tensor/ops/reduce.h"

/* Which dimensions went, and what the input was like. */
typedef struct fold_data {
    dt_reduce_op op;
    int ndim;
    bool folded[DT_MAX_NDIM], keepdim;
    int64_t shape[DT_MAX_NDIM];
    double count; /* elements that one result is made of */
    double parameter;
} fold_data;

static void set_fold(fold_data *data, const dt_tensor *x, int count,
                     const int64_t *dims, bool keepdim)
{
    data->ndim = x->ndim;
    data->keepdim = keepdim;
    data->count = 1;
    for (int d = 0; d < x->ndim; d++) {
        data->folded[d] = count == 0;
        data->shape[d] = x->shape[d];
    }
    for (int i = 0; i < count && x->ndim; i++)
        data->folded[dims[i] < 0 ? dims[i] + x->ndim : dims[i]] = true;
    for (int d = 0; d < x->ndim; d++)
        if (data->folded[d])
            data->count *= (double)x->shape[d];
}

/* t, shaped as a result, with the dimensions that went in their places, as size 1. */
static dt_tensor *unfolded(dt_scope *scope, const fold_data *data, const dt_tensor *t)
{
    int64_t shape[DT_MAX_NDIM];
    dt_tensor *out = dt_scope_slot(scope);
    for (int d = 0; d < data->ndim; d++)
        shape[d] = data->folded[d] ? 1 : data->shape[d];
    return out && dt_recorded_reshape(out, t, data->ndim, shape) == 0 ? out : NULL;
}

static dt_tensor *spread(dt_scope *scope, const fold_data *data, const dt_tensor *t)
{
    dt_tensor *out = dt_scope_slot(scope);
    return out && dt_recorded_expand("backward", out, t, data->ndim, data->shape) == 0
               ? out
               : NULL;
}

/* A sum over the same dimensions, which stay as size 1. */
static dt_arg fold_again(dt_scope *scope, const fold_data *data, dt_reduce_op op,
                         dt_arg x)
{
    int64_t dims[DT_MAX_NDIM];
    int count = 0;
    if (scope->failed)
        return x;
    for (int d = 0; d < data->ndim; d++)
        if (data->folded[d])
            dims[count++] = d;
    dt_tensor *out = dt_scope_slot(scope);
    if (!out || dt_recorded_reduce(op, out, x.tensor, count, dims, true, -1, 0) < 0) {
        scope->failed = true;
        return x;
    }
    return dt_arg_tensor(out);
}

/* The gradient G of an extreme Y among elements of size X is shared by all that are it.
 */
static dt_arg share(dt_scope *scope, const fold_data *data, dt_arg G, dt_arg X,
                    dt_arg Y)
{
    dt_arg same = EQ(X, Y);
    return MUL(same, DIV(G, fold_again(scope, data, DT_REDUCE_sum, same)));
}

/* Of a product: the product of the other elements. With one zero among them, it is the
 * only one with a gradient; with more, none has one. */
static dt_arg product(dt_scope *scope, const fold_data *data, dt_arg G, dt_arg X,
                      dt_arg Y)
{
    dt_arg zero = EQ(X, ZERO);
    dt_arg zeros = fold_again(scope, data, DT_REDUCE_sum, zero);
    dt_arg others =
        fold_again(scope, data, DT_REDUCE_prod, WHERE(zero, ADD(MUL(X, ZERO), ONE), X));
    dt_arg alone = WHERE(EQ(zeros, ONE), others, ZERO);
    (void)Y;
    return MUL(G, WHERE(zero, alone, WHERE(EQ(zeros, ZERO), DIV(others, X), ZERO)));
}

static dt_arg derivative(dt_scope *scope, const fold_data *data, dt_arg G, dt_arg X,
                         dt_arg Y)
{
    double p = data->parameter;
    switch (data->op) {
    case DT_REDUCE_sum:
        return G;
    case DT_REDUCE_mean:
        return DIV(G, NUMBER(data->count));
    case DT_REDUCE_prod:
        return product(scope, data, G, X, Y);
    case DT_REDUCE_amax:
    case DT_REDUCE_amin:
        return share(scope, data, G, X, Y);
    case DT_REDUCE_norm_0:
        return ZERO;
    case DT_REDUCE_norm_1:
        return MUL(G, SIGN(X));
    case DT_REDUCE_norm_2:
        return WHERE(EQ(Y, ZERO), ZERO, MUL(X, DIV(G, Y)));
    case DT_REDUCE_norm_max:
    case DT_REDUCE_norm_min:
        return MUL(SIGN(X), share(scope, data, G, ABS(X), Y));
    case DT_REDUCE_norm_p:
        return WHERE(EQ(Y, ZERO), ZERO,
                     MUL(MUL(SIGN(X), POW(ABS(X), NUMBER(p - 1))),
                         DIV(G, POW(Y, NUMBER(p - 1)))));
    default:
        return G;
    }
}

static bool keeps_elements(dt_reduce_op op)
{
    return op != DT_REDUCE_sum && op != DT_REDUCE_mean && op != DT_REDUCE_norm_0;
}

static int fold_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const fold_data *data = node->data;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *g = unfolded(scope, data, gradients[0]), *x = NULL, *y = NULL;
    if (!g)
        return -1;
    if (node->nsaved) {
        x = dt_node_saved(node, 0, scope);
        y = x ? dt_node_saved(node, 1, scope) : NULL;
        y = y ? unfolded(scope, data, y) : NULL;
        if (!y)
            return -1;
    }
    dt_tensor *result = dt_scope_tensor(
        scope,
        derivative(scope, data, dt_arg_tensor(g), dt_arg_tensor(x), dt_arg_tensor(y)),
        g);
    into[0] = result ? spread(scope, data, result) : NULL;
    return into[0] ? 0 : -1;
}
static const dt_node_type fold_type = {fold_apply, NULL};

static int fold(const char *name, dt_reduce_op op, dt_tensor *out, const dt_tensor *x,
                int count, const int64_t *dims, bool keepdim, double parameter)
{
    int nsaved = keeps_elements(op) ? 2 : 0;
    dt_node *node =
        dt_record_node(&fold_type, name, 1, &x, nsaved, 1, sizeof(fold_data));
    if (node) {
        fold_data *data = node->data;
        set_fold(data, x, count, dims, keepdim);
        data->op = op;
        data->parameter = parameter;
        if (nsaved) {
            dt_node_save(node, 0, x, -1);
            dt_node_save(node, 1, out, 0);
        }
    }
    return dt_record_steal(out, node);
}

int dt_recorded_reduce(dt_reduce_op op, dt_tensor *out, const dt_tensor *x, int count,
                       const int64_t *dims, bool keepdim, int dtype, double parameter)
{
    static const char *const names[DT_NREDUCE][2] = {
        [DT_REDUCE_sum] = {"SumBackward0", "SumBackward1"},
        [DT_REDUCE_prod] = {"ProdBackward0", "ProdBackward1"},
        [DT_REDUCE_mean] = {"MeanBackward0", "MeanBackward1"},
        [DT_REDUCE_amax] = {"AmaxBackward0", "AmaxBackward0"},
        [DT_REDUCE_amin] = {"AminBackward0", "AminBackward0"},
    };
    if (dt_reduce(op, out, x, count, dims, keepdim, dtype, parameter) < 0)
        return -1;
    if (!dt_recording(x) || !dt_dtype_is_float((dt_dtype)out->dtype) || !names[op][0])
        return 0;
    return fold(names[op][count > 0], op, out, x, count, dims, keepdim, parameter);
}

int dt_recorded_norm(dt_tensor *out, const dt_tensor *x, double p, int count,
                     const int64_t *dims, bool keepdim, int dtype)
{
    if (dt_norm(out, x, p, count, dims, keepdim, dtype) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return fold("LinalgVectorNormBackward0", dt_norm_row(p), out, x, count, dims,
                keepdim, p);
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
    dt_tensor sum;
    if (dt_recorded_reduce(DT_REDUCE_sum, &sum, x, count, dims, true, -1, 0) < 0)
        return -1;
    int status = dt_recorded_reshape(out, &sum, ndim, shape);
    dt_tensor_clear(&sum);
    return status;
}

/* --- variances --- */

/* Gradients of the variance or deviation Y, and of the mean. */
static int variance_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                          dt_tensor **into)
{
    const fold_data *data = node->data;
    if (!dt_node_wants(node, 0))
        return 0;
    dt_tensor *x = dt_node_saved(node, 0, scope), *g = NULL, *m = NULL, *y = NULL;
    if (!x)
        return -1;
    dt_arg X = dt_arg_tensor(x), sum = ZERO;
    if (gradients[0]) {
        g = unfolded(scope, data, gradients[0]);
        if (!g)
            return -1;
        dt_arg G = dt_arg_tensor(g);
        if (node->nsaved > 1) {
            y = dt_node_saved(node, 1, scope);
            y = y ? unfolded(scope, data, y) : NULL;
            if (!y)
                return -1;
            dt_arg Y = dt_arg_tensor(y);
            G = WHERE(EQ(Y, ZERO), ZERO, DIV(G, ADD(Y, Y)));
        }
        dt_arg off = SUB(X, fold_again(scope, data, DT_REDUCE_mean, X));
        sum = MUL(MUL(G, NUMBER(2 / (data->count - data->parameter))), off);
    }
    if (node->nresults > 1 && gradients[1]) {
        m = unfolded(scope, data, gradients[1]);
        if (!m)
            return -1;
        dt_arg share = DIV(dt_arg_tensor(m), NUMBER(data->count));
        sum = sum.tensor ? ADD(sum, share) : share;
    }
    if (!g && !m)
        return 0;
    dt_tensor *result = dt_scope_tensor(scope, sum, x);
    into[0] = result ? spread(scope, data, result) : NULL;
    return into[0] ? 0 : -1;
}
static const dt_node_type variance_type = {variance_apply, NULL};

int dt_recorded_variance(const char *what, dt_tensor *out, dt_tensor *mean,
                         const dt_tensor *x, int count, const int64_t *dims,
                         bool keepdim, double correction, bool root)
{
    static const char *const names[2][2] = {{"VarBackward0", "VarMeanBackward0"},
                                            {"StdBackward0", "StdMeanBackward0"}};
    if (dt_variance(what, out, mean, x, count, dims, keepdim, correction, root) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    dt_node *node = dt_record_node(&variance_type, names[root][mean != NULL], 1, &x,
                                   root ? 2 : 1, mean ? 2 : 1, sizeof(fold_data));
    if (!node)
        goto fail;
    fold_data *data = node->data;
    set_fold(data, x, count, dims, keepdim);
    data->parameter = correction;
    dt_node_save(node, 0, x, -1);
    if (root)
        dt_node_save(node, 1, out, 0);
    if (mean) {
        dt_node_set_result(node, 1, mean);
        if (dt_variable_set_made(mean, node, 1) < 0) {
            dt_node_release(node);
            goto fail;
        }
    }
    if (dt_record_steal(out, node) == 0)
        return 0;
    if (mean)
        dt_tensor_clear(mean);
    return -1;
fail:
    dt_tensor_clear(out);
    if (mean)
        dt_tensor_clear(mean);
    return -1;
}

/* --- extremes along one dimension --- */

/* The gradient goes where the extreme was found. */
static int extreme_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const fold_data *data = node->data;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *index = dt_node_saved(node, 0, scope);
    dt_tensor *g = unfolded(scope, data, gradients[0]);
    index = index ? unfolded(scope, data, index) : NULL;
    if (!g || !index)
        return -1;
    if (!data->ndim) {
        into[0] = g;
        return 0;
    }
    int dim = 0;
    while (!data->folded[dim])
        dim++;
    /* 0, 1, ... along the dimension, to be compared with the index. */
    dt_tensor *places = dt_scope_slot(scope), *along = dt_scope_slot(scope);
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < data->ndim; d++)
        shape[d] = d == dim ? data->shape[d] : 1;
    if (!along ||
        dt_arange(places, dt_scalar_int(0), dt_scalar_int(data->shape[dim]),
                  dt_scalar_int(1), DT_INT64, dt_tensor_device(g)) < 0 ||
        dt_view_shape(along, places, data->ndim, shape) < 0)
        return -1;
    dt_arg here = EQ(dt_arg_tensor(along), dt_arg_tensor(index));
    into[0] = dt_scope_tensor(scope, WHERE(here, dt_arg_tensor(g), ZERO), g);
    return into[0] ? 0 : -1;
}
static const dt_node_type extreme_type = {extreme_apply, NULL};

int dt_recorded_extreme(const char *what, bool greatest, dt_tensor *values,
                        dt_tensor *indices, const dt_tensor *x, int64_t dim,
                        bool keepdim)
{
    if (dt_argreduce(what, greatest, values, indices, x, true, dim, keepdim) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    dt_node *node =
        dt_record_node(&extreme_type, greatest ? "MaxBackward0" : "MinBackward0", 1, &x,
                       1, 1, sizeof(fold_data));
    if (node) {
        set_fold(node->data, x, 1, &dim, keepdim);
        dt_node_save(node, 0, indices, -1);
    }
    if (dt_record_steal(values, node) == 0)
        return 0;
    dt_tensor_clear(indices);
    return -1;
}
