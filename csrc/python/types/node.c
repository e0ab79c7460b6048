#include "autograd/variable.h"
#include "python/history.h"
#include "python/types/device.h"
#include "python/types/dtype.h"

#include <stdio.h>
#include <string.h>

typedef struct node_object {
    PyObject_HEAD dt_node *node; /* one reference */
} node_object;

/* The size of the text of a saved tensor's name. */
#define SAVED_NAME 40

static PyTypeObject *node_type;
static PyObject *types; /* a dict of subclasses by the nodes' names */

dt_node *dt_node_of(PyObject *object)
{
    return ((node_object *)object)->node;
}

/* The class of nodes of one name: programs that draw graphs ask type(node).__name__. */
static PyTypeObject *type_of(const char *name)
{
    PyObject *known = PyDict_GetItemString(types, name);
    if (known)
        return (PyTypeObject *)known;
    /* By a spec: a class of Python would need the garbage collector. */
    PyType_Slot none[] = {{0, NULL}};
    char full[SAVED_NAME + 96];
    snprintf(full, sizeof full, "pydevtensor.autograd.graph.%s", name);
    PyType_Spec spec = {full, sizeof(node_object), 0, Py_TPFLAGS_DEFAULT, none};
    DT_REF made = PyType_FromSpecWithBases(&spec, (PyObject *)node_type);
    if (!made || PyDict_SetItemString(types, name, made) < 0)
        return NULL;
    return (PyTypeObject *)made; /* which types keeps */
}

PyObject *dt_node_object_new(dt_node *node)
{
    PyTypeObject *type = type_of(node->name);
    node_object *self = type ? PyObject_New(node_object, type) : NULL;
    if (self)
        self->node = dt_node_retain(node);
    return (PyObject *)self;
}

static void node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    dt_node_release(dt_node_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *node_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", dt_node_of(self)->name,
                                (void *)dt_node_of(self));
}

/* PyTorch's text for the node of a leaf has C++'s namespace. */
static PyObject *node_name(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const dt_node *node = dt_node_of(self);
    return PyUnicode_FromFormat(
        "%s%s", node->type == &dt_accumulator ? "torch::autograd::" : "", node->name);
}

static PyObject *node_next(PyObject *self, void *Py_UNUSED(unused))
{
    dt_node *node = dt_node_of(self);
    PyObject *tuple = PyTuple_New(node->nedges);
    for (int i = 0; tuple && i < node->nedges; i++) {
        dt_edge edge = node->edges[i];
        PyObject *pair =
            edge.node ? Py_BuildValue("(Ni)", dt_node_object_new(edge.node), edge.index)
                      : Py_BuildValue("(Oi)", Py_None, 0);
        if (!pair)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}

/* Saved tensor i; None where there was none. */
static PyObject *saved_tensor(dt_node *node, int i)
{
    if (!node->used && !node->saved[i].tensor.storage)
        Py_RETURN_NONE;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status = dt_node_unpack(node, i, &out->tensor, true);
    if (node->packs)
        dt_node_forget_unpacked(node);
    PyObject *result = dt_tensor_result(out, status);
    if (result)
        dt_tensor_object_track(out);
    return result;
}

static PyObject *saved_tensors(const dt_node *node, const char *name)
{
    PyObject *list = PyList_New(0);
    char text[SAVED_NAME] = "";
    for (int i = 0; list && i < node->nsaved; i++) {
        if (name) {
            node->type->saved_name(node, i, text, sizeof text);
            bool input = !strcmp(text, "self") && !strcmp(name, "input");
            if (!input && strcmp(text, name) != 0)
                continue;
        }
        dt_list_append(&list, saved_tensor((dt_node *)node, i));
    }
    return list;
}

/* Only the node of a Function has them without names. */
static PyObject *node_saved(PyObject *self, void *Py_UNUSED(unused))
{
    if (!dt_function_object(dt_node_of(self)))
        return PyErr_Format(PyExc_AttributeError,
                            "%s: only the node of a Function has saved_tensors; read "
                            "its _saved_... by name, which dir() lists",
                            dt_node_of(self)->name);
    DT_REF list = saved_tensors(dt_node_of(self), NULL);
    return list ? PyList_AsTuple(list) : NULL;
}

/* _saved_self and its like: a Tensor, or a tuple of those of a list. */
static PyObject *node_getattro(PyObject *self, PyObject *name)
{
    const dt_node *node = dt_node_of(self);
    const char *text = PyUnicode_AsUTF8(name);
    if (!text || !node->type->saved_name || strncmp(text, "_saved_", 7) != 0) {
        PyObject *found = PyObject_GenericGetAttr(self, name), *run;
        if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) ||
            !(run = dt_function_object(node)))
            return found;
        PyErr_Clear(); /* what forward() has written to ctx */
        return dt_python_call("pydevtensor.autograd", "_context_value", "(OO)", run,
                              name);
    }
    DT_REF list = saved_tensors(node, text + 7);
    if (!list || !PyList_GET_SIZE(list))
        return list ? PyObject_GenericGetAttr(self, name) : NULL;
    return PyList_GET_SIZE(list) > 1 ? PyList_AsTuple(list)
                                     : Py_NewRef(PyList_GET_ITEM(list, 0));
}

