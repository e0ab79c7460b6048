/* The functions behind pydevtensor.cuda.memory: the memory of GPUs by block, storage
 * and event. */
#include "device/memory_history.h"
#include "device/memory_settings.h"
#include "device/storage.h"
#include "python/errors.h"
#include "python/source_lines.h"
#include "python/types/device.h"

#define ADDRESS(pointer) ((unsigned long long)(uintptr_t)(pointer))

typedef struct blocks_found {
    PyObject *list;
    int device;
} blocks_found;

static void append_block(void *context, const dt_memory_block *b)
{
    blocks_found *found = context;
    dt_list_append(
        &found->list,
        Py_BuildValue("(KKKnnNNN)", ADDRESS(b->segment), ADDRESS(b->data),
                      ADDRESS(b->stream), (Py_ssize_t)b->size, (Py_ssize_t)b->requested,
                      PyBool_FromLong(b->taken), PyBool_FromLong(b->pending),
                      PyBool_FromLong(dt_memory_grows(found->device, b->data))));
}

/* _device_memory_blocks(device): (segment, address, stream, size, requested, taken,
 * pending, expandable) of each block of the cache. */
static PyObject *memory_blocks(PyObject *Py_UNUSED(self), PyObject *value)
{
    dt_device device;
    if (dt_take_accelerator("memory_snapshot", value, &device) < 0)
        return NULL;
    blocks_found found = {PyList_New(0), device.index};
    if (found.list)
        dt_backend_of(device)->memory_blocks(device.index, append_block, &found);
    return found.list;
}

static void append_storage(void *context, const dt_storage *s)
{
    char shape[DT_SHAPE_TEXT];
    const bool known = s->asked.ndim != DT_ASKED_NOTHING;
    dt_list_append(context,
                   Py_BuildValue("(Kniss)", ADDRESS(s->data), (Py_ssize_t)s->bytes,
                                 s->line,
                                 known ? dt_dtype_name((dt_dtype)s->asked.dtype) : "",
                                 known ? dt_shape_text(s->asked.ndim, s->asked.shape,
                                                       shape, sizeof shape)
                                       : ""));
}

/* _device_storages(device): (address, bytes, line, dtype, shape) of each live storage. */
static PyObject *storages(PyObject *Py_UNUSED(self), PyObject *value)
{
    dt_device device;
    if (dt_take_accelerator("memory_snapshot", value, &device) < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    if (list)
        dt_storages_visit(device, append_storage, &list);
    return list;
}

static void append_event(void *context, const dt_memory_event *e)
{
    static const char *const actions[] = {
        [DT_MEMORY_ALLOCATED] = "alloc",
        [DT_MEMORY_FREED] = "free",
        [DT_MEMORY_SEGMENT_ALLOCATED] = "segment_alloc",
        [DT_MEMORY_SEGMENT_FREED] = "segment_free",
        [DT_MEMORY_SEGMENT_MAPPED] = "segment_map",
        [DT_MEMORY_SEGMENT_UNMAPPED] = "segment_unmap"};
    dt_list_append(context,
                   Py_BuildValue("(LKKLiis)", (long long)e->time, ADDRESS(e->data),
                                 ADDRESS(e->stream), (long long)e->bytes, e->line,
                                 (int)e->device.index, actions[e->action]));
}

/* _memory_history(capacity): keeps the lines and so many events from now on; a negative
 * one keeps nothing. */
static PyObject *memory_history(PyObject *Py_UNUSED(self), PyObject *value)
{
    long long capacity = PyLong_AsLongLong(value);
    if (capacity == -1 && PyErr_Occurred())
        return NULL;
    if (capacity < 0)
        dt_memory_history_stop();
    else if (dt_memory_history_start(capacity) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* _memory_events(): (time, address, stream, bytes, line, device, action) of what was
 * kept; None if nothing is. */
static PyObject *memory_events(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    if (!dt_memory_history_running())
        Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    if (list)
        dt_memory_history_read(append_event, &list);
    return list;
}

/* _accelerator_setAllocatorSettings(text) */
static PyObject *set_settings(PyObject *Py_UNUSED(self), PyObject *value)
{
    if (!PyUnicode_Check(value))
        return PyErr_Format(PyExc_TypeError,
                            "the allocator's settings are a str, not %.100s; give "
                            "'key:value,key:value'",
                            Py_TYPE(value)->tp_name);
    const char *text = PyUnicode_AsUTF8(value);
    if (!text)
        return NULL;
    if (dt_memory_settings_set(text) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

/* _accelerator_getAllocatorSettings(): the text that was given last. */
static PyObject *get_settings(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    const dt_memory_settings *settings = dt_memory_settings_get();
    return settings ? PyUnicode_FromString(settings->text) : dt_raise();
}

/* _memory_settings(): (text, max_split_size, garbage_collection_threshold,
 * expandable_segments, divisions); -1 where all blocks are split. */
static PyObject *memory_settings(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    const dt_memory_settings *s = dt_memory_settings_get();
    PyObject *list = s ? PyList_New(0) : dt_raise();
    for (int i = 0; i < DT_MEMORY_RANGES; i++)
        dt_list_append(&list, list ? PyLong_FromSize_t(s->divisions[i]) : NULL);
    if (!list)
        return NULL;
    return Py_BuildValue("(sLdNN)", s->text, (long long)s->max_split,
                         s->garbage_collection_threshold,
                         PyBool_FromLong(s->expandable_segments), list);
}

PyMethodDef dt_memory_functions[] = {
    {"_accelerator_setAllocatorSettings", set_settings, METH_O, NULL},
    {"_accelerator_getAllocatorSettings", get_settings, METH_NOARGS, NULL},
    {"_memory_settings", memory_settings, METH_NOARGS, NULL},
    {"_device_memory_blocks", memory_blocks, METH_O, NULL},
    {"_device_storages", storages, METH_O, NULL},
    {"_memory_history", memory_history, METH_O, NULL},
    {"_memory_events", memory_events, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
