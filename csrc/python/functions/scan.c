/* Functions that run along a dimension: sums, products and extremes so far. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/results.h"

static PyObject *running(dt_scan_op op, const dt_args *args, int dtype_at,
                         bool in_place)
{
    dt_tensor *x;
    int64_t dim;
    int dtype = -1;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        (dtype_at >= 0 && dt_take_dtype(args, dtype_at, &dtype) < 0))
        return NULL;
    if (in_place && dtype >= 0 && dtype != x->dtype) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): the tensor is of type %s and cannot become %s in place; "
                     "leave dtype away, or call %s()",
                     args->signature->name, dt_dtype_name((dt_dtype)x->dtype),
                     dt_dtype_name((dt_dtype)dtype), dt_scan_names[op]);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_cumulative(op, &out->tensor, NULL, x, dim,
                                  in_place ? x->dtype : dtype, false));
    if (!in_place)
        return dt_finish(args, dtype_at >= 0 ? 3 : 2, out, status);
    PyObject *made = dt_tensor_result(out, status);
    if (!made)
        return NULL;
    status =
        dt_copy_to_output(args->signature->name, args->slots[0], dt_tensor_of(made));
    Py_DECREF(made);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

#define RUNNING(name, op)                                                              \
    DT_PUBLIC(name, #name "(input: Tensor, dim: int, *, dtype: Dtype = None, "         \
                          "out: Tensor = None)")                                       \
    {                                                                                  \
        return running(op, args, 2, false);                                            \
    }                                                                                  \
    DT_PUBLIC(name##_, #name "_(input: Tensor, dim: int, *, dtype: Dtype = None)")     \
    {                                                                                  \
        return running(op, args, 2, true);                                             \
    }
RUNNING(cumsum, DT_SCAN_SUM)
RUNNING(cumprod, DT_SCAN_PRODUCT)

DT_PUBLIC(logcumsumexp, "logcumsumexp(input: Tensor, dim: int, *, out: Tensor = None)")
{
    return running(DT_SCAN_LOGSUMEXP, args, -1, false);
}

static PyObject *extreme(dt_scan_op op, dt_pair_type type, const dt_args *args)
{
    dt_tensor *x;
    int64_t dim;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0)
        return NULL;
    dt_tensor_object *values = dt_tensor_object_new();
    dt_tensor_object *indices = dt_tensor_object_new();
    int status = 0;
    if (values && indices)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_cumulative(op, &values->tensor, &indices->tensor, x, dim, -1,
                                      false));
    return dt_finish_pair(args, 2, type, values, indices, status);
}

DT_PUBLIC(cummax, "cummax(input: Tensor, dim: int, *, out: Any = None)")
{
    return extreme(DT_SCAN_MAX, DT_RESULT_cummax, args);
}
DT_PUBLIC(cummin, "cummin(input: Tensor, dim: int, *, out: Any = None)")
{
    return extreme(DT_SCAN_MIN, DT_RESULT_cummin, args);
}

static const dt_function rows[] = {
    DT_BOTH(cumsum, "cumsum",
            "The sum of the elements so far, along a dimension; of input's shape.\n"
            "Integers and bools give int64 where dtype does not say another type."),
    DT_METHOD(cumsum_, "cumsum_", "cumsum() in place."),
    DT_BOTH(cumprod, "cumprod",
            "The product of the elements so far, along a dimension; of input's shape.\n"
            "Integers and bools give int64 where dtype does not say another type."),
    DT_METHOD(cumprod_, "cumprod_", "cumprod() in place."),
    DT_BOTH(logcumsumexp, "logcumsumexp",
            "log(exp(x0) + exp(x1) + ...) of the elements so far, along a dimension,\n"
            "without leaving the range of floats; of input's shape."),
    DT_BOTH(cummax, "cummax",
            "The greatest element so far and where it is, the last of equal ones: a\n"
            "tuple (values, indices), both of input's shape. A NaN is the greatest."),
    DT_BOTH(cummin, "cummin",
            "The least element so far and where it is, the last of equal ones: a\n"
            "tuple (values, indices), both of input's shape. A NaN is the least."),
};

int dt_setup_scans(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
