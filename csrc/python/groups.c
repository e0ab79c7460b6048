/* The functions behind pydevtensor/distributed/_shared_engine.py: groups of processes that
 * exchange tensors in shared memory. A group is a capsule. */
#include "python/groups.h"

#include "ops/elementwise_ops.h"
#include "python/arguments.h"

#define CAPSULE "pydevtensor group"

typedef dt_python_group group;

static void close_unused(group *g)
{
    if (g->closing && !g->calls && g->open) {
        dt_group_close(g->open);
        g->open = NULL;
    }
}

static void free_capsule(PyObject *capsule)
{
    group *g = PyCapsule_GetPointer(capsule, CAPSULE);
    g->closing = true;
    close_unused(g);
    PyMem_Free(g);
}

dt_python_group *dt_python_group_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

dt_python_group *dt_python_group_begin(PyObject *capsule)
{
    group *g = dt_python_group_of(capsule);
    if (g && !g->open) {
        PyErr_SetString(PyExc_RuntimeError, "the process group has been destroyed");
        return NULL;
    }
    if (g)
        g->calls++;
    return g;
}

void dt_python_group_end(group *g)
{
    g->calls--;
    close_unused(g);
}

/* _group_create(size): the descriptor of shared memory for a new group. */
static PyObject *create(PyObject *Py_UNUSED(self), PyObject *args)
{
    int size;
    if (!PyArg_ParseTuple(args, "i:_group_create", &size))
        return NULL;
    int descriptor = dt_group_create(size);
    return descriptor < 0 ? dt_raise() : PyLong_FromLong(descriptor);
}

/* _group_open(descriptor, rank, size): this process as a rank. Takes the descriptor over. */
static PyObject *open_group(PyObject *Py_UNUSED(self), PyObject *args)
{
    int descriptor, rank, size;
    if (!PyArg_ParseTuple(args, "iii:_group_open", &descriptor, &rank, &size))
        return NULL;
    if (size < 1 || size > DT_GROUP_RANKS || rank < 0 || rank >= size)
        return PyErr_Format(PyExc_ValueError, "rank %d of %d; ranks are 0 to size - 1",
                            rank, size);
    group *g = PyMem_Calloc(1, sizeof *g);
    if (!g)
        return PyErr_NoMemory();
    g->rank = rank;
    g->size = size;
    g->open = dt_group_open(descriptor, rank, size);
    PyObject *capsule = g->open ? PyCapsule_New(g, CAPSULE, free_capsule) : dt_raise();
    if (!capsule)
        PyMem_Free(g);
    return capsule;
}

/* _group_close(group, why): leaves it. Calls of other threads fail soon. */
static PyObject *close_group(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    const char *why;
    if (!PyArg_ParseTuple(args, "Os:_group_close", &capsule, &why))
        return NULL;
    group *g = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!g)
        return NULL;
    g->closing = true;
    if (g->open)
        dt_group_leave(g->open, why);
    close_unused(g);
    Py_RETURN_NONE;
}

/* _group_tell(group, rank): why a rank will not come, or "", and its last call. */
static PyObject *tell(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    int rank;
    char problem[DT_GROUP_NEWS], last[DT_GROUP_NEWS];
    if (!PyArg_ParseTuple(args, "Oi:_group_tell", &capsule, &rank))
        return NULL;
    group *g = dt_python_group_begin(capsule);
    if (!g)
        return NULL;
    if (rank < 0 || rank >= g->size) {
        dt_python_group_end(g);
        return PyErr_Format(PyExc_ValueError, "rank %d of %d", rank, g->size);
    }
    dt_group_tell(g->open, rank, problem, last);
    dt_python_group_end(g);
    return Py_BuildValue("(NN)", /* texts are cut to size, maybe within a letter */
                         PyUnicode_DecodeUTF8(problem, strlen(problem), "replace"),
                         PyUnicode_DecodeUTF8(last, strlen(last), "replace"));
}

/* The memory of some tensors, held during a call: another thread may give them another. */
typedef struct spans {
    Py_ssize_t count;
    dt_group_span *items; /* NULL: none were given */
    dt_tensor *held;
} spans;

static void release(spans *s)
{
    for (Py_ssize_t i = 0; s->held && i < s->count; i++)
        dt_tensor_clear(&s->held[i]);
    PyMem_Free(s->held);
    PyMem_Free(s->items);
}

static int hold(PyObject *tensor, dt_tensor *held, dt_group_span *span)
{
    if (tensor == Py_None)
        return 0;
    if (!dt_tensor_check(tensor))
        return DT_SET_ERROR(PyExc_TypeError, "%s is given; give a Tensor",
                            Py_TYPE(tensor)->tp_name);
    const dt_tensor *t = dt_tensor_of(tensor);
    if (dt_tensor_device(t).type != DT_CPU || !t->contiguous)
        return DT_SET_ERROR(PyExc_ValueError,
                            "a process group in shared memory takes contiguous tensors "
                            "of the CPU");
    dt_tensor_alias(held, t);
    span->data = dt_tensor_data(t);
    span->bytes = t->numel * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
    return 0;
}

