/* The functions behind pydevtensor/_sharing.py: memory and events of GPUs that processes
 * share. */
#include <stdio.h>
#include <string.h>

#include "device/ipc.h"
#include "python/errors.h"
#include "python/threads.h"
#include "python/types/device.h"
#include "python/types/tensor.h"

/* _ipc_send(tensor): (handle, offset, file, slot, event or None) of the memory of a GPU's
 * tensor, which stays until the receiver lets go of it. */
static PyObject *send(PyObject *Py_UNUSED(self), PyObject *tensor)
{
    dt_ipc_memory sent;
    if (!PyObject_TypeCheck(tensor, dt_py.tensor_type))
        return PyErr_Format(PyExc_TypeError, "_ipc_send() takes a Tensor, not %s",
                            Py_TYPE(tensor)->tp_name);
    dt_tensor_lend(dt_tensor_of(tensor)); /* operations that wait are queued */
    if (dt_ipc_send(dt_tensor_of(tensor)->storage, &sent) < 0)
        return dt_raise();
    return Py_BuildValue("(y#nsKy#)", sent.memory, (Py_ssize_t)DT_IPC_MEMORY,
                         (Py_ssize_t)sent.offset, sent.file,
                         (unsigned long long)sent.slot,
                         sent.ordered ? sent.event : NULL, (Py_ssize_t)DT_IPC_HANDLE);
}

/* Copies a handle; false with an exception set if it has another size. */
static bool take_handle(const char *given, Py_ssize_t bytes, char *out, int size)
{
    if (bytes == size) {
        memcpy(out, given, (size_t)size);
        return true;
    }
    PyErr_Format(PyExc_ValueError, "a handle of CUDA has %d bytes, not %zd", size,
                 bytes);
    return false;
}

static bool take_file(const char *given, char *out)
{
    if (strlen(given) < DT_SHARED_FILE) {
        snprintf(out, DT_SHARED_FILE, "%s", given);
        return true;
    }
    PyErr_SetString(PyExc_ValueError, "the name of the sender's file is too long");
    return false;
}

/* _ipc_receive(device, handle, offset, file, slot, event or None, bytes): the memory as a
 * tensor of bytes. */
static PyObject *receive(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    dt_device device;
    dt_ipc_memory sent = {0};
    const char *handle, *file, *event;
    Py_ssize_t offset, bytes, length, event_length;
    unsigned long long slot;
    if (!PyArg_ParseTuple(args, "Oy#nsKz#n:_new_shared_cuda", &value, &handle, &length,
                          &offset, &file, &slot, &event, &event_length, &bytes) ||
        dt_take_accelerator("_new_shared_cuda", value, &device) < 0 ||
        !take_handle(handle, length, sent.memory, DT_IPC_MEMORY) ||
        !take_file(file, sent.file) ||
        (event && !take_handle(event, event_length, sent.event, DT_IPC_HANDLE)))
        return NULL;
    sent.offset = (size_t)offset;
    sent.slot = slot;
    sent.ordered = event != NULL;
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    dt_tensor *t = &object->tensor;
    t->storage = dt_ipc_receive(device, &sent, (size_t)bytes);
    if (!t->storage)
        return dt_tensor_result(object, -1);
    t->dtype = DT_UINT8;
    t->ndim = 1;
    t->offset = 0;
    t->history = NULL;
    t->unversioned = false;
    t->shape[0] = bytes;
    t->strides[0] = 1;
    dt_tensor_update(t);
    return (PyObject *)object;
}

/* _ipc_release(file, slot): what was sent so will not be used. */
static PyObject *release(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *given;
    char file[DT_SHARED_FILE];
    unsigned long long slot;
    if (!PyArg_ParseTuple(args, "sK:_release_ipc_counter_cuda", &given, &slot) ||
        !take_file(given, file))
        return NULL;
    if (dt_ipc_release(file, slot) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* _ipc_collect(): lets go of what no process uses; how many storages others still use. */
static PyObject *collect(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    int64_t left;
    dt_ipc_settle();
    dt_ipc_collect(&left);
    return PyLong_FromLongLong(left);
}

/* _event_export(device, event): the handle of an event for other processes. */
static PyObject *event_export(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    Py_ssize_t event;
    dt_device device;
    char handle[DT_IPC_HANDLE];
    if (!PyArg_ParseTuple(args, "On:ipc_handle", &value, &event) ||
        dt_take_accelerator("ipc_handle", value, &device) < 0)
        return NULL;
    if (dt_backend_of(device)->event_export((void *)event, handle) < 0)
        return dt_raise();
    return PyBytes_FromStringAndSize(handle, DT_IPC_HANDLE);
}

/* _event_open(device, handle): as _event_new, the event of another process. */
static PyObject *event_open(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    const char *given;
    Py_ssize_t length;
    dt_device device;
    char handle[DT_IPC_HANDLE];
    void *event;
    if (!PyArg_ParseTuple(args, "Oy#:from_ipc_handle", &value, &given, &length) ||
        dt_take_accelerator("from_ipc_handle", value, &device) < 0 ||
        !take_handle(given, length, handle, DT_IPC_HANDLE))
        return NULL;
    if (dt_backend_of(device)->event_open(device.index, handle, &event) < 0)
        return dt_raise();
    return dt_event_handle(device, event);
}

PyMethodDef dt_ipc_functions[] = {
    {"_ipc_send", send, METH_O, NULL},
    {"_ipc_receive", receive, METH_VARARGS, NULL},
    {"_ipc_release", release, METH_VARARGS, NULL},
    {"_ipc_collect", collect, METH_NOARGS, NULL},
    {"_event_export", event_export, METH_VARARGS, NULL},
    {"_event_open", event_open, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
