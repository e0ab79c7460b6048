#include "autograd/variable.h"
#include "python/types/results.h"

#include "python/errors.h"
#include "python/module.h"
#include "python/output.h"

#define RESULT(name, first, second)                                                    \
    static PyStructSequence_Field name##_fields[] = {                                  \
        {#first, NULL}, {#second, NULL}, {NULL, NULL}};
DT_RESULTS(RESULT)
#undef RESULT

static PyStructSequence_Desc descriptions[DT_NRESULTS] = {
#define RESULT(name, first, second)                                                    \
    {"torch.return_types." #name, NULL, name##_fields, 2},
    DT_RESULTS(RESULT)
#undef RESULT
};
static PyTypeObject *types[DT_NRESULTS];

static PyObject *pair_repr(PyObject *self)
{
    const char *name = Py_TYPE(self)->tp_name;
    for (int i = 0; i < DT_NRESULTS; i++)
        if (Py_TYPE(self) == types[i])
            return PyUnicode_FromFormat(
                "%s(\n%s=%R,\n%s=%R)", name, descriptions[i].fields[0].name,
                PyTuple_GET_ITEM(self, 0), descriptions[i].fields[1].name,
                PyTuple_GET_ITEM(self, 1));
    return PyUnicode_FromString(name);
}

/* Copies both results into the tensors of the tuple `out`, which then replace them. */
static int into_output(const dt_args *args, PyObject *out, PyObject *pair)
{
    const char *name = args->signature->name;
    if (!PyTuple_Check(out) || PyTuple_GET_SIZE(out) != 2 ||
        !dt_tensor_check(PyTuple_GET_ITEM(out, 0)) ||
        !dt_tensor_check(PyTuple_GET_ITEM(out, 1))) {
        PyErr_Format(PyExc_TypeError,
                     "%s(): out has to be a tuple of two Tensors, one for each result",
                     name);
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (dt_requires_grad(dt_tensor_of(PyTuple_GET_ITEM(pair, i)))) {
            dt_output_refuse(name);
            return -1;
        }
    for (int i = 0; i < 2; i++) {
        PyObject *target = Py_NewRef(PyTuple_GET_ITEM(out, i));
        PyObject *made = PyTuple_GET_ITEM(pair, i);
        if (dt_copy_to_output(name, target, dt_tensor_of(made)) < 0) {
            Py_DECREF(target);
            return -1;
        }
        PyTuple_SET_ITEM(pair, i, target);
        Py_DECREF(made);
    }
    return 0;
}

PyObject *dt_finish_pair(const dt_args *args, int out_at, dt_pair_type type,
                         dt_tensor_object *first, dt_tensor_object *second, int status)
{
    PyObject *pair = NULL;
    if (!first || !second)
        PyErr_NoMemory();
    else if (status < 0)
        dt_raise();
    else
        pair = PyStructSequence_New(types[type]);
    if (!pair) {
        Py_XDECREF((PyObject *)first);
        Py_XDECREF((PyObject *)second);
        return NULL;
    }
    PyStructSequence_SetItem(pair, 0, (PyObject *)first);
    PyStructSequence_SetItem(pair, 1, (PyObject *)second);
    if (out_at >= 0 && dt_given(args, out_at) &&
        into_output(args, args->slots[out_at], pair) < 0)
        Py_CLEAR(pair);
    return pair;
}

int dt_setup_results(PyObject *module)
{
    (void)module;
    for (int i = 0; i < DT_NRESULTS; i++) {
        types[i] = PyStructSequence_NewType(&descriptions[i]);
        if (!types[i])
            return -1;
        types[i]->tp_repr = pair_repr;
    }
    return 0;
}
