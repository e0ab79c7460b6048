/* The functions behind pydevtensor.cuda: devices, memory, streams, seeds and counters. A
 * device argument may be anything that names one of DT_ACCELERATOR, including None; a type
 * of devices is given by its name. */
#include <dlfcn.h>
#include <string.h>

#include "device/activity.h"
#include "device/cuda_library.h"
#include "device/fusion.h"
#include "device/graph.h"
#include "device/storage.h"
#include "device/stream.h"
#include "device/transfer.h"
#include "python/arguments.h"
#include "python/types/device.h"
#include "sim/cards.h"
#include "tensor/ops/convolution.h"
#include "tensor/ops/ops.h"

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

/* Begins a function of a device; what follows is its body. `function` is for messages. */
#define OF_DEVICE(NAME, function)                                                      \
    static PyObject *NAME##_of(dt_device device);                                      \
    static PyObject *NAME(PyObject *self, PyObject *value)                             \
    {                                                                                  \
        dt_device device;                                                              \
        (void)self;                                                                    \
        return dt_take_accelerator(function, value, &device) < 0 ? NULL                \
                                                                 : NAME##_of(device);  \
    }                                                                                  \
    static PyObject *NAME##_of(dt_device device)

/* Begins a function of a type of devices; what follows is its body. */
#define OF_TYPE(NAME)                                                                  \
    static PyObject *NAME##_of(dt_device_type type);                                   \
    static PyObject *NAME(PyObject *self, PyObject *name)                              \
    {                                                                                  \
        dt_device_type type;                                                           \
        const char *text = PyUnicode_AsUTF8(name);                                     \
        (void)self;                                                                    \
        if (!text || dt_device_type_from_python("device", text, &type) < 0)            \
            return NULL;                                                               \
        return NAME##_of(type);                                                        \
    }                                                                                  \
    static PyObject *NAME##_of(dt_device_type type)

/* --- devices --- */

OF_TYPE(device_count)
{
    int count;
    DT_WAIT(count, dt_device_count(type));
    return PyLong_FromLong(count);
}

OF_TYPE(device_why)
{
    const char *why;
    DT_WAIT(why, dt_device_why(type));
    return PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace");
}

/* Whether devices of the type are in use: it loads nothing. */
OF_TYPE(device_loaded)
{
    return PyBool_FromLong(dt_backends[type] && dt_backends[type]->device_count() > 0);
}

/* _cuda_choose(simulated, where, count): where the count was given is for messages. */
static PyObject *cuda_choose(PyObject *Py_UNUSED(self), PyObject *args)
{
    int simulated;
    const char *where, *count;
    if (!PyArg_ParseTuple(args, "pss:_cuda_choose", &simulated, &where, &count))
        return NULL;
    return none_or_raise(dt_cuda_choose(simulated, where, count));
}

/* _device_index(device, function): function is for messages. */
static PyObject *device_index(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    const char *function = "cuda";
    dt_device device;
    if (!PyArg_ParseTuple(args, "O|s:_device_index", &value, &function) ||
        dt_take_accelerator(function, value, &device) < 0)
        return NULL;
    return PyLong_FromLong(device.index);
}

OF_DEVICE(set_device, "set_device")
{
    dt_python_set_current_device(device.index);
    Py_RETURN_NONE;
}

OF_DEVICE(properties, "get_device_properties")
{
    dt_device_properties p;
    if (dt_backend_of(device)->device_properties(device.index, &p) < 0)
        return dt_raise();
    DT_REF dict = PyDict_New();
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
        return Py_NewRef(dict);
#undef INT
#undef BOOL
#undef TEXT
    return NULL;
}

static PyObject *can_access_peer(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *a, *b;
    dt_device device, peer;
    if (!PyArg_ParseTuple(args, "OO:can_device_access_peer", &a, &b) ||
        dt_take_accelerator("can_device_access_peer", a, &device) < 0 ||
        dt_take_accelerator("can_device_access_peer", b, &peer) < 0)
        return NULL;
    return PyBool_FromLong(
        dt_backend_of(device)->can_access_peer(device.index, peer.index));
}

