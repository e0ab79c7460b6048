/* `Event`: a mark in a stream. */
#include "device/transfer.h"
#include "python/arguments.h"
#include "python/types/stream.h"

typedef struct event_object {
    PyObject_HEAD dt_device device; /* device of the first record */
    void *event;                    /* created at the first record; NULL before */
    bool timing;
} event_object;

static event_object *event_of(PyObject *self)
{
    return (event_object *)self;
}

static int check(const char *function, PyObject *value)
{
    char text[DT_DESCRIBE_TEXT];
    if (PyObject_TypeCheck(value, dt_py.event_type))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s(): event is %s; give an Event", function,
                 dt_describe(value, text, sizeof text));
    return -1;
}

PyObject *dt_event_record_on(PyObject *object, dt_device device, dt_stream stream)
{
    if (check("record_event", object) < 0)
        return NULL;
    event_object *self = event_of(object);
    if (self->event && !dt_device_equal(self->device, device)) {
        char a[DT_DEVICE_TEXT], b[DT_DEVICE_TEXT];
        return PyErr_Format(PyExc_RuntimeError,
                            "record(): the event belongs to %s and the stream is on "
                            "%s; create another Event for it",
                            dt_device_text(self->device, a), dt_device_text(device, b));
    }
    const dt_backend *backend = dt_backend_of(device);
    int status = 0;
    if (!self->event) {
        self->device = device;
        status = backend->event_new(device.index, self->timing, &self->event);
    }
    if (!status)
        DT_RUN(status, true, backend->event_record(self->event, stream));
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

PyObject *dt_event_wait_on(PyObject *object, dt_stream stream)
{
    if (check("wait_event", object) < 0)
        return NULL;
    event_object *self = event_of(object);
    int status = 0;
    if (self->event)
        DT_RUN(status, true,
               dt_backend_of(self->device)->stream_wait_event(self->event, stream));
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"enable_timing", "blocking", "interprocess", NULL};
    int timing = 0, blocking = 0, interprocess = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ppp:Event", words, &timing,
                                     &blocking, &interprocess))
        return NULL;
    if (interprocess) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "Event(): events cannot be shared between processes; leave "
                        "interprocess out");
        return NULL;
    }
    event_object *self = (event_object *)type->tp_alloc(type, 0);
    if (self)
        self->timing = timing;
    return (PyObject *)self;
}

static void event_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (event_of(self)->event)
        dt_backend_of(event_of(self)->device)->event_free(event_of(self)->event);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *event_record(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"stream", NULL};
    PyObject *value = NULL;
    dt_device device;
    dt_stream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:record", words, &value) ||
        dt_stream_from_python("record", value, &device, &stream) < 0)
        return NULL;
    return dt_event_record_on(self, device, stream);
}

static PyObject *event_wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"stream", NULL};
    PyObject *value = NULL;
    dt_device device;
    dt_stream stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:wait", words, &value) ||
        dt_stream_from_python("wait", value, &device, &stream) < 0)
        return NULL;
    return dt_event_wait_on(self, stream);
}

/* 1 if the recorded work is done, 0 if not, -1 after dt_fail. */
static int reached(event_object *self)
{
    int done = 1;
    if (self->event)
        DT_RUN(done, true, dt_backend_of(self->device)->event_query(self->event));
    return done;
}

static PyObject *event_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    int done = reached(event_of(self));
    return done < 0 ? dt_raise() : PyBool_FromLong(done);
}

static PyObject *event_synchronize(PyObject *self, PyObject *unused)
{
    (void)unused;
    event_object *event = event_of(self);
    int status = 0;
    if (event->event)
        DT_RUN(status, true, dt_event_synchronize(event->device, event->event));
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

static PyObject *event_elapsed_time(PyObject *self, PyObject *end)
{
    if (check("elapsed_time", end) < 0)
        return NULL;
    event_object *a = event_of(self), *b = event_of(end);
    if (!a->timing || !b->timing)
        return PyErr_Format(PyExc_ValueError,
                            "elapsed_time(): an event does not measure time; create "
                            "both with Event(enable_timing=True)");
    if (!a->event || !b->event)
        return PyErr_Format(PyExc_ValueError,
                            "elapsed_time(): record both events first");
    if (!dt_device_equal(a->device, b->device))
        return PyErr_Format(
            PyExc_RuntimeError,
            "elapsed_time(): the events are on two devices; record both on "
            "one");
    float milliseconds = 0;
    int status;
    DT_RUN(status, true,
           dt_backend_of(a->device)->event_elapsed(a->event, b->event, &milliseconds));
    return status < 0 ? dt_raise() : PyFloat_FromDouble((double)milliseconds);
}

static PyObject *event_repr(PyObject *self)
{
    if (!event_of(self)->event)
        return PyUnicode_FromString("<torch.cuda.Event uninitialized>");
    char handle[32];
    snprintf(handle, sizeof handle, "%#zx", (size_t)event_of(self)->event);
    return PyUnicode_FromFormat("<torch.cuda.Event %s>", handle);
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    if (!event_of(self)->event)
        Py_RETURN_NONE;
    return PyObject_CallFunction((PyObject *)dt_py.device_type, "si", "cuda",
                                 (int)event_of(self)->device.index);
}

static PyObject *get_handle(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t((size_t)event_of(self)->event);
}

#define KEYWORDS(function)                                                             \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"record", KEYWORDS(event_record),
     "record($self, stream=None)\n--\n\nMark the end of the work queued on stream "
     "(None: the current stream).\n\n>>> event = torch.cuda.Event()\n>>> "
     "event.record()\n>>> event.synchronize()\n>>> event.query()\nTrue"},
    {"wait", KEYWORDS(event_wait),
     "wait($self, stream=None)\n--\n\nMake later work on stream wait for the event; "
     "does not synchronize.\n\n>>> event = torch.cuda.Event()\n>>> event.record()\n>>> "
     "event.wait(torch.cuda.Stream())"},
    {"query", event_query, METH_NOARGS,
     "query($self)\n--\n\nWhether the work before the event is done.\n\n"
     ">>> torch.cuda.Event().query()\n"
     "True"},
    {"synchronize", event_synchronize, METH_NOARGS,
     "synchronize($self)\n--\n\nSynchronize with the work before the event.\n\n>>> "
     "event = torch.cuda.Event()\n>>> event.record()\n>>> event.synchronize()"},
    {"elapsed_time", event_elapsed_time, METH_O,
     "elapsed_time($self, end_event, /)\n--\n\nMilliseconds from this event to "
     "end_event.\n\n"
     ">>> start = torch.cuda.Event(enable_timing=True)\n"
     ">>> end = torch.cuda.Event(enable_timing=True)\n"
     ">>> start.record()\n"
     ">>> end.record()\n"
     ">>> end.synchronize()\n"
     ">>> start.elapsed_time(end) >= 0\n"
     "True"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"device", get_device, NULL, "The device on which it was recorded, or None.", NULL},
    {"cuda_event", get_handle, NULL,
     "CUDA's handle, as an int; 0 before the first record.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Event(enable_timing=False, blocking=False, interprocess=False)\n--\n\nA mark in "
     "a stream, to wait for, query, or measure time with.\n\n>>> event = "
     "torch.cuda.Event()\n>>> event.record()\n>>> event.synchronize()"},
    {Py_tp_new, event_new},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_repr, event_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pydevtensor.Event",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int dt_setup_event_type(PyObject *module)
{
    dt_py.event_type = dt_add_type(module, &spec, NULL);
    return dt_py.event_type ? 0 : -1;
}
