/* `Stream`: a GPU's queue of work, which runs in order. */
#include "device/backend.h"
#include "python/functions.h"
#include "python/types/stream.h"

#include "device/stream.h"
#include "device/transfer.h"
#include "python/arguments.h"
#include "python/types/device.h"

static dt_stream_object *stream_of(PyObject *self)
{
    return (dt_stream_object *)self;
}

PyObject *dt_stream_object_new(dt_device device, void *stream)
{
    dt_stream_object *self =
        (dt_stream_object *)dt_py.stream_type->tp_alloc(dt_py.stream_type, 0);
    if (!self)
        return NULL;
    self->device = device;
    self->stream = stream;
    return (PyObject *)self;
}

int dt_cuda_device_from_python(const char *function, PyObject *value, dt_device *out)
{
    *out = dt_device_make(DT_CUDA, -1);
    if (value && value != Py_None) {
        int64_t index;
        int is_int = PyLong_Check(value) && !PyBool_Check(value)
                         ? dt_int_from_python(value, &index)
                         : 0;
        if (is_int < 0)
            return -1;
        if (is_int && (index < 0 || index >= DT_MAX_DEVICES)) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): %R is not a device index; indices start at 0", function,
                         value);
            return -1;
        }
        if (is_int)
            out->index = (signed char)index;
        else if (dt_device_from_python(function, "device", value, out) < 0)
            return -1;
        if (out->type != DT_CUDA) {
            PyErr_Format(
                PyExc_ValueError,
                "%s(): %R is not a CUDA device; give 'cuda', 'cuda:0' or an index",
                function, value);
            return -1;
        }
    }
    return dt_device_resolve(*out, out);
}

int dt_stream_from_python(const char *function, PyObject *value, dt_device *device,
                          dt_stream *stream)
{
    if (!value || value == Py_None) {
        if (dt_cuda_device_from_python(function, NULL, device) < 0)
            return -1;
        *stream = dt_stream_current(*device);
        return 0;
    }
    if (!dt_stream_check(value)) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(PyExc_TypeError, "%s(): stream is %s; give a Stream", function,
                     dt_describe(value, text, sizeof text));
        return -1;
    }
    *device = stream_of(value)->device;
    *stream = dt_stream_of(value);
    return 0;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"device", "priority", NULL};
    PyObject *value = NULL;
    int priority = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oi:Stream", words, &value,
                                     &priority))
        return NULL;
    dt_device device;
    if (dt_cuda_device_from_python("Stream", value, &device) < 0)
        return NULL;
    void *stream = NULL;
    int status;
    DT_RUN(status, true, dt_stream_acquire(device, priority, &stream));
    if (status < 0)
        return dt_raise();
    dt_stream_object *self = (dt_stream_object *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->device = device;
    self->stream = stream;
    self->priority = priority < 0 ? -1 : 0;
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (dt_stream_before *b = stream_of(self)->before, *next; b; b = next) {
        next = b->next;
        PyMem_Free(b);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *stream_synchronize(PyObject *self, PyObject *unused)
{
    (void)unused;
    int status;
    DT_RUN(status, true,
           dt_stream_synchronize(stream_of(self)->device, dt_stream_of(self)));
    if (status < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

static PyObject *stream_query(PyObject *self, PyObject *unused)
{
    (void)unused;
    int done;
    DT_RUN(done, true,
           dt_backend_of(stream_of(self)->device)->stream_query(dt_stream_of(self)));
    return done < 0 ? dt_raise() : PyBool_FromLong(done);
}

static PyObject *stream_record_event(PyObject *self, PyObject *args)
{
    PyObject *event = NULL;
    if (!PyArg_ParseTuple(args, "|O:record_event", &event))
        return NULL;
    event = event && event != Py_None
                ? Py_NewRef(event)
                : PyObject_CallNoArgs((PyObject *)dt_py.event_type);
    if (!event)
        return NULL;
    PyObject *none =
        dt_event_record_on(event, stream_of(self)->device, dt_stream_of(self));
    if (!none)
        Py_CLEAR(event);
    Py_XDECREF(none);
    return event;
}

static PyObject *stream_wait_event(PyObject *self, PyObject *event)
{
    return dt_event_wait_on(event, dt_stream_of(self));
}

static PyObject *stream_wait_stream(PyObject *self, PyObject *other)
{
    dt_device device;
    dt_stream stream;
    if (!dt_stream_check(other)) {
        char text[DT_DESCRIBE_TEXT];
        return PyErr_Format(PyExc_TypeError,
                            "wait_stream(): stream is %s; give a Stream",
                            dt_describe(other, text, sizeof text));
    }
    dt_stream_from_python("wait_stream", other, &device, &stream);
    PyObject *event = PyObject_CallNoArgs((PyObject *)dt_py.event_type);
    PyObject *recorded = event ? dt_event_record_on(event, device, stream) : NULL;
    PyObject *blocked = recorded ? dt_event_wait_on(event, dt_stream_of(self)) : NULL;
    Py_XDECREF(recorded);
    Py_XDECREF(event);
    return blocked;
}

static PyObject *stream_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    dt_stream_object *s = stream_of(self);
    dt_device current;
    if (dt_cuda_device_from_python("Stream", NULL, &current) < 0)
        return NULL;
    dt_stream_before *before = PyMem_Malloc(sizeof *before);
    if (!before)
        return PyErr_NoMemory();
    before->device = (unsigned char)current.index;
    before->stream = dt_stream_current(s->device).handle;
    before->next = s->before;
    if (dt_stream_set_current(s->device, s->stream) < 0) {
        PyMem_Free(before);
        return dt_raise();
    }
    s->before = before;
    dt_python_set_current_device(s->device.index);
    return Py_NewRef(self);
}

static PyObject *stream_exit(PyObject *self, PyObject *unused)
{
    (void)unused;
    dt_stream_object *s = stream_of(self);
    dt_stream_before *before = s->before;
    if (!before) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Stream.__exit__(): the stream was not entered; write "
                        "`with stream:`");
        return NULL;
    }
    s->before = before->next;
    int status = dt_stream_set_current(s->device, before->stream);
    dt_python_set_current_device(before->device);
    PyMem_Free(before);
    return status < 0 ? dt_raise() : Py_NewRef(Py_False);
}

static PyObject *stream_repr(PyObject *self)
{
    char text[DT_DEVICE_TEXT];
    char handle[32]; /* PyUnicode_FromFormat has no %zx before Python 3.12 */
    snprintf(handle, sizeof handle, "%#zx", (size_t)stream_of(self)->stream);
    return PyUnicode_FromFormat("<torch.cuda.Stream device=%s cuda_stream=%s>",
                                dt_device_text(stream_of(self)->device, text),
                                stream_of(self)->stream ? handle : "0x0");
}

static Py_hash_t stream_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((size_t)stream_of(self)->stream >> 4) * 67 +
                     stream_of(self)->device.index;
    return hash == -1 ? -2 : hash;
}