OF_DEVICE(synchronize, "synchronize")
{
    int status = dt_fusion_order("a wait");
    if (!status)
        DT_WAIT(status, dt_device_synchronize(device));
    return none_or_raise(status);
}

static void visit_fact(void *context, const char *name, const char *value)
{
    PyObject *dict = context;
    if (!PyErr_Occurred())
        put(dict, name, PyUnicode_DecodeFSDefault(value ? value : ""));
}

/* Facts about a type's backend, which it loads. */
OF_TYPE(facts)
{
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    dt_device_count(type);
    if (dt_backends[type])
        dt_backends[type]->facts(visit_fact, dict);
    if (PyErr_Occurred())
        Py_CLEAR(dict);
    return dict;
}

/* None where there is no such library, or no GPU. */
#define LIBRARY_VERSION(name)                                                          \
    static PyObject *name(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))        \
    {                                                                                  \
        const int version =                                                            \
            dt_device_count(DT_CUDA) ? dt_backends[DT_CUDA]->name() : 0;               \
        return version ? PyLong_FromLong(version) : Py_NewRef(Py_None);                \
    }
LIBRARY_VERSION(cudnn_version)
LIBRARY_VERSION(cufft_version)

/* --- memory --- */

OF_DEVICE(memory_stats, "memory_stats")
{
    dt_memory_stats stats;
    memset(&stats, 0, sizeof stats);
    dt_backend_of(device)->memory_stats(device.index, &stats);
    DT_REF dict = PyDict_New();
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
        return Py_NewRef(dict);
    return NULL;
}

OF_DEVICE(memory_info, "mem_get_info")
{
    size_t unused = 0, total = 0;
    if (dt_backend_of(device)->memory_info(device.index, &unused, &total) < 0)
        return dt_raise();
    return Py_BuildValue("nn", (Py_ssize_t)unused, (Py_ssize_t)total);
}

OF_DEVICE(reset_peaks, "reset_peak_memory_stats")
{
    dt_backend_of(device)->reset_peaks(device.index);
    Py_RETURN_NONE;
}

/* _device_memory_fraction(device, fraction): sets it unless it is below 0; returns what it
 * was. */
static PyObject *memory_fraction(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    double fraction;
    dt_device device;
    if (!PyArg_ParseTuple(args, "Od:set_per_process_memory_fraction", &value,
                          &fraction) ||
        dt_take_accelerator("set_per_process_memory_fraction", value, &device) < 0)
        return NULL;
    return PyFloat_FromDouble(
        dt_backend_of(device)->memory_fraction(device.index, fraction));
}

OF_DEVICE(empty_cache, "empty_cache")
{
    int status;
    if (dt_graph_check("returning memory to the driver", device, NULL) < 0)
        return dt_raise();
    DT_WAIT(status, dt_backend_of(device)->empty_cache(device.index));
    return none_or_raise(status);
}

/* --- streams and events: pydevtensor/_streams.py keeps their handles as ints --- */

/* _stream_new(device, priority): the handle of a stream, which is never destroyed
 * (device/stream.h). */
static PyObject *stream_new(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    int priority, status;
    dt_device device;
    void *stream;
    if (!PyArg_ParseTuple(args, "Oi:Stream", &value, &priority) ||
        dt_take_accelerator("Stream", value, &device) < 0)
        return NULL;
    DT_WAIT(status, dt_stream_acquire(device, priority, &stream));
    return status < 0 ? dt_raise() : PyLong_FromVoidPtr(stream);
}

OF_DEVICE(stream_current, "Stream")
{
    return PyLong_FromVoidPtr(dt_stream_current(device).handle);
}

/* Frees the event of a capsule that dt_event_handle made, with its backend as the context. */
static void free_event(PyObject *owner)
{
    const dt_backend *backend = PyCapsule_GetContext(owner);
    backend->event_free(PyCapsule_GetPointer(owner, NULL));
}