static PyObject *node_dir(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const dt_node *node = dt_node_of(self);
    PyObject *names =
        PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", self);
    char text[SAVED_NAME];
    for (int i = 0; names && node->type->saved_name && i < node->nsaved; i++) {
        node->type->saved_name(node, i, text, sizeof text);
        DT_REF name = PyUnicode_FromFormat("_saved_%s", text);
        int known = name ? PySequence_Contains(names, name) : -1;
        if (known < 0 || (!known && PyList_Append(names, name) < 0))
            Py_CLEAR(names);
    }
    return names;
}

/* The leaf of an AccumulateGrad node. */
static PyObject *node_variable(PyObject *self, void *Py_UNUSED(unused))
{
    return PyErr_Format(
        PyExc_AttributeError,
        "%s: a node has no reference to the Tensor; use the Tensor itself",
        dt_node_of(self)->name);
}

static PyObject *node_compare(PyObject *a, PyObject *b, int op)
{
    if (!dt_node_object_check(b) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((dt_node_of(a) == dt_node_of(b)) == (op == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    return Py_HashPointer(dt_node_of(self));
}

static PyObject *node_number(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(dt_node_of(self)->sequence);
}

/* For each result an object with its shape, type and device; None where they are unknown. */
static PyObject *node_input_metadata(PyObject *self, void *Py_UNUSED(unused))
{
    const dt_node *node = dt_node_of(self);
    DT_REF module = PyImport_ImportModule("types");
    PyObject *list = module ? PyList_New(0) : NULL;
    for (int i = 0; list && i < node->nresults; i++) {
        const dt_result *result = &node->results[i];
        DT_REF none = PyTuple_New(0);
        DT_REF named =
            result->ndim < 0
                ? PyDict_New()
                : Py_BuildValue("{s:N,s:N,s:N}", "shape",
                                dt_size_new(result->ndim, result->shape), "dtype",
                                dt_dtype_object_get(result->dtype), "device",
                                dt_device_object_of(result->device));
        DT_REF kind = PyObject_GetAttrString(module, "SimpleNamespace");
        DT_REF item = none && named && kind ? result->ndim < 0
                                                  ? Py_NewRef(Py_None)
                                                  : PyObject_Call(kind, none, named)
                                            : NULL;
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *node_make(PyTypeObject *type, PyObject *Py_UNUSED(args),
                           PyObject *Py_UNUSED(named))
{
    return PyErr_Format(PyExc_TypeError,
                        "%s: operations make nodes; read grad_fn of a result",
                        type->tp_name);
}

static PyMethodDef node_methods[] = {
    {"register_hook", dt_node_register_hook, METH_O,
     "register_hook($self, fn, /)\n--\n\nCalls fn(grad_inputs, grad_outputs) after the "
     "node has run in a backward pass.\n\nBoth are tuples of Tensors, or None for a "
     "missing gradient. grad_inputs are\nthose that the node has computed; a tuple "
     "that "
     "fn "
     "returns takes their place. The\nhandle that this returns has remove().\n\n>>> x "
     "= "
     "torch.ones(1, requires_grad=True)\n>>> y = x * 2\n>>> handle = "
     "y.grad_fn.register_hook(lambda inputs, outputs: print(outputs))\n>>> "
     "y.backward()\n(tensor([1.]),)"},
    {"register_prehook", dt_node_register_prehook, METH_O,
     "register_prehook($self, fn, /)\n--\n\nCalls fn(grad_outputs) before the node "
     "runs in "
     "a backward pass.\n\nA tuple that fn returns takes their place. The handle that "
     "this "
     "returns has\nremove().\n\n>>> x = torch.ones(1, requires_grad=True)\n>>> y = x * "
     "2\n>>> handle = y.grad_fn.register_prehook(lambda outputs: (outputs[0] * "
     "10,))\n>>> "
     "y.backward()\n>>> x.grad\ntensor([20.])"},
    {"_sequence_nr", node_number, METH_NOARGS,
     "_sequence_nr($self)\n--\n\nA number: above those of the nodes before it."},
    {"name", node_name, METH_NOARGS,
     "name($self)\n--\n\nThe operation's name, such as 'MulBackward0'.\n\n"
     ">>> (torch.ones(1, requires_grad=True) * 2).grad_fn.name()\n'MulBackward0'"},
    {"__dir__", node_dir, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef node_properties[] = {
    {"next_functions", node_next, NULL,
     "Pairs of the next node of each input and the index of its result.", NULL},
    {"variable", node_variable, NULL, "Not available.", NULL},
    {"metadata", dt_node_metadata, NULL,
     "A dict for what a program keeps with the node.", NULL},
    {"_input_metadata", node_input_metadata, NULL,
     "The shape, dtype and device of each result.", NULL},
    {"saved_tensors", node_saved, NULL,
     "The Tensors that a Function's forward() has saved.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot node_slots[] = {
    {Py_tp_doc,
     "A node of the autograd graph: Tensor.grad_fn.\n\n>>> x = torch.ones(2, "
     "requires_grad=True)\n>>> isinstance((x * 2).grad_fn, "
     "torch.autograd.graph.Node)\nTrue"},
    {Py_tp_new, (void *)node_make},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_repr, node_repr},
    {Py_tp_getattro, node_getattro},
    {Py_tp_hash, node_hash},
    {Py_tp_richcompare, node_compare},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {0, NULL},
};
bool dt_node_object_check(PyObject *value)
{
    return PyObject_TypeCheck(value, node_type);
}

int dt_setup_node_type(PyObject *module)
{
    node_type = dt_add_type(module, "pydevtensor.Node", sizeof(node_object),
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, NULL, node_slots);
    types = node_type ? PyDict_New() : NULL;
    return types ? 0 : -1;
}
