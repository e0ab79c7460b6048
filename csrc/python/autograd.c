/* The backward pass, and grad mode. */
#include <string.h>

#include "autograd/engine.h"
#include "autograd/recorded.h"
#include "python/functions.h"
#include "tensor/ops/create.h"

/* --- passes --- */

typedef struct batch {
    int count;
    dt_edge *edges;
    dt_tensor **gradients; /* borrowed or in made */
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

/* The gradient of a root: the given one, or ones for a single element. */
static int begin_with(const char *function, PyObject *given, const dt_tensor *t,
                      dt_tensor *made, dt_tensor **out)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (given && given != Py_None) {
        if (!dt_tensor_check(given)) {
            char text[DT_DESCRIBE_TEXT];
            PyErr_Format(PyExc_TypeError,
                         "%s(): a gradient must be a Tensor or None, "
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
        PyErr_Format(
            PyExc_RuntimeError,
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

static void not_recorded(const char *function, int i)
{
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): element %d of tensors does not require grad and does not have "
                 "a grad_fn: none of its inputs requires gradients, or it was "
                 "computed under no_grad(); set requires_grad=True on the inputs",
                 function, i);
}

static int add_roots(const char *function, batch *b, PyObject *const *tensors,
                     PyObject *const *gradients)
{
    for (int i = 0; i < b->count; i++) {
        PyObject *root = tensors[i];
        char text[DT_DESCRIBE_TEXT];
        if (!dt_tensor_check(root)) {
            PyErr_Format(PyExc_TypeError, "%s(): %s is no Tensor", function,
                         dt_describe(root, text, sizeof text));
            return -1;
        }
        const dt_tensor *t = dt_tensor_of(root);
        if (!dt_requires_grad(t)) {
            not_recorded(function, i);
            return -1;
        }
        if (begin_with(function, gradients[i], t, &b->made[i], &b->gradients[i]) < 0)
            return -1;
        if (dt_variable_edge(t, &b->edges[i]) < 0)
            return dt_raise_status();
        if (!b->edges[i].node) { /* its base required gradients only later */
            not_recorded(function, i);
            return -1;
        }
    }
    return 0;
}

static int add_inputs(const char *function, batch *b, PyObject *const *inputs)
{
    for (int i = 0; i < b->count; i++) {
        PyObject *input = inputs[i];
        char text[DT_DESCRIBE_TEXT];
        if (!dt_tensor_check(input)) {
            PyErr_Format(PyExc_TypeError, "%s(): the input %s is no Tensor", function,
                         dt_describe(input, text, sizeof text));
            return -1;
        }
        if (!dt_requires_grad(dt_tensor_of(input))) {
            PyErr_Format(
                PyExc_RuntimeError,
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

/* A backward pass. With inputs: returns a tuple of their gradients, None where there is
 * none; or, to accumulate, adds these to the inputs' grad. */
static PyObject *run(const char *function, Py_ssize_t nroots, PyObject *const *tensors,
                     PyObject *const *gradients, Py_ssize_t ninputs,
                     PyObject *const *inputs, bool keep, bool create, bool accumulate)
{
    PyObject *result = NULL;
    batch roots, wanted;
    if (batch_begin(&roots, nroots) < 0)
        return NULL;
    if (batch_begin(&wanted, ninputs) < 0) {
        batch_clear(&roots);
        return NULL;
    }
    if (add_roots(function, &roots, tensors, gradients) < 0 ||
        add_inputs(function, &wanted, inputs) < 0)
        goto done;
    int status;
    DT_BEGIN_ALLOW_THREADS
    status = dt_backward(roots.count, roots.edges, roots.gradients, wanted.count,
                         wanted.edges, wanted.made, keep, create);
    DT_END_ALLOW_THREADS
    if (status < 0) {
        dt_raise();
        goto done;
    }
    if (!wanted.count || accumulate) {
        for (int i = 0; i < wanted.count; i++) {
            dt_tensor *input = dt_tensor_of(inputs[i]);
            if (wanted.made[i].storage &&
                dt_variable_accumulate(dt_variable_of(input), &wanted.made[i], create) <
                    0) {
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

/* _run_backward(function, tensors, gradients, inputs, keep, create, accumulate), all
 * but the name and the flags tuples. */
static PyObject *run_backward(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *function;
    PyObject *tensors, *gradients, *inputs;
    int keep, create, accumulate;
    if (!PyArg_ParseTuple(arguments, "sO!O!O!ppp", &function, &PyTuple_Type, &tensors,
                          &PyTuple_Type, &gradients, &PyTuple_Type, &inputs, &keep,
                          &create, &accumulate))
        return NULL;
    Py_ssize_t nroots = PyTuple_GET_SIZE(tensors);
    if (PyTuple_GET_SIZE(gradients) != nroots) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): %zd tensors and %zd gradients were given; give one gradient "
            "(or None) for each",
            function, nroots, PyTuple_GET_SIZE(gradients));
        return NULL;
    }
    return run(function, nroots, PySequence_Fast_ITEMS(tensors),
               PySequence_Fast_ITEMS(gradients), PyTuple_GET_SIZE(inputs),
               PySequence_Fast_ITEMS(inputs), keep, create, accumulate);
}

DT_PUBLIC(backward, "backward(input: Tensor, gradient: Any = None, "
                    "retain_graph: Any = None, create_graph: bool = False, "
                    "inputs: Any = None)")
{
    dt_tensor *x;
    bool create;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_bool(args, 3, &create) < 0)
        return NULL;
    int keep = create;
    if (dt_given(args, 2) && (keep = PyObject_IsTrue(args->slots[2])) < 0)
        return NULL;
    PyObject *input = dt_given(args, 4) ? args->slots[4] : NULL, *many = NULL;
    PyObject *const *inputs = &input;
    Py_ssize_t ninputs = input != NULL;
    if (input && !dt_tensor_check(input)) {
        many = PySequence_Tuple(input);
        if (!many)
            return NULL;
        inputs = PySequence_Fast_ITEMS(many);
        ninputs = PyTuple_GET_SIZE(many);
    }
    PyObject *result = NULL;
    if (many && !ninputs)
        PyErr_SetString(PyExc_RuntimeError,
                        "backward(): inputs is empty; omit it to reach all leaves");
    else
        result = run("backward", 1, &args->slots[0], &args->slots[1], ninputs, inputs,
                     keep, create, true);
    Py_XDECREF(many);
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

/* --- names --- */

/* Functions that nn composes: the last node is given the name. */
static const char *const composed[] = {
    "BinaryCrossEntropyBackward0",
    "BinaryCrossEntropyWithLogitsBackward0",
    "EluBackward0",
    "GeluBackward0",
    "HuberLossBackward0",
    "LeakyReluBackward0",
    "LogSigmoidBackward0",
    "MseLossBackward0",
    "SiluBackward0",
    "SmoothL1LossBackward0",
    "SoftplusBackward0",
};

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
    if (!v || !v->made.node)
        return Py_NewRef(args[0]);
    for (size_t i = 0; i < sizeof composed / sizeof *composed; i++)
        if (!strcmp(name, composed[i])) {
            v->made.node->name = composed[i];
            return Py_NewRef(args[0]);
        }
    PyErr_Format(PyExc_ValueError, "_named(): there is no function for '%s'", name);
    return NULL;
}

static PyMethodDef functions[] = {
    {"_named", (PyCFunction)(void (*)(void))named, METH_FASTCALL,
     "_named(result, name, /)\n--\n\nresult, whose grad_fn is called name now."},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled()\n--\n\nWhether the calling thread records operations.\n\n"
     ">>> torch.is_grad_enabled()\nTrue"},
    {"_exchange_grad_enabled", exchange_grad_enabled, METH_O,
     "_exchange_grad_enabled(enabled, /)\n--\n\nSets the mode and gives the old one."},
    {"_run_backward", run_backward, METH_VARARGS,
     "_run_backward(function, tensors, gradients, inputs, keep, create, accumulate, /)"
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
        "changed in place."),
};

int dt_setup_autograd(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) < 0
               ? -1
               : DT_ADD_FUNCTIONS(module, rows);
}
