/* The backward pass, and grad mode. */
#include <pthread.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/recorded.h"
#include "base/interrupt.h"
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "tensor/ops/ops.h"

/* The least free stack for a pass inside another one. */
#define STACK_LEFT ((size_t)512 << 10)

/* --- passes --- */

/* Edge i leads to the node of object i of the roots and then the inputs. */
static int add_edge(const char *function, PyObject *object, Py_ssize_t i,
                    Py_ssize_t nroots, dt_edge *edge)
{
    if (!dt_tensor_check(object)) {
        char text[DT_DESCRIBE_TEXT];
        return DT_SET_ERROR(PyExc_TypeError, "%s(): %s is no Tensor", function,
                            dt_describe(object, text, sizeof text));
    }
    const dt_tensor *t = dt_tensor_of(object);
    if (dt_variable_edge(t, edge) < 0)
        return dt_raise_status();
    /* A view may want gradients for its base's sake alone: it is an unused input. */
    if (edge->node || (i >= nroots && dt_requires_grad(t)))
        return 0;
    if (i < nroots)
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): element %zd of tensors does not require grad and does not "
                     "have a grad_fn: none of its inputs requires gradients, or it was "
                     "computed under no_grad(); set requires_grad=True on the inputs",
                     function, i);
    else
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): one of the differentiated Tensors (inputs[%zd]) does not "
                     "require grad; set requires_grad=True before computing with it",
                     function, i - nroots);
    return -1;
}

/* The gradients of the inputs, which are moved out of made; None where there is
 * none. */
static PyObject *tuple_of(Py_ssize_t count, dt_tensor *made)
{
    PyObject *result = PyTuple_New(count);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        PyObject *gradient =
            made[i].storage ? dt_tensor_object_steal(&made[i]) : Py_NewRef(Py_None);
        if (!gradient)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, gradient);
    }
    return result;
}

typedef struct pass {
    const char *function;
    Py_ssize_t nroots, ninputs;
    PyObject *const *roots, *const *gradients, *const *inputs; /* gradients: or None */
    int keep, create, accumulates;
} pass;

/* Passes of the calling thread, each but the first from a hook or a function of the one
 * before. */
static _Thread_local int depth;

/* RecursionError where little of the stack is left: Python's own limit, which programs
 * raise, counts calls, and a pass takes much of the stack. */
static int check_depth(const char *function)
{
    static _Thread_local char *limit; /* of the stack, which grows downwards */
    pthread_attr_t attributes;
    if (!depth)
        return 0;
    if (!limit && !pthread_getattr_np(pthread_self(), &attributes)) {
        void *lowest;
        size_t size;
        if (!pthread_attr_getstack(&attributes, &lowest, &size))
            limit = (char *)lowest + (size / 4 < STACK_LEFT ? size / 4 : STACK_LEFT);
        pthread_attr_destroy(&attributes);
    }
    if ((char *)__builtin_frame_address(0) >= limit)
        return 0;
    return DT_SET_ERROR(
        PyExc_RecursionError,
        "%s(): %d backward passes run inside of each other, and the thread's "
        "stack is nearly full; let hooks and functions call no pass without end",
        function, depth);
}

/* A backward pass. With inputs it returns their gradients, or adds these to their grad,
 * which those that are not leaves keep from then on. */
static PyObject *run_pass(const pass *p)
{
    PyObject *result = NULL;
    Py_ssize_t count = p->nroots + p->ninputs;
    if (check_depth(p->function) < 0)
        return NULL;
    dt_edge *edges = PyMem_Calloc((size_t)count + 1, sizeof *edges);
    dt_tensor *made = PyMem_Calloc((size_t)count + 1, sizeof *made);
    dt_tensor **gradients = PyMem_Calloc((size_t)p->nroots + 1, sizeof *gradients);
    if (!edges || !made || !gradients) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = i < p->nroots ? p->roots[i] : p->inputs[i - p->nroots];
        if (p->accumulates && i >= p->nroots && dt_tensor_check(object) &&
            dt_variable_retain_grad(dt_tensor_of(object)) < 0) {
            dt_raise();
            goto done;
        }
        if (add_edge(p->function, object, i, p->nroots, &edges[i]) < 0)
            goto done;
        if (i >= p->nroots)
            continue;
        const dt_tensor *t = dt_tensor_of(object);
        gradients[i] = &made[i];
        if (dt_tensor_check(p->gradients[i]))
            dt_variable_alias(&made[i], dt_tensor_of(p->gradients[i]));
        else if (dt_full(p->function, &made[i], (dt_dtype)t->dtype, t->ndim, t->shape,
                         dt_tensor_device(t), dt_scalar_int(1)) < 0) {
            dt_raise();
            goto done;
        }
    }
    dt_tensor *found = p->accumulates ? NULL : made + p->nroots;
    depth++;
    bool yielded = dt_gil_yield(true);
    int64_t due = dt_interrupt_set_due(DT_INTERRUPT_LATER);
    int status = dt_backward((int)p->nroots, edges, gradients, (int)p->ninputs,
                             edges + p->nroots, found, p->keep, p->create);
    dt_interrupt_set_due(due);
    dt_gil_yield(yielded);
    depth--;
    result = status < 0       ? dt_raise()
             : p->accumulates ? Py_NewRef(Py_None)
                              : tuple_of(p->ninputs, found);
