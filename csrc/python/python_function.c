/* Operations that users write in Python: behind pydevtensor.autograd.Function. */
#include <stdio.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "python/functions.h"
#include "python/history.h"
#include "tensor/ops/ops.h"

typedef struct function_data {
    PyObject *backward; /* called with the node and the gradients of the results */
    char name[64];
    bool fills; /* whether it gets zeros for a missing gradient, and not None */
} function_data;

static void function_free(dt_node *node)
{
    dt_object_free(((function_data *)node->data)->backward);
}

static PyObject *gradient_object(const dt_node *node, int i, const dt_tensor *gradient)
{
    if (gradient)
        return dt_tensor_object_alias(gradient);
    const dt_result *result = &node->results[i];
    if (result->ndim < 0 || !((const function_data *)node->data)->fills)
        return Py_NewRef(Py_None);
    dt_tensor_object *zeros = dt_tensor_object_new();
    if (!zeros)
        return NULL;
    return dt_tensor_result(zeros, dt_full("backward", &zeros->tensor, result->dtype,
                                           result->ndim, result->shape, result->device,
                                           dt_scalar_int(0)));
}

static int take_gradients(dt_node *node, dt_scope *scope, PyObject *made,
                          dt_tensor **into)
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
        bool sparse = dt_sparse_check(gradient);
        if (!sparse && !dt_tensor_check(gradient))
            return DT_SET_ERROR(
                PyExc_TypeError,
                "%s: backward() has to return Tensors or None, and gradient %d "
                "is %s",
                node->name, i, dt_describe(gradient, text, sizeof text));
        into[i] = dt_scope_slot(scope);
        if (!into[i])
            return dt_raise_status();
        if (!sparse)
            dt_variable_alias(into[i], dt_tensor_of(gradient));
        else if (dt_sparse_take(into[i], gradient, NULL) < 0)
            return -1;
    }
    return 0;
wrong_count:
    return DT_SET_ERROR(
        PyExc_RuntimeError,
        "%s: backward() returned %d gradients, and forward() took %d arguments; "
        "return one for each, None where there is none",
        node->name, count, node->nedges);
}

static int function_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                          dt_tensor **into)
{
    bool yielded = dt_gil_yield(false);
    function_data *data = node->data;
    PyObject *call = PyTuple_New(node->nresults + 1), *made = NULL;
    int status = -1;
    PyObject *self = call ? dt_node_object_new(node) : NULL;
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
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}
static const dt_node_type function_type = {function_apply, function_free, NULL};

PyObject *dt_function_object(const dt_node *node)
{
    return node->type == &function_type ? ((function_data *)node->data)->backward
                                        : NULL;
}

/* Saves the items of kept that are Tensors; one of the outputs as such, which holds no
 * reference to the node. */
static int save_items(dt_node *node, PyObject *kept, PyObject *outputs)
{
    for (int i = 0; i < node->nsaved; i++) {
        PyObject *item = PyTuple_GET_ITEM(kept, i);
        int output = (int)PyTuple_GET_SIZE(outputs) - 1;
        while (output >= 0 && PyTuple_GET_ITEM(outputs, output) != item)
            output--;
        if (dt_tensor_check(item) &&
            dt_node_save(node, i, dt_tensor_of(item), output) < 0)
            return -1;
    }
    return 0;
}

/* _record_function(name, backward, inputs, outputs, fills, kept): makes a node for the
 * outputs, which are new Tensors. Its next nodes are those of inputs that are Tensors. It
 * saves the Tensors of kept. */
static PyObject *record_function(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *name;
    PyObject *backward, *inputs, *outputs, *kept;
    int fills;
    if (!PyArg_ParseTuple(arguments, "sOO!O!pO!", &name, &backward, &PyTuple_Type,
                          &inputs, &PyTuple_Type, &outputs, &fills, &PyTuple_Type,
                          &kept))
        return NULL;
    int ninputs = (int)PyTuple_GET_SIZE(inputs),
        noutputs = (int)PyTuple_GET_SIZE(outputs);
    dt_node *node =
        dt_node_new(&function_type, name, ninputs, (int)PyTuple_GET_SIZE(kept),
                    noutputs ? noutputs : 1, sizeof(function_data));
    if (!node)
        return dt_raise();
    function_data *data = node->data;
    node->calls_back = true;
    data->backward = Py_NewRef(backward);
    data->fills = fills;
    snprintf(data->name, sizeof data->name, "%s", name);
    node->name = data->name;
    int status = 0;
    for (int i = 0; i < ninputs && !status; i++) {
        PyObject *input = PyTuple_GET_ITEM(inputs, i);
        dt_edge edge;
        if (!dt_tensor_check(input))
            continue;
        status = dt_variable_edge(dt_tensor_of(input), &edge);
        if (!status)
            dt_node_lead(node, i, edge);
    }
    for (int i = 0; i < noutputs && !status; i++) {
        PyObject *output = PyTuple_GET_ITEM(outputs, i);
        if (!dt_tensor_check(output) ||
            !dt_dtype_is_differentiable((dt_dtype)dt_tensor_of(output)->dtype))
            continue;
        dt_node_set_result(node, i, dt_tensor_of(output));
        status = dt_variable_set_made(dt_tensor_of(output), node, i);
    }
    if (!status)
        status = save_items(node, kept, outputs);
    dt_node_release(node);
    if (status < 0)
        return dt_raise();
    for (int i = 0; i < noutputs; i++)
        if (dt_tensor_check(PyTuple_GET_ITEM(outputs, i)))
            dt_tensor_object_track((dt_tensor_object *)PyTuple_GET_ITEM(outputs, i));
    Py_RETURN_NONE;
}

PyMethodDef dt_python_function_functions[] = {
    {"_record_function", record_function, METH_VARARGS,
     "_record_function(name, backward, inputs, outputs, fills, kept, /)\n--\n\nRecords "
     "an operation written in Python."},
    {NULL, NULL, 0, NULL},
};
