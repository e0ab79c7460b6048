/* The functions behind pydevtensor/distributed/_nccl_engine.py: ranks whose GPUs exchange
 * tensors by NCCL. A communicator is a capsule. */
#include "device/collective.h"
#include "device/registry.h"
#include "device/stream.h"
#include "python/arguments.h"

#define CAPSULE "pydevtensor communicator"

typedef struct communicator {
    void *open; /* NULL after _communicator_free() */
    int device, ranks;
    int names[]; /* of the ranks, in messages */
} communicator;

static const dt_backend *gpus(void)
{
    const dt_backend *backend = dt_backend_get(DT_ACCELERATOR);
    if (!backend)
        dt_raise();
    return backend;
}

static communicator *communicator_of(PyObject *capsule)
{
    communicator *c = PyCapsule_GetPointer(capsule, CAPSULE);
    if (c && !c->open) {
        PyErr_SetString(PyExc_RuntimeError, "the process group has been destroyed");
        return NULL;
    }
    return c;
}

/* Without its group having ended it: the process ends, or a failure came between. */
static void free_capsule(PyObject *capsule)
{
    communicator *c = PyCapsule_GetPointer(capsule, CAPSULE);
    if (c->open)
        dt_backends[DT_ACCELERATOR]->communicator_free(c->open, true);
    PyMem_Free(c);
}

/* _nccl_version(): such as 23203 for 2.32.3; raises where NCCL is not found. */
static PyObject *version(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    const dt_backend *backend = gpus();
    if (!backend)
        return NULL;
    int found = backend->nccl_version();
    return found < 0 ? dt_raise() : PyLong_FromLong(found);
}

/* _communicator_id(): bytes by which ranks meet. */
static PyObject *make_id(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    char id[DT_COMMUNICATOR_ID];
    const dt_backend *backend = gpus();
    if (!backend)
        return NULL;
    if (backend->communicator_id(id) < 0)
        return dt_raise();
    return PyBytes_FromStringAndSize(id, sizeof id);
}

/* The names of ranks, for messages. NULL with an exception set. */
static communicator *new_capsule_memory(PyObject *names)
{
    const Py_ssize_t ranks = PyTuple_GET_SIZE(names);
    communicator *c = PyMem_Calloc(1, sizeof *c + (size_t)ranks * sizeof *c->names);
    if (!c) {
        PyErr_NoMemory();
        return NULL;
    }
    c->ranks = (int)ranks;
    for (Py_ssize_t i = 0; i < ranks; i++)
        c->names[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(names, i));
    if (PyErr_Occurred()) {
        PyMem_Free(c);
        return NULL;
    }
    return c;
}

/* _communicator_new(device, id, names, rank, call): waits for all ranks. names: a tuple of
 * their numbers in messages. call: (name, key, line, seconds). */
static PyObject *new_communicator(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *id;
    Py_ssize_t length;
    int status, device, rank;
    dt_group_call call = {0};
    PyObject *names;
    if (!PyArg_ParseTuple(args, "iy#O!i(sssd):_communicator_new", &device, &id, &length,
                          &PyTuple_Type, &names, &rank, &call.name, &call.key,
                          &call.line, &call.seconds))
        return NULL;
    if (length != DT_COMMUNICATOR_ID)
        return PyErr_Format(PyExc_ValueError, "the id has %zd bytes; give %d", length,
                            DT_COMMUNICATOR_ID);
    const dt_backend *backend = gpus();
    communicator *c = backend ? new_capsule_memory(names) : NULL;
    if (!c)
        return NULL;
    c->device = device;
    call.names = c->names;
    DT_WAIT(status,
            backend->communicator_new(device, id, c->ranks, rank, &call, &c->open));
    if (status < 0) {
        PyMem_Free(c);
        return dt_raise();
    }
    PyObject *capsule = PyCapsule_New(c, CAPSULE, free_capsule);
    if (!capsule) {
        backend->communicator_free(c->open, true);
        PyMem_Free(c);
    }
    return capsule;
}

/* _communicator_free(communicator, abort): no call of it may be under way in a thread. */
static PyObject *free_communicator(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    int abort;
    if (!PyArg_ParseTuple(args, "Op:_communicator_free", &capsule, &abort))
        return NULL;
    communicator *c = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!c)
        return NULL;
    void *open = c->open;
    c->open = NULL;
    if (open) {
        Py_BEGIN_ALLOW_THREADS;
        dt_backends[DT_ACCELERATOR]->communicator_free(open, abort);
        Py_END_ALLOW_THREADS;
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None); /* Ctrl-C */
}

/* _communicator_check(communicator, event): whether an event (0: none) has been reached.
 * Raises if the communicator has failed. */
