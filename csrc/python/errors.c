#include "python/errors.h"

#include <stdlib.h>

/* In a notebook, the traceback of the last error would keep the GPU full. */
static void watch_notebook(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    DT_REF name = PyUnicode_FromString("IPython");
    DT_REF session = name ? PyImport_GetModule(name) : NULL;
    if (session)
        Py_XDECREF(dt_python_call("pydevtensor._notebook", "watch", "(O)", type));
    PyErr_Restore(type, value, trace);
}

/* A finding of the checks of the program's kernels is an error of its own class. */
static PyObject *kernel_error(const char *text)
{
    if (!strstr(text, "[finding "))
        return NULL;
    PyObject *error =
        dt_python_call("pydevtensor.cuda._kernel_checks", "error", "(s)", text);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    return error;
}

PyObject *dt_raise(void)
{
    dt_error *error = dt_error_slot();
    dt_error_code code = error->code;
    if (PyErr_Occurred()) { /* raised by Python code that the core called */
        dt_error_clear();
        return NULL;
    }
    /* A kernel that Ctrl-C ended (sim/turns.cpp): the signal's own exception says so. */
    if (code == DT_ERROR_ACCELERATOR && strstr(error->text, "was interrupted") &&
        PyErr_CheckSignals() < 0) {
        dt_error_clear();
        return NULL;
    }
    if (code <= DT_ERROR_NONE || code >= DT_NERRORS)
        return PyErr_Format(
            PyExc_SystemError,
            "pydevtensor: a call failed without an error message; please report it");
    if (code == DT_ERROR_ACCELERATOR) {
        DT_REF found = kernel_error(error->text);
        if (found || PyErr_Occurred()) {
            dt_error_clear();
            return NULL;
        }
    }
    /* Truncated text may end inside a character. */
    PyObject *text =
        PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
    if (text) {
        PyErr_SetObject(dt_py.exceptions[code], text);
        Py_DECREF(text);
        if (code == DT_ERROR_DEVICE_MEMORY)
            watch_notebook();
    }
    dt_error_clear();
    return NULL;
}

static PyObject *new_exception(PyObject *module, const char *name, const char *doc)
{
    char full[64];
    snprintf(full, sizeof full, "pydevtensor.%s", name);
    PyObject *type = PyErr_NewExceptionWithDoc(full, doc, PyExc_RuntimeError, NULL);
    if (type && dt_add_object(module, name, type) < 0)
        Py_CLEAR(type);
    return type;
}

int dt_setup_errors(PyObject *module)
{
    PyObject *OutOfMemoryError =
        new_exception(module, "OutOfMemoryError", "A device is out of memory.");
    if (!OutOfMemoryError)
        return -1;
    PyObject *AcceleratorError = new_exception(module, "AcceleratorError",
                                               "A device failed while running work.");
    if (!AcceleratorError) {
        Py_DECREF(OutOfMemoryError);
        return -1;
    }
    PyObject *RuntimeError = PyExc_RuntimeError, *ValueError = PyExc_ValueError;
    PyObject *TypeError = PyExc_TypeError, *IndexError = PyExc_IndexError;
    PyObject *OverflowError = PyExc_OverflowError;
    PyObject *NotImplementedError = PyExc_NotImplementedError;
    PyObject *MemoryError = PyExc_MemoryError;
#define ERROR(code, exception) dt_py.exceptions[DT_ERROR_##code] = Py_NewRef(exception);
    DT_ERRORS(ERROR)
#undef ERROR
    Py_DECREF(OutOfMemoryError);
    Py_DECREF(AcceleratorError);
    return 0;
}
