/* The functions behind pydevtensor/cuda.py: devices, memory, streams, seeds and
 * counters. A device argument may be anything that names one, including None. */
#include <dlfcn.h>
#include <string.h>

#include "device/storage.h"
#include "device/stream.h"
#include "device/transfer.h"
#include "python/arguments.h"
#include "python/types/device.h"
#include "python/seed.h"
#include "python/types/stream.h"
#include "tensor/ops/create.h"

/* Sets key to value, which is taken over; false with an exception set. */
static bool put(PyObject *dict, const char *key, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return status == 0;
}

static PyObject *none_or_raise(int status)
{
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* --- devices --- */

static PyObject *cuda_count(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    int count;
    Py_BEGIN_ALLOW_THREADS
    count = dt_device_count(DT_CUDA);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(count);
}

static PyObject *cuda_why(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    const char *why;
    Py_BEGIN_ALLOW_THREADS
    why = dt_cuda_why();
    Py_END_ALLOW_THREADS
    return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
}

static PyObject *cuda_loaded(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyBool_FromLong(dt_backends[DT_CUDA] &&
                           dt_backends[DT_CUDA]->device_count() > 0);
}

static PyObject *cuda_choose(PyObject *self, PyObject *args)
{
    (void)self;
    int simulated, virtual_devices;
    if (!PyArg_ParseTuple(args, "ii:choose", &simulated, &virtual_devices))
        return NULL;
    return none_or_raise(dt_registry_choose(simulated, virtual_devices));
}

static PyObject *cuda_index(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("cuda", value, &device) < 0)
        return NULL;
    return PyLong_FromLong(device.index);
}

static PyObject *cuda_set_device(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("set_device", value, &device) < 0)
        return NULL;
    dt_python_set_current_device(device.index);
    Py_RETURN_NONE;
}

static PyObject *cuda_properties(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    dt_device_properties p;
    if (dt_cuda_device_from_python("get_device_properties", value, &device) < 0)
        return NULL;
    if (dt_backend_of(device)->device_properties(device.index, &p) < 0)
        return dt_raise();
    PyObject *dict = PyDict_New();
#define INT(name)  put(dict, #name, PyLong_FromLongLong((long long)p.name))
#define BOOL(name) put(dict, #name, PyBool_FromLong(p.name))
#define TEXT(name) put(dict, #name, PyUnicode_FromString(p.name))
    if (dict && TEXT(name) && INT(major) && INT(minor) && INT(total_memory) &&
        INT(multi_processor_count) && INT(warp_size) &&
        INT(max_threads_per_multi_processor) && INT(max_threads_per_block) &&
        INT(shared_memory_per_block) && INT(shared_memory_per_block_optin) &&
        put(dict, "L2_cache_size", PyLong_FromSize_t(p.l2_cache_size)) &&
        put(dict, "is_integrated", PyLong_FromLong(p.integrated)) && TEXT(uuid) &&
        put(dict, "pci_domain_id", PyLong_FromLong(p.pci_domain)) &&
        put(dict, "pci_bus_id", PyLong_FromLong(p.pci_bus)) &&
        put(dict, "pci_device_id", PyLong_FromLong(p.pci_device)) && BOOL(simulated) &&
        INT(physical))
        return dict;
#undef INT
#undef BOOL
#undef TEXT
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *cuda_peer(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *a, *b;
    dt_device device, peer;
    if (!PyArg_ParseTuple(args, "OO:can_device_access_peer", &a, &b) ||
        dt_cuda_device_from_python("can_device_access_peer", a, &device) < 0 ||
        dt_cuda_device_from_python("can_device_access_peer", b, &peer) < 0)
        return NULL;
    return PyBool_FromLong(
        dt_backend_of(device)->can_access_peer(device.index, peer.index));
}

static PyObject *cuda_synchronize(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("synchronize", value, &device) < 0)
        return NULL;
    int status;
    DT_RUN(status, true, dt_device_synchronize(device));
    return none_or_raise(status);
}

static void visit_fact(void *context, const char *name, const char *value)
{
    PyObject *dict = context;
    if (!PyErr_Occurred())
        put(dict, name, PyUnicode_DecodeFSDefault(value ? value : ""));
}

/* Facts about the CPU backend and, if loaded, the CUDA backend. */
static PyObject *facts(PyObject *self, PyObject *args)
{
    (void)self;
    const char *type;
    if (!PyArg_ParseTuple(args, "s:facts", &type))
        return NULL;
    dt_device_type which = strcmp(type, "cuda") == 0 ? DT_CUDA : DT_CPU;
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    dt_device_count(which); /* loads the backend */
    if (dt_backends[which])
        dt_backends[which]->facts(visit_fact, dict);
    if (PyErr_Occurred())
        Py_CLEAR(dict);
    return dict;
}

/* --- memory --- */

static PyObject *memory_stats(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("memory_stats", value, &device) < 0)
        return NULL;
    dt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    dt_backend_of(device)->memory_stats(device.index, &stats);
    PyObject *dict = PyDict_New();
    bool good = dict != NULL;
