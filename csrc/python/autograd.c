/* Gradients: what a Tensor says about its history, the backward pass, hooks, and the
 * operations that users write in Python. */
#include "autograd/engine.h"
#include "autograd/recorded.h"
#include "autograd/scope.h"
#include "python/functions.h"
#include "tensor/convert.h"
#include "tensor/create.h"

/* --- nodes as objects
 * ---------------------------------------------------------------------- */

typedef struct node_object {
    PyObject_HEAD dt_node *node; /* one reference */
} node_object;

static PyTypeObject *node_type;

static dt_node *node_of(PyObject *object)
{
    return ((node_object *)object)->node;
}

static PyObject *node_wrap(dt_node *node)
{
    node_object *self = PyObject_New(node_object, node_type);
    if (self)
        self->node = dt_node_retain(node);
    return (PyObject *)self;
}

static void node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    dt_node_release(node_of(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *node_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", node_of(self)->name,
                                (void *)node_of(self));
}

static PyObject *node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(node_of(self)->name);
}

static PyObject *node_next(PyObject *self, void *unused)
{
    (void)unused;
    dt_node *node = node_of(self);
    PyObject *tuple = PyTuple_New(node->nedges);
    for (int i = 0; tuple && i < node->nedges; i++) {
        dt_edge edge = node->edges[i];
        PyObject *pair = edge.node ? Py_BuildValue("(Ni)", node_wrap(edge.node), edge.index)
                                   : Py_BuildValue("(Oi)", Py_None, 0);
        if (!pair)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}

/* Of an accumulator: the leaf. */
static PyObject *node_variable(PyObject *self, void *unused)
{
    (void)unused;
    PyErr_Format(PyExc_AttributeError,
                 "%s: a node keeps no reference to the Tensor; use the Tensor itself",
                 node_of(self)->name);
    return NULL;
}

static PyObject *node_compare(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(b) != node_type || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((node_of(a) == node_of(b)) == (op == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    return _Py_HashPointer(node_of(self));
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS,
     "name()\n--\n\nThe operation's name, such as 'MulBackward0'."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef node_properties[] = {
    {"next_functions", node_next, NULL,
     "Pairs of the nodes that gradients go to and the number of their result.", NULL},
    {"variable", node_variable, NULL, "Not available.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot node_slots[] = {
    {Py_tp_doc, "A recorded operation, as Tensor.grad_fn gives it."},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_repr, node_repr},
    {Py_tp_hash, node_hash},
    {Py_tp_richcompare, node_compare},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {0, NULL},
};
static PyType_Spec node_spec = {
    .name = "pydevtensor.Node",
    .basicsize = sizeof(node_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};

/* --- attributes
 * ---------------------------------------------------------------------------- */

/* A new object over the same storage with the same history. */
static PyObject *wrap_alias(const dt_tensor *t)
{
    dt_tensor_object *out = dt_tensor_object_new();
    if (out)
        dt_variable_alias(&out->tensor, t);
    return (PyObject *)out;
}

static PyObject *get_requires_grad(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(dt_requires_grad(dt_tensor_of(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    int wanted = value ? PyObject_IsTrue(value) : 0;
    if (wanted < 0)
        return -1;
    return dt_variable_require(dt_tensor_of(self), wanted) < 0 ? dt_raise_status() : 0;
}

static PyObject *get_is_leaf(PyObject *self, void *unused)
{
    (void)unused;
    const dt_tensor *t = dt_tensor_of(self);
    dt_variable *v = dt_variable_of(t);
    return PyBool_FromLong(!v || !dt_requires_grad(t) || v->requires_grad);
}

static PyObject *get_grad_fn(PyObject *self, void *unused)
{
    (void)unused;
    const dt_tensor *t = dt_tensor_of(self);
    dt_variable *v = dt_variable_of(t);
    dt_edge edge;
    if (!v || v->requires_grad)
        Py_RETURN_NONE;
    if (dt_variable_edge(t, &edge) < 0)
        return dt_raise();
    if (!edge.node)
        Py_RETURN_NONE;
    PyObject *node = node_wrap(edge.node);
    dt_node_release(edge.node);
    return node;
}

static PyObject *get_grad(PyObject *self, void *unused)
{
    (void)unused;
    dt_variable *v = dt_variable_of(dt_tensor_of(self));
    if (!v || !dt_variable_grad(v)->storage)
        Py_RETURN_NONE;
    return wrap_alias(dt_variable_grad(v));
}

static int set_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    dt_tensor *t = dt_tensor_of(self);
    dt_tensor gradient = {.storage = NULL};
    if (value && value != Py_None) {
        char text[DT_DESCRIBE_TEXT], has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        if (!dt_tensor_check(value)) {
            PyErr_Format(PyExc_TypeError,
                         "grad: the gradient has to be a Tensor or None, and it is %s",
                         dt_describe(value, text, sizeof text));
            return -1;
        }
        const dt_tensor *g = dt_tensor_of(value);
        if (value == self) {
            PyErr_SetString(PyExc_RuntimeError,
                            "grad: a Tensor cannot be its own gradient; give a clone()");
            return -1;
        }
        if (g->dtype != t->dtype ||
            !dt_device_equal(dt_tensor_device(g), dt_tensor_device(t)) ||
            !dt_shape_equal(g->ndim, g->shape, t->ndim, t->shape)) {
            char there[DT_DEVICE_TEXT], here[DT_DEVICE_TEXT];
            PyErr_Format(
                PyExc_RuntimeError,
                "grad: the gradient has shape %s, type %s and is on %s, and the Tensor "
                "has shape %s, type %s and is on %s; both have to agree",
                dt_shape_text(g->ndim, g->shape, has, sizeof has),
                dt_dtype_name((dt_dtype)g->dtype),
                dt_device_text(dt_tensor_device(g), there),
                dt_shape_text(t->ndim, t->shape, wants, sizeof wants),
                dt_dtype_name((dt_dtype)t->dtype),
                dt_device_text(dt_tensor_device(t), here));
            return -1;
        }
        dt_variable_alias(&gradient, g);
    }
    dt_variable *v = gradient.storage ? dt_variable_ensure(t) : dt_variable_of(t);
    if (!v) {
        dt_tensor_clear(&gradient);
        return gradient.storage ? dt_raise_status() : 0;
    }
    dt_tensor old = *dt_variable_grad(v);
    *dt_variable_grad(v) = gradient;
    dt_tensor_clear(&old);
    return 0;
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    dt_tensor_object *out = dt_tensor_object_new();
    if (out) {
        dt_tensor_alias(&out->tensor, dt_tensor_of(self));
        out->tensor.unversioned = true;
    }
    return (PyObject *)out;
}

static int set_data(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    dt_tensor *t = dt_tensor_of(self), fresh, old = *t;
    char text[DT_DESCRIBE_TEXT];
    if (!value || !dt_tensor_check(value)) {
        PyErr_Format(PyExc_TypeError, "data: give a Tensor; this is %s",
                     value ? dt_describe(value, text, sizeof text) : "a deletion");
        return -1;
    }
    const dt_tensor *from = dt_tensor_of(value);
    if (dt_requires_grad(t) && !dt_dtype_is_float((dt_dtype)from->dtype)) {
        PyErr_Format(PyExc_RuntimeError,
                     "data: this Tensor wants gradients, and data of type %s can have "
                     "none; give a floating type",
                     dt_dtype_name((dt_dtype)from->dtype));
        return -1;
    }
    dt_tensor_alias(&fresh, from);
    fresh.history = old.history;
    fresh.unversioned = false;
    *t = fresh;
    dt_variable *v = dt_variable_of(t);
    /* The node that stands for the leaf in new graphs has to know the new shape. */
    if (v && v->accumulator)
        v->accumulator = NULL;
    old.history = NULL;
    dt_tensor_clear(&old);
    return 0;
}

static PyObject *get_version(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(dt_tensor_of(self)->storage->version);
}

static PyObject *get_retains_grad(PyObject *self, void *unused)
{
    (void)unused;
    dt_variable *v = dt_variable_of(dt_tensor_of(self));
    return PyBool_FromLong(v && v->kept);
}

static PyObject *get_output_nr(PyObject *self, void *unused)
{
    (void)unused;
    dt_variable *v = dt_variable_of(dt_tensor_of(self));
    return PyLong_FromLong(v && v->made.node ? v->made.index : 0);
}

static PyGetSetDef attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether gradients for it are wanted.", NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no recorded operation made it.", NULL},
    {"grad_fn", get_grad_fn, NULL, "The recorded operation that made it, or None.", NULL},
    {"grad", get_grad, set_grad,
     "The gradient that backward() passes have added up, of its own shape; or None.",
     NULL},
    {"data", get_data, set_data,
     "A second Tensor over the same memory, without history; writing through it is not "
     "seen by autograd. Assigning puts another Tensor's memory in its place.",
     NULL},
    {"_version", get_version, NULL, "How often its memory was written in place.", NULL},
    {"retains_grad", get_retains_grad, NULL,
     "Whether it keeps its gradient though it is no leaf.", NULL},
    {"output_nr", get_output_nr, NULL, "Which result of grad_fn it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- methods
 * ------------------------------------------------------------------------------- */

DT_PUBLIC(requires_grad_, "requires_grad_(input: Tensor, requires_grad: bool = True)")
{
    dt_tensor *x;
    bool wanted;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    wanted = true;
    if (args->slots[1] && dt_take_bool(args, 1, &wanted) < 0)
        return NULL;
    return dt_variable_require(x, wanted) < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

DT_PUBLIC(detach, "detach(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (out)
        dt_tensor_alias(&out->tensor, x);
    return (PyObject *)out;
}

DT_PUBLIC(detach_, "detach_(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_variable *v = dt_variable_of(x);
    if (v && v->base) {
        PyErr_SetString(PyExc_RuntimeError,
                        "detach_(): this Tensor is a view, which cannot be detached in "
                        "place; use detach()");
        return NULL;
    }
    dt_history *old = x->history;
    x->history = NULL;
    dt_history_release(old);
    return Py_NewRef(args->slots[0]);
}

/* --- hooks
 * --------------------------------------------------------------------------------- */

static int python_failed(void)
{
    /* The exception stays with the thread: dt_raise leaves it as it is. */
    return dt_fail(DT_ERROR_RUNTIME, "an exception was raised in Python");
}

static int call_hook(void *context, dt_tensor *gradient)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *object = wrap_alias(gradient);
    PyObject *result = object ? PyObject_CallOneArg((PyObject *)context, object) : NULL;
    int status = result ? 0 : -1;
    if (result && result != Py_None) {
        if (dt_tensor_check(result)) {
            dt_tensor_clear(gradient);
            dt_variable_alias(gradient, dt_tensor_of(result));
        } else {
            char text[DT_DESCRIBE_TEXT];
            PyErr_Format(PyExc_TypeError,
                         "register_hook(): a hook has to return a Tensor or None, and "
                         "this one returned %s",
                         dt_describe(result, text, sizeof text));
            status = -1;
        }
    }
    Py_XDECREF(result);
    Py_XDECREF(object);
    PyGILState_Release(gil);
    return status < 0 ? python_failed() : 0;
}

static void free_object(void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)context);
    PyGILState_Release(gil);
}

/* Where the hooks for a tensor's gradient are: the leaf's or the node's. */
static dt_hook **hooks_of(const dt_tensor *t, int *index)
{
    dt_variable *v = dt_variable_of(t);
    *index = v->made.node ? v->made.index : 0;
    return v->made.node ? &v->made.node->hooks : &v->hooks;
}

/* The hooks on t's history, where no other tensor and no graph shares it. */
static dt_hook **own_hooks(const dt_tensor *t)
{
    dt_variable *v = t->storage ? dt_variable_of(t) : NULL;
    if (!v || v->head.references != 1)
        return NULL;
    if (!v->made.node)
        return &v->hooks;
    return v->made.node->references == 1 ? &v->made.node->hooks : NULL;
}

int dt_hooks_traverse(const dt_tensor *t, visitproc visit, void *arg)
{
    dt_hook **hooks = own_hooks(t);
    for (dt_hook *hook = hooks ? *hooks : NULL; hook; hook = hook->next)
        if (hook->call == call_hook)
            Py_VISIT((PyObject *)hook->context);
    return 0;
}

void dt_hooks_drop(dt_tensor *t)
{
    dt_hook **hooks = own_hooks(t);
    if (hooks)
        dt_hooks_free(hooks);
}

DT_PUBLIC(register_hook, "register_hook(input: Tensor, hook: Any)")
{
    dt_tensor *x;
    int index;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (!dt_requires_grad(x)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "register_hook(): this Tensor wants no gradient, so the hook "
                        "would never be called; set requires_grad first");
        return NULL;
    }
    if (!PyCallable_Check(args->slots[1]))
        return dt_argument_error(args, 1), NULL;
    dt_hook **hooks = hooks_of(x, &index);
    int64_t id = dt_hooks_add(hooks, index, call_hook, free_object,
                              Py_NewRef(args->slots[1]));
    if (id < 0)
        return dt_raise();
    if (!PyObject_GC_IsTracked(args->slots[0])) /* it may be part of a cycle now */
        PyObject_GC_Track(args->slots[0]);
    PyObject *module = PyImport_ImportModule("pydevtensor.autograd");
    PyObject *handle = module ? PyObject_CallMethod(module, "_hook_handle", "OL",
                                                    args->slots[0], (long long)id)
                              : NULL;
    Py_XDECREF(module);
    return handle;
}

DT_PUBLIC(remove_hook, "_remove_hook(input: Tensor, id: int)")
{
    dt_tensor *x;
    int64_t id;
    int index;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &id) < 0)
        return NULL;
    if (x->history)
        dt_hooks_remove(hooks_of(x, &index), id);
    Py_RETURN_NONE;
}

DT_PUBLIC(retain_grad, "retain_grad(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_variable *v = dt_variable_of(x);
    if (!v || !dt_requires_grad(x)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "retain_grad(): this Tensor wants no gradient; set requires_grad "
                        "on what it is computed from");
        return NULL;
    }
    if (!v->requires_grad && dt_variable_retain_grad(x) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* --- passes
 * -------------------------------------------------------------------------------- */

typedef struct batch {
    int count;
    dt_edge *edges;
    dt_tensor **gradients; /* lent or in made */
    dt_tensor *made;
} batch;

static void batch_clear(batch *b)
{
    for (int i = 0; i < b->count; i++) {
        if (b->edges)
            dt_node_release(b->edges[i].node);
        if (b->made)
            dt_tensor_clear(&b->made[i]);
    }
    PyMem_Free(b->edges);
    PyMem_Free(b->gradients);
    PyMem_Free(b->made);
}

static int batch_begin(batch *b, Py_ssize_t count)
{
    b->count = (int)count;
    b->edges = PyMem_Calloc((size_t)count + 1, sizeof *b->edges);
    b->gradients = PyMem_Calloc((size_t)count + 1, sizeof(dt_tensor *));
    b->made = PyMem_Calloc((size_t)count + 1, sizeof *b->made);
    if (b->edges && b->gradients && b->made)
        return 0;
    batch_clear(b);
    PyErr_NoMemory();
    return -1;
}

/* The gradient to begin with: what was given, or one for a single element. */
static int begin_with(const char *function, PyObject *given, const dt_tensor *t,
                      dt_tensor *made, dt_tensor **out)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (given && given != Py_None) {
        if (!dt_tensor_check(given)) {
            char text[DT_DESCRIBE_TEXT];
            PyErr_Format(PyExc_TypeError, "%s(): a gradient has to be a Tensor or None, "
                                          "and it is %s",
                         function, dt_describe(given, text, sizeof text));
            return -1;
        }
        dt_tensor *g = dt_tensor_of(given);
        if (!dt_shape_equal(g->ndim, g->shape, t->ndim, t->shape)) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): the gradient has shape %s and the result %s; give a "
                         "gradient of the result's shape",
                         function, dt_shape_text(g->ndim, g->shape, has, sizeof has),
                         dt_shape_text(t->ndim, t->shape, wants, sizeof wants));
            return -1;
        }
        *out = g;
        return 0;
    }
    if (t->numel != 1) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): grad can be implicitly created only for scalar outputs, and "
                     "this result has shape %s; reduce it first, e.g. with .sum(), or "
                     "give gradient=torch.ones_like(result)",
                     function, dt_shape_text(t->ndim, t->shape, has, sizeof has));
        return -1;
    }
    if (dt_full(function, made, (dt_dtype)t->dtype, t->ndim, t->shape,
                dt_tensor_device(t), dt_scalar_int(1)) < 0)
        return dt_raise_status();
    *out = made;
    return 0;
}

