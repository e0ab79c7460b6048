#include "autograd/anomaly.h"

#include "autograd/sparse_gradient.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/ops.h"

dt_anomaly_mode dt_anomaly;

static int has_nan(const dt_tensor *t, bool *found)
{
    DT_LOCAL(each);
    DT_LOCAL(any);
    dt_scalar truth;
    *found = false;
    if (!dt_dtype_is_inexact((dt_dtype)t->dtype) || !t->numel)
        return 0;
    if (dt_elementwise(DT_OP_isnan, &each, DT_ARGS(dt_arg_tensor(t))) ||
        dt_reduce(DT_REDUCE_amax, &any, &each, 0, NULL, false, -1, 0) ||
        dt_item("backward", &any, &truth))
        return -1;
    *found = truth.i != 0;
    return 0;
}

int dt_anomaly_check(const dt_node *node, dt_tensor *const *into)
{
    for (int i = 0; dt_anomaly.check_nan && i < node->nedges; i++) {
        bool found;
        if (!into[i] || dt_gradient_is_sparse(into[i]))
            continue;
        if (has_nan(into[i], &found))
            return -1;
        if (found)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "backward: %s gave NaN as the gradient of its input %d; look "
                "at the values that the operation was called with",
                node->name, i);
    }
    return 0;
}

int dt_anomaly_explain(const dt_node *node)
{
    return node->place
               ? dt_fail_append("\n%s was called here:\n%s", node->name, node->place)
               : -1;
}