static PyObject *check(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    unsigned long long event;
    if (!PyArg_ParseTuple(args, "OK:_communicator_check", &capsule, &event))
        return NULL;
    communicator *c = communicator_of(capsule);
    if (!c)
        return NULL;
    int found = dt_backends[DT_ACCELERATOR]->communicator_check(
        c->open, (void *)(uintptr_t)event);
    return found < 0 ? dt_raise() : PyBool_FromLong(found);
}

/* The tensors of a call, held during it. */
typedef struct operands {
    Py_ssize_t count; /* of items */
    dt_collective *items;
    dt_tensor *held; /* two for each item */
} operands;

static void release(operands *all)
{
    for (Py_ssize_t i = 0; all->held && i < 2 * all->count; i++)
        dt_tensor_clear(&all->held[i]);
    PyMem_Free(all->held);
    PyMem_Free(all->items);
}

/* A contiguous tensor of the communicator's device, or None. */
static int hold(const communicator *c, PyObject *tensor, dt_tensor *held, void **data)
{
    if (tensor == Py_None)
        return 0;
    if (!dt_tensor_check(tensor))
        return DT_SET_ERROR(PyExc_TypeError, "%s is given; give a Tensor",
                            Py_TYPE(tensor)->tp_name);
    const dt_tensor *t = dt_tensor_of(tensor);
    const dt_device device = dt_tensor_device(t);
    if (device.type != DT_ACCELERATOR || device.index != c->device || !t->contiguous)
        return DT_SET_ERROR(PyExc_ValueError,
                            "NCCL takes contiguous tensors of the device of its "
                            "communicator, cuda:%d",
                            c->device);
    dt_tensor_alias(held, t);
    *data = dt_tensor_data(t);
    return dt_storage_use(held->storage) < 0 ? (dt_raise(), -1) : 0;
}

static int take(const communicator *c, PyObject *items, operands *all)
{
    all->count = PyTuple_GET_SIZE(items);
    all->items = PyMem_Calloc((size_t)all->count, sizeof *all->items);
    all->held = PyMem_Calloc((size_t)all->count * 2, sizeof *all->held);
    if (!all->items || !all->held) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < all->count; i++) {
        PyObject *send, *receive;
        void *from = NULL, *to = NULL;
        int op, reduction, peer;
        dt_tensor *held = &all->held[2 * i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, i), "iiiOO", &op, &reduction,
                              &peer, &send, &receive) ||
            hold(c, send, &held[0], &from) < 0 || hold(c, receive, &held[1], &to) < 0)
            return -1;
        /* The smaller one of the two where ranks have a part each. */
        const bool scatters = op == DT_COLLECTIVE_reduce_scatter;
        const dt_tensor *part = &held[scatters || send == Py_None];
        all->items[i] = (dt_collective){
            .op = (dt_collective_op)op,
            .reduction = (dt_collective_reduction)reduction,
            .dtype = (dt_dtype)part->dtype,
            .peer = peer,
            .count = part->numel,
            .send = from,
            .receive = to,
        };
    }
    return 0;
}

/* _communicator_run(communicator, call, items): queues calls on the current stream, which
 * start together. items: (operation, reduction, peer, what is sent, what is received), by
 * the numbers of device/collective.h; Tensors or None. */
static PyObject *run_items(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule, *items;
    dt_collective_call c = {0};
    operands all = {0};
    int status = -1;
    if (!PyArg_ParseTuple(args, "O(sssd)O!:_communicator_run", &capsule, &c.call.name,
                          &c.call.key, &c.call.line, &c.call.seconds, &PyTuple_Type,
                          &items))
        return NULL;
    communicator *by = communicator_of(capsule);
    if (!by)
        return NULL;
    if (PyTuple_GET_SIZE(items) && take(by, items, &all) == 0) {
        const dt_device device = dt_device_make(DT_ACCELERATOR, by->device);
        const dt_stream stream = dt_stream_current(device);
        c.communicator = by->open;
        c.ranks = by->ranks;
        c.call.names = by->names;
        c.count = (int)all.count;
        c.items = all.items;
        DT_WAIT(status, dt_backends[DT_ACCELERATOR]->collective(stream, &c));
        if (status < 0)
            dt_raise();
        for (Py_ssize_t i = 0; !status && i < all.count; i++) {
            PyObject *receive = PyTuple_GET_ITEM(PyTuple_GET_ITEM(items, i), 4);
            if (receive != Py_None)
                dt_tensor_written(dt_tensor_of(receive));
        }
    }
    release(&all);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef dt_communicators_functions[] = {
    {"_nccl_version", version, METH_NOARGS, NULL},
    {"_communicator_id", make_id, METH_NOARGS, NULL},
    {"_communicator_new", new_communicator, METH_VARARGS, NULL},
    {"_communicator_free", free_communicator, METH_VARARGS, NULL},
    {"_communicator_check", check, METH_VARARGS, NULL},
    {"_communicator_run", run_items, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