static int add_roots(const char *function, batch *b, PyObject *tensors,
                     PyObject *gradients)
{
    for (int i = 0; i < b->count; i++) {
        PyObject *root = PyTuple_GET_ITEM(tensors, i);
        char text[DT_DESCRIBE_TEXT];
        if (!dt_tensor_check(root)) {
            PyErr_Format(PyExc_TypeError, "%s(): %s is no Tensor", function,
                         dt_describe(root, text, sizeof text));
            return -1;
        }
        const dt_tensor *t = dt_tensor_of(root);
        if (!dt_requires_grad(t)) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): element %d of tensors does not require grad and does not "
                         "have a grad_fn: nothing it was computed from wants gradients, "
                         "or it was computed under no_grad(); set requires_grad=True on "
                         "the inputs",
                         function, i);
            return -1;
        }
        if (begin_with(function, PyTuple_GET_ITEM(gradients, i), t, &b->made[i],
                       &b->gradients[i]) < 0)
            return -1;
        if (dt_variable_edge(t, &b->edges[i]) < 0)
            return dt_raise_status();
    }
    return 0;
}

static int add_inputs(const char *function, batch *b, PyObject *inputs)
{
    for (int i = 0; i < b->count; i++) {
        PyObject *input = PyTuple_GET_ITEM(inputs, i);
        char text[DT_DESCRIBE_TEXT];
        if (!dt_tensor_check(input)) {
            PyErr_Format(PyExc_TypeError, "%s(): the input %s is no Tensor", function,
                         dt_describe(input, text, sizeof text));
            return -1;
        }
        if (!dt_requires_grad(dt_tensor_of(input))) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): one of the differentiated Tensors (inputs[%d]) does not "
                         "require grad; set requires_grad=True before computing with it",
                         function, i);
            return -1;
        }
        if (dt_variable_edge(dt_tensor_of(input), &b->edges[i]) < 0)
            return dt_raise_status();
    }
    return 0;
}

