/* ModuleBase, the base of nn.Module: calls modules and reads their parameters, buffers and
 * submodules without a frame of Python. All state of a module is in its __dict__. */
#include "python/module.h"

/* The field holds nothing. With one, Python takes this layout for each class below, also
 * where another base comes first, and lets a program assign such a class to __class__. */
typedef struct {
    PyObject_HEAD;
    void *layout;
} module_object;

static struct {
    PyTypeObject *type;
    PyObject *getattr;      /* its __getattr__ */
    PyObject *getattribute; /* object's __getattribute__ */
    PyObject *registries[3], *has_hooks, *hooked_call, *forward, *no_attribute;
    PyObject *hooks_of_all; /* the dict of hooks that run at calls of all modules */
} base;

/* A borrowed value of a dict. NULL: there is none, or an exception is set. */
static PyObject *item(PyObject *dict, PyObject *name)
{
    return dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
}

/* A parameter, buffer or submodule. NULL: there is none, or an exception is set. */
static PyObject *registered(PyObject *self, PyObject *name)
{
    DT_REF values = PyObject_GenericGetDict(self, NULL);
    PyObject *found = NULL;
    for (int i = 0; values && i < 3 && !found && !PyErr_Occurred(); i++)
        found = item(item(values, base.registries[i]), name);
    return Py_XNewRef(found);
}

/* __getattr__(), which Python calls where object.__getattribute__() finds nothing. */
static PyObject *base_getattr(PyObject *self, PyObject *name)
{
    PyObject *found = registered(self, name);
    if (found || PyErr_Occurred())
        return found;
    return PyObject_CallMethodOneArg(self, base.no_attribute, name);
}

/* object.__getattribute__() and then __getattr__(), without an exception in between. */
static PyObject *read_attribute(PyObject *self, PyObject *name)
{
    PyObject *found = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
    return found || PyErr_Occurred() ? found : base_getattr(self, name);
}

/* Lets a class read by read_attribute(), unless it defines __getattr__ or
 * __getattribute__. If a program assigns one to the class later, Python resets the slot. */
static int read_quickly(PyTypeObject *class)
{
    DT_REF getattr = PyObject_GetAttrString((PyObject *)class, "__getattr__");
    DT_REF getattribute = PyObject_GetAttrString((PyObject *)class, "__getattribute__");
    if (!getattr || !getattribute)
        return -1;
    if (getattr == base.getattr && getattribute == base.getattribute) {
        class->tp_getattro = read_attribute;
        PyType_Modified(class);
    }
    return 0;
}

static PyObject *base_init_subclass(PyObject *class, PyObject *args, PyObject *kwargs)
{
    DT_REF next = PyObject_CallFunctionObjArgs((PyObject *)&PySuper_Type,
                                               (PyObject *)base.type, class, NULL);
    DT_REF method = next ? PyObject_GetAttrString(next, "__init_subclass__") : NULL;
    DT_REF done = method ? PyObject_Call(method, args, kwargs) : NULL;
    if (!done || read_quickly((PyTypeObject *)class) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *base_read_quickly(PyObject *class, PyObject *Py_UNUSED(none))
{
    if (read_quickly((PyTypeObject *)class) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *base_run_hooks_of(PyObject *Py_UNUSED(class), PyObject *hooks)
{
    if (!PyDict_Check(hooks))
        return PyErr_Format(PyExc_TypeError, "hooks are in a dict");
    Py_XSETREF(base.hooks_of_all, Py_NewRef(hooks));
    Py_RETURN_NONE;
}

static PyObject *base_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    int hooked = base.hooks_of_all && PyDict_GET_SIZE(base.hooks_of_all);
    if (!hooked) {
        DT_REF has_hooks = PyObject_GetAttr(self, base.has_hooks);
        hooked = has_hooks ? PyObject_IsTrue(has_hooks) : -1;
        if (hooked < 0)
            return NULL;
    }
    DT_REF method = PyObject_GetAttr(self, hooked ? base.hooked_call : base.forward);
    return method ? PyObject_Call(method, args, kwargs) : NULL;
}

static PyMethodDef methods[] = {
    {"__getattr__", base_getattr, METH_O, NULL},
    {"__init_subclass__", (PyCFunction)(void (*)(void))base_init_subclass,
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, NULL},
    {"_read_quickly", base_read_quickly, METH_CLASS | METH_NOARGS,
     "_read_quickly($type)\n--\n\n"
     "Read attributes without a frame of Python again, after __getattr__ was "
     "restored."},
    {"_run_hooks_of", base_run_hooks_of, METH_CLASS | METH_O,
     "_run_hooks_of($type, hooks, /)\n--\n\n"
     "Run the hooks of all modules at each call while the dict has any."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The call of modules, and reads of their parameters, buffers and "
                "submodules."},
    {Py_tp_call, base_call},
    {Py_tp_methods, methods},
    {0, NULL},
};

int dt_setup_module_base(PyObject *module)
{
    base.type = dt_add_type(module, "pydevtensor._C._ModuleBase", sizeof(module_object),
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, NULL, slots);
    if (!base.type)
        return -1;
    PyObject *type = (PyObject *)base.type;
    base.getattr = PyObject_GetAttrString(type, "__getattr__");
    base.getattribute = PyObject_GetAttrString(type, "__getattribute__");
    base.registries[0] = PyUnicode_InternFromString("_parameters");
    base.registries[1] = PyUnicode_InternFromString("_buffers");
    base.registries[2] = PyUnicode_InternFromString("_modules");
    base.has_hooks = PyUnicode_InternFromString("_has_hooks");
    base.hooked_call = PyUnicode_InternFromString("_hooked_call");
    base.forward = PyUnicode_InternFromString("forward");
    base.no_attribute = PyUnicode_InternFromString("_no_attribute");
    return PyErr_Occurred() ? -1 : 0;
}
