#include "python/overrides.h"

#include "python/types/tensor.h"

int dt_overrides;

static _Thread_local int modes;    /* of this thread */
static _Thread_local bool paused;  /* whether subclasses take nothing over */
static PyObject *name_of_override; /* "__torch_function__" */
static PyObject *disabled;         /* its value in a class that takes nothing over */

/* --- who takes over --- */

static bool type_overrides(PyTypeObject *type)
{
    PyObject *found =
        type == dt_py.tensor_type ? NULL : _PyType_Lookup(type, name_of_override);
    return found && found != disabled;
}

/* Whether the class of an argument takes calls over or, with `deep`, that of an item of a
 * list. */
static bool overrides(PyObject *value, bool deep)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type || type == &PyFloat_Type || value == Py_None)
        return false;
    if (deep && (type == &PyTuple_Type || type == &PyList_Type)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
            if (overrides(PySequence_Fast_GET_ITEM(value, i), false))
                return true;
        return false;
    }
    return type_overrides(type);
}

static bool any_overrides(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    if (self && overrides(self, false))
        return true;
    for (Py_ssize_t i = 0; i < count; i++)
        if (overrides(values[i], true))
            return true;
    return false;
}

/* --- calls --- */

PyObject *dt_call_whole(const char *module, const char *function, PyObject *what,
                        PyObject *self, PyObject *const *values, Py_ssize_t count,
                        PyObject *kwnames)
{
    Py_ssize_t first = self != NULL,
               nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    DT_REF key = what;
    DT_REF args = key ? PyTuple_New(first + count) : NULL;
    DT_REF named = args ? PyDict_New() : NULL;
    if (!named)
        return NULL;
    if (self)
        PyTuple_SET_ITEM(args, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(args, first + i, Py_NewRef(values[i]));
    for (Py_ssize_t i = 0; i < nkeywords; i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), values[count + i]) < 0)
            return NULL;
    return dt_python_call(module, function, "(OOO)", key, args, named);
}

static PyObject *call(const char *function, PyObject *what, PyObject *self,
                      PyObject *const *values, Py_ssize_t count, PyObject *kwnames)
{
    PyObject *result = dt_call_whole("pydevtensor.overrides", function, what, self,
                                     values, count, kwnames);
    if (result == Py_NotImplemented)
        Py_DECREF(result); /* never the last reference */
    return result;
}

PyObject *dt_override(void *entry, PyObject *self, PyObject *const *values,
                      Py_ssize_t count, PyObject *kwnames)
{
    Py_ssize_t all = count + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!modes && (paused || !any_overrides(self, values, all)))
        return Py_NotImplemented;
    return call("_call_entry", PyLong_FromVoidPtr(entry), self, values, count, kwnames);
}

PyObject *dt_override_operator(const char *name, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *values[] = {a, b, c};
    Py_ssize_t count = 1 + (b != NULL) + (c != NULL);
    if (!modes && (paused || !any_overrides(NULL, values, count)))
        return Py_NotImplemented;
    return call("_call_operator", PyUnicode_FromString(name), NULL, values, count,
                NULL);
}