/* _run_backward(function, tensors, gradients, inputs, keep, create, accumulate): tuples.
 * With inputs: a tuple of their gradients, None where none came; or, to accumulate,
 * these are added to the inputs' grad. */
static PyObject *run_backward(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *function;
    PyObject *tensors, *gradients, *inputs, *result = NULL;
    int keep, create, accumulate;
    if (!PyArg_ParseTuple(arguments, "sO!O!O!ppp", &function, &PyTuple_Type, &tensors,
                          &PyTuple_Type, &gradients, &PyTuple_Type, &inputs, &keep,
                          &create, &accumulate))
        return NULL;
    Py_ssize_t nroots = PyTuple_GET_SIZE(tensors);
    if (PyTuple_GET_SIZE(gradients) != nroots) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): %zd tensors and %zd gradients were given; give one gradient "
                     "(or None) for each",
                     function, nroots, PyTuple_GET_SIZE(gradients));
        return NULL;
    }
    batch roots, wanted;
    if (batch_begin(&roots, nroots) < 0)
        return NULL;
    if (batch_begin(&wanted, PyTuple_GET_SIZE(inputs)) < 0) {
        batch_clear(&roots);
        return NULL;
    }
    if (add_roots(function, &roots, tensors, gradients) < 0 ||
        add_inputs(function, &wanted, inputs) < 0)
        goto done;
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        dt_backward(roots.count, roots.edges, roots.gradients, wanted.count,
                    wanted.edges, wanted.made, keep, create);
    Py_END_ALLOW_THREADS if (status < 0)
    {
        dt_raise();
        goto done;
    }
    if (!wanted.count || accumulate) {
        for (int i = 0; i < wanted.count; i++) {
            dt_tensor *input = dt_tensor_of(PyTuple_GET_ITEM(inputs, i));
            if (wanted.made[i].storage &&
                dt_variable_accumulate(dt_variable_of(input), &wanted.made[i], create) < 0) {
                dt_raise();
                goto done;
            }
        }
        result = Py_NewRef(Py_None);
        goto done;
    }
    result = PyTuple_New(wanted.count);
    for (int i = 0; result && i < wanted.count; i++) {
        PyObject *gradient = wanted.made[i].storage
                                 ? dt_tensor_object_steal(&wanted.made[i])
                                 : Py_NewRef(Py_None);
        if (!gradient)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, gradient);
    }
