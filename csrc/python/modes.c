/* The modes of a thread: whether it records, anomaly mode, autocast. */
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/autocast_cache.h"
#include "autograd/recall.h"
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/history.h"
#include "python/types/device.h"
#include "python/types/dtype.h"

/* --- grad mode --- */

static PyObject *is_grad_enabled(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(dt_grad_enabled);
}

/* Returns the previous mode. */
static PyObject *exchange_grad_enabled(PyObject *module, PyObject *value)
{
    (void)module;
    int wanted = PyObject_IsTrue(value);
    if (wanted < 0)
        return NULL;
    bool old = dt_grad_enabled;
    dt_grad_enabled = wanted;
    return PyBool_FromLong(old);
}

/* Names the last node of a function that nn composes. */
static PyObject *named(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    const char *name = count == 2 ? PyUnicode_AsUTF8(args[1]) : NULL;
    if (!name || !dt_tensor_check(args[0])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "_named() takes a Tensor and a name");
        return NULL;
    }
    dt_variable *v = dt_variable_of(dt_tensor_of(args[0]));
    if (v && v->made.node) {
        /* Nodes do not own their names: keep one string for each. */
        PyObject *kept = Py_NewRef(args[1]);
        PyUnicode_InternInPlace(&kept);
        v->made.node->name = PyUnicode_AsUTF8(kept);
    }
    return Py_NewRef(args[0]);
}

/* --- recalls --- */

/* Makes t what a function has given, and drops that. */
static int take(const char *function, PyObject *found, dt_tensor *t)
{
    char text[DT_DESCRIBE_TEXT];
    bool given = found && dt_tensor_check(found);
    if (given)
        dt_tensor_alias(t, dt_tensor_of(found));
    else if (found)
        PyErr_Format(PyExc_TypeError, "%s has to give a Tensor, and it gave %s",
                     function, dt_describe(found, text, sizeof text));
    Py_XDECREF(found);
    return given ? 0 : -1;
}

static int bring(void *function, dt_tensor *found)
{
    bool yielded = dt_gil_yield(false);
    int status = take("a recall", PyObject_CallNoArgs((PyObject *)function), found);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

/* hooks: (pack_hook, unpack_hook). Gives (what pack_hook gave, unpack_hook). */
static void *pack(void *hooks, const dt_tensor *t)
{
    bool yielded = dt_gil_yield(false);
    PyObject *kept = PyTuple_New(2), *tensor = dt_tensor_object_alias(t);
    PyObject *packed =
        kept && tensor
            ? PyObject_CallOneArg(PyTuple_GET_ITEM((PyObject *)hooks, 0), tensor)
            : NULL;
    Py_XDECREF(tensor);
    if (packed) {
        PyTuple_SET_ITEM(kept, 0, packed);
        PyTuple_SET_ITEM(kept, 1, Py_NewRef(PyTuple_GET_ITEM((PyObject *)hooks, 1)));
    } else {
        Py_CLEAR(kept);
        dt_fail_in_python();
    }
    dt_gil_yield(yielded);
    return kept;
}

static int unpack(void *kept, dt_tensor *found)
{
    bool yielded = dt_gil_yield(false);
    PyObject *hook = Py_NewRef(PyTuple_GET_ITEM((PyObject *)kept, 1));
    PyObject *packed = Py_NewRef(PyTuple_GET_ITEM((PyObject *)kept, 0));
    int status =
        take("backward: unpack_hook", PyObject_CallOneArg(hook, packed), found);
    Py_DECREF(hook);
    Py_DECREF(packed);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

/* Lets this thread's operations save a Tensor's memory by a function that gives a Tensor
 * of the same contents. */
static PyObject *begin_recall(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !dt_tensor_check(args[0]))
        return PyErr_Format(PyExc_TypeError,
                            "_begin_recall() takes a Tensor and a function");
    if (dt_recall_begin(dt_tensor_of(args[0]), bring, dt_object_free,
                        Py_NewRef(args[1])) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* Lets this thread's operations save what pack_hook makes of each Tensor, and have it
 * from unpack_hook. */
static PyObject *begin_hooks(PyObject *module, PyObject *args)
{
    PyObject *hooks[2];
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:_begin_hooks", &hooks[0], &hooks[1]))
        return NULL;
    return dt_recall_begin_hooks(pack, unpack, dt_object_free, Py_NewRef(args)) < 0
               ? dt_raise()
               : Py_NewRef(Py_None);
}

/* Ends the last ones, as many as given. */
static PyObject *end_recalls(PyObject *module, PyObject *number)
{
    (void)module;
    Py_ssize_t count = PyNumber_AsSsize_t(number, NULL);
    while (count-- > 0 && dt_recalls)
        dt_recall_end();
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* --- anomaly mode --- */

static PyObject *place_function; /* called for the text of a source line; owned */

static char *find_place(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    DT_REF text = PyObject_CallNoArgs(place_function);
    const char *chars = text ? PyUnicode_AsUTF8(text) : NULL;
    char *place = chars ? strdup(chars) : NULL;
    PyErr_Restore(type, value, trace); /* continue without a source line */
    return place;
}

/* Gets the mode, or sets it: (enabled, check_nan, a function that returns a source
 * line). */
static PyObject *anomaly_mode(PyObject *module, PyObject *args)
{
    int on = dt_anomaly.on, check = dt_anomaly.check_nan;
    PyObject *function = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "|ppO:_anomaly_mode", &on, &check, &function))
        return NULL;
    PyObject *old = Py_BuildValue("(NN)", PyBool_FromLong(dt_anomaly.on),
                                  PyBool_FromLong(dt_anomaly.check_nan));
    if (function)
        Py_XSETREF(place_function, Py_NewRef(function));
    dt_anomaly = (dt_anomaly_mode){on && place_function, check, find_place};
    return old;
}

/* --- autocast --- */

/* Gets or sets the state for a type of devices, by name: (enabled, dtype). */
static PyObject *autocast_state(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *enabled = NULL, *dtype = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "s|OO:_autocast_state", &name, &enabled, &dtype))
        return NULL;
    dt_device_type type;
    if (dt_device_type_from_python("autocast", name, &type) < 0)
        return NULL;
    PyObject *state =
        Py_BuildValue("(NN)", PyBool_FromLong(dt_autocast.of[type].enabled),
                      dt_dtype_object_get(dt_autocast.of[type].dtype));
    dt_dtype lower;
    if (dtype && dt_dtype_from_python(dtype, &lower))
        dt_autocast_set(type, enabled == Py_True, lower);
    return state;
}

