#include "python/output.h"

#include "autograd/recorded.h"
#include "tensor/ops/copy.h"

static bool fits(const dt_tensor *target, const dt_tensor *result)
{
    return dt_shape_equal(target->ndim, target->shape, result->ndim, result->shape);
}

static int check(const char *function, const dt_tensor *target, const dt_tensor *result)
{
    return dt_check_cast(function, (dt_dtype)result->dtype, (dt_dtype)target->dtype) <
                       0 ||
                   dt_check_same_device(function, "out", target, "the result", result) <
                       0
               ? dt_raise_status()
               : 0;
}

static int copy(const char *function, const dt_tensor *target, const dt_tensor *result)
{
    int status;
    DT_RUN(status, result->numel > DT_LONG_NUMEL,
           dt_recorded_copy_into(function, (dt_tensor *)target, result), &target,
           &result);
    return status < 0 ? dt_raise_status() : 0;
}

int dt_copy_in_place(const char *function, PyObject *self, const dt_tensor *result)
{
    const dt_tensor *target = dt_tensor_of(self);
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (check(function, target, result) < 0)
        return -1;
    if (fits(target, result))
        return copy(function, target, result);
    return DT_SET_ERROR(
        PyExc_RuntimeError,
        "%s(): the tensor has shape %s and the result %s, which does not fit; leave "
        "away the _ for a new tensor",
        function, dt_shape_text(target->ndim, target->shape, has, sizeof has),
        dt_shape_text(result->ndim, result->shape, wants, sizeof wants));
}

int dt_copy_to_output(const char *function, PyObject *out, const dt_tensor *result)
{
    const dt_tensor *target = dt_tensor_of(out);
    if (check(function, target, result) < 0)
        return -1;
    if (fits(target, result))
        return copy(function, target, result);
    if (target->numel) {
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): out has shape %s and the result %s; give an out of that shape, or "
            "an empty one, torch.empty(0)",
            function, dt_shape_text(target->ndim, target->shape, has, sizeof has),
            dt_shape_text(result->ndim, result->shape, wants, sizeof wants));
    }
    DT_LOCAL(fresh);
    if (dt_to(&fresh, result, (dt_dtype)target->dtype, dt_tensor_device(target)) < 0)
        return dt_raise_status();
    dt_tensor_move((dt_tensor *)target, &fresh);
    return 0;
}

void dt_output_refuse(const char *function)
{
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): functions with out=... arguments don't support automatic "
                 "differentiation, but one of the arguments requires grad; leave out= "
                 "away, or call it under no_grad()",
                 function);
}

int dt_output_into(const char *function, PyObject *out, PyObject *result)
{
    if (dt_requires_grad(dt_tensor_of(result))) {
        dt_output_refuse(function);
        return -1;
    }
    if (dt_tensor_is_same_view(dt_tensor_of(out), dt_tensor_of(result)))
        return 0; /* the operation wrote there */
    return dt_copy_to_output(function, out, dt_tensor_of(result));
}

PyObject *dt_finish(const dt_args *args, int i, dt_tensor_object *result, int status)
{
    PyObject *object = dt_tensor_result(result, status);
    if (!object || !dt_given(args, i))
        return object;
    PyObject *out = args->slots[i];
    if (dt_tensor_check(out))
        status = dt_output_into(args->signature->name, out, object);
    else
        status = dt_argument_error(args, i);
    Py_DECREF(object);
    return status < 0 ? NULL : Py_NewRef(out);
}