done:
    batch_clear(&wanted);
    batch_clear(&roots);
    return result;
}

DT_PUBLIC(backward, "backward(input: Tensor, gradient: Any = None, "
                    "retain_graph: Any = None, create_graph: bool = False, "
                    "inputs: Any = None)")
{
    dt_tensor *x;
    bool create;
    PyObject *inputs = NULL;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_bool(args, 3, &create) < 0)
        return NULL;
    int keep = create;
    if (dt_given(args, 2) && (keep = PyObject_IsTrue(args->slots[2])) < 0)
        return NULL;
    if (!dt_given(args, 4))
        inputs = PyTuple_New(0);
    else if (dt_tensor_check(args->slots[4]))
        inputs = PyTuple_Pack(1, args->slots[4]);
    else
        inputs = PySequence_Tuple(args->slots[4]);
    if (!inputs)
        return NULL;
    if (dt_given(args, 4) && !PyTuple_GET_SIZE(inputs)) {
        Py_DECREF(inputs);
        PyErr_SetString(PyExc_RuntimeError,
                        "backward(): inputs is empty; leave it out to reach all leaves");
        return NULL;
    }
    PyObject *gradient = args->slots[1] ? args->slots[1] : Py_None;
    PyObject *all = Py_BuildValue("s(O)(O)NOOO", "backward", args->slots[0], gradient,
                                  inputs, keep ? Py_True : Py_False,
                                  create ? Py_True : Py_False, Py_True);
    PyObject *result = all ? run_backward(NULL, all) : NULL;
    Py_XDECREF(all);
    return result;
}

