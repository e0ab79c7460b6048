/* Lists, and calls of functions that are written in Python. */
#include "python/module.h"

#include <stdarg.h>

void dt_list_append(PyObject **list, PyObject *item)
{
    if (*list && (!item || PyList_Append(*list, item) < 0))
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

PyObject *dt_python_call(const char *module, const char *function, const char *format,
                         ...)
{
    va_list given;
    DT_REF path = PyUnicode_FromString(module);
    /* As PyImport_Import(), but without a call of builtins.__import__. */
    DT_REF top =
        path ? PyImport_ImportModuleLevelObject(path, NULL, NULL, NULL, 0) : NULL;
    DT_REF from = top ? PyImport_GetModule(path) : NULL;
    DT_REF called = from ? PyObject_GetAttrString(from, function) : NULL;
    va_start(given, format);
    DT_REF args = called ? Py_VaBuildValue(format, given) : NULL;
    va_end(given);
    PyObject *result = args ? PyObject_CallObject(called, args) : NULL;
    if (!result && !PyErr_Occurred())
        PyErr_NoMemory(); /* for a frame, of which CPython 3.11 does not say it */
    return result;
}
