/* The functions behind pydevtensor/cuda/graphs.py. A capsule owns a graph. */
#include <stdlib.h>

#include "device/graph.h"
#include "python/arguments.h"
#include "python/types/device.h"
#include "tensor/ops/ops.h"

static const char capsule_name[] = "graph";

static void free_graph(PyObject *capsule)
{
    dt_graph *graph = PyCapsule_GetPointer(capsule, capsule_name);
    dt_graph_reset(graph);
    free(graph);
}

/* _graph_new(keep): an empty graph. */
static PyObject *graph_new(PyObject *Py_UNUSED(self), PyObject *keep)
{
    const int kept = PyObject_IsTrue(keep);
    if (kept < 0)
        return NULL;
    dt_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->keep = kept;
    PyObject *capsule = graph ? PyCapsule_New(graph, capsule_name, free_graph) : NULL;
    if (!capsule)
        free(graph);
    return capsule || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* The generators of a tuple, after the device's own; *out is to be freed. Their number,
 * or -1 with an exception set. */
static Py_ssize_t take_generators(PyObject *tuple, dt_device device,
                                  dt_generator ***out)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    *out = PyMem_New(dt_generator *, count + 1);
    if (!*out) {
        PyErr_NoMemory();
        return -1;
    }
    (*out)[0] = dt_default_generator(device);
    for (Py_ssize_t i = 0; i < count; i++) {
        (*out)[i + 1] = dt_generator_from_python("register_generator_state",
                                                 PyTuple_GET_ITEM(tuple, i), device);
        if (!(*out)[i + 1])
            return -1;
    }
    return count + 1;
}

/* _graph_begin(graph, device, mode, pool, generators): captures the device's current
 * stream. */
static PyObject *graph_begin(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule, *generators, *where;
    dt_generator **taken = NULL;
    int mode, status = -1;
    long long pool;
    if (!PyArg_ParseTuple(args, "OOiLO!:capture_begin", &capsule, &where, &mode, &pool,
                          &PyTuple_Type, &generators))
        return NULL;
    dt_graph *graph = PyCapsule_GetPointer(capsule, capsule_name);
    dt_device device;
    if (!graph || dt_take_accelerator("capture_begin", where, &device) < 0)
        return NULL;
    Py_ssize_t count = take_generators(generators, device, &taken);
    if (count >= 0) {
        status = dt_graph_begin(graph, device, (dt_graph_mode)mode, (uint64_t)pool,
                                taken, (int)count);
        if (status)
            dt_raise();
    }
    PyMem_Free(taken);
    return status ? NULL : Py_NewRef(Py_None);
}

#define OF_GRAPH(NAME, call)                                                           \
    static PyObject *NAME(PyObject *self, PyObject *capsule)                           \
    {                                                                                  \
        (void)self;                                                                    \
        dt_graph *graph = PyCapsule_GetPointer(capsule, capsule_name);                 \
        if (!graph)                                                                    \
            return NULL;                                                               \
        return call(graph) ? dt_raise() : Py_NewRef(Py_None);                          \
    }
static int reset(dt_graph *graph)
{
    dt_graph_reset(graph);
    return 0;
}
static int debug(dt_graph *graph)
{
    graph->debug = true;
    return 0;
}
OF_GRAPH(graph_debug, debug)
OF_GRAPH(graph_end, dt_graph_end)
OF_GRAPH(graph_instantiate, dt_graph_instantiate)
OF_GRAPH(graph_replay, dt_graph_launch)
OF_GRAPH(graph_reset, reset)

/* _graph_native(graph, launched): CUDA's handle as an int. */
static PyObject *graph_native(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    int launched;
    void *native;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &launched))
        return NULL;
    const dt_graph *graph = PyCapsule_GetPointer(capsule, capsule_name);
    if (!graph)
        return NULL;
    return dt_graph_native(graph, launched, &native) ? dt_raise()
                                                     : PyLong_FromVoidPtr(native);
}

/* _graph_dump(graph, path): writes a DOT file. path: bytes, as the system has it. */
static PyObject *graph_dump(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *capsule;
    const char *path;
    if (!PyArg_ParseTuple(args, "Oy", &capsule, &path))
        return NULL;
    const dt_graph *graph = PyCapsule_GetPointer(capsule, capsule_name);
    if (!graph)
        return NULL;
    return dt_graph_dump(graph, path) ? dt_raise() : Py_NewRef(Py_None);
}

/* _graph_capturing(device): whether the device's current stream is captured. */
static PyObject *graph_capturing(PyObject *Py_UNUSED(self), PyObject *value)
{
    dt_device device;
    if (dt_take_accelerator("is_current_stream_capturing", value, &device) < 0)
        return NULL;
    return PyBool_FromLong(dt_graph_is_capturing(device));
}

PyMethodDef dt_graphs_functions[] = {
    {"_graph_new", graph_new, METH_O, NULL},
    {"_graph_begin", graph_begin, METH_VARARGS, NULL},
    {"_graph_debug", graph_debug, METH_O, NULL},
    {"_graph_dump", graph_dump, METH_VARARGS, NULL},
    {"_graph_end", graph_end, METH_O, NULL},
    {"_graph_instantiate", graph_instantiate, METH_O, NULL},
    {"_graph_native", graph_native, METH_VARARGS, NULL},
    {"_graph_replay", graph_replay, METH_O, NULL},
    {"_graph_reset", graph_reset, METH_O, NULL},
    {"_graph_capturing", graph_capturing, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