/* --- operations written in Python
 * ----------------------------------------------------------- */

typedef struct function_data {
    PyObject *backward; /* called with the node and the gradients of the results */
    char name[64];
} function_data;

static void function_free(dt_node *node)
{
    free_object(((function_data *)node->data)->backward);
}

static PyObject *gradient_object(const dt_node *node, int i, const dt_tensor *gradient)
{
    if (gradient)
        return wrap_alias(gradient);
    const dt_result *result = &node->results[i];
    if (result->ndim < 0)
        return Py_NewRef(Py_None);
    dt_tensor_object *zeros = dt_tensor_object_new();
    if (!zeros)
        return NULL;
    return dt_tensor_result(zeros, dt_full("backward", &zeros->tensor, result->dtype,
                                           result->ndim, result->shape, result->device,
                                           dt_scalar_int(0)));
}

static int take_gradients(dt_node *node, dt_scope *scope, PyObject *made, dt_tensor **into)
{
    char text[DT_DESCRIBE_TEXT];
    bool one = !PyTuple_Check(made);
    int count = one ? 1 : (int)PyTuple_GET_SIZE(made);
    for (int i = node->nedges; i < count; i++)
        if (one || PyTuple_GET_ITEM(made, i) != Py_None)
            goto wrong_count;
    if (count < node->nedges)
        goto wrong_count;
    for (int i = 0; i < node->nedges; i++) {
        PyObject *gradient = one ? made : PyTuple_GET_ITEM(made, i);
        if (gradient == Py_None || !dt_node_wants(node, i))
            continue;
        if (!dt_tensor_check(gradient)) {
            PyErr_Format(PyExc_TypeError,
                         "%s: backward() has to return Tensors or None, and gradient %d "
                         "is %s",
                         node->name, i, dt_describe(gradient, text, sizeof text));
            return -1;
        }
        into[i] = dt_scope_slot(scope);
        if (!into[i])
            return dt_raise_status();
        dt_variable_alias(into[i], dt_tensor_of(gradient));
    }
    return 0;
wrong_count:
    PyErr_Format(PyExc_RuntimeError,
                 "%s: backward() returned %d gradients, and forward() took %d arguments; "
                 "return one for each, None where there is none",
                 node->name, count, node->nedges);
    return -1;
}