#define PART(name, part)                                                               \
    good = good && put(dict, #name ".all." #part, PyLong_FromLongLong(stats.name.part));
#define MEMORY_COUNTER(name)                                                           \
    PART(name, current) PART(name, peak) PART(name, allocated) PART(name, freed)
    DT_MEMORY_COUNTERS(MEMORY_COUNTER)
#undef MEMORY_COUNTER
#undef PART
    if (good &&
        put(dict, "num_alloc_retries", PyLong_FromLongLong(stats.num_alloc_retries)) &&
        put(dict, "num_ooms", PyLong_FromLongLong(stats.num_ooms)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *memory_info(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    size_t unused = 0, total = 0;
    if (dt_cuda_device_from_python("mem_get_info", value, &device) < 0)
        return NULL;
    if (dt_backend_of(device)->memory_info(device.index, &unused, &total) < 0)
        return dt_raise();
    return Py_BuildValue("nn", (Py_ssize_t)unused, (Py_ssize_t)total);
}

static PyObject *reset_peaks(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("reset_peak_memory_stats", value, &device) < 0)
        return NULL;
    dt_backend_of(device)->reset_peaks(device.index);
    Py_RETURN_NONE;
}

static PyObject *empty_cache(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("empty_cache", value, &device) < 0)
        return NULL;
    int status;
    DT_RUN(status, true, dt_backend_of(device)->empty_cache(device.index));
    return none_or_raise(status);
}

/* --- streams --- */

static PyObject *current_stream(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("current_stream", value, &device) < 0)
        return NULL;
    return dt_stream_object_new(device, dt_stream_current(device).handle);
}

static PyObject *default_stream(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("default_stream", value, &device) < 0)
        return NULL;
    return dt_stream_object_new(device, NULL);
}

/* Makes the stream current on its device; does not change the current device. */
static PyObject *set_stream(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    dt_stream stream;
    if (dt_stream_from_python("set_stream", value, &device, &stream) < 0)
        return NULL;
    return none_or_raise(dt_stream_set_current(device, stream.handle));
}

/* --- seeds --- */

/* _cuda_seed(device, seed): an int, or None for a seed from the system; returns the
 * seed. */
static PyObject *cuda_seed(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *value, *number;
    dt_device device;
    uint64_t seed;
    if (!PyArg_ParseTuple(args, "OO:seed", &value, &number) ||
        dt_cuda_device_from_python("manual_seed", value, &device) < 0 ||
        (number == Py_None ? dt_seed_draw(&seed)
                           : dt_seed_from_python("manual_seed", number, &seed)) < 0)
        return NULL;
    dt_generator_seed(dt_default_generator(device), seed);
    return PyLong_FromUnsignedLongLong(seed);
}

static PyObject *cuda_initial_seed(PyObject *self, PyObject *value)
{
    (void)self;
    dt_device device;
    if (dt_cuda_device_from_python("initial_seed", value, &device) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(dt_default_generator(device)->seed);
}

/* --- counters and the simulator --- */

static PyObject *transfers(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    dt_transfer_counters counted;
    dt_transfer_counters_read(&counted);
    PyObject *dict = PyDict_New();
    bool good = dict != NULL;
#define COUNTER(name)                                                                  \
    good = good && put(dict, #name,                                                    \
                       Py_BuildValue("LL", (long long)counted.name,                    \
                                     (long long)counted.name##_bytes));
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
    if (!good)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *reset_transfers(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    dt_transfer_counters_reset();
    Py_RETURN_NONE;
}

static PyObject *sim_control(PyObject *self, PyObject *value)
{
    (void)self;
    const char *command = PyUnicode_AsUTF8(value);
    if (!command)
        return NULL;
    void *library = dt_registry_cuda_library();
    void *symbol = library ? dlsym(library, "dt_sim_control") : NULL;
    if (!symbol)
        return PyErr_Format(PyExc_RuntimeError,
                            "the GPUs are not simulated; choose simulated GPUs with "
                            "PYDEVTENSOR_SIM_GPUS=2 or cuda.simulate(2)");
    int (*control)(const char *, char *, size_t);
    memcpy(&control, &symbol, sizeof control);
    const size_t size = 64 << 10;
    char *reply = PyMem_Malloc(size);
    if (!reply)
        return PyErr_NoMemory();
    PyObject *text = NULL;
    if (control(command, reply, size) < 0)
        PyErr_SetString(PyExc_ValueError, reply);
    else
        text = PyUnicode_FromString(reply);
    PyMem_Free(reply);
    return text;
}

static PyMethodDef functions[] = {
    {"_cuda_count", cuda_count, METH_NOARGS, NULL},
    {"_cuda_why", cuda_why, METH_NOARGS, NULL},
    {"_cuda_loaded", cuda_loaded, METH_NOARGS, NULL},
    {"_cuda_choose", cuda_choose, METH_VARARGS, NULL},
    {"_cuda_index", cuda_index, METH_O, NULL},
    {"_cuda_set_device", cuda_set_device, METH_O, NULL},
    {"_cuda_properties", cuda_properties, METH_O, NULL},
    {"_cuda_peer", cuda_peer, METH_VARARGS, NULL},
    {"_cuda_synchronize", cuda_synchronize, METH_O, NULL},
    {"_cuda_memory_stats", memory_stats, METH_O, NULL},
    {"_cuda_memory_info", memory_info, METH_O, NULL},
    {"_cuda_reset_peaks", reset_peaks, METH_O, NULL},
    {"_cuda_empty_cache", empty_cache, METH_O, NULL},
    {"_cuda_current_stream", current_stream, METH_O, NULL},
    {"_cuda_default_stream", default_stream, METH_O, NULL},
    {"_cuda_set_stream", set_stream, METH_O, NULL},
    {"_cuda_seed", cuda_seed, METH_VARARGS, NULL},
    {"_cuda_initial_seed", cuda_initial_seed, METH_O, NULL},
    {"_facts", facts, METH_VARARGS, NULL},
    {"_traffic", transfers, METH_NOARGS, NULL},
    {"_traffic_reset", reset_transfers, METH_NOARGS, NULL},
    {"_sim_control", sim_control, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_cuda(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
