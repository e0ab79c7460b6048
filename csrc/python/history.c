/* A Tensor's attributes and methods for gradients, history and hooks. */
#include "python/history.h"

#include "autograd/recall.h"
#include "autograd/recorded.h"
#include "autograd/sparse_gradient.h"
#include "python/functions.h"
#include "tensor/ops/copy.h"

/* --- attributes --- */

PyObject *dt_tensor_object_alias(const dt_tensor *t)
{
    if (dt_gradient_is_sparse(t))
        return Py_NewRef(dt_variable_of(t)->sparse);
    dt_tensor_object *out = dt_tensor_object_new();
    if (out) {
        dt_variable_alias(&out->tensor, t);
        dt_tensor_object_track(out);
    }
    return (PyObject *)out;
}

dt_tensor_object *dt_tensor_object_detached(PyTypeObject *type, const dt_tensor *t)
{
    dt_tensor_object *out = dt_tensor_object_new_of(type);
    if (out)
        dt_tensor_alias(&out->tensor, t);
    return out;
}

/* A getter of an expression in the tensor t and its variable v, which may be NULL. */
#define GETTER(name, make, answer)                                                     \
    static PyObject *get_##name(PyObject *self, void *unused)                          \
    {                                                                                  \
        (void)unused;                                                                  \
        const dt_tensor *t = dt_tensor_of(self);                                       \
        const dt_variable *v = dt_variable_of(t);                                      \
        (void)v;                                                                       \
        return make(answer);                                                           \
    }
GETTER(requires_grad, PyBool_FromLong, dt_requires_grad(t))
GETTER(version, PyLong_FromUnsignedLong, t->storage->version)
GETTER(retains_grad, PyBool_FromLong, v && v->kept)
GETTER(output_nr, PyLong_FromLong, v && v->made.node ? v->made.index : 0)

/* A second Tensor with the base's history; None for what is not a view. */
static PyObject *get_base(PyObject *self, void *unused)
{
    (void)unused;
    const dt_tensor *t = dt_tensor_of(self);
    const dt_variable *v = dt_variable_of(t);
    if (!v || !v->base || !v->base->geometry)
        Py_RETURN_NONE;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    out->tensor = *v->base->geometry;
    out->tensor.storage = dt_storage_retain(t->storage);
    out->tensor.history = dt_history_retain(&v->base->head);
    return dt_tensor_result(out, 0);
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
    bool made;
    return dt_variable_is_made(dt_tensor_of(self), &made) < 0 ? dt_raise()
                                                              : PyBool_FromLong(!made);
}

static PyObject *get_grad_fn(PyObject *self, void *unused)
{
    (void)unused;
    const dt_tensor *t = dt_tensor_of(self);
    bool made;
    if (dt_variable_is_made(t, &made) < 0)
        return dt_raise();
    if (!made)
        Py_RETURN_NONE;
    if (!PyObject_GC_IsTracked(self)) /* hooks of the node may lead back to it */
        PyObject_GC_Track(self);
    return dt_node_object_new(dt_variable_of(t)->made.node);
}

