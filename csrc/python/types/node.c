#include "python/history.h"

typedef struct node_object {
    PyObject_HEAD dt_node *node; /* one reference */
} node_object;

static PyTypeObject *node_type;

dt_node *dt_node_of(PyObject *object)
{
    return ((node_object *)object)->node;
}

PyObject *dt_node_object_new(dt_node *node)
{
    node_object *self = PyObject_New(node_object, node_type);
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

static PyObject *node_name(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyUnicode_FromString(dt_node_of(self)->name);
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
    if (Py_TYPE(b) != node_type || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((dt_node_of(a) == dt_node_of(b)) == (op == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    return Py_HashPointer(dt_node_of(self));
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS,
     "name($self)\n--\n\nThe operation's name, such as 'MulBackward0'.\n\n"
     ">>> (torch.ones(1, requires_grad=True) * 2).grad_fn.name()\n'MulBackward0'"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef node_properties[] = {
    {"next_functions", node_next, NULL,
     "Pairs of the next node of each input and the index of its result.", NULL},
    {"variable", node_variable, NULL, "Not available.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot node_slots[] = {
    {Py_tp_doc,
     "A node of the autograd graph: Tensor.grad_fn.\n\n>>> x = torch.ones(2, "
     "requires_grad=True)\n>>> type((x * 2).grad_fn).__name__\n'Node'"},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_repr, node_repr},
    {Py_tp_hash, node_hash},
    {Py_tp_richcompare, node_compare},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {0, NULL},
};
bool dt_node_object_check(PyObject *value)
{
    return Py_TYPE(value) == node_type;
}

int dt_setup_node_type(PyObject *module)
{
    node_type = dt_add_type(module, "pydevtensor.Node", sizeof(node_object),
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            NULL, node_slots);
    return node_type ? 0 : -1;
}