PyObject *dt_event_handle(dt_device device, void *event)
{
    PyObject *owner = PyCapsule_New(event, NULL, free_event);
    if (!owner)
        dt_backend_of(device)->event_free(event);
    else
        PyCapsule_SetContext(
            owner, (void *)dt_backend_unobserved((dt_device_type)device.type));
    return owner ? Py_BuildValue("NN", PyLong_FromVoidPtr(event), owner) : NULL;
}

/* _event_new(device, flags): the handle of an event, and what keeps it alive; flags:
 * DT_EVENT_... */
static PyObject *event_new(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    unsigned flags;
    dt_device device;
    void *event;
    if (!PyArg_ParseTuple(args, "OI:Event", &value, &flags) ||
        dt_take_accelerator("Event", value, &device) < 0)
        return NULL;
    if (dt_backend_of(device)->event_new(device.index, flags, &event) < 0)
        return dt_raise();
    return dt_event_handle(device, event);
}

/* _event_elapsed(device, start, end): milliseconds. */
static PyObject *event_elapsed(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value;
    dt_device device;
    Py_ssize_t start, end;
    float milliseconds = 0;
    int status;
    if (!PyArg_ParseTuple(args, "Onn:elapsed_time", &value, &start, &end) ||
        dt_take_accelerator("elapsed_time", value, &device) < 0)
        return NULL;
    DT_WAIT(status, dt_backend_of(device)->event_elapsed((void *)start, (void *)end,
                                                         &milliseconds));
    return status < 0 ? dt_raise() : PyFloat_FromDouble((double)milliseconds);
}

/* Takes (device, stream, event), the last two as handles that may be left out. */
static bool take_handles(PyObject *args, dt_device *device, dt_stream *stream,
                         void **event)
{
    PyObject *value;
    Py_ssize_t handles[2] = {0, 0};
    if (!PyArg_ParseTuple(args, "O|nn:Stream", &value, &handles[0], &handles[1]) ||
        dt_take_accelerator("Stream", value, device) < 0)
        return false;
    *stream = (dt_stream){device->index, (void *)handles[0]};
    *event = (void *)handles[1];
    return true;
}

/* A function of these for a call that may take long and returns -1, 0 or 1, after `before`,
 * which may fail. */
#define OF_STREAM_AFTER(NAME, before, call)                                            \
    static PyObject *NAME(PyObject *self, PyObject *args)                              \
    {                                                                                  \
        (void)self;                                                                    \
        dt_device device;                                                              \
        dt_stream stream;                                                              \
        void *event;                                                                   \
        int status;                                                                    \
        if (!take_handles(args, &device, &stream, &event))                             \
            return NULL;                                                               \
        status = before;                                                               \
        if (!status)                                                                   \
            DT_WAIT(status, call);                                                     \
        return status < 0 ? dt_raise() : PyBool_FromLong(status);                      \
    }
#define OF_STREAM(NAME, call)                                                          \
    OF_STREAM_AFTER(NAME, dt_fusion_order("a stream or an event"), call)
OF_STREAM_AFTER(stream_set, 0, dt_stream_set_current(device, stream.handle))
OF_STREAM(stream_synchronize, dt_stream_synchronize(device, stream))
OF_STREAM(stream_query, dt_graph_check("a query of a stream", device, &stream)
                            ? -1
                            : dt_backend_of(device)->stream_query(stream))
OF_STREAM(event_record, dt_backend_of(device)->event_record(event, stream))
OF_STREAM(event_wait, dt_backend_of(device)->stream_wait_event(event, stream))
OF_STREAM(event_query, dt_graph_check("a query of an event", device, &stream)
                           ? -1
                           : dt_backend_of(device)->event_query(event))
OF_STREAM(event_synchronize, dt_event_synchronize(device, event))

/* _stream_use(tensor, stream): the tensor's memory is used on a stream of its device. */
static PyObject *stream_use(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *tensor;
    Py_ssize_t handle;
    if (!PyArg_ParseTuple(args, "O!n:record_stream", dt_py.tensor_type, &tensor,
                          &handle))
        return NULL;
    const dt_storage *storage = dt_tensor_of(tensor)->storage;
    const dt_device device = dt_device_home(storage->device);
    dt_stream stream = {device.index, (void *)handle};
    int status = 0;
    if (storage->data && storage->stream != stream.handle)
        status = dt_backend_of(device)->record_use(stream, storage->data);
    return none_or_raise(status);
}

