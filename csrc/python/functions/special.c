/* Functions of elements that are made of several rows of the op tables. */
#include <math.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/copy.h"

/* Ends a function that made `out`: in place, what was made goes into the first
 * argument. */
static PyObject *finish(const dt_args *args, int out_at, dt_tensor_object *out,
                        int status)
{
    if (out_at >= 0)
        return dt_finish(args, out_at, out, status);
    PyObject *made = dt_tensor_result(out, status);
    if (made)
        status = dt_copy_to_output(args->signature->name, args->slots[0],
                                   dt_tensor_of(made));
    else
        status = -1;
    Py_XDECREF(made);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

/* --- numbers for what is none --- */

static PyObject *nan_to_num_of(const dt_args *args, int out_at)
{
    dt_tensor *x;
    double nan = 0, high, low;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_dtype dtype = (dt_dtype)x->dtype;
    high = dt_dtype_is_float(dtype) ? dt_dtype_limits(dtype).max : 0;
    low = -high;
    if ((dt_given(args, 1) && dt_take_float(args, 1, &nan) < 0) ||
        (dt_given(args, 2) && dt_take_float(args, 2, &high) < 0) ||
        (dt_given(args, 3) && dt_take_float(args, 3, &low) < 0))
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status = -1;
    dt_scope scope;
    dt_scope_begin(&scope);
    DT_BEGIN_ALLOW_THREADS
    if (!dt_dtype_is_float(dtype)) {
        status = dt_recorded_contiguous(&out->tensor, x);
    } else {
        dt_arg X = dt_arg_tensor(x);
        dt_arg rest =
            dt_scope_where(&scope, dt_scope_unary(&scope, DT_UNARY_isneginf, X),
                           dt_arg_scalar(dt_scalar_float(low)), X);
        rest = dt_scope_where(&scope, dt_scope_unary(&scope, DT_UNARY_isposinf, X),
                              dt_arg_scalar(dt_scalar_float(high)), rest);
        dt_arg odd = dt_scope_unary(&scope, DT_UNARY_isnan, X);
        if (!scope.failed)
            status = dt_recorded_where(&out->tensor, odd.tensor,
                                       dt_arg_scalar(dt_scalar_float(nan)), rest);
    }
    dt_scope_end(&scope);
    DT_END_ALLOW_THREADS
    return finish(args, out_at, out, status);
}

#define NUMBERS "nan: float = None, posinf: float = None, neginf: float = None"
DT_PUBLIC(nan_to_num, "nan_to_num(input: Tensor, " NUMBERS ", *, out: Tensor = None)")
{
    return nan_to_num_of(args, 4);
}

DT_PUBLIC(nan_to_num_in_place, "nan_to_num_(input: Tensor, " NUMBERS ")")
{
    return nan_to_num_of(args, -1);
}

/* --- powers in double --- */

static PyObject *float_power_of(const dt_args *args, int out_at)
{
    dt_arg operands[2];
    if (dt_take_value(args, 0, &operands[0]) < 0 ||
        dt_take_value(args, 1, &operands[1]) < 0)
        return NULL;
    if (!operands[0].tensor && !operands[1].tensor) {
        dt_argument_error(args, 0);
        return NULL;
    }
    if (out_at < 0 && operands[0].tensor->dtype != DT_FLOAT64) {
        PyErr_Format(PyExc_RuntimeError,
                     "float_power_(): the result is of type float64, and the tensor of "
                     "type %s; convert it with .double() first",
                     dt_dtype_name((dt_dtype)operands[0].tensor->dtype));
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_tensor wide[2];
    wide[0].storage = wide[1].storage = NULL;
    int status = 0;
    DT_BEGIN_ALLOW_THREADS
    for (int i = 0; i < 2; i++) {
        const dt_tensor *t = operands[i].tensor;
        if (!t) {
            operands[i].scalar =
                dt_scalar_float(dt_scalar_as_double(operands[i].scalar));
        } else if (!status) {
            status = dt_recorded_to(&wide[i], t, DT_FLOAT64, dt_tensor_device(t));
            operands[i] = dt_arg_tensor(&wide[i]);
        }
    }
    if (!status)
        status =
            dt_recorded_binary(DT_BINARY_pow, &out->tensor, operands[0], operands[1]);
    for (int i = 0; i < 2; i++)
        dt_tensor_clear(&wide[i]);
    DT_END_ALLOW_THREADS
    return finish(args, out_at, out, status);
}

DT_PUBLIC(float_power,
          "float_power(input: Value, exponent: Value, *, out: Tensor = None)")
{
    return float_power_of(args, 2);
}

DT_PUBLIC(float_power_in_place, "float_power_(input: Tensor, exponent: Value)")
{
    return float_power_of(args, -1);
}

/* --- signs --- */

DT_PUBLIC(positive, "positive(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (x->dtype == DT_BOOL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "positive(): not defined for bools; convert "
                        "them first, e.g. with .int()");
        return NULL;
    }
    return Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    DT_BOTH(
        nan_to_num, "nan_to_num",
        "Each element, with nan (0) for NaN, and posinf and neginf (the greatest and "
        "least number of the type) for the infinities. Of the shape and type of "
        "input."),
    DT_BOTH(nan_to_num_in_place, "nan_to_num_", "In place: nan_to_num."),
    DT_BOTH(float_power, "float_power",
            "Elements of input to the power of those of exponent, both as float64."),
    DT_METHOD(float_power_in_place, "float_power_",
              "In place: float_power. The tensor is of type float64."),
    DT_BOTH(positive, "positive",
            "input itself, which is not of bools: a RuntimeError."),
};

int dt_setup_special(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
