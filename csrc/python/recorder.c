/* What pydevtensor.profiler and cuda.set_sync_debug_mode call: device/recorder.h, and the
 * guard of waits. */
#include "device/recorder.h"

#include <string.h>

#include "base/gil.h"
#include "device/transfer.h"
#include "python/errors.h"

/* The program's places, by number: [(file, line, function), ...], and {(code, line):
 * number}. Frames of files below `package` are the library's own. */
static PyObject *places, *numbers;
static char package[4096];

/* The number of a frame's place; -1 without memory. */
static int number_of(PyCodeObject *code, int line)
{
    DT_REF key = Py_BuildValue("(Oi)", code, line);
    PyObject *known = key ? PyDict_GetItemWithError(numbers, key) : NULL;
    if (known)
        return (int)PyLong_AsLong(known);
    Py_ssize_t next = PyList_GET_SIZE(places);
    DT_REF number = PyLong_FromSsize_t(next);
    DT_REF place = Py_BuildValue("(OiO)", code->co_filename, line, code->co_name);
    if (!key || !number || !place || PyList_Append(places, place) < 0 ||
        PyDict_SetItem(numbers, key, number) < 0)
        return -1;
    return (int)next;
}

static bool is_own(PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    return file && !strncmp(file, package, strlen(package));
}

/* The innermost frame outside of the library. */
static int find_place(void)
{
    int number = -1;
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef(PyEval_GetFrame());
    while (frame && number < 0) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (!is_own(code)) {
            number = number_of(code, PyFrame_GetLineNumber(frame));
            Py_CLEAR(frame);
        } else {
            PyFrameObject *back = PyFrame_GetBack(frame);
            Py_SETREF(frame, back);
        }
        Py_DECREF(code);
    }
    return number;
}

static int where(void)
{
    if (!PyGILState_GetThisThreadState())
        return -1;
    bool yielded = dt_gil_yield(false);
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int number = places ? find_place() : -1;
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
    dt_gil_yield(yielded);
    return number;
}

/* _recorder_start(capacity, device_times, package): package: the folder of the library, or
 * None to record no places. */
static PyObject *start(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t capacity;
    int device_times;
    const char *folder;
    if (!PyArg_ParseTuple(args, "npz", &capacity, &device_times, &folder))
        return NULL;
    if (capacity < 1)
        return PyErr_Format(PyExc_ValueError, "give room for 1 event or more, not %zd",
                            capacity);
    if (dt_recording)
        return PyErr_Format(PyExc_RuntimeError, "a profile is running already; stop it "
                                                "before another starts");
    Py_XSETREF(places, PyList_New(0));
    Py_XSETREF(numbers, PyDict_New());
    if (!places || !numbers)
        return NULL;
    snprintf(package, sizeof package, "%s/", folder ? folder : "");
    if (dt_recorder_start(capacity, device_times, folder ? where : NULL) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    dt_recorder_stop();
    Py_RETURN_NONE;
}

static PyObject *tuple_of(const dt_record *r)
{
    char device[DT_DEVICE_TEXT];
    return Py_BuildValue(
        "(issKLLLLLdiiN)", (int)r->kind, r->name, dt_device_text(r->device, device),
        (unsigned long long)(uintptr_t)r->stream, (long long)r->begin,
        (long long)r->end, (long long)r->device_begin, (long long)r->device_end,
        (long long)r->bytes, r->flops, r->line, r->thread, PyBool_FromLong(r->waits));
}

/* _recorder_events(): the records as tuples, the places, and how many were dropped. Waits
 * for GPUs, and lets the records go. */
static PyObject *events(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    if (dt_recording)
        return PyErr_Format(PyExc_RuntimeError,
                            "the profile is running; stop it first");
    if (dt_recorder_resolve() < 0)
        return dt_raise();
    int64_t count, dropped;
    const dt_record *records = dt_recorder_read(&count, &dropped);
    DT_REF list = PyList_New(0);
    for (int64_t i = 0; list && i < count; i++) {
        DT_REF item = records[i].end ? tuple_of(&records[i]) : Py_NewRef(Py_None);
        if (!item || (item != Py_None && PyList_Append(list, item) < 0))
            return NULL;
    }
    if (!list)
        return NULL;
    DT_REF found = places ? Py_NewRef(places) : PyList_New(0);
    dt_recorder_clear();
    Py_CLEAR(numbers);
    Py_CLEAR(places);
    return found ? Py_BuildValue("(OOL)", list, found, (long long)dropped) : NULL;
}

/* --- the guard of waits --- */

static enum { ALLOW, WARN, FORBID } mode;

static int guard(const char *name, dt_device device)
{
    char text[DT_DEVICE_TEXT];
    dt_device_text(device, text);
    if (mode == FORBID)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s made the host wait for %s, which set_sync_debug_mode('error') "
            "forbids; keep values on the device, or copy them with "
            "non_blocking=True from and to pinned memory",
            name, text);
    PyGILState_STATE state = PyGILState_Ensure();
    bool yielded = dt_gil_yield(false);
    int status = PyErr_WarnFormat(PyExc_UserWarning, 1,
                                  "%s made the host wait for %s; keep values on the "
                                  "device where that is too slow",
                                  name, text);
    dt_gil_yield(yielded);
    PyGILState_Release(state);
    return status < 0 ? dt_fail(DT_ERROR_RUNTIME, "the warning became an error") : 0;
}

static PyObject *set_sync_debug_mode(PyObject *Py_UNUSED(self), PyObject *value)
{
    int wanted = (int)PyLong_AsLong(value);
    if (wanted < ALLOW || wanted > FORBID)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_ValueError, "no such mode: %d", wanted);
    mode = wanted;
    dt_wait_guard_set(mode == ALLOW ? NULL : guard);
    Py_RETURN_NONE;
}

static PyObject *get_sync_debug_mode(PyObject *Py_UNUSED(self),
                                     PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(mode);
}

static PyMethodDef functions[] = {
    {"_recorder_start", start, METH_VARARGS, NULL},
    {"_recorder_stop", stop, METH_NOARGS, NULL},
    {"_recorder_events", events, METH_NOARGS, NULL},
    {"_set_sync_debug_mode", set_sync_debug_mode, METH_O, NULL},
    {"_get_sync_debug_mode", get_sync_debug_mode, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_recorder(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