/* --- settings --- */

/* Sets it, if a value is given; gives the old one. */
static PyObject *set(bool *setting, PyObject *args, const char *format)
{
    const bool old = *setting;
    int value = old;
    if (!PyArg_ParseTuple(args, format, &value))
        return NULL;
    *setting = value;
    return PyBool_FromLong(old);
}

/* _convolution_tf32(allowed=None) */
static PyObject *convolution_tf32(PyObject *Py_UNUSED(self), PyObject *args)
{
    return set(&dt_convolution_tf32, args, "|p:allow_tf32");
}

/* _products_are_recurrent(asked=None) */
static PyObject *products_are_recurrent(PyObject *Py_UNUSED(self), PyObject *args)
{
    return set(&dt_products_are_recurrent, args, "|p:recurrent");
}

/* _cudnn_enabled(asked=None), _cudnn_deterministic(asked=None) */
static PyObject *cudnn_enabled(PyObject *Py_UNUSED(self), PyObject *args)
{
    return set(&dt_cudnn_enabled, args, "|p:enabled");
}
static PyObject *cudnn_deterministic(PyObject *Py_UNUSED(self), PyObject *args)
{
    return set(&dt_cudnn_deterministic, args, "|p:deterministic");
}

/* _deterministic(asked=None) */
static PyObject *deterministic(PyObject *Py_UNUSED(self), PyObject *args)
{
    return set(&dt_deterministic, args, "|p:use_deterministic_algorithms");
}

/* --- seeds --- */

/* _device_seed(device, seed): an int, or None for a seed from the system; returns the
 * seed. */
static PyObject *seed_device(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *value, *number;
    dt_device device;
    uint64_t seed;
    if (!PyArg_ParseTuple(args, "OO:seed", &value, &number) ||
        dt_take_accelerator("manual_seed", value, &device) < 0 ||
        (number == Py_None ? dt_seed_draw(&seed)
                           : dt_seed_from_python("manual_seed", number, &seed)) < 0)
        return NULL;
    dt_generator_seed(dt_default_generator(device), seed);
    return PyLong_FromUnsignedLongLong(seed);
}

OF_DEVICE(initial_seed, "initial_seed")
{
    return PyLong_FromUnsignedLongLong(dt_default_generator(device)->seed);
}

/* --- counters and the simulator --- */

