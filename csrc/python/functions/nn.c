/* Functions along one dimension, a row at a time: ops/nn.def. */
#include "python/functions.h"
#include "python/output.h"
#include "autograd/backward/nn_norm.h"
#include "autograd/recorded.h"
#include "autograd/backward/nn.h"

/* Exponentials take a while. */
#define LONG_ROWS (DT_LONG_NUMEL / 4)

static PyObject *softmax(const dt_args *args, dt_nn_op op)
{
    dt_tensor *x;
    int64_t dim;
    int dtype = -1, status;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_dtype(args, 2, &dtype) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    /* Into a tensor that is given: PyTorch's result has a history then, from which no
     * gradient can be computed. */
    dt_tensor alone;
    bool refuses = dt_given(args, 3) && dt_recording(x) &&
                   !(dt_tensor_check(args->slots[3]) &&
                     dt_requires_grad(dt_tensor_of(args->slots[3])));
    if (refuses)
        dt_tensor_alias(&alone, x);
    DT_RUN(status, x->numel > LONG_ROWS,
           dt_recorded_softmax(op, &out->tensor, refuses ? &alone : x, dim, dtype));
    PyObject *result = dt_finish(args, 3, out, status);
    if (refuses)
        dt_tensor_clear(&alone);
    if (result && refuses &&
        dt_record_refusal(dt_tensor_of(result), args->signature->name, x) < 0) {
        Py_DECREF(result);
        return dt_raise();
    }
    return result;
}

DT_PUBLIC(softmax, "softmax(input: Tensor, dim: int, dtype: Dtype = None, *, "
                   "out: Tensor = None)")
{
    return softmax(args, DT_NN_softmax);
}
DT_PUBLIC(log_softmax, "log_softmax(input: Tensor, dim: int, dtype: Dtype = None, *, "
                       "out: Tensor = None)")
{
    return softmax(args, DT_NN_log_softmax);
}

DT_PUBLIC(logsumexp, "logsumexp(input: Tensor, dim: Dims, keepdim: bool = False, *, "
                     "out: Tensor = None)")
{
    dt_tensor *x;
    int count, status;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &count, dims) < 0 ||
        dt_take_bool(args, 2, &keepdim) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(
        status, x->numel > LONG_ROWS,
        dt_recorded_logsumexp(&out->tensor, x, count < 0 ? 0 : count, dims, keepdim));
    return dt_finish(args, 3, out, status);
}

/* --- normalising layers --- */

DT_PUBLIC(layer_norm, "layer_norm(input: Tensor, normalized_shape: Sizes, "
                      "weight: Tensor = None, bias: Tensor = None, eps: float = 1e-05, "
                      "cudnn_enable: bool = True)")
{
    dt_tensor *x, *weight, *bias;
    int ndim, status;
    int64_t shape[DT_MAX_NDIM];
    double eps;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &ndim, shape) < 0 ||
        dt_take_tensor(args, 2, &weight) < 0 || dt_take_tensor(args, 3, &bias) < 0 ||
        dt_take_float(args, 4, &eps) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_layer_norm(&out->tensor, x, ndim, shape, weight, bias, eps));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(batch_norm,
          "batch_norm(input: Tensor, weight: Tensor = None, bias: Tensor = None, "
          "running_mean: Tensor = None, running_var: Tensor = None, "
          "training: bool = False, momentum: float = 0.1, eps: float = 1e-05, "
          "cudnn_enabled: bool = True)")
{
    dt_tensor *x, *weight, *bias, *running_mean, *running_variance;
    dt_batch_norm_options options;
    int status;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &weight) < 0 ||
        dt_take_tensor(args, 2, &bias) < 0 ||
        dt_take_tensor(args, 3, &running_mean) < 0 ||
        dt_take_tensor(args, 4, &running_variance) < 0 ||
        dt_take_bool(args, 5, &options.training) < 0 ||
        dt_take_float(args, 6, &options.momentum) < 0 ||
        dt_take_float(args, 7, &options.eps) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_batch_norm(&out->tensor, x, weight, bias, running_mean,
                                  running_variance, &options));
    return dt_tensor_result(out, status);
}

/* Behind nn.functional.dropout, which draws the mask. */
DT_PUBLIC(dropout, "dropout(input: Tensor, mask: Tensor, kept: float)")
{
    dt_tensor *x, *mask;
    double kept;
    int status;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &mask) < 0 ||
        dt_take_float(args, 2, &kept) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    /* PyTorch's names: on the CPU it multiplies, on a GPU it has a function. */
    const char *name = dt_device_is_cpu(dt_tensor_device(x)) ? "MulBackward0"
                                                             : "NativeDropoutBackward0";
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_dropout(name, &out->tensor, x, mask, kept));
    return dt_tensor_result(out, status);
}

static const dt_function rows[] = {
    DT_FUNCTION(dropout, "_dropout", "Elements that mask chooses, divided by kept."),
    DT_BOTH(softmax, "softmax",
            "e^x divided by its sum along dim: shares that are positive and add up to "
            "1, of input's shape. Integers want a floating dtype.\n\n"
            "IndexError for a dim that is not there."),
    DT_BOTH(
        log_softmax, "log_softmax",
        "Logarithm of softmax along dim, without its rounding: x - logsumexp(x).\n\n"
        "IndexError for a dim that is not there."),
    DT_BOTH(logsumexp, "logsumexp",
            "Logarithm of the sum of e^x over the dimensions dim, without overflow."),
    DT_FUNCTION(layer_norm, "layer_norm",
                "Blocks of the last dimensions to mean 0 and variance 1, scaled and "
                "shifted by weight and bias of shape normalized_shape."),
    DT_FUNCTION(batch_norm, "batch_norm",
                "Each channel (dimension 1) to mean 0 and variance 1, by its own "
                "statistics in training, else by the running ones."),
};

int dt_setup_rowwise(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
