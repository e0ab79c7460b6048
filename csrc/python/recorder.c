/* The functions behind pydevtensor.profiler: device/recorder.h. */
#include "device/recorder.h"

#include "python/errors.h"
#include "python/source_lines.h"

/* _recorder_start(capacity, device_times, lines, shapes) */
static PyObject *start_recorder(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t capacity;
    int device_times, lines, shapes;
    if (!PyArg_ParseTuple(args, "nppp", &capacity, &device_times, &lines, &shapes))
        return NULL;
    if (capacity < 1)
        return PyErr_Format(PyExc_ValueError, "give room for 1 event or more, not %zd",
                            capacity);
    if (dt_recorder_start(capacity, device_times, lines, shapes) < 0)
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
        "(issKLLLLLdiiNis)", (int)r->kind, r->name, dt_device_text(r->device, device),
        (unsigned long long)(uintptr_t)r->stream, (long long)r->begin,
        (long long)r->end, (long long)r->device_begin, (long long)r->device_end,
        (long long)r->bytes, r->flops, r->line, r->thread, PyBool_FromLong(r->waits),
        r->node, r->shapes ? r->shapes : "");
}

/* _recorder_events(): the records as tuples, the lines, and how many were dropped.
 * Waits for GPUs, and lets the records go. */
static PyObject *events(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    if (dt_recorder_running())
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
    DT_REF found = dt_source_lines();
    dt_recorder_clear();
    return found ? Py_BuildValue("(OOL)", list, found, (long long)dropped) : NULL;
}

/* _recorder_now(): the time of records, in nanoseconds. */
static PyObject *now(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLongLong((long long)dt_recorder_now());
}

PyMethodDef dt_recorder_functions[] = {
    {"_recorder_start", start_recorder, METH_VARARGS, NULL},
    {"_recorder_stop", stop, METH_NOARGS, NULL},
    {"_recorder_now", now, METH_NOARGS, NULL},
    {"_recorder_events", events, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