static PyObject *transfers(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    dt_transfer_counters counted;
    dt_transfer_counters_read(&counted);
    DT_REF dict = PyDict_New();
    bool good = dict != NULL;
#define COUNTER(name)                                                                  \
    good = good && put(dict, #name, PyLong_FromLongLong(counted.name)) &&              \
           put(dict, #name "_bytes", PyLong_FromLongLong(counted.name##_bytes));
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
    return good ? Py_NewRef(dict) : NULL;
}

static PyObject *sim_control(PyObject *Py_UNUSED(self), PyObject *value)
{
    const char *command = PyUnicode_AsUTF8(value);
    if (!command)
        return NULL;
    void *library = dt_device_library(DT_CUDA);
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

/* ((name, bytes of memory, GB/s to another card, whether by NVLink, the first number of
 * its compute capability), ...). */
static PyObject *known_cards(void)
{
    DT_REF cards = PyTuple_New(DT_SIM_CARDS);
    for (int i = 0; cards && i < DT_SIM_CARDS; i++) {
        PyObject *card = Py_BuildValue(
            "(sLdOi)", dt_sim_cards[i].name, (long long)dt_sim_cards[i].gib << 30,
            dt_sim_cards[i].peer, dt_sim_cards[i].nvlink ? Py_True : Py_False,
            dt_sim_cards[i].major);
        if (!card)
            return NULL;
        PyTuple_SET_ITEM(cards, i, card);
    }
    return Py_XNewRef(cards);
}

static PyObject *refuse_card(PyObject *value)
{
    char names[512];
    int used = 0;
    for (int i = 0; i < DT_SIM_CARDS && used < (int)sizeof names; i++)
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s",
                         i ? ", " : "", dt_sim_cards[i].name);
    return PyErr_Format(PyExc_ValueError,
                        "%R is not a card that pydevtensor knows; give one of %s",
                        value, names);
}

/* _sim_cards(text): the names of the cards that text lists, separated by commas; what is
 * known of all cards for None. */
static PyObject *sim_cards(PyObject *Py_UNUSED(self), PyObject *value)
{
    if (value == Py_None)
        return known_cards();
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text)
        return NULL;
    DT_REF names = PyList_New(0);
    for (const char *last = text + length; names; text++) {
        const char *comma = memchr(text, ',', (size_t)(last - text));
        const size_t bytes = (size_t)((comma ? comma : last) - text);
        const int card = dt_sim_card_find(text, bytes);
        if (card < 0)
            return refuse_card(value);
        DT_REF name = PyUnicode_FromString(dt_sim_cards[card].name);
        if (!name || PyList_Append(names, name) < 0)
            return NULL;
        if (!comma)
            return Py_NewRef(names);
        text += bytes;
    }
    return NULL;
}

PyMethodDef dt_cuda_functions[] = {
    {"_convolution_tf32", convolution_tf32, METH_VARARGS, NULL},
    {"_products_are_recurrent", products_are_recurrent, METH_VARARGS, NULL},
    {"_cudnn_version", cudnn_version, METH_NOARGS, NULL},
    {"_cufft_version", cufft_version, METH_NOARGS, NULL},
    {"_cudnn_enabled", cudnn_enabled, METH_VARARGS, NULL},
    {"_cudnn_deterministic", cudnn_deterministic, METH_VARARGS, NULL},
    {"_deterministic", deterministic, METH_VARARGS, NULL},
    {"_device_count", device_count, METH_O, NULL},
    {"_device_why", device_why, METH_O, NULL},
    {"_device_loaded", device_loaded, METH_O, NULL},
    {"_device_index", device_index, METH_VARARGS, NULL},
    {"_device_set", set_device, METH_O, NULL},
    {"_device_properties", properties, METH_O, NULL},
    {"_device_peer", can_access_peer, METH_VARARGS, NULL},
    {"_device_synchronize", synchronize, METH_O, NULL},
    {"_device_memory_stats", memory_stats, METH_O, NULL},
    {"_device_memory_info", memory_info, METH_O, NULL},
    {"_device_reset_peaks", reset_peaks, METH_O, NULL},
    {"_device_memory_fraction", memory_fraction, METH_VARARGS, NULL},
    {"_device_empty_cache", empty_cache, METH_O, NULL},
    {"_device_seed", seed_device, METH_VARARGS, NULL},
    {"_device_initial_seed", initial_seed, METH_O, NULL},
    {"_cuda_choose", cuda_choose, METH_VARARGS, NULL},
    {"_stream_new", stream_new, METH_VARARGS, NULL},
    {"_stream_current", stream_current, METH_O, NULL},
    {"_stream_set", stream_set, METH_VARARGS, NULL},
    {"_stream_synchronize", stream_synchronize, METH_VARARGS, NULL},
    {"_stream_query", stream_query, METH_VARARGS, NULL},
    {"_stream_use", stream_use, METH_VARARGS, NULL},
    {"_event_new", event_new, METH_VARARGS, NULL},
    {"_event_record", event_record, METH_VARARGS, NULL},
    {"_event_wait", event_wait, METH_VARARGS, NULL},
    {"_event_query", event_query, METH_VARARGS, NULL},
    {"_event_synchronize", event_synchronize, METH_VARARGS, NULL},
    {"_event_elapsed", event_elapsed, METH_VARARGS, NULL},
    {"_facts", facts, METH_O, NULL},
    {"_traffic", transfers, METH_NOARGS, NULL},
    {"_sim_control", sim_control, METH_O, NULL},
    {"_sim_cards", sim_cards, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
