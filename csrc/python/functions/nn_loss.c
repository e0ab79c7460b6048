/* Losses over classes, behind pydevtensor.nn.functional. */
#include <string.h>

#include "python/functions.h"
#include "autograd/recorded.h"
#include "autograd/backward/nn.h"

static int take_reduction(const dt_args *args, int i, dt_loss_reduction *out)
{
    const char *text;
    if (dt_take_str(args, i, &text) < 0)
        return -1;
    if (!text || !strcmp(text, "mean"))
        *out = DT_LOSS_MEAN;
    else if (!strcmp(text, "sum"))
        *out = DT_LOSS_SUM;
    else if (!strcmp(text, "none"))
        *out = DT_LOSS_EACH;
    else {
        PyErr_Format(PyExc_ValueError,
                     "%s is not a valid value for reduction; give 'mean', 'sum' or "
                     "'none'",
                     text);
        return -1;
    }
    return 0;
}

/* Parameters: input, target, weight, ignore_index, reduction; options has the rest. */
static PyObject *class_loss(const dt_args *args, dt_loss_options *options)
{
    dt_tensor *x, *target, *weight;
    int status;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &target) < 0 ||
        dt_take_tensor(args, 2, &weight) < 0 ||
        dt_take_int(args, 3, &options->ignored) < 0 ||
        take_reduction(args, 4, &options->reduction) < 0)
        return NULL;
    options->shares = options->scores &&
                      dt_shape_equal(x->ndim, x->shape, target->ndim, target->shape);
    if (options->shares && !dt_dtype_is_float((dt_dtype)target->dtype)) {
        PyErr_Format(PyExc_RuntimeError,
                     "cross_entropy: the target has the input's shape, so it holds "
                     "shares of classes, which are floats, not %s; give floats, or "
                     "class indices without the dimension of the classes",
                     dt_dtype_name((dt_dtype)target->dtype));
        return NULL;
    }
    if (options->shares && options->ignored >= 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "cross_entropy: ignore_index is not supported for a target of "
                        "shares; leave it away, or give class indices");
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, x->numel > DT_LONG_NUMEL / 4,
           dt_recorded_class_loss(&out->tensor, x, target, weight, options));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(cross_entropy,
          "cross_entropy(input: Tensor, target: Tensor, weight: Tensor = None, "
          "ignore_index: int = -100, reduction: str = None, "
          "label_smoothing: float = 0.0)")
{
    dt_loss_options options = {.what = "cross_entropy", .scores = true};
    if (dt_take_float(args, 5, &options.smoothing) < 0)
        return NULL;
    if (options.smoothing < 0)
        options.smoothing = 0;
    return class_loss(args, &options);
}

DT_PUBLIC(nll_loss, "nll_loss(input: Tensor, target: Tensor, weight: Tensor = None, "
                    "ignore_index: int = -100, reduction: str = None)")
{
    dt_loss_options options = {.what = "nll_loss"};
    return class_loss(args, &options);
}

static const dt_function rows[] = {
    DT_FUNCTION(cross_entropy, "_cross_entropy",
                "log_softmax and nll_loss, as one operation."),
    DT_FUNCTION(nll_loss, "_nll_loss", "-input at each target class."),
};

int dt_setup_losses(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