/* None; with a warning where backward() will never bring one. */
static PyObject *no_grad_of(const dt_tensor *t)
{
    bool made;
    if (dt_variable_is_made(t, &made) < 0)
        return dt_raise();
    if (made && !dt_variable_of(t)->kept &&
        PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "grad: the .grad attribute of a Tensor that is not a leaf "
                         "stays None: %s computed it; call retain_grad() on it before "
                         "backward(), or look at the leaf",
                         dt_variable_of(t)->made.node->name) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The object that stands for the gradient; NULL: none does. */
static dt_tensor_object *known_grad(dt_variable *v)
{
    const dt_tensor *grad = dt_variable_grad(v);
    dt_history *keeper;
    dt_tensor_object *known = *dt_variable_grad_object(v, &keeper);
    bool same = known && known->tensor.history == grad->history &&
                known->tensor.unversioned == grad->unversioned &&
                dt_tensor_is_same_view(&known->tensor, grad);
    return same ? known : NULL;
}

/* One object stands for a gradient as long as somebody holds it. */
static PyObject *get_grad(PyObject *self, void *unused)
{
    (void)unused;
    dt_variable *v = dt_variable_of(dt_tensor_of(self));
    if (!v)
        Py_RETURN_NONE;
    if (!dt_variable_grad(v)->storage)
        return no_grad_of(dt_tensor_of(self));
    if (dt_gradient_is_sparse(dt_variable_grad(v)))
        return dt_tensor_object_alias(dt_variable_grad(v));
    dt_tensor_object *known = known_grad(v);
    if (known)
        return Py_NewRef((PyObject *)known);
    /* This may collect garbage, which runs Python code and other threads. */
    dt_tensor_object *made = dt_tensor_object_new();
    v = made ? dt_variable_of(dt_tensor_of(self)) : NULL;
    if (!v || !dt_variable_grad(v)->storage || known_grad(v)) {
        Py_XDECREF((PyObject *)made);
        return made ? get_grad(self, NULL) : NULL;
    }
    dt_history *keeper;
    void **slot = dt_variable_grad_object(v, &keeper);
    if (*slot)
        dt_tensor_object_forget(*slot);
    dt_variable_alias(&made->tensor, dt_variable_grad(v));
    dt_tensor_object_track(made);
    dt_tensor_object_bind(made, slot, keeper);
    return (PyObject *)made;
}

static int set_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    dt_tensor *t = dt_tensor_of(self);
    DT_LOCAL(gradient);
    if (value && value != Py_None) {
        char text[DT_DESCRIBE_TEXT], has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        bool sparse = dt_sparse_check(value);
        if (!sparse && !dt_tensor_check(value))
            return DT_SET_ERROR(
                PyExc_TypeError,
                "grad: the gradient has to be a Tensor or None, and it is %s",
                dt_describe(value, text, sizeof text));
        dt_device place = dt_tensor_home(t);
        if (sparse && dt_sparse_take(&gradient, value, &place) < 0)
            return -1;
        const dt_tensor *g = sparse ? &gradient : dt_tensor_of(value);
        if (!sparse)
            place = dt_tensor_home(g);
        if (value == self)
            return DT_SET_ERROR(
                PyExc_RuntimeError,
                "grad: a Tensor cannot be its own gradient; give a clone()");
        if (g->dtype != t->dtype || !dt_device_equal(place, dt_tensor_home(t)) ||
            !dt_shape_equal(g->ndim, g->shape, t->ndim, t->shape)) {
            char there[DT_DEVICE_TEXT], here[DT_DEVICE_TEXT];
            return DT_SET_ERROR(
                PyExc_RuntimeError,
                "grad: the gradient has shape %s, type %s and is on %s, and the Tensor "
                "has shape %s, type %s and is on %s; both have to agree",
                dt_shape_text(g->ndim, g->shape, has, sizeof has),
                dt_dtype_name((dt_dtype)g->dtype), dt_device_text(place, there),
                dt_shape_text(t->ndim, t->shape, wants, sizeof wants),
                dt_dtype_name((dt_dtype)t->dtype),
                dt_device_text(dt_tensor_home(t), here));
        }
        if (!sparse)
            dt_variable_alias(&gradient, g);
    }
    dt_variable *v = gradient.storage ? dt_variable_ensure(t) : dt_variable_of(t);
    if (!v)
        return gradient.storage ? dt_raise_status() : 0;
    dt_tensor old = *dt_variable_grad(v);
    dt_history *keeper;
    void **slot = dt_variable_grad_object(v, &keeper);
    const bool binds = gradient.storage && !dt_gradient_is_sparse(&gradient);
    *dt_variable_grad(v) = gradient;
    gradient.storage = NULL;
    if (*slot && *slot != value)
        dt_tensor_object_forget(*slot);
    if (binds && !((dt_tensor_object *)value)->slot)
        dt_tensor_object_bind((dt_tensor_object *)value, slot, keeper);
    dt_tensor_clear(&old);
    return 0;
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    dt_tensor_object *out =
        dt_tensor_object_detached(dt_py.tensor_type, dt_tensor_of(self));
    if (out)
        out->tensor.unversioned = true;
    return (PyObject *)out;
}

