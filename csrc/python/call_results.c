/* The results of a record's call, as Python gets them: in place, a list, a tuple with names,
 * a factory's, or copied to out=. */
#include <string.h>

#include "autograd/record.h"
#include "autograd/recorded.h"
#include "python/call.h"
#include "python/history.h"
#include "python/output.h"

/* The result becomes the input: a view's shape and strides, or else the elements. */
static PyObject *finish_in_place(const dt_args *args, dt_call *call,
                                 dt_tensor_object *made, int status)
{
    PyObject *self = args->slots[0];
    if (call->op->flags & DT_VIEW) {
        if (!status)
            status = dt_recorded_become_steal(args->signature->name, call->node,
                                              dt_tensor_of(self), &made->tensor);
        Py_DECREF((PyObject *)made);
        return status < 0 ? dt_raise() : Py_NewRef(self);
    }
    PyObject *result = dt_tensor_result(made, status);
    if (!result)
        return NULL;
    status = dt_copy_in_place(args->signature->name, self, dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(self);
}

/* A tuple of the results that forward made; one result alone is not a tuple. */
static PyObject *finish_tensors(dt_tensor_object **objects, int count, int status)
{
    PyObject *made[DT_MAX_RESULTS], *tuple = NULL;
    int nmade = 0;
    for (int k = 0; k < count; k++)
        if (status == 0 && objects[k]->tensor.storage)
            made[nmade++] = dt_tensor_result(objects[k], 0);
        else
            Py_DECREF((PyObject *)objects[k]);
    if (status < 0)
        return dt_raise();
    if (nmade == 1)
        return made[0];
    tuple = PyTuple_New(nmade);
    for (int k = 0; k < nmade; k++)
        if (tuple)
            PyTuple_SET_ITEM(tuple, k, made[k]);
        else
            Py_DECREF(made[k]);
    return tuple;
}

/* A tuple with names, or, with out= given, a tuple of the tensors in it. */
static PyObject *finish_tuple(const dt_args *args, const dt_op_info *info,
                              dt_tensor_object **objects, int status)
{
    if (!strncmp(info->schema.results, "(Tensor", 7))
        return finish_tensors(objects, info->nresults, status);
    PyTypeObject *type =
        dt_named_tuple_type(args->signature->name, info->schema.results);
    if (!type || status < 0) {
        for (int k = 0; k < info->nresults; k++)
            Py_DECREF((PyObject *)objects[k]);
        return type ? dt_raise() : NULL;
    }
    return dt_finish_results(args, args->signature->out, type, info->nresults, objects);
}

/* A tuple of the tensors of a list. */
static PyObject *finish_list(dt_call *call, int status)
{
    if (status < 0)
        return dt_raise();
    PyObject *tuple = PyTuple_New((Py_ssize_t)call->list_count);
    for (int64_t i = 0; tuple && i < call->list_count; i++) {
        PyObject *item = dt_tensor_object_steal(&call->list[i]);
        if (item)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    dt_call_free_list(call);
    return tuple;
}

/* Copies the result, whose graph ends here, to the argument out=. */
static PyObject *finish_without_graph(const dt_args *args, dt_call *call,
                                      dt_tensor_object *made)
{
    dt_tensor_object *result =
        dt_tensor_object_detached(dt_py.tensor_type, &made->tensor);
    Py_DECREF((PyObject *)made);
    if (!result)
        return NULL;
    PyObject *out = dt_finish(args, args->signature->out, result, 0);
    if (out && dt_record_refusal(dt_tensor_of(out), args->signature->name,
                                 call->args[0].tensor) < 0) {
        Py_DECREF(out);
        return dt_raise();
    }
    return out;
}

PyObject *dt_finish_record(const dt_args *args, const dt_op_info *info, dt_call *call,
                           dt_tensor_object **objects, int status)
{
    int out = args->signature->out;
    if (info->list)
        return finish_list(call, status);
    if (call->in_place)
        return finish_in_place(args, call, objects[0], status);
    if (info->nresults > 1)
        return finish_tuple(args, info, objects, status);
    if (info->factory >= 0)
        return dt_finish_factory(args, info->factory,
                                 dt_tensor_result(objects[0], status));
    if (out < 0)
        return dt_tensor_result(objects[0], status);
    if (call->op->flags & DT_OUT_BREAKS_GRAPH && status == 0 && dt_given(args, out) &&
        dt_recording(call->args[0].tensor) &&
        !dt_requires_grad(dt_tensor_of(args->slots[out])))
        return finish_without_graph(args, call, objects[0]);
    return dt_finish(args, out, objects[0], status);
}