/* Gets or sets whether casts of parameters are kept. */
static PyObject *autocast_cache(PyObject *module, PyObject *args)
{
    int wanted = -1;
    (void)module;
    if (!PyArg_ParseTuple(args, "|p:_autocast_cache", &wanted))
        return NULL;
    bool old = dt_autocast.cache;
    dt_autocast.cache = wanted < 0 ? old : wanted;
    return PyBool_FromLong(old);
}

static PyObject *autocast_enter(PyObject *module, PyObject *Py_UNUSED(none))
{
    (void)module;
    dt_autocast_enter();
    Py_RETURN_NONE;
}

static PyObject *autocast_leave(PyObject *module, PyObject *Py_UNUSED(none))
{
    (void)module;
    dt_autocast_leave();
    Py_RETURN_NONE;
}

static PyObject *autocast_clear(PyObject *module, PyObject *Py_UNUSED(none))
{
    (void)module;
    dt_autocast_cache_clear();
    Py_RETURN_NONE;
}

/* Whether autocast is on in this thread, for a type of devices. */
static PyObject *autocast_on(PyObject *module, PyObject *Py_UNUSED(none))
{
    (void)module;
    return PyBool_FromLong(dt_autocast.on);
}

static PyObject *autocast_cast(PyObject *module, PyObject *args)
{
    PyObject *value, *type;
    dt_dtype dtype;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:_autocast_cast", dt_py.tensor_type, &value,
                          &type) ||
        !dt_dtype_from_python(type, &dtype))
        return NULL;
    dt_tensor_object *made = dt_tensor_object_new();
    return made ? dt_tensor_result(
                      made, dt_autocast_cast(&made->tensor, dt_tensor_of(value), dtype))
                : NULL;
}

/* The arguments as they are or, while autocast is on, Tensors in the type of the
 * flags. */
static PyObject *autocast_as(PyObject *const *args, Py_ssize_t count, unsigned flags)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *value = Py_NewRef(args[i]);
        if (dt_autocast.on && dt_tensor_check(value)) {
            dt_tensor_object *made = dt_tensor_object_new();
            const dt_tensor *t =
                made ? dt_autocast_as(&made->tensor, dt_tensor_of(value), flags) : NULL;
            if (!t) {
                Py_XDECREF((PyObject *)made);
                Py_DECREF(value);
                Py_DECREF(tuple);
                return PyErr_Occurred() ? NULL : dt_raise();
            }
            if (t == &made->tensor)
                Py_SETREF(value, dt_tensor_result(made, 0));
            else
                Py_DECREF((PyObject *)made);
        }
        PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

