/* Running sums, products and extremes: their derivatives run the other way. */
#include <float.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"
#include "tensor/ops/create.h"

typedef struct scan_data {
    dt_scan_op op;
    int dim; /* wrapped */
    bool backward;
} scan_data;

/* x scanned along the node's dimension, the other way than the node did where `other`.
 */
static dt_arg run(dt_scope *scope, const scan_data *data, dt_scan_op op, bool other,
                  dt_arg x)
{
    if (scope->failed)
        return x;
    dt_tensor *out = dt_scope_slot(scope);
    if (!out || dt_recorded_cumulative(op, out, NULL, x.tensor, data->dim, -1,
                                       data->backward != other) < 0) {
        scope->failed = true;
        return x;
    }
    return dt_arg_tensor(out);
}

/* Of a running product Y: what follows an element, each without that element. Beyond
 * the first zero of a row all is 0; the first itself is left out by being 1. */
static dt_arg product(dt_scope *scope, const scan_data *data, dt_arg G, dt_arg X,
                      dt_arg Y)
{
    dt_arg zero = EQ(X, ZERO);
    dt_arg zeros = run(scope, data, DT_SCAN_SUM, false, zero);
    dt_arg first = dt_scope_binary(scope, DT_BINARY_bitwise_and, zero, EQ(zeros, ONE));
    dt_arg without = run(scope, data, DT_SCAN_PRODUCT, false, WHERE(first, ONE, X));
    dt_arg before = run(scope, data, DT_SCAN_SUM, true, MUL(G, Y));
    dt_arg at = run(scope, data, DT_SCAN_SUM, true, MUL(G, without));
    dt_arg safe = WHERE(zero, ONE, X);
    return WHERE(EQ(zeros, ZERO), DIV(before, safe), WHERE(first, at, ZERO));
}

/* Of Y = log(sum of exp): the sum of G * exp(X - Y) over what follows, without leaving
 * the logarithms, for what is positive of G and what is negative. */
static dt_arg log_share(dt_scope *scope, const scan_data *data, dt_arg G, dt_arg X,
                        dt_arg Y)
{
    dt_arg least = NUMBER(-DBL_MAX);
    dt_arg positive = GT(G, ZERO), negative = LT(G, ZERO);
    dt_arg up = LOG(WHERE(positive, G, ONE)), down = LOG(WHERE(negative, NEG(G), ONE));
    up = SUB(WHERE(positive, up, least), Y);
    down = SUB(WHERE(negative, down, least), Y);
    up = EXP(ADD(run(scope, data, DT_SCAN_LOGSUMEXP, true, up), X));
    down = EXP(ADD(run(scope, data, DT_SCAN_LOGSUMEXP, true, down), X));
    return SUB(up, down);
}

static int scan_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const scan_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_arg G = dt_arg_tensor(g), result;
    if (data->op == DT_SCAN_SUM) {
        result = run(scope, data, DT_SCAN_SUM, true, G);
    } else {
        dt_tensor *x = dt_node_saved(node, 0, scope);
        dt_tensor *y = x ? dt_node_saved(node, 1, scope) : NULL;
        if (!y)
            return -1;
        result = (data->op == DT_SCAN_PRODUCT ? product : log_share)(
            scope, data, G, dt_arg_tensor(x), dt_arg_tensor(y));
    }
    into[0] = dt_scope_tensor(scope, result, g);
    return into[0] ? 0 : -1;
}
static const dt_node_type scan_type = {scan_apply, NULL};

/* The gradient of an extreme goes where it was found. */
static int place_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const scan_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *index = dt_node_saved(node, 0, scope), *out = dt_scope_slot(scope);
    dt_indexing choice = {.what = "backward",
                          .code = DT_ERROR_RUNTIME,
                          .form = DT_INDEXING_ALONG,
                          .count = 1,
                          .dims = {data->dim},
                          .indices = {index}};
    if (!index || !out ||
        dt_full(node->name, out, (dt_dtype)g->dtype, g->ndim, g->shape,
                dt_tensor_device(g), dt_scalar_float(0)) < 0 ||
        dt_recorded_index_write("ScatterAddBackward0", DT_INDEX_ADD, out, &choice, g) <
            0)
        return -1;
    into[0] = out;
    return 0;
}
static const dt_node_type place_type = {place_apply, NULL};

int dt_recorded_cumulative(dt_scan_op op, dt_tensor *out, dt_tensor *indices,
                           const dt_tensor *x, int64_t dim, int dtype, bool backward)
{
    static const char *const names[DT_NSCAN] = {
        [DT_SCAN_SUM] = "CumsumBackward0",
        [DT_SCAN_PRODUCT] = "CumprodBackward0",
        [DT_SCAN_LOGSUMEXP] = "LogcumsumexpBackward0",
        [DT_SCAN_MAX] = "CummaxBackward0",
        [DT_SCAN_MIN] = "CumminBackward0",
    };
    if (dt_cumulative(op, out, indices, x, dim, dtype, backward) < 0)
        return -1;
    if (!dt_recording(x) || !dt_dtype_is_float((dt_dtype)out->dtype))
        return 0;
    int nsaved = indices ? 1 : op == DT_SCAN_SUM ? 0 : 2;
    dt_node *node = dt_record_node(indices ? &place_type : &scan_type, names[op], 1, &x,
                                   nsaved, 1, sizeof(scan_data));
    if (node) {
        scan_data *data = node->data;
        data->op = op;
        data->dim = dt_shape_wrap_dim(names[op], dim, x->ndim);
        data->backward = backward;
        if (indices) {
            dt_node_save(node, 0, indices, -1);
        } else if (nsaved) {
            dt_node_save(node, 0, x, -1);
            dt_node_save(node, 1, out, 0);
        }
    }
    if (dt_record_steal(out, node) == 0)
        return 0;
    if (indices)
        dt_tensor_clear(indices);
    return -1;
}
