/* Functions that say something of many elements: spread, middle, counts. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/results.h"

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

/* --- both extremes --- */

DT_PUBLIC(aminmax, "aminmax(input: Tensor, *, dim: int = None, keepdim: bool = False, "
                   "out: Any = None)")
{
    dt_tensor *x;
    int64_t dim = 0;
    bool keepdim, has_dim = dt_given(args, 1);
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (has_dim && dt_take_int(args, 1, &dim) < 0) ||
        dt_take_bool(args, 2, &keepdim) < 0)
        return NULL;
    dt_tensor_object *least = dt_tensor_object_new();
    dt_tensor_object *greatest = dt_tensor_object_new();
    int status = 0;
    if (least && greatest)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_reduce(DT_REDUCE_amin, &least->tensor, x, has_dim, &dim,
                                  keepdim, -1, 0) < 0 ||
                       dt_recorded_reduce(DT_REDUCE_amax, &greatest->tensor, x, has_dim,
                                          &dim, keepdim, -1, 0) < 0
                   ? -1
                   : 0);
    return dt_finish_pair(args, 3, DT_RESULT_aminmax, least, greatest, status);
}

/* --- what is said in Python --- */

/* What the namesake in pydevtensor._statistics gives, in the argument at out_at where
 * that is given (-1: there is none). */
static PyObject *in_python(const dt_args *args, int out_at)
{
    PyObject *result =
        dt_call_python(args, "pydevtensor._statistics", args->signature->name);
    if (!result || out_at < 0 || !dt_given(args, out_at))
        return result;
    int status = -1;
    if (dt_requires_grad(dt_tensor_of(result)))
        dt_output_refuse(args->signature->name);
    else
        status = dt_copy_to_output(args->signature->name, args->slots[out_at],
                                   dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[out_at]);
}

#define IN_PYTHON(name, parameters, out_at)                                            \
    DT_PUBLIC(name, #name "(" parameters ")")                                          \
    {                                                                                  \
        return in_python(args, out_at);                                                \
    }
IN_PYTHON(count_nonzero, "input: Tensor, dim: Dims = None", -1)
IN_PYTHON(bincount, "input: Tensor, weights: Tensor = None, minlength: int = 0", -1)
IN_PYTHON(histc,
          "input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0, *, "
          "out: Tensor = None",
          4)
IN_PYTHON(nansum,
          "input: Tensor, dim: Dims = None, keepdim: bool = False, *, "
          "dtype: Dtype = None, out: Tensor = None",
          4)
IN_PYTHON(nanmean,
          "input: Tensor, dim: Dims = None, keepdim: bool = False, *, "
          "dtype: Dtype = None, out: Tensor = None",
          4)
IN_PYTHON(diff,
          "input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor = None, "
          "append: Tensor = None, *, out: Tensor = None",
          5)
IN_PYTHON(quantile,
          "input: Tensor, q: Value, dim: int = None, keepdim: bool = False, *, "
          "interpolation: str = 'linear', out: Tensor = None",
          5)
IN_PYTHON(nanquantile,
          "input: Tensor, q: Value, dim: int = None, keepdim: bool = False, *, "
          "interpolation: str = 'linear', out: Tensor = None",
          5)
IN_PYTHON(isin,
          "elements: Value, test_elements: Value, *, assume_unique: bool = False, "
          "invert: bool = False",
          -1)
IN_PYTHON(cov,
          "input: Tensor, *, correction: int = 1, fweights: Tensor = None, "
          "aweights: Tensor = None",
          -1)
IN_PYTHON(corrcoef, "input: Tensor", -1)

DT_PUBLIC(mode, "mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, "
                "out: Any = None)")
{
    PyObject *both = in_python(args, -1), *pair = NULL;
    if (both)
        pair =
            dt_finish_pair(args, 3, DT_RESULT_mode,
                           (dt_tensor_object *)Py_NewRef(PyTuple_GET_ITEM(both, 0)),
                           (dt_tensor_object *)Py_NewRef(PyTuple_GET_ITEM(both, 1)), 0);
    Py_XDECREF(both);
    return pair;
}

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
    DT_BOTH(aminmax, "aminmax",
            "The least and the greatest element, of all or along dim: a tuple (min,\n"
            "max). RuntimeError where there is none."),
    DT_BOTH(count_nonzero, "count_nonzero",
            "How many elements are not 0, of all or over dimensions: int64."),
    DT_BOTH(
        bincount, "bincount",
        "How often each number from 0 to the greatest is there, or the sum of its\n"
        "weights: of one dimension, at least minlength long; int64, or the weights'\n"
        "type. RuntimeError for negative numbers. Waits for a GPU."),
    DT_BOTH(
        histc, "histc",
        "How many elements are in each of `bins` bins of one width from min to max\n"
        "(both 0: from the least to the greatest element): of shape [bins] and\n"
        "input's type. What lies beyond is not counted."),
    DT_BOTH(nansum, "nansum", "The sum of the elements that are no NaN."),
    DT_BOTH(nanmean, "nanmean", "The mean of the elements that are no NaN."),
    DT_BOTH(diff, "diff",
            "Each element less the one before it along dim, n times over. prepend and\n"
            "append are joined to input first.\n\n"
            "RuntimeError for a negative n."),
    DT_BOTH(
        quantile, "quantile",
        "The element that a share q, from 0 to 1, of the others lies below; between\n"
        "two elements as interpolation says: 'linear', 'lower', 'higher',\n"
        "'midpoint' or 'nearest'. q may be a Tensor of one dimension, which then\n"
        "comes first in the result. NaN where one is there."),
    DT_BOTH(nanquantile, "nanquantile", "quantile() of the elements that are no NaN."),
    DT_FUNCTION(isin, "isin",
                "Which elements are equal to one of test_elements: bools of elements'\n"
                "shape; with invert, which are not."),
    DT_BOTH(
        cov, "cov",
        "The covariances of variables, the rows of input, between observations, its\n"
        "columns: of shape [rows, rows]. fweights: how often each observation\n"
        "counts, integers; aweights: how much, floats."),
    DT_BOTH(corrcoef, "corrcoef",
            "The correlations of variables, the rows of input: of shape [rows, rows]."),
    DT_BOTH(mode, "mode",
            "The commonest element along a dimension, the least of several, and its\n"
            "last place: a tuple (values, indices)."),
};

int dt_setup_statistics(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
