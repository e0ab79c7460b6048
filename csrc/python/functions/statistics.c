/* Variance and standard deviation: var, std, var_mean, std_mean. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"

/* The argument unbiased, or the number correction, as a correction. */
static int take_correction(const dt_args *args, int i, double *out)
{
    *out = 1;
    if (!dt_given(args, i))
        return 0;
    if (PyBool_Check(args->slots[i])) {
        *out = args->slots[i] == Py_True;
        return 0;
    }
    dt_scalar number;
    if (dt_take_number(args, i, &number) < 0)
        return -1;
    *out = dt_scalar_as_double(number);
    return 0;
}

/* Parameters: input, dim, then correction, keepdim or unbiased, keepdim; or input,
 * unbiased alone. */
static PyObject *spread(const dt_args *args, bool root, bool with_mean)
{
    dt_tensor *x;
    int count = -1;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim = false;
    double correction;
    bool all = args->form == 2;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (!all && dt_take_dims(args, 1, &count, dims) < 0) ||
        take_correction(args, all ? 1 : 2, &correction) < 0 ||
        (!all && dt_take_bool(args, 3, &keepdim) < 0))
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    dt_tensor_object *mean = with_mean && out ? dt_tensor_object_new() : NULL;
    if (!out || (with_mean && !mean)) {
        Py_XDECREF((PyObject *)out);
        return NULL;
    }
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_variance(args->signature->name, &out->tensor,
                                mean ? &mean->tensor : NULL, x, count < 0 ? 0 : count,
                                dims, keepdim, correction, root));
    if (!mean && all)
        return dt_tensor_result(out, status);
    if (!mean)
        return dt_finish(args, 4, out, status);
    if (status < 0) {
        Py_DECREF((PyObject *)mean);
        return dt_tensor_result(out, status);
    }
    PyObject *both = PyTuple_Pack(2, (PyObject *)out, (PyObject *)mean);
    Py_DECREF((PyObject *)out);
    Py_DECREF((PyObject *)mean);
    return both;
}

#define SPREAD(name, root)                                                             \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Tensor, dim: Dims = None, *, correction: Number = None, " \
                    "keepdim: bool = False, out: Tensor = None) | " #name              \
                    "(input: Tensor, dim: Dims = None, unbiased: bool = True, "        \
                    "keepdim: bool = False, *, out: Tensor = None) | " #name           \
                    "(input: Tensor, unbiased: bool)")                                 \
    {                                                                                  \
        return spread(args, root, false);                                              \
    }                                                                                  \
    DT_PUBLIC(name##_mean,                                                             \
              #name "_mean(input: Tensor, dim: Dims = None, *, "                       \
                    "correction: Number = None, keepdim: bool = False) | " #name       \
                    "_mean(input: Tensor, dim: Dims = None, unbiased: bool = True, "   \
                    "keepdim: bool = False) | " #name                                  \
                    "_mean(input: Tensor, unbiased: bool)")                            \
    {                                                                                  \
        return spread(args, root, true);                                               \
    }
SPREAD(var, false)
SPREAD(std, true)

static const dt_function rows[] = {
    DT_BOTH(
        var, "var",
        "The variance of the elements, of all or over dimensions: the sum of\n"
        "squared deviations from the mean, divided by their number less correction\n"
        "(1 where it is not given; unbiased=False is correction=0). RuntimeError\n"
        "for integers. NaN where there is no element."),
    DT_BOTH(std, "std", "The standard deviation, the square root of var()."),
    DT_FUNCTION(var_mean, "var_mean", "(var(input, ...), mean(input, ...)) in one go."),
    DT_FUNCTION(std_mean, "std_mean", "(std(input, ...), mean(input, ...)) in one go."),
};

int dt_setup_statistics(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
