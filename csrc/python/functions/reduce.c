/* Functions that fold dimensions: the rows of ops/reduce.def, extremes, norms. */
#include <math.h>
#include <string.h>

#include "python/functions.h"
#include "python/output.h"
#include "python/types/results.h"
#include "autograd/recorded.h"
#include "tensor/ops/reduce.h"

/* Parameters: input, dim, keepdim, then those of the call; dtype_at -1 where there is
 * none. */
static PyObject *reduce(dt_reduce_op op, const dt_args *args, int dtype_at, int out_at)
{
    dt_tensor *x;
    int count, dtype = -1;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &count, dims) < 0 ||
        dt_take_bool(args, 2, &keepdim) < 0 ||
        (dtype_at >= 0 && dt_take_dtype(args, dtype_at, &dtype) < 0))
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_reduce(op, &out->tensor, x, count < 0 ? 0 : count, dims, keepdim,
                              dtype, 0));
    return dt_finish(args, out_at, out, status);
}

#define WITH_DTYPE(name)                                                               \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Tensor, dim: Dims = None, keepdim: bool = False, *, "     \
                    "dtype: Dtype = None, out: Tensor = None)")                        \
    {                                                                                  \
        return reduce(DT_REDUCE_##name, args, 3, 4);                                   \
    }
#define WITHOUT_DTYPE(name)                                                            \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Tensor, dim: Dims = None, keepdim: bool = False, *, "     \
                    "out: Tensor = None)")                                             \
    {                                                                                  \
        return reduce(DT_REDUCE_##name, args, -1, 3);                                  \
    }
/* prod folds one dimension, or all. */
#define ALONG_ONE(name)                                                                \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Tensor, dim: int = None, keepdim: bool = False, *, "      \
                    "dtype: Dtype = None, out: Tensor = None)")                        \
    {                                                                                  \
        int64_t dim;                                                                   \
        if (dt_given(args, 1) && dt_take_int(args, 1, &dim) < 0)                       \
            return NULL;                                                               \
        return reduce(DT_REDUCE_##name, args, 3, 4);                                   \
    }
#define SHAPE_prod        ~, ALONG_ONE
#define SECOND(a, b, ...) b
#define CHOOSE(...)       SECOND(__VA_ARGS__)
/* What a class of ops/reduce.def takes; the rows of NORM stand behind norm below. */
#define CLASS_TOTAL(name) CHOOSE(SHAPE_##name, WITH_DTYPE, ~)(name)
#define CLASS_FLOAT       WITH_DTYPE
#define CLASS_ORDER       WITHOUT_DTYPE
#define CLASS_TRUTH       WITHOUT_DTYPE
#define CLASS_NORM(name)
#define REDUCE(name, class, identity, map, combine, finish, doc) CLASS_##class(name)
#include "ops/reduce.def"
#undef REDUCE

/* --- extremes --- */

static PyObject *extreme_along(const dt_args *args, bool greatest)
{
    dt_tensor *x;
    int64_t dim;
    bool keepdim;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_bool(args, 2, &keepdim) < 0)
        return NULL;
    dt_tensor_object *values = dt_tensor_object_new(),
                     *indices = dt_tensor_object_new();
    int status = 0;
    if (values && indices)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_extreme(greatest ? "max" : "min", greatest, &values->tensor,
                                   &indices->tensor, x, dim, keepdim));
    return dt_finish_pair(args, 3, greatest ? DT_RESULT_max : DT_RESULT_min, values,
                          indices, status);
}

static PyObject *extreme(const dt_args *args, bool greatest)
{
    if (args->form == 1)
        return extreme_along(args, greatest);
    dt_tensor *x, *y;
    int status;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    if (args->form == 0) {
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_reduce(greatest ? DT_REDUCE_amax : DT_REDUCE_amin,
                                  &out->tensor, x, 0, NULL, false, -1, 0));
        if (status < 0 && !x->numel) {
            dt_error_clear();
            dt_fail(
                DT_ERROR_RUNTIME,
                "%s: a tensor without elements has no extreme; give dim, or elements",
                args->signature->name);
        }
        return dt_finish(args, 1, out, status);
    }
    if (dt_take_tensor(args, 1, &y) < 0) {
        Py_DECREF((PyObject *)out);
        return NULL;
    }
    DT_RUN(status, x->numel > DT_LONG_NUMEL || y->numel > DT_LONG_NUMEL,
           dt_recorded_elementwise(greatest ? DT_OP_maximum : DT_OP_minimum,
                                   &out->tensor,
                                   DT_ARGS(dt_arg_tensor(x), dt_arg_tensor(y))));
    return dt_finish(args, 2, out, status);
}

#define EXTREME(name)                                                                  \
    #name "(input: Tensor, *, out: Tensor = None) | " #name                            \
          "(input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) "      \
          "| " #name "(input: Tensor, other: Tensor, *, out: Tensor = None)"

DT_PUBLIC(max, EXTREME(max))
{
    return extreme(args, true);
}
DT_PUBLIC(min, EXTREME(min))
{
    return extreme(args, false);
}