PyObject *dt_override_failed(const char *name, PyObject *self, PyObject *const *values,
                             Py_ssize_t count, PyObject *kwnames)
{
    PyObject *type, *value, *trace, *result = Py_NotImplemented;
    Py_ssize_t all = count + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    /* Before a type is searched: _PyType_Lookup() takes a pending exception for its own. */
    PyErr_Fetch(&type, &value, &trace);
    if (!paused && name && any_overrides(self, values, all))
        result = call(self ? "_call_method" : "_call_function",
                      PyUnicode_FromString(name), self, values, count, kwnames);
    if (result == Py_NotImplemented) {
        PyErr_Restore(type, value, trace);
        return result;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return result;
}

/* --- attributes --- */

typedef struct attribute {
    getter get;
    setter set;
    void *context;
    const char *name;
} attribute;

static PyObject *read_attribute(PyObject *self, void *context)
{
    const attribute *a = context;
    if (__builtin_expect(dt_overrides > 1, 0) && modes) {
        PyObject *made =
            call("_read_attribute", PyUnicode_FromString(a->name), self, NULL, 0, NULL);
        if (made != Py_NotImplemented)
            return made;
    }
    return a->get(self, a->context);
}

static int write_attribute(PyObject *self, PyObject *value, void *context)
{
    const attribute *a = context;
    PyObject *made = Py_NotImplemented;
    if (__builtin_expect(dt_overrides > 1, 0) && modes && value)
        made = call("_write_attribute", PyUnicode_FromString(a->name), self, &value, 1,
                    NULL);
    if (made == Py_NotImplemented)
        return a->set(self, value, a->context);
    Py_XDECREF(made);
    return made ? 0 : -1;
}

int dt_override_attribute(PyGetSetDef *property)
{
    if (property->name[0] == '_')
        return 0;
    attribute *a = PyMem_Malloc(sizeof *a); /* for as long as the class is there */
    if (!a) {
        PyErr_NoMemory();
        return -1;
    }
    *a = (attribute){property->get, property->set, property->closure, property->name};
    property->get = read_attribute;
    property->set = property->set ? write_attribute : NULL;
    property->closure = a;
    return 0;
}

/* --- state --- */

int dt_override_note(PyTypeObject *type)
{
    static PyTypeObject *last; /* the one noted last; a reference */
    if (type == last || !type_overrides(type))
        return 0;
    DT_REF done = dt_python_call("pydevtensor.overrides", "_prepare", "(O)", type);
    if (!done)
        return -1;
    dt_overrides |= 1;
    Py_XSETREF(last, (PyTypeObject *)Py_NewRef((PyObject *)type));
    return 0;
}

/* Begins (1) or ends (-1) a mode of the thread. */
static PyObject *count_mode(PyObject *module, PyObject *change)
{
    (void)module;
    int by = (int)PyLong_AsLong(change);
    if (PyErr_Occurred())
        return NULL;
    modes += by;
    dt_overrides += 2 * by;
    Py_RETURN_NONE;
}

/* Whether subclasses take nothing over in this thread. */
static PyObject *are_paused(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(paused);
}

/* The key of a function or method for _call_entry(); None for other objects. */
static PyObject *entry_of(PyObject *module, PyObject *function)
{
    (void)module;
    if (PyCFunction_Check(function))
        return PyLong_FromVoidPtr((void *)PyCFunction_GET_FUNCTION(function));
    if (Py_TYPE(function) == &PyMethodDescr_Type)
        return PyLong_FromVoidPtr(
            (void *)((PyMethodDescrObject *)function)->d_method->ml_meth);
    Py_RETURN_NONE;
}

/* __torch_function__ of a class that takes nothing over. */
static PyObject *call_disabled(PyObject *module, PyObject *args)
{
    PyObject *function, *types, *given = NULL, *named = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO|OO:_disabled_torch_function_impl", &function,
                          &types, &given, &named))
        return NULL;
    DT_REF none = given ? NULL : PyTuple_New(0);
    bool old = paused;
    paused = true;
    PyObject *result =
        PyObject_Call(function, given ? given : none, named == Py_None ? NULL : named);
    paused = old;
    return result;
}

static PyMethodDef functions[] = {
    {"_count_mode", count_mode, METH_O, "Begins or ends a mode of the thread."},
    {"_overrides_are_paused", are_paused, METH_NOARGS,
     "Whether subclasses take no function over in this thread."},
    {"_entry_of", entry_of, METH_O,
     "The key of a function or method of the extension."},
    {"_disabled_torch_function_impl", call_disabled, METH_VARARGS,
     "_disabled_torch_function_impl(func, types, args=(), kwargs=None, /)\n--\n\nThe "
     "__torch_function__ of a class that takes no function over."},
    {NULL, NULL, 0, NULL},
};

/* --- a block in which subclasses take nothing over --- */

typedef struct pause_object {
    PyObject_HEAD bool before; /* what `paused` was */
} pause_object;

static PyObject *pause_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    ((pause_object *)self)->before = paused;
    paused = true;
    Py_RETURN_NONE;
}

static PyObject *pause_exit(PyObject *self, PyObject *Py_UNUSED(unused))
{
    paused = ((pause_object *)self)->before;
    Py_RETURN_NONE;
}

static PyMethodDef pause_methods[] = {
    {"__enter__", pause_enter, METH_NOARGS, NULL},
    {"__exit__", pause_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pause_slots[] = {
    {Py_tp_doc,
     "DisableTorchFunctionSubclass()\n--\n\nA block in which no subclass of Tensor "
     "takes a function over; modes do.\n\n>>> with "
     "torch._C.DisableTorchFunctionSubclass():\n...     y = torch.ones(2) + 1"},
    {Py_tp_methods, pause_methods},
    {0, NULL},
};

int dt_setup_overrides(PyObject *module)
{
    name_of_override = PyUnicode_InternFromString("__torch_function__");
    if (!name_of_override || PyModule_AddFunctions(module, functions) < 0 ||
        !dt_add_type(module, "pydevtensor.DisableTorchFunctionSubclass",
                     sizeof(pause_object), Py_TPFLAGS_DEFAULT, NULL, pause_slots))
        return -1;
    disabled = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    return disabled ? 0 : -1;
}