done:
    for (Py_ssize_t i = 0; i < count && edges && made; i++) {
        dt_node_release(edges[i].node);
        dt_tensor_clear(&made[i]);
    }
    PyMem_Free(gradients);
    PyMem_Free(made);
    PyMem_Free(edges);
    return result;
}

/* _run_backward(function, tensors, gradients, inputs, keep, create, accumulates), whose
 * gradients pydevtensor.autograd has checked. */
static PyObject *run_backward(PyObject *module, PyObject *arguments)
{
    (void)module;
    pass p;
    PyObject *roots, *gradients, *inputs;
    if (!PyArg_ParseTuple(arguments, "sO!O!O!ppp", &p.function, &PyTuple_Type, &roots,
                          &PyTuple_Type, &gradients, &PyTuple_Type, &inputs, &p.keep,
                          &p.create, &p.accumulates))
        return NULL;
    p.nroots = PyTuple_GET_SIZE(roots);
    if (PyTuple_GET_SIZE(gradients) != p.nroots) {
        PyErr_BadArgument();
        return NULL;
    }
    p.ninputs = PyTuple_GET_SIZE(inputs);
    p.roots = PySequence_Fast_ITEMS(roots);
    p.gradients = PySequence_Fast_ITEMS(gradients);
    p.inputs = PySequence_Fast_ITEMS(inputs);
    return run_pass(&p);
}

DT_PUBLIC(backward, "backward(input: Tensor, gradient: Any = None, "
                    "retain_graph: Any = None, create_graph: bool = False, "
                    "inputs: Any = None)")
{
    bool create = v[3].b;
    const dt_tensor *x = v[0].tensor;
    int keep = dt_given(args, 2) ? PyObject_IsTrue(args->slots[2]) : create;
    if (keep < 0)
        return NULL;
    if (x->numel == 1 && !dt_given(args, 1) && !dt_given(args, 4)) {
        PyObject *none = Py_None;
        pass p = {.function = "backward",
                  .nroots = 1,
                  .roots = &args->slots[0],
                  .gradients = &none,
                  .keep = keep,
                  .create = create,
                  .accumulates = true};
        return run_pass(&p);
    }
    PyObject *given[6], *result = NULL; /* the fifth is an old name of the second */
    for (int i = 0; i < 4; i++)
        given[i] = args->slots[i] ? args->slots[i] : i == 3 ? Py_False : Py_None;
    given[4] = Py_None;
    given[5] = args->slots[4] ? args->slots[4] : Py_None;
    PyObject *module = PyImport_ImportModule("pydevtensor.autograd");
    PyObject *function = module ? PyObject_GetAttrString(module, "backward") : NULL;
    if (function)
        result = PyObject_Vectorcall(function, given, 6, NULL);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

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

/* --- anomaly mode --- */

static PyObject *place_function; /* called for the text of a place; owned */

static char *find_place(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    DT_REF text = PyObject_CallNoArgs(place_function);
    const char *chars = text ? PyUnicode_AsUTF8(text) : NULL;
    char *place = chars ? strdup(chars) : NULL;
    PyErr_Restore(type, value, trace); /* the operation goes on without a place */
    return place;
}

/* Gets the mode, or sets it: (enabled, check_nan, a function that gives a place). */
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

/* Gets or sets whether casts may be kept. */
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

/* Whether autocast is on in this thread, for a type of devices. */
static PyObject *autocast_on(PyObject *module, PyObject *Py_UNUSED(none))
{
    (void)module;
    return PyBool_FromLong(dt_autocast.on);
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

static PyMethodDef functions[] = {
    {"_autocast_state", autocast_state, METH_VARARGS,
     "_autocast_state(device_type, enabled=None, dtype=None, /)\n--\n\nSets the state, "
     "if it is "
     "given; gives the old one: (enabled, dtype)."},
    {"_autocast_cache", autocast_cache, METH_VARARGS,
     "_autocast_cache(enabled=None, /)\n--\n\nSets whether casts may be kept, if it is "
     "given; gives the old value."},
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
    {"_run_backward", run_backward, METH_VARARGS,
     "_run_backward(function, tensors, gradients, inputs, keep, create, accumulates, /)"
     "\n--\n\nA backward pass."},
    {NULL, NULL, 0, NULL},
};

static const dt_function rows[] = {
    DT_METHOD(
        backward, "backward",
        "Adds the gradients of this Tensor to .grad of the leaves it was computed "
        "from.\n\ngradient has its shape, and may be left out for one element. "
        "retain_graph keeps what\nthe operations saved for another pass; "
        "create_graph records the pass itself, for\nhigher derivatives. inputs: only "
        "these Tensors' .grad. RuntimeError where nothing\nwants a gradient, for a "
        "second pass without retain_graph, and where a Tensor that\nis needed was "
        "changed in place.",
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\n(x ** "
        "2).sum().backward()\nx.grad",
        "tensor([2., 4.])"),
};

int dt_setup_autograd(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) < 0
               ? -1
               : DT_ADD_FUNCTIONS(module, rows);
}
