/* dtype, device, requires_grad, pin_memory and out of functions that create tensors. */
#include "autograd/recorded.h"
#include "python/arguments.h"
#include "python/output.h"
#include "python/types/device.h"
#include "python/types/dtype.h"

PyObject *dt_with_grad(const dt_args *args, int i, PyObject *made)
{
    bool wanted;
    if (!made || !args->slots[i])
        return made;
    if (dt_take_bool(args, i, &wanted) < 0 ||
        (wanted && dt_variable_require(dt_tensor_of(made), true) < 0 &&
         (dt_raise(), true))) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

PyObject *dt_pinned(const char *function, PyObject *tensor)
{
    const dt_tensor *x = dt_tensor_of(tensor);
    dt_device device = dt_device_make(DT_ACCELERATOR, 0);
    /* On a GPU: refused below. */
    if (dt_device_is_host(dt_tensor_device(x))) {
        if (!dt_device_count(DT_ACCELERATOR))
            return PyErr_Format(
                PyExc_RuntimeError,
                "%s(): memory is pinned for a GPU's driver, and there is no "
                "GPU; leave it out. %s",
                function, dt_device_why(DT_ACCELERATOR));
        if (dt_device_resolve(dt_device_make(DT_ACCELERATOR, -1), &device) < 0)
            return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, true,
           DT_CALL(pin, &out->tensor, dt_value_tensor(x), dt_value_int(device.index)),
           &x);
    return dt_tensor_result(out, status);
}

/* The parameters of DT_FACTORY_KWARGS_OUT, counted from dtype. */
enum { DTYPE, LAYOUT, DEVICE, REQUIRES_GRAD, PIN_MEMORY, OUT };

static bool has_out(const dt_args *args, int first)
{
    return args->signature->count > first + OUT &&
           args->signature->parameters[first + OUT].type == DT_PARAM_TENSOR &&
           dt_given(args, first + OUT);
}

/* Dtype and device of out, where dtype (-1: not given) and device do not say
 * otherwise. */
static int take_from_out(const dt_args *args, int first, int chosen, int *dtype,
                         dt_device *device)
{
    dt_tensor *out;
    if (dt_take_tensor(args, first + OUT, &out) < 0)
        return -1;
    dt_device has = dt_tensor_device(out);
    if (chosen >= 0 && chosen != out->dtype)
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): dtype is %s and out a Tensor of type %s; leave dtype away, "
            "or give an out of that type",
            args->signature->name, dt_dtype_name((dt_dtype)chosen),
            dt_dtype_name((dt_dtype)out->dtype));
    if (dt_given(args, first + DEVICE) && !dt_device_equal(*device, has)) {
        char given[DT_DEVICE_TEXT], holds[DT_DEVICE_TEXT];
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): device is %s and out is on %s; leave device away, or give "
            "an out that is there",
            args->signature->name, dt_device_text(*device, given),
            dt_device_text(has, holds));
    }
    *dtype = out->dtype;
    *device = has;
    return 0;
}

/* requires_grad and pin_memory are for dt_finish_factory. */
int dt_take_factory(const dt_args *args, int first, const dt_tensor *like, int *dtype,
                    dt_device *device)
{
    int chosen;
    bool pinned, wanted, out = has_out(args, first);
    PyObject *const *words = args->slots + first;
    bool named = like ? dt_given(args, first + DEVICE) : words[DEVICE] || !out;
    if (like)
        *device = dt_tensor_home(like);
    if (!words[DTYPE] && !words[DEVICE] && !words[REQUIRES_GRAD] &&
        !words[PIN_MEMORY] && !words[LAYOUT] && !out)
        return like ? 0 : dt_default_device(device);
    if (dt_take_layout(args, first + LAYOUT) < 0 ||
        dt_take_dtype(args, first + DTYPE, &chosen) < 0 ||
        (named && dt_take_device(args, first + DEVICE, device) < 0) ||
        dt_take_bool(args, first + REQUIRES_GRAD, &wanted) < 0 ||
        dt_take_bool(args, first + PIN_MEMORY, &pinned) < 0)
        return -1;
    if (out)
        return take_from_out(args, first, chosen, dtype, device);
    if (chosen >= 0)
        *dtype = chosen;
    return 0;
}

PyObject *dt_finish_factory(const dt_args *args, int first, PyObject *made)
{
    const char *function = args->signature->name;
    bool pinned = false;
    if (made && args->slots[first + PIN_MEMORY] &&
        dt_take_bool(args, first + PIN_MEMORY, &pinned) < 0)
        Py_CLEAR(made);
    if (made && has_out(args, first)) {
        PyObject *out = args->slots[first + OUT];
        int status = dt_copy_to_output(function, out, dt_tensor_of(made));
        Py_DECREF(made);
        return status < 0 ? NULL : Py_NewRef(out);
    }
    if (made && pinned) {
        PyObject *plain = made;
        made = dt_pinned(function, plain);
        Py_DECREF(plain);
    }
    return dt_with_grad(args, first + REQUIRES_GRAD, made);
}