#define AUTOCAST_AS(name, flags)                                                       \
    static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)   \
    {                                                                                  \
        (void)module;                                                                  \
        return autocast_as(args, count, flags);                                        \
    }
AUTOCAST_AS(autocast_lower, DT_CASTS_LOWER)
AUTOCAST_AS(autocast_float, DT_CASTS_FLOAT)
AUTOCAST_AS(autocast_float_on_cpu, DT_CASTS_FLOAT_ON_CPU)
AUTOCAST_AS(autocast_float_on_gpu, DT_CASTS_FLOAT_ON_GPU)
#undef AUTOCAST_AS

PyMethodDef dt_modes_functions[] = {
    {"_begin_recall", (PyCFunction)(void (*)(void))begin_recall, METH_FASTCALL,
     "Saves a Tensor's memory by a function that gives it again."},
    {"_begin_hooks", begin_hooks, METH_VARARGS,
     "_begin_hooks(pack_hook, unpack_hook, /)\n--\n\nPacks what operations save; "
     "_end_recalls() ends it."},
    {"_end_recalls", end_recalls, METH_O, "Ends the last recalls of the thread."},
    {"_autocast_state", autocast_state, METH_VARARGS,
     "_autocast_state(device_type, enabled=None, dtype=None, /)\n--\n\nSets the state, "
     "if it is "
     "given; gives the old one: (enabled, dtype)."},
    {"_autocast_cache", autocast_cache, METH_VARARGS,
     "_autocast_cache(enabled=None, /)\n--\n\nSets whether casts are kept, if it is "
     "given; gives the old value."},
    {"_autocast_cast", autocast_cast, METH_VARARGS,
     "_autocast_cast(tensor, dtype, /)\n--\n\nA copy in another dtype, which the block "
     "may have already."},
    {"_autocast_enter", autocast_enter, METH_NOARGS,
     "_autocast_enter()\n--\n\nBegins a block, in which casts of parameters are kept."},
    {"_autocast_leave", autocast_leave, METH_NOARGS,
     "_autocast_leave()\n--\n\nEnds a block; the outermost one drops the casts."},
    {"_autocast_clear", autocast_clear, METH_NOARGS,
     "_autocast_clear()\n--\n\nDrops the casts that this thread keeps."},
    {"_autocast_on", autocast_on, METH_NOARGS,
     "_autocast_on()\n--\n\nWhether autocast is on for a type of devices."},
    {"_autocast_lower", (PyCFunction)(void (*)(void))autocast_lower, METH_FASTCALL,
     "_autocast_lower(*values, /)\n--\n\nThe values; under autocast, Tensors in the "
     "lower type."},
    {"_autocast_float", (PyCFunction)(void (*)(void))autocast_float, METH_FASTCALL,
     "_autocast_float(*values, /)\n--\n\nThe values; under autocast, float16 and "
     "bfloat16 Tensors as float32."},
    {"_autocast_float_on_cpu", (PyCFunction)(void (*)(void))autocast_float_on_cpu,
     METH_FASTCALL,
     "_autocast_float_on_cpu(*values, /)\n--\n\n_autocast_float() of Tensors on the "
     "CPU."},
    {"_autocast_float_on_gpu", (PyCFunction)(void (*)(void))autocast_float_on_gpu,
     METH_FASTCALL,
     "_autocast_float_on_gpu(*values, /)\n--\n\n_autocast_float() of Tensors on a "
     "GPU."},
    {"_anomaly_mode", anomaly_mode, METH_VARARGS,
     "_anomaly_mode(enabled=None, check_nan=None, place=None, /)\n--\n\nSets the mode, "
     "if it is given; gives the old one: (enabled, check_nan)."},
    {"_named", (PyCFunction)(void (*)(void))named, METH_FASTCALL,
     "_named(result, name, /)\n--\n\nresult, whose grad_fn is called name now."},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\nWhether the calling thread records operations.\n\n"
     ">>> torch.is_grad_enabled()\nTrue"},
    {"_exchange_grad_enabled", exchange_grad_enabled, METH_O,
     "_exchange_grad_enabled(enabled, /)\n--\n\nSets the mode and gives the old one."},
    {NULL, NULL, 0, NULL},
};
