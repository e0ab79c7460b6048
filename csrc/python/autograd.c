/* The backward pass. */
#include <pthread.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/recorded.h"
#include "autograd/sparse_gradient.h"
#include "base/interrupt.h"
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/history.h"
#include "tensor/ops/ops.h"

/* The least free stack for a pass inside another one. */
#define STACK_LEFT ((size_t)512 << 10)

/* The edge of a GradientEdge, a tuple of a node and the number of a result; or NULL. */
static const dt_node *edge_of(PyObject *object, dt_edge *edge)
{
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < 2 ||
        !dt_node_object_check(PyTuple_GET_ITEM(object, 0)))
        return NULL;
    dt_node *node = dt_node_of(PyTuple_GET_ITEM(object, 0));
    long index = PyLong_AsLong(PyTuple_GET_ITEM(object, 1));
    PyErr_Clear();
    if (index < 0 || index >= node->nresults)
        return NULL;
    *edge = (dt_edge){dt_node_retain(node), (int)index};
    return node;
}

/* Edge i leads to the node of object i of the roots and then the inputs. */
static int add_edge(const char *function, PyObject *object, Py_ssize_t i,
                    Py_ssize_t nroots, dt_edge *edge)
{
    if (edge_of(object, edge))
        return 0;
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
        PyObject *gradient = !made[i].storage ? Py_NewRef(Py_None)
                             : dt_gradient_is_sparse(&made[i])
                                 ? dt_tensor_object_alias(&made[i])
                                 : dt_tensor_object_steal(&made[i]);
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

/* The pass that the thread runs, for hooks: the edges of its roots, then of its inputs. */
typedef struct running {
    struct running *outer;
    uint64_t id;
    const dt_edge *edges;
    Py_ssize_t nroots, ninputs;
} running;
static _Thread_local running *current;

/* The first gradient of a root that is given none. */
static int begin_with_one(const pass *p, dt_tensor *gradient, const dt_tensor *root,
                          dt_edge edge)
{
    const dt_result *result = &edge.node->results[edge.index];
    dt_dtype dtype = root ? (dt_dtype)root->dtype : result->dtype;
    int ndim = root ? root->ndim : result->ndim;
    if (dt_dtype_is_complex(dtype))
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): the result is complex, and only a real one has a gradient "
            "of its own; give gradient=, or reduce it, e.g. with .abs()",
            p->function);
    return dt_full(p->function, gradient, dtype, ndim,
                   root ? root->shape : result->shape,
                   root ? dt_tensor_device(root) : result->device, dt_scalar_int(1)) < 0
               ? dt_raise_status()
               : 0;
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
        const dt_tensor *t = dt_tensor_check(object) ? dt_tensor_of(object) : NULL;
        gradients[i] = &made[i];
        if (dt_tensor_check(p->gradients[i]))
            dt_variable_alias(&made[i], dt_tensor_of(p->gradients[i]));
        else if (begin_with_one(p, &made[i], t, edges[i]) < 0)
            goto done;
    }
    dt_tensor *found = p->accumulates ? NULL : made + p->nroots;
    static uint64_t last_id;
    running own = {current, __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED), edges,
                   p->nroots, p->ninputs};
    current = &own;
    depth++;
    bool yielded = dt_gil_yield(true);
    int64_t due = dt_interrupt_set_due(DT_INTERRUPT_LATER);
    int status = dt_backward((int)p->nroots, edges, gradients, (int)p->ninputs,
                             edges + p->nroots, found, p->keep, p->create);
    dt_interrupt_set_due(due);
    dt_gil_yield(yielded);
    depth--;
    current = own.outer;
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
    PyObject *given[5];
    for (int i = 0; i < 5; i++)
        given[i] = args->slots[i] ? args->slots[i] : i == 3 ? Py_False : Py_None;
    /* The fifth is an old name of the second. */
    return dt_python_call("pydevtensor.autograd", "backward", "(OOOOOO)", given[0],
                          given[1], given[2], given[3], Py_None, given[4]);
}

/* _written(tensor): says that its memory was written, by code that no kernel knows of. */
static PyObject *written(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    if (!dt_tensor_check(tensor))
        return PyErr_Format(PyExc_TypeError, "_written(): give a Tensor");
    dt_tensor_written(dt_tensor_of(tensor));
    Py_RETURN_NONE;
}

static PyObject *nodes_of(const dt_edge *edges, Py_ssize_t count)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        DT_REF node = edges[i].node ? dt_node_object_new(edges[i].node) : NULL;
        if (edges[i].node && (!node || PyList_Append(list, node) < 0))
            Py_CLEAR(list);
    }
    return list;
}

/* _pass(): a number of the pass that the thread runs, and the nodes of its roots and of its
 * inputs; None outside of one. */
static PyObject *describe_pass(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (!current)
        Py_RETURN_NONE;
    return Py_BuildValue("KNN", (unsigned long long)current->id,
                         nodes_of(current->edges, current->nroots),
                         nodes_of(current->edges + current->nroots, current->ninputs));
}

static PyMethodDef functions[] = {
    {"_pass", describe_pass, METH_NOARGS,
     "_pass()\n--\n\nThe number of the running pass, and the nodes of its roots and "
     "inputs."},
    {"_written", written, METH_O,
     "_written(tensor, /)\n--\n\nCounts a write to its memory."},
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