/* Takes a tuple of Tensors and Nones, `count` of them, or None. */
static int take(PyObject *tuple, Py_ssize_t count, spans *s)
{
    if (tuple == Py_None)
        return 0;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != count)
        return DT_SET_ERROR(PyExc_ValueError, "give a tuple of %zd tensors", count);
    s->count = count;
    s->items = PyMem_Calloc((size_t)count, sizeof *s->items);
    s->held = PyMem_Calloc((size_t)count, sizeof *s->held);
    if (!s->items || !s->held) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (hold(PyTuple_GET_ITEM(tuple, i), &s->held[i], &s->items[i]) < 0)
            return -1;
    return 0;
}

static void count_writes(PyObject *tuple)
{
    for (Py_ssize_t i = 0; tuple != Py_None && i < PyTuple_GET_SIZE(tuple); i++)
        if (PyTuple_GET_ITEM(tuple, i) != Py_None)
            dt_tensor_written(dt_tensor_of(PyTuple_GET_ITEM(tuple, i)));
}

static const struct {
    const char *name;
    dt_elementwise_op op;
} combinations[] = {
    {"SUM", DT_OP_add},          {"PRODUCT", DT_OP_mul},      {"MIN", DT_OP_minimum},
    {"MAX", DT_OP_maximum},      {"BAND", DT_OP_bitwise_and}, {"BOR", DT_OP_bitwise_or},
    {"BXOR", DT_OP_bitwise_xor},
};

bool dt_python_group_find(const char *name, int *combine)
{
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++)
        if (!strcmp(name, combinations[i].name)) {
            *combine = (int)combinations[i].op;
            return true;
        }
    return false;
}

/* _group_run(group, call, inputs, outputs, segments, reduction): an exchange of
 * dt_group_run. call: (name, key, line, seconds). inputs: `segments` Tensors or Nones, or None.
 * outputs: one for each rank, or with a reduction the first alone; or None; the same tuple as
 * inputs where every rank gives and takes a tensor. */
static PyObject *run_exchange(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule, *inputs, *outputs;
    dt_group_call call = {0};
    int segments, status = -1;
    const char *reduction;
    dt_group_exchange x = {.combine = DT_GROUP_COPY};
    if (!PyArg_ParseTuple(args, "O(sssd)OOiz:_group_run", &capsule, &call.name,
                          &call.key, &call.line, &call.seconds, &inputs, &outputs,
                          &segments, &reduction))
        return NULL;
    if (reduction && !dt_python_group_find(reduction, &x.combine))
        return PyErr_Format(PyExc_ValueError,
                            "the reduction is %s; give one of ReduceOp", reduction);
    group *g = dt_python_group_begin(capsule);
    if (!g)
        return NULL;
    spans in = {0}, out = {0};
    if (segments != 1 && segments != g->size)
        PyErr_Format(PyExc_ValueError, "%d segments; give 1 or %d", segments, g->size);
    else if (!take(inputs, segments, &in) &&
             !take(outputs, reduction ? 1 : g->size, &out)) {
        x.segments = segments;
        x.in = in.items;
        x.out = out.items;
        x.whole = reduction && inputs == outputs && inputs != Py_None;
        if (reduction && out.held && out.held->storage)
            x.dtype = (dt_dtype)out.held->dtype;
        DT_WAIT(status, dt_group_run(g->open, &call, &x));
        if (status < 0)
            dt_raise();
        else
            count_writes(outputs);
    }
    release(&in);
    release(&out);
    dt_python_group_end(g);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* _group_message(group, call, sends, peer, tag, tensor): sends it to peer, or receives it
 * from peer (-1: any) and returns the rank that sent it. */
static PyObject *message(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule, *tensor;
    dt_group_call call = {0};
    int sends, peer, status = -1;
    long long tag;
    spans data = {0};
    if (!PyArg_ParseTuple(args, "O(sssd)piLO:_group_message", &capsule, &call.name,
                          &call.key, &call.line, &call.seconds, &sends, &peer, &tag,
                          &tensor))
        return NULL;
    group *g = dt_python_group_begin(capsule);
    if (!g)
        return NULL;
    DT_REF tuple = PyTuple_Pack(1, tensor);
    if (!tuple)
        status = -1;
    else if (peer < (sends ? 0 : -1) || peer >= g->size)
        PyErr_Format(PyExc_ValueError, "rank %d of %d", peer, g->size);
    else if (!take(tuple, 1, &data)) {
        DT_WAIT(status, sends ? dt_group_send(g->open, &call, peer, tag, *data.items)
                              : dt_group_receive(g->open, &call, peer, tag, *data.items,
                                                 &peer));
        if (status < 0)
            dt_raise();
        else if (!sends)
            count_writes(tuple);
    }
    release(&data);
    dt_python_group_end(g);
    return status < 0 ? NULL : PyLong_FromLong(peer);
}

PyMethodDef dt_groups_functions[] = {
    {"_group_create", create, METH_VARARGS, NULL},
    {"_group_open", open_group, METH_VARARGS, NULL},
    {"_group_close", close_group, METH_VARARGS, NULL},
    {"_group_tell", tell, METH_VARARGS, NULL},
    {"_group_run", run_exchange, METH_VARARGS, NULL},
    {"_group_message", message, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
