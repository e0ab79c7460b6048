/* Hooks around a node's run, and a dict that a program keeps with it. */
#include "autograd/sparse_gradient.h"
#include "autograd/temporaries.h"
#include "autograd/variable.h"
#include "python/functions.h"
#include "python/history.h"

/* --- calls --- */

static PyObject *gradient_or_none(const dt_tensor *gradient)
{
    return gradient && gradient->storage ? dt_tensor_object_alias(gradient)
                                         : Py_NewRef(Py_None);
}

/* Item i of results, or of inputs where there are some. */
static PyObject *tuple_of(int count, const dt_tensor *results, dt_tensor *const *inputs)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = gradient_or_none(inputs ? inputs[i] : &results[i]);
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* Makes item, what a hook has returned, the gradient. */
static int take(const dt_node *node, dt_tensor *gradient, PyObject *item)
{
    char text[DT_DESCRIBE_TEXT];
    if (dt_sparse_check(item)) {
        dt_tensor_clear(gradient);
        return dt_sparse_take(gradient, item, NULL);
    }
    if (!dt_tensor_check(item))
        return DT_SET_ERROR(PyExc_TypeError,
                            "%s: a hook has to return Tensors or None, and it "
                            "returned %s; return a tuple of them",
                            node->name, dt_describe(item, text, sizeof text));
    dt_tensor_clear(gradient);
    dt_variable_alias(gradient, dt_tensor_of(item));
    return 0;
}

static int take_all(const dt_node *node, dt_scope *scope, PyObject *made,
                    dt_tensor *results, dt_tensor **inputs)
{
    int count = inputs ? node->nedges : node->nresults;
    char text[DT_DESCRIBE_TEXT];
    if (!PyTuple_Check(made))
        return DT_SET_ERROR(PyExc_TypeError,
                            "%s: a hook returned %s; return a tuple of gradients, or "
                            "None",
                            node->name, dt_describe(made, text, sizeof text));
    if (PyTuple_GET_SIZE(made) != count)
        return DT_SET_ERROR(PyExc_RuntimeError,
                            "%s: a hook returned %zd gradients, and the node has %d; "
                            "return one for each, or None",
                            node->name, PyTuple_GET_SIZE(made), count);
    for (int i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(made, i);
        if (item == Py_None && inputs)
            inputs[i] = NULL;
        else if (item == Py_None)
            dt_tensor_clear(&results[i]);
        else {
            /* Another tensor may be the gradient of a result, too. */
            dt_tensor *into = inputs ? dt_scope_slot(scope) : &results[i];
            if (!into)
                return dt_raise_status();
            if (inputs)
                inputs[i] = into;
            if (take(node, into, item) < 0)
                return -1;
        }
    }
    return 0;
}

static int call(void *context, const dt_node *node, dt_scope *scope, dt_tensor *results,
                dt_tensor **inputs)
{
    bool yielded = dt_gil_yield(false);
    PyObject *of_inputs = inputs ? tuple_of(node->nedges, NULL, inputs) : NULL;
    PyObject *of_results =
        inputs && !of_inputs ? NULL : tuple_of(node->nresults, results, NULL);
    PyObject *made = !of_results ? NULL
                     : inputs    ? PyObject_CallFunctionObjArgs(
                                       (PyObject *)context, of_inputs, of_results, NULL)
                                 : PyObject_CallOneArg((PyObject *)context, of_results);
    Py_XDECREF(of_inputs);
    Py_XDECREF(of_results);
    int status = made ? 0 : -1;
    if (made && made != Py_None)
        status = take_all(node, scope, made, results, inputs);
    Py_XDECREF(made);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

/* --- methods of Node --- */

static PyObject *add(PyObject *self, PyObject *function, bool before)
{
    dt_node *node = dt_node_of(self);
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "%s: a hook has to be callable",
                            node->name);
    dt_hook *hook = dt_hooks_add(before ? &node->before : &node->after, 0, false, NULL,
                                 dt_object_free, Py_NewRef(function));
    if (!hook)
        return dt_raise();
    hook->call_node = call;
    node->calls_back = true;
    return dt_hook_handle(hook);
}

PyObject *dt_node_register_hook(PyObject *self, PyObject *function)
{
    return add(self, function, false);
}

PyObject *dt_node_register_prehook(PyObject *self, PyObject *function)
{
    return add(self, function, true);
}

/* The dict is the context of a hook that is never called. */
PyObject *dt_node_metadata(PyObject *self, void *Py_UNUSED(unused))
{
    dt_node *node = dt_node_of(self);
    for (const dt_hook *hook = node->after; hook; hook = hook->next)
        if (!hook->call_node)
            return Py_NewRef((PyObject *)hook->context);
    PyObject *dict = PyDict_New();
    if (dict &&
        !dt_hooks_add(&node->after, 0, true, NULL, dt_object_free, Py_NewRef(dict))) {
        Py_DECREF(dict);
        return dt_raise();
    }
    node->calls_back = true;
    return dict;
}

int dt_node_hooks_visit(const dt_node *node, visitproc visit, void *arg)
{
    for (const dt_hook *hook = node->before; hook; hook = hook->next)
        Py_VISIT((PyObject *)hook->context);
    for (const dt_hook *hook = node->after; hook; hook = hook->next)
        Py_VISIT((PyObject *)hook->context);
    return 0;
}
