/* Calls with sparse tensors, which are objects of a class in Python (pydevtensor/sparse):
 * no function here takes one for a Tensor, so the call fails, and is made there. */
#include "python/functions.h"

static bool is_sparse(PyObject *value)
{
    return (PyObject *)Py_TYPE(value) == dt_py.sparse_type;
}

/* Whether a value is sparse, or one of a tuple or list. */
static bool has_sparse(PyObject *value)
{
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return is_sparse(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
        if (is_sparse(PySequence_Fast_GET_ITEM(value, i)))
            return true;
    return false;
}

PyObject *dt_call_sparse(const char *name, DT_CALL_PARAMETERS)
{
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0,
               first = self != NULL;
    bool found = false;
    for (Py_ssize_t i = 0; i < count + nkeywords && !found; i++)
        found = has_sparse(values[i]);
    if (!found || !name || !PyErr_ExceptionMatches(PyExc_TypeError))
        return NULL;
    PyErr_Clear();
    DT_REF path = PyUnicode_FromString("pydevtensor.sparse._calls");
    DT_REF module = path ? PyImport_Import(path) : NULL;
    DT_REF given = module ? PyTuple_New(first + count) : NULL;
    DT_REF named = given ? PyDict_New() : NULL;
    if (!named)
        return NULL;
    if (self)
        PyTuple_SET_ITEM(given, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(given, first + i, Py_NewRef(values[i]));
    for (Py_ssize_t i = 0; i < nkeywords; i++)
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), values[count + i]) < 0)
            return NULL;
    return PyObject_CallMethod(module, "call", "sOO", name, given, named);
}

static PyObject *set_sparse_type(PyObject *Py_UNUSED(self), PyObject *type)
{
    dt_py.sparse_type = Py_NewRef(type);
    Py_RETURN_NONE;
}

int dt_setup_sparse(PyObject *module)
{
    static PyMethodDef own[] = {
        {"_set_sparse_type", set_sparse_type, METH_O,
         "_set_sparse_type(type, /)\n--\n\nSays which class sparse tensors are of."},
        {NULL, NULL, 0, NULL},
    };
    return PyModule_AddFunctions(module, own);
}