static int set_data(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    dt_tensor *t = dt_tensor_of(self), fresh, old = *t;
    char text[DT_DESCRIBE_TEXT];
    if (!value || !dt_tensor_check(value))
        return DT_SET_ERROR(PyExc_TypeError, "data: give a Tensor; this is %s",
                            value ? dt_describe(value, text, sizeof text)
                                  : "a deletion");
    const dt_tensor *from = dt_tensor_of(value);
    if (dt_requires_grad(t) && !dt_dtype_is_differentiable((dt_dtype)from->dtype))
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "data: this Tensor wants gradients, and data of type %s can have "
            "none; give a floating type",
            dt_dtype_name((dt_dtype)from->dtype));
    dt_tensor_alias(&fresh, from);
    fresh.history = old.history;
    fresh.unversioned = false;
    *t = fresh;
    dt_variable *v = dt_variable_of(t);
    /* The node that stands for the leaf in new graphs has to know the new shape. */
    if (v && v->accumulator)
        v->accumulator = NULL;
    if (v && v->geometry)
        dt_variable_set_geometry(v->geometry, t);
    old.history = NULL;
    dt_tensor_clear(&old);
    return 0;
}

static PyGetSetDef attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether gradients for it are wanted.", NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no recorded operation made it.", NULL},
    {"grad_fn", get_grad_fn, NULL, "The recorded operation that made it, or None.",
     NULL},
    {"grad", get_grad, set_grad,
     "The gradient that backward() passes have added up, of its own shape; or None.",
     NULL},
    {"data", get_data, set_data,
     "A second Tensor over the same memory, without history; writing through it is not "
     "seen by autograd. Assigning puts another Tensor's memory in its place.",
     NULL},
    {"_version", get_version, NULL, "How often its memory was written in place.", NULL},
    {"_base", get_base, NULL,
     "The Tensor that this is a view of, over the same memory with its history; None "
     "if "
     "it is not a view, as far as gradients count.",
     NULL},
    {"retains_grad", get_retains_grad, NULL,
     "Whether it keeps its gradient though it is not a leaf.", NULL},
    {"output_nr", get_output_nr, NULL, "Which result of grad_fn it is.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- methods --- */

DT_PUBLIC(requires_grad_, "requires_grad_(input: Tensor, requires_grad: bool = True)")
{
    return dt_variable_require(dt_tensor_of(args->slots[0]), v[1].b) < 0
               ? dt_raise()
               : Py_NewRef(args->slots[0]);
}

DT_PUBLIC(detach, "detach(input: Tensor)")
{
    return (PyObject *)dt_tensor_object_detached(dt_py.tensor_type, v[0].tensor);
}

DT_PUBLIC(detach_, "detach_(input: Tensor)")
{
    dt_tensor *x = dt_tensor_of(args->slots[0]);
    if (dt_variable_of(x) && dt_variable_of(x)->base)
        return PyErr_Format(
            PyExc_RuntimeError,
            "detach_(): this Tensor is a view, which cannot be detached in "
            "place; use detach()");
    dt_variable_detach(x);
    return Py_NewRef(args->slots[0]);
}

/* --- hooks --- */

int dt_fail_in_python(void)
{
    return dt_fail(DT_ERROR_RUNTIME, "an exception was raised in Python");
}

/* Raises the error of a hook that has returned something else than `wanted`: -1. */
static int wrong_result(PyObject *error, const char *function, const char *wanted,
                        PyObject *result)
{
    char text[DT_DESCRIBE_TEXT];
    PyErr_Format(error, "%s(): a hook has to return %s, and this one returned %s",
                 function, wanted, dt_describe(result, text, sizeof text));
    return -1;
}

/* Whether a dense gradient may be replaced by t; else -1 with RuntimeError. */
static int check_fits(const dt_tensor *gradient, const dt_tensor *t)
{
    char was[DT_SHAPE_TEXT], is[DT_SHAPE_TEXT];
    char there[DT_DEVICE_TEXT], here[DT_DEVICE_TEXT];
    if (gradient->dtype == t->dtype &&
        dt_device_equal(dt_tensor_device(gradient), dt_tensor_device(t)) &&
        dt_shape_equal(gradient->ndim, gradient->shape, t->ndim, t->shape))
        return 0;
    return DT_SET_ERROR(
        PyExc_RuntimeError,
        "register_hook(): a hook has returned a gradient of shape %s, type %s, on %s, "
        "and the Tensor's has shape %s, type %s and is on %s; both have to agree",
        dt_shape_text(t->ndim, t->shape, is, sizeof is),
        dt_dtype_name((dt_dtype)t->dtype), dt_device_text(dt_tensor_device(t), here),
        dt_shape_text(gradient->ndim, gradient->shape, was, sizeof was),
        dt_dtype_name((dt_dtype)gradient->dtype),
        dt_device_text(dt_tensor_device(gradient), there));
}

/* Makes made the gradient, and what the next hook of the pass is called with. */
static int take(dt_tensor *gradient, dt_shown *shown, PyObject *made)
{
    bool dense = dt_tensor_check(made);
    if (dense && !dt_gradient_is_sparse(gradient) &&
        check_fits(gradient, dt_tensor_of(made)) < 0)
        return -1;
    dt_tensor_clear(gradient);
    if (dense)
        dt_variable_alias(gradient, dt_tensor_of(made));
    else if (dt_sparse_take(gradient, made, NULL) < 0)
        return -1;
    void *before = shown->object;
    shown->object = Py_NewRef(made);
    dt_object_free(before);
    return 0;
}

static int call_hook(void *context, dt_tensor *gradient, dt_shown *shown)
{
    bool yielded = dt_gil_yield(false);
    if (!shown->object)
        *shown = (dt_shown){dt_tensor_object_alias(gradient), dt_object_free};
    PyObject *result =
        shown->object ? PyObject_CallOneArg((PyObject *)context, shown->object) : NULL;
    /* The hook may also have changed its argument: g.data = ... */
    PyObject *made = result == Py_None ? shown->object : result;
    int status =
        !made ? -1
        : dt_tensor_check(made) || dt_sparse_check(made)
            ? take(gradient, shown, made)
            : wrong_result(PyExc_TypeError, "register_hook", "a Tensor or None", made);
    Py_XDECREF(result);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

/* The context is the hook and a weak reference to the leaf, which the hook is given: a
 * reference would be a cycle. */
static int call_after(void *context, dt_tensor *gradient, dt_shown *shown)
{
    (void)gradient;
    (void)shown;
    bool yielded = dt_gil_yield(false);
    PyObject *hook = PyTuple_GET_ITEM((PyObject *)context, 0);
    PyObject *leaf = PyObject_CallNoArgs(PyTuple_GET_ITEM((PyObject *)context, 1));
    PyObject *result = leaf == Py_None ? Py_NewRef(Py_None)
                       : leaf          ? PyObject_CallOneArg(hook, leaf)
                                       : NULL;
    int status = result ? 0 : -1;
    if (result && result != Py_None && !dt_tensor_check(result))
        status = wrong_result(PyExc_TypeError, "register_post_accumulate_grad_hook",
                              "None, or a Tensor that is not used", result);
    Py_XDECREF(result);
    Py_XDECREF(leaf);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

/* Where the hooks for a tensor's gradient are: the leaf's or the node's. */
static dt_hook **hooks_of(const dt_tensor *t, int *index)
{
    dt_variable *v = dt_variable_of(t);
    *index = v->made.node ? v->made.index : 0;
    return v->made.node ? &v->made.node->hooks : &v->hooks;
}

typedef struct visitor {
    visitproc visit;
    void *arg;
} visitor;

static int visit_hooks(dt_hook *hooks, visitproc visit, void *arg)
{
    for (dt_hook *hook = hooks; hook; hook = hook->next)
        if (hook->call == call_hook || hook->call == call_after)
            Py_VISIT((PyObject *)hook->context);
    return 0;
}

static int visit_node(void *context, const dt_node *node)
{
    const visitor *v = context;
    PyObject *function = dt_function_object(node);
    int status = function ? v->visit(function, v->arg) : 0;
    for (int i = 0; node->packs && i < node->nsaved && !status; i++) {
        const dt_recall *recall = node->saved[i].recall;
        if (recall && !recall->storage) /* its context is an object */
            status = v->visit(recall->context, v->arg);
    }
    if (!status)
        status = dt_node_hooks_visit(node, v->visit, v->arg);
    return status ? status : visit_hooks(node->hooks, v->visit, v->arg);
}

int dt_history_traverse(const dt_tensor *t, visitproc visit, void *arg)
{
    visitor v = {visit, arg};
    dt_variable *own = t->storage ? dt_variable_of(t) : NULL;
    /* A reference of a long call, which the collector does not know, keeps what it
     * leads to: the counts say so, and change with the GIL alone. */
    if (!own || own->head.references != 1)
        return 0;
    int status = visit_hooks(own->hooks, visit, arg);
    if (!status)
        status = visit_hooks(own->after, visit, arg);
    return status ? status : dt_owned_visit(t, visit_node, &v);
}

void dt_history_drop(dt_tensor *t)
{
    dt_history *history = t->storage ? t->history : NULL;
    if (!history)
        return;
    t->history = NULL;
    dt_history_release(history);
}

/* Called by a handle; self holds a reference to the hook, not to its function. */
static PyObject *remove_hook(PyObject *self, PyObject *Py_UNUSED(unused))
{
    dt_hook_remove(PyCapsule_GetPointer(self, NULL));
    Py_RETURN_NONE;
}

static void free_capsule(PyObject *self)
{
    dt_hook_release(PyCapsule_GetPointer(self, NULL));
}

static PyObject *remover_of(dt_hook *hook)
{
    static PyMethodDef method = {"remove", remove_hook, METH_NOARGS, NULL};
    PyObject *capsule = PyCapsule_New(hook, NULL, free_capsule);
    if (!capsule)
        return NULL;
    dt_count_up(&hook->references);
    PyObject *remover = PyCFunction_New(&method, capsule);
    Py_DECREF(capsule);
    return remover;
}

PyObject *dt_hook_handle(dt_hook *hook)
{
    DT_REF remover = remover_of(hook);
    PyObject *handle = remover
                           ? dt_python_call("pydevtensor.autograd", "RemovableHandle",
                                            "(OL)", remover, (long long)hook->id)
                           : NULL;
    if (!handle)
        dt_hook_remove(hook);
    return handle;
}

/* Adds a hook of a tensor and returns its handle. Takes over context. */
static PyObject *add_hook(PyObject *self, dt_hook **hooks, int index, dt_hook_fn call,
                          PyObject *context)
{
    dt_hook *hook =
        context ? dt_hooks_add(hooks, index, false, call, dt_object_free, context)
                : NULL;
    if (!hook)
        return context ? dt_raise() : NULL;
    if (!PyObject_GC_IsTracked(self)) /* it may be part of a cycle now */
        PyObject_GC_Track(self);
    return dt_hook_handle(hook);
}

DT_PUBLIC(register_hook, "register_hook(input: Tensor, hook: Any)")
{
    dt_tensor *x = dt_tensor_of(args->slots[0]);
    int index;
    if (!dt_requires_grad(x))
        return PyErr_Format(
            PyExc_RuntimeError,
            "register_hook(): this Tensor wants no gradient, so the hook "
            "would never be called; set requires_grad first");
    if (!PyCallable_Check(args->slots[1]))
        return dt_argument_error(args, 1), NULL;
    if (dt_variable_refresh(x) < 0)
        return dt_raise();
    dt_hook **hooks = hooks_of(x, &index);
    if (dt_variable_of(x)->made.node)
        dt_variable_of(x)->made.node->calls_back = true;
    return add_hook(args->slots[0], hooks, index, call_hook, Py_NewRef(args->slots[1]));
}

DT_PUBLIC(register_post_accumulate_grad_hook,
          "register_post_accumulate_grad_hook(input: Tensor, hook: Any)")
{
    PyObject *self = args->slots[0];
    bool made;
    if (!dt_requires_grad(v[0].tensor))
        return PyErr_Format(
            PyExc_RuntimeError,
            "register_post_accumulate_grad_hook(): this Tensor wants no gradient, so "
            "the hook would never be called; set requires_grad first");
    if (!PyCallable_Check(args->slots[1]))
        return dt_argument_error(args, 1), NULL;
    if (dt_variable_is_made(v[0].tensor, &made) < 0)
        return dt_raise();
    if (made)
        return PyErr_Format(
            PyExc_RuntimeError,
            "register_post_accumulate_grad_hook(): this Tensor is the result of an "
            "operation, which accumulates no gradient; register the hook of a leaf, "
            "or use register_hook()");
    PyObject *weak = PyWeakref_NewRef(self, NULL);
    PyObject *context = weak ? PyTuple_Pack(2, args->slots[1], weak) : NULL;
    Py_XDECREF(weak);
    return add_hook(self, &dt_variable_of(v[0].tensor)->after, 0, call_after, context);
}

DT_PUBLIC(retain_grad, "retain_grad(input: Tensor)")
{
    dt_tensor *x = dt_tensor_of(args->slots[0]);
    const dt_variable *variable = dt_variable_of(x);
    if (!variable || !dt_requires_grad(x))
        return PyErr_Format(
            PyExc_RuntimeError,
            "retain_grad(): this Tensor wants no gradient; set requires_grad "
            "on what it is computed from");
    if (dt_variable_retain_grad(x) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* --- subclasses --- */

DT_PUBLIC(make_subclass,
          "_make_subclass(cls: Any, data: Tensor, require_grad: bool = False)")
{
    PyObject *type = args->slots[0];
    if (!PyType_Check(type) ||
        !PyType_IsSubtype((PyTypeObject *)type, dt_py.tensor_type))
        return dt_argument_error(args, 0), NULL;
    dt_tensor_object *out =
        dt_tensor_object_detached((PyTypeObject *)type, v[1].tensor);
    if (!out)
        return NULL;
    return dt_tensor_result(out, dt_variable_require(&out->tensor, v[2].b));
}

DT_PUBLIC(is_view, "_is_view(input: Tensor)")
{
    const dt_variable *known = dt_variable_of(v[0].tensor);
    return PyBool_FromLong(known && known->base);
}

DT_PUBLIC(as_subclass, "as_subclass(input: Tensor, cls: Any)")
{
    PyObject *type = args->slots[1];
    if (!PyType_Check(type) ||
        !PyType_IsSubtype((PyTypeObject *)type, dt_py.tensor_type))
        return dt_argument_error(args, 1), NULL;
    dt_tensor_object *out = dt_tensor_object_new_of((PyTypeObject *)type);
    if (!out)
        return NULL;
    dt_variable_alias(&out->tensor, v[0].tensor);
    return dt_tensor_result(out, 0);
}

static const dt_function rows[] = {
    DT_METHOD(is_view, "_is_view", "Whether it is a view, as far as gradients count.",
              "", ""),
    DT_METHOD(
        as_subclass, "as_subclass",
        "Make an object of cls, a subclass of Tensor, that shares the memory and the "
        "history.",
        "torch.ones(2).as_subclass(torch.Tensor)", "tensor([1., 1.])"),
    DT_FUNCTION(make_subclass, "_make_subclass",
                "An object of a subclass of Tensor over the memory of data.", "", ""),
    DT_METHOD(requires_grad_, "requires_grad_",
              "Set whether backward passes compute the Tensor's gradient; returns the "
              "Tensor. RuntimeError for integers and bools.",
              "torch.ones(2).requires_grad_()", "tensor([1., 1.], requires_grad=True)"),
    DT_BOTH(detach, "detach",
            "Make a Tensor that shares the memory and has no history.",
            "(torch.ones(2, requires_grad=True) * 2).detach()", "tensor([2., 2.])"),
    DT_BOTH(detach_, "detach_", "Forget the Tensor's history. RuntimeError for a view.",
            "x = (torch.ones(2, requires_grad=True) * 2)\nx.detach_() is x", "True"),
    DT_METHOD(
        register_hook, "register_hook",
        "Call hook(gradient) whenever this Tensor's gradient has been "
        "computed.\n\nIf the hook returns a Tensor, it replaces the gradient. Returns "
        "a handle\nwhose remove() removes the hook. RuntimeError unless the Tensor "
        "requires a gradient.",
        "x = torch.ones(2, requires_grad=True)\n"
        "handle = x.register_hook(lambda gradient: gradient * "
        "10)\nx.sum().backward()\nx.grad",
        "tensor([10., 10.])"),
    DT_METHOD(
        register_post_accumulate_grad_hook, "register_post_accumulate_grad_hook",
        "Call hook(tensor) whenever a backward() pass has added to .grad of this "
        "leaf.\n\nThe hook may use the gradient and set it to None, so that an "
        "optimizer's step of\nthis Tensor is over before the pass goes on. It has "
        "to return None. The handle that\nthis returns has remove(). RuntimeError "
        "unless this is a leaf that requires a gradient.",
        "x = torch.ones(2, requires_grad=True)\n"
        "handle = x.register_post_accumulate_grad_hook(lambda x: "
        "print(x.grad))\nx.sum().backward()",
        "tensor([1., 1.])"),
    DT_METHOD(retain_grad, "retain_grad",
              "Keep the gradient in .grad though this is not a leaf.",
              "x = torch.ones(2, requires_grad=True)\ny = x * "
              "2\ny.retain_grad()\ny.sum().backward()\n"
              "y.grad",
              "tensor([1., 1.])"),
};

int dt_setup_history(PyObject *module)
{
    return dt_add_properties(attributes) < 0 ? -1 : DT_ADD_FUNCTIONS(module, rows);
}