static int function_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                          dt_tensor **into)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    function_data *data = node->data;
    PyObject *call = PyTuple_New(node->nresults + 1), *made = NULL;
    int status = -1;
    PyObject *self = call ? node_wrap(node) : NULL;
    if (!self)
        goto done;
    PyTuple_SET_ITEM(call, 0, self);
    for (int i = 0; i < node->nresults; i++) {
        PyObject *gradient = gradient_object(node, i, gradients[i]);
        if (!gradient)
            goto done;
        PyTuple_SET_ITEM(call, i + 1, gradient);
    }
    made = PyObject_Call(data->backward, call, NULL);
    if (made)
        status = take_gradients(node, scope, made, into);
done:
    Py_XDECREF(made);
    Py_XDECREF(call);
    PyGILState_Release(gil);
    return status < 0 ? python_failed() : 0;
}
static const dt_node_type function_type = {function_apply, function_free};

/* _record_function(name, backward, inputs, outputs): hangs a node on the outputs, fresh
 * Tensors, whose gradients go to those of inputs that are Tensors. */
static PyObject *record_function(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *name;
    PyObject *backward, *inputs, *outputs;
    if (!PyArg_ParseTuple(arguments, "sOO!O!", &name, &backward, &PyTuple_Type, &inputs,
                          &PyTuple_Type, &outputs))
        return NULL;
    int ninputs = (int)PyTuple_GET_SIZE(inputs), noutputs = (int)PyTuple_GET_SIZE(outputs);
    dt_node *node = dt_node_new(&function_type, name, ninputs, 0, noutputs ? noutputs : 1,
                                sizeof(function_data));
    if (!node)
        return dt_raise();
    function_data *data = node->data;
    data->backward = Py_NewRef(backward);
    snprintf(data->name, sizeof data->name, "%s", name);
    node->name = data->name;
    int status = 0;
    for (int i = 0; i < ninputs && !status; i++) {
        PyObject *input = PyTuple_GET_ITEM(inputs, i);
        if (dt_tensor_check(input))
            status = dt_variable_edge(dt_tensor_of(input), &node->edges[i]);
    }
    for (int i = 0; i < noutputs && !status; i++) {
        PyObject *output = PyTuple_GET_ITEM(outputs, i);
        if (!dt_tensor_check(output) ||
            !dt_dtype_is_float((dt_dtype)dt_tensor_of(output)->dtype))
            continue;
        dt_node_set_result(node, i, dt_tensor_of(output));
        status = dt_variable_set_made(dt_tensor_of(output), node, i);
    }
    dt_node_release(node);
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* _result_of(node, index, tensor): an alias of tensor that is result number index. */
static PyObject *result_of(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *node, *tensor;
    int index;
    if (!PyArg_ParseTuple(arguments, "O!iO!", node_type, &node, &index, dt_py.tensor_type,
                          &tensor))
        return NULL;
    if (index < 0 || index >= node_of(node)->nresults) {
        PyErr_SetString(PyExc_IndexError, "_result_of(): there is no such result");
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_tensor_alias(&out->tensor, dt_tensor_of(tensor));
    return dt_tensor_result(out, dt_variable_set_made(&out->tensor, node_of(node), index));
}

/* --- the mode
 * ------------------------------------------------------------------------------ */

static PyObject *is_grad_enabled(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(dt_grad_enabled);
}

/* Gives what it was. */
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

static PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\nWhether the calling thread records operations."},
    {"_exchange_grad_enabled", exchange_grad_enabled, METH_O,
     "_exchange_grad_enabled(enabled, /)\n--\n\nSets the mode and gives the old one."},
    {"_run_backward", run_backward, METH_VARARGS,
     "_run_backward(function, tensors, gradients, inputs, keep, create, accumulate, /)"
     "\n--\n\nA backward pass."},
    {"_record_function", record_function, METH_VARARGS,
     "_record_function(name, backward, inputs, outputs, /)\n--\n\nRecords an operation "
     "written in Python."},
    {"_result_of", result_of, METH_VARARGS,
     "_result_of(node, index, tensor, /)\n--\n\nA Tensor as the result of a node."},
    {NULL, NULL, 0, NULL},
};

static const dt_row rows[] = {
    DT_METHOD(requires_grad_, "requires_grad_",
              "Says whether gradients for it are wanted; returns it. RuntimeError for "
              "types other than floating ones."),
    DT_BOTH(detach, "detach", "A second Tensor over the same memory, without history."),
    DT_METHOD(detach_, "detach_", "Forget the history. RuntimeError for a view."),
    DT_METHOD(register_hook, "register_hook",
              "Calls hook(gradient) whenever this Tensor's gradient has been "
              "computed.\n\nWhat it returns, unless None, takes the gradient's place. "
              "The handle that this\nreturns has remove(). RuntimeError where no gradient "
              "is wanted."),
    DT_METHOD(remove_hook, "_remove_hook", "Removes a hook by its id."),
    DT_METHOD(retain_grad, "retain_grad",
              "Keep the gradient in .grad though this is no leaf."),
    DT_METHOD(backward, "backward",
              "Adds the gradients of this Tensor to .grad of the leaves it was computed "
              "from.\n\ngradient has its shape, and may be left out for one element. "
              "retain_graph keeps what\nthe operations saved for another pass; "
              "create_graph records the pass itself, for\nhigher derivatives. inputs: only "
              "these Tensors' .grad. RuntimeError where nothing\nwants a gradient, for a "
              "second pass without retain_graph, and where a Tensor that\nis needed was "
              "changed in place."),
};

int dt_setup_autograd(PyObject *module)
{
    node_type = dt_add_type(module, &node_spec, NULL);
    if (!node_type || dt_add_properties(attributes) < 0 ||
        PyModule_AddFunctions(module, functions) < 0)
        return -1;
    return DT_ADD_ROWS(module, rows);
}