static PyObject *stream_compare(PyObject *a, PyObject *b, int op)
{
    if (!dt_stream_check(b) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    bool equal = dt_device_equal(stream_of(a)->device, stream_of(b)->device) &&
                 stream_of(a)->stream == stream_of(b)->stream;
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)unused;
    return dt_device_object_of(stream_of(self)->device);
}
static PyObject *get_handle(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t((size_t)stream_of(self)->stream);
}
static PyObject *get_priority(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(stream_of(self)->priority);
}

static PyMethodDef methods[] = {
    {"synchronize", stream_synchronize, METH_NOARGS,
     "synchronize($self)\n--\n\nSynchronize with all work queued on the stream.\n\n>>> "
     "torch.cuda.current_stream().synchronize()"},
    {"query", stream_query, METH_NOARGS,
     "query($self)\n--\n\nWhether all work queued on the stream is done.\n\n>>> "
     "torch.cuda.Stream().query()\nTrue"},
    {"record_event", stream_record_event, METH_VARARGS,
     "record_event($self, event=None, /)\n--\n\nRecord event (None: a new one) after "
     "the work queued so far, and return it.\n\n>>> event = "
     "torch.cuda.current_stream().record_event()\n>>> event.synchronize()"},
    {"wait_event", stream_wait_event, METH_O,
     "wait_event($self, event, /)\n--\n\nMake later work on the stream wait for event; "
     "does not synchronize.\n\n>>> event = "
     "torch.cuda.current_stream().record_event()\n>>> "
     "torch.cuda.Stream().wait_event(event)"},
    {"wait_stream", stream_wait_stream, METH_O,
     "wait_stream($self, stream, /)\n--\n\nMake later work wait for the work queued on "
     "the other stream; does not synchronize.\n\n>>> "
     "torch.cuda.Stream().wait_stream(torch.cuda.current_stream())"},
    {"__enter__", stream_enter, METH_NOARGS,
     "__enter__($self)\n--\n\nMake the stream and its device current."},
    {"__exit__", stream_exit, METH_VARARGS,
     "__exit__($self, /, *error)\n--\n\nRestore the previous stream and device."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"device", get_device, NULL, "The stream's device.", NULL},
    {"cuda_stream", get_handle, NULL, "CUDA's handle, as an int.", NULL},
    {"priority", get_priority, NULL, "-1 (first) or 0.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Stream(device=None, priority=0)\n--\n\nA queue of work on one GPU: "
                "its work runs in order, and concurrently with other streams.\n\n>>> "
                "stream = torch.cuda.Stream()\n>>> with stream:\n...     x = "
                "torch.ones(2, device='cuda')\n>>> stream.synchronize()"},
    {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},
    {Py_tp_richcompare, stream_compare},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pydevtensor.Stream",
    .basicsize = sizeof(dt_stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

DT_PUBLIC(record_stream, "record_stream(input: Tensor, stream: Any)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (Py_TYPE(args->slots[1]) != dt_py.stream_type)
        return dt_argument_error(args, 1), NULL;
    const dt_stream_object *given = stream_of(args->slots[1]);
    dt_device device = dt_tensor_device(x);
    if (!dt_device_equal(device, given->device)) {
        char has[DT_DEVICE_TEXT], is[DT_DEVICE_TEXT];
        PyErr_Format(
            PyExc_RuntimeError,
            "record_stream(): the Tensor is on %s and the stream on %s; give a "
            "stream of the Tensor's device",
            dt_device_text(device, has), dt_device_text(given->device, is));
        return NULL;
    }
    if (x->storage->data && x->storage->stream != given->stream &&
        dt_backend_of(device)->record_use(dt_stream_of(args->slots[1]),
                                          x->storage->data) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

static const dt_function rows[] = {
    DT_METHOD(record_stream, "record_stream",
              "Record a use of this Tensor's memory on stream, so that it is not "
              "reused before the work\nqueued there is done. Operations do this "
              "themselves; call it for other libraries' work."),
};

int dt_setup_stream_type(PyObject *module)
{
    dt_py.stream_type = dt_add_type(module, &spec, NULL);
    return dt_py.stream_type ? DT_ADD_FUNCTIONS(module, rows) : -1;
}