static PyObject *where_extreme(const dt_args *args, bool greatest)
{
    dt_tensor *x;
    int64_t dim = 0;
    bool keepdim, has_dim = dt_given(args, 1);
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (has_dim && dt_take_int(args, 1, &dim) < 0) ||
        dt_take_bool(args, 2, &keepdim) < 0)
        return NULL;
    if (x->dtype == DT_BOOL) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): not defined for bools; convert them first, e.g. with .int()",
            args->signature->name);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_argreduce(args->signature->name, greatest, NULL, &out->tensor, x, has_dim,
                        dim, keepdim));
    return dt_finish(args, 3, out, status);
}

DT_PUBLIC(argmax, "argmax(input: Tensor, dim: int = None, keepdim: bool = False, *, "
                  "out: Tensor = None)")
{
    return where_extreme(args, true);
}
DT_PUBLIC(argmin, "argmin(input: Tensor, dim: int = None, keepdim: bool = False, *, "
                  "out: Tensor = None)")
{
    return where_extreme(args, false);
}

/* --- norms --- */

static int take_p(const dt_args *args, int i, double *out)
{
    *out = 2;
    if (!dt_given(args, i))
        return 0;
    PyObject *p = args->slots[i];
    if (!PyUnicode_Check(p)) {
        dt_scalar scalar;
        int status = dt_scalar_from_python(p, &scalar);
        if (status > 0) {
            *out = dt_scalar_as_double(scalar);
            return 0;
        }
        if (status < 0)
            return -1;
        return dt_argument_error(args, i);
    }
    if (PyUnicode_CompareWithASCIIString(p, "fro") == 0)
        return 0;
    PyErr_Format(PyUnicode_CompareWithASCIIString(p, "nuc") == 0
                     ? PyExc_NotImplementedError
                     : PyExc_RuntimeError,
                 "norm(): p is %R; give a number, float('inf') or 'fro'", p);
    return -1;
}

DT_PUBLIC(
    norm,
    "norm(input: Tensor, p: Any = 'fro', dim: Dims = None, keepdim: bool = False, "
    "out: Tensor = None, dtype: Dtype = None)")
{
    dt_tensor *x;
    double p;
    int count, dtype;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim;
    if (dt_take_tensor(args, 0, &x) < 0 || take_p(args, 1, &p) < 0 ||
        dt_take_dims(args, 2, &count, dims) < 0 ||
        dt_take_bool(args, 3, &keepdim) < 0 || dt_take_dtype(args, 5, &dtype) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_norm(&out->tensor, x, p, count < 0 ? 0 : count, dims, keepdim,
                            dt_dtype_is_float((dt_dtype)x->dtype) ? dtype : -1));
    return dt_finish(args, 4, out, status);
}

/* What docstrings say of a class of ops/reduce.def. */
#define ALONG                                                                          \
    "\n\ndim: the dimension or dimensions that are folded, all for None (IndexError "  \
    "beyond input's); they stay with size 1 where keepdim is True. "
#define ABOUT_TOTAL                                                                    \
    ALONG "Bools and integers are converted to int64 first, or all to dtype."
#define ABOUT_FLOAT                                                                    \
    ALONG "For floating types, or with one as dtype (RuntimeError without)."
#define ABOUT_ORDER                                                                    \
    ALONG "The result has input's type. Nothing to fold is an IndexError or, for all " \
          "dimensions, a RuntimeError."
#define ABOUT_TRUTH ALONG "The result is of bool; for uint8, of uint8."

static const dt_function rows[] = {
#define ROW(name, about, doc)                                                          \
    {#name, &name##_signature, name##_function, name##_method, doc about},
#undef CLASS_TOTAL
#undef CLASS_FLOAT
#undef CLASS_ORDER
#undef CLASS_TRUTH
#undef CLASS_NORM
#define CLASS_TOTAL(name, doc) ROW(name, ABOUT_TOTAL, doc)
#define CLASS_FLOAT(name, doc) ROW(name, ABOUT_FLOAT, doc)
#define CLASS_ORDER(name, doc) ROW(name, ABOUT_ORDER, doc)
#define CLASS_TRUTH(name, doc) ROW(name, ABOUT_TRUTH, doc)
#define CLASS_NORM(name, doc)
#define REDUCE(name, class, identity, map, combine, finish, doc)                       \
    CLASS_##class(name, doc)
#include "ops/reduce.def"
#undef REDUCE
    DT_BOTH(max, "max",
            "The greatest element; along dim also where; or of two tensors.\n\n"
            "With dim a tuple (values, indices) without that dimension, or with "
            "size 1 where keepdim is True; a NaN is taken. IndexError for a dim "
            "that is not there, RuntimeError for no elements."),
    DT_BOTH(min, "min",
            "The least element; along dim also where; or of two tensors.\n\n"
            "With dim a tuple (values, indices) without that dimension, or with "
            "size 1 where keepdim is True; a NaN is taken. IndexError for a dim "
            "that is not there, RuntimeError for no elements."),
    DT_BOTH(argmax, "argmax",
            "Where the greatest element is.\n\n"
            "int64: without dim the place in the flattened Tensor, with dim along "
            "it. IndexError for a dim that is not there or has nothing."),
    DT_BOTH(argmin, "argmin",
            "Where the least element is.\n\n"
            "int64: without dim the place in the flattened Tensor, with dim along "
            "it. IndexError for a dim that is not there or has nothing."),
    DT_BOTH(norm, "norm",
            "The p-norm, the Euclidean length where p is not given.\n\n"
            "p: a number, float(\"inf\") or \"fro\". Floating types only "
            "(RuntimeError)."),
};

int dt_setup_reductions(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
