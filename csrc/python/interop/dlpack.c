/* Exporting tensors' memory: DLPack capsules and the CUDA array interface. Simulated
 * GPUs are rejected: no other library can use their memory. */
#include "python/interop/dlpack.h"

#include "autograd/variable.h"
#include "device/stream.h"
#include "python/types/dtype.h"
#include "python/types/size.h"
#include "tensor/ops/copy.h"

#include <stdlib.h>

/* --- types and devices --- */

void dt_dlpack_type(dt_dtype dtype, uint8_t *code, uint8_t *bits)
{
    *bits = (uint8_t)(8 * dt_dtype_size(dtype));
    switch (dt_dtype_kind(dtype)) {
    case DT_KIND_BOOL:
        *code = DL_BOOL;
        break;
    case DT_KIND_INTEGER:
        *code = dt_dtype_is_signed(dtype) ? DL_INT : DL_UINT;
        break;
    default:
        *code = strcmp(dt_dtype_name(dtype), "bfloat16") ? DL_FLOAT : DL_BFLOAT;
    }
}

int dt_dlpack_is_real(dt_device device, dt_device_properties *p)
{
    if (dt_device_is_cpu(device))
        return 1;
    if (dt_backend_of(device)->device_properties(device.index, p) < 0)
        return dt_raise_status();
    return !p->simulated;
}

static int refuse_simulated(const char *op_name, dt_device device)
{
    char text[DT_DEVICE_TEXT];
    PyErr_Format(PyExc_BufferError,
                 "%s: the Tensor is on %s, a simulated GPU, whose memory no other "
                 "library can access; pass a copy made with .cpu()",
                 op_name, dt_device_text(device, text));
    return -1;
}

/* The DLPack device. Virtual GPUs are named by their physical GPU. */
static int name_device(const char *op_name, dt_device device, dl_device *out)
{
    dt_device_properties p;
    int real = dt_dlpack_is_real(device, &p);
    if (real <= 0)
        return real < 0 ? -1 : refuse_simulated(op_name, device);
    out->type = dt_device_is_cpu(device) ? DL_CPU : DL_CUDA;
    out->id = dt_device_is_cpu(device) ? 0 : p.physical;
    return 0;
}

int dt_dlpack_find_device(const char *op_name, dl_device named, dt_device *out)
{
    *out = dt_device_make(DT_CPU, 0);
    if (named.type == DL_CPU || named.type == DL_CUDA_HOST)
        return 0;
    if (named.type != DL_CUDA) {
        PyErr_Format(PyExc_BufferError,
                     "%s: DLPack's device type %d is neither a CPU (1) nor a CUDA GPU "
                     "(2); copy the data to the CPU first",
                     op_name, named.type);
        return -1;
    }
    int count = dt_device_count(DT_CUDA), current = dt_python_current_device();
    bool simulated = false;
    for (int i = 0; i < count; i++) {
        dt_device device = dt_device_make(DT_CUDA, (current + i) % count);
        dt_device_properties p;
        int real = dt_dlpack_is_real(device, &p);
        if (real < 0)
            return -1;
        simulated |= !real;
        if (real && p.physical == named.id) {
            *out = device;
            return 0;
        }
    }
    PyErr_Format(
        PyExc_BufferError, "%s: %s; copy the data to the CPU first", op_name,
        simulated
            ? "this program's GPUs are simulated, and cannot access a real GPU's memory"
        : count ? "the memory is on a GPU that this program cannot see"
                : "the memory is on a GPU, and this program has none");
    return -1;
}

/* Makes one stream of the device wait for the work queued on another. */
static int order_streams(dt_device device, dt_stream first, dt_stream then)
{
    const dt_backend *backend = dt_backend_of(device);
    void *event = NULL;
    if (first.handle == then.handle)
        return 0;
    if (backend->event_new(device.index, false, &event) < 0)
        return -1;
    int status = backend->event_record(event, first);
    if (status == 0)
        status = backend->stream_wait_event(event, then);
    backend->event_free(event);
    return status;
}

/* --- exporting --- */

/* What an export keeps alive, behind the capsule's struct. No Python objects: the
 * consumer may release it in any thread. */
typedef struct export {
    union {
        dl_legacy legacy;
        dl_versioned versioned;
    };
    dt_storage *storage;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
} export;

static void free_export(void *kept)
{
    dt_storage_release(((export *)kept)->storage);
    free(kept);
}
static void free_legacy(dl_legacy *managed)
{
    free_export(managed->context);
}
static void free_versioned(dl_versioned *managed)
{
    free_export(managed->context);
}

/* Releases the contents of a capsule that was not consumed. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, LEGACY)) {
        dl_legacy *managed = PyCapsule_GetPointer(capsule, LEGACY);
        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, VERSIONED)) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        managed->deleter(managed);
    }
}

static PyObject *make_capsule(const dt_tensor *t, dl_device device, bool versioned,
                              bool copied)
{
    export *kept = calloc(1, sizeof *kept);
    if (!kept)
        return PyErr_NoMemory();
    dl_array *array = versioned ? &kept->versioned.array : &kept->legacy.array;
    for (int d = 0; d < t->ndim; d++) {
        kept->shape[d] = t->shape[d];
        kept->strides[d] = t->strides[d];
    }
    array->data = t->numel ? dt_tensor_data(t) : NULL;
    array->device = device;
    array->ndim = t->ndim;
    array->lanes = 1;
    array->shape = kept->shape;
    array->strides = kept->strides;
    dt_dlpack_type((dt_dtype)t->dtype, &array->code, &array->bits);
    kept->storage = dt_storage_retain(t->storage);
    if (versioned) {
        kept->versioned.major = DL_MAJOR;
        kept->versioned.minor = DL_MINOR;
        kept->versioned.context = kept;
        kept->versioned.deleter = free_versioned;
        kept->versioned.flags = (t->storage->read_only ? (uint64_t)DL_READ_ONLY : 0) |
                                (copied ? (uint64_t)DL_COPIED : 0);
    } else {
        kept->legacy.context = kept;
        kept->legacy.deleter = free_legacy;
    }
    PyObject *capsule =
        PyCapsule_New(kept, versioned ? VERSIONED : LEGACY, drop_capsule);
    if (!capsule)
        free_export(kept);
    return capsule;
}

/* Two ints of a tuple or list; -1 with TypeError, or RuntimeError for other tuples. */
static int take_pair(const dt_args *args, int i, int64_t *out)
{
    PyObject *value = args->slots[i];
    bool sequence = PyTuple_Check(value) || PyList_Check(value);
    if (sequence) {
        PyObject *items = PySequence_Tuple(value);
        if (!items)
            return -1;
        int status = PyTuple_GET_SIZE(items) == 2;
        for (int k = 0; k < 2 && status > 0; k++)
            status = dt_int_from_python(PyTuple_GET_ITEM(items, k), &out[k]);
        Py_DECREF(items);
        if (status)
            return status < 0 ? -1 : 0;
    }
    PyErr_Format(sequence ? PyExc_RuntimeError : PyExc_TypeError,
                 "%s(): %s is %R; give a tuple of two ints", args->signature->name,
                 args->signature->parameters[i].name, value);
    return -1;
}

/* Makes the consumer's stream wait for the work queued on the tensor's stream. */
static int hand_over(const dt_args *args, int i, dt_device device)
{
    PyObject *value = args->slots[i];
    int64_t number = 0;
    if (!value || value == Py_None)
        number = value ? 1 : -1;
    else if (PyBool_Check(value) || !PyLong_Check(value)) {
        PyErr_Format(PyExc_TypeError,
                     "__dlpack__(): stream is %R; give an int, the handle of a stream, "
                     "or None",
                     value);
        return -1;
    } else if (dt_int_from_python(value, &number) < 0)
        return -1;
    if (number == -1)
        return 0;
    if (dt_device_is_cpu(device)) {
        if (value == Py_None)
            return 0;
        PyErr_Format(PyExc_AssertionError,
                     "__dlpack__(): stream is %lld, and the Tensor is on the CPU, "
                     "which has no streams; omit it",
                     (long long)number);
        return -1;
    }
    if (number <= 0) {
        PyErr_Format(PyExc_ValueError,
                     "__dlpack__(): stream is %lld; give 1 for CUDA's default stream, "
                     "-1 for none, or the handle of a stream",
                     (long long)number);
        return -1;
    }
    dt_stream from = dt_stream_current(device), to = from;
    to.handle = number == 1 ? NULL : (void *)(uintptr_t)number;
    return order_streams(device, from, to) < 0 ? dt_raise_status() : 0;
}

DT_PUBLIC(dlpack, "__dlpack__(self: Tensor, *, stream: Any = -1, "
                  "max_version: Any = None, dl_device: Any = None, copy: bool = None)")
{
    dt_tensor *t;
    int64_t version[2] = {0, 0}, named[2];
    bool given = dt_given(args, 4), copied = false;
    if (dt_take_tensor(args, 0, &t) < 0 ||
        (dt_given(args, 2) && take_pair(args, 2, version) < 0) ||
        (given && dt_take_bool(args, 4, &copied) < 0))
        return NULL;
    if (dt_requires_grad(t)) {
        PyErr_SetString(PyExc_BufferError,
                        "__dlpack__(): the Tensor requires gradients, and external "
                        "writes to its memory are not differentiable; use .detach()");
        return NULL;
    }
    dt_device device = dt_tensor_device(t), target = device;
    dl_device name;
    if (dt_given(args, 3)) {
        if (take_pair(args, 3, named) < 0)
            return NULL;
        name.type = named[0] == (int32_t)named[0] ? (int32_t)named[0] : -1;
        name.id = named[1] == (int32_t)named[1] ? (int32_t)named[1] : -1;
        if (dt_dlpack_find_device("__dlpack__()", name, &target) < 0)
            return NULL;
    }
    if (name_device("__dlpack__()", target, &name) < 0)
        return NULL;
    bool moves = !dt_device_equal(device, target);
    if (moves && given && !copied) {
        char from[DT_DEVICE_TEXT], to[DT_DEVICE_TEXT];
        PyErr_Format(PyExc_ValueError,
                     "__dlpack__(): the Tensor is on %s, and %s was requested with "
                     "copy=False; omit copy",
                     dt_device_text(device, from), dt_device_text(target, to));
        return NULL;
    }
    bool versioned = version[0] >= DL_MAJOR;
    dt_tensor shared = {.storage = NULL};
    PyObject *capsule = NULL;
    copied |= moves;
    if (copied) {
        int status;
        DT_RUN(status, true, dt_to(&shared, t, (dt_dtype)t->dtype, target));
        if (status < 0)
            return dt_raise();
    } else {
        dt_tensor_alias(&shared, t);
    }
    if (shared.storage->read_only && !versioned)
        PyErr_SetString(
            PyExc_BufferError,
            "__dlpack__(): the Tensor's memory is read-only, which capsules before "
            "version 1 cannot express; pass max_version=(1, 0), or use .clone()");
    else if (hand_over(args, 1, target) == 0)
        capsule = make_capsule(&shared, name, versioned, copied);
    dt_tensor_clear(&shared);
    return capsule;
}

DT_PUBLIC(dlpack_device, "__dlpack_device__(self: Tensor)")
{
    dt_tensor *t;
    dl_device name;
    if (dt_take_tensor(args, 0, &t) < 0 ||
        name_device("__dlpack_device__()", dt_tensor_device(t), &name) < 0)
        return NULL;
    return Py_BuildValue("(ii)", (int)name.type, (int)name.id);
}

DT_PUBLIC(to_dlpack, "to_dlpack(tensor: Tensor)")
{
    dt_tensor *t;
    if (dt_take_tensor(args, 0, &t) < 0)
        return NULL;
    return PyObject_CallMethod(args->slots[0], "__dlpack__", NULL);
}

/* --- CUDA array interface --- */

static PyObject *cuda_typestr(dt_dtype dtype)
{
    uint8_t code, bits;
    dt_dlpack_type(dtype, &code, &bits);
    int bytes = bits / 8;
    char kind = code == DL_BOOL     ? 'b'
                : code == DL_INT    ? 'i'
                : code == DL_UINT   ? 'u'
                : code == DL_BFLOAT ? 'V'
                                    : 'f';
    return PyUnicode_FromFormat("%c%c%d", bytes == 1 ? '|' : '<', kind, bytes);
}

static PyObject *cuda_strides(const dt_tensor *t)
{
    int64_t strides[DT_MAX_NDIM];
    if (t->contiguous)
        return Py_NewRef(Py_None);
    for (int d = 0; d < t->ndim; d++)
        strides[d] = t->strides[d] * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
    return dt_int_tuple_new(t->ndim, strides);
}

static PyObject *get_cuda_array_interface(PyObject *self, void *unused)
{
    (void)unused;
    const dt_tensor *t = dt_tensor_of(self);
    dt_device device = dt_tensor_device(t);
    dt_device_properties p;
    int real = dt_dlpack_is_real(device, &p);
    if (real < 0)
        return NULL;
    if (dt_device_is_cpu(device) || !real) {
        PyErr_Format(PyExc_AttributeError,
                     "__cuda_array_interface__: the Tensor is on %s; %s",
                     real ? "the CPU" : "a simulated GPU, whose memory CUDA cannot see",
                     real ? "copy it to a GPU with .cuda()"
                          : "copy it with .cpu() and use NumPy's interface");
        return NULL;
    }
    if (dt_requires_grad(t)) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "__cuda_array_interface__: the Tensor requires gradients, and external "
            "writes to its memory are not differentiable; use .detach()");
        return NULL;
    }
    void *stream = dt_stream_current(device).handle;
    PyObject *shape = dt_int_tuple_new(t->ndim, t->shape);
    PyObject *typestr = cuda_typestr((dt_dtype)t->dtype);
    PyObject *strides = cuda_strides(t);
    PyObject *data =
        Py_BuildValue("(NN)", PyLong_FromVoidPtr(t->numel ? dt_tensor_data(t) : NULL),
                      PyBool_FromLong(t->storage->read_only));
    PyObject *order = stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(1);
    PyObject *result = NULL;
    if (shape && typestr && strides && data && order)
        result = Py_BuildValue("{sOsOsOsOsOsi}", "shape", shape, "typestr", typestr,
                               "strides", strides, "data", data, "stream", order,
                               "version", 3);
    Py_XDECREF(shape);
    Py_XDECREF(typestr);
    Py_XDECREF(strides);
    Py_XDECREF(data);
    Py_XDECREF(order);
    return result;
}

static PyGetSetDef attributes[] = {
    {"__cuda_array_interface__", get_cuda_array_interface, NULL,
     "The memory of a Tensor on a real GPU, for CuPy, Numba and others (version 3).\n\n"
     "AttributeError on the CPU and on simulated GPUs, RuntimeError for a Tensor that "
     "requires gradients.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const dt_function rows[] = {
    DT_METHOD(
        dlpack, "__dlpack__",
        "A DLPack capsule of the Tensor's memory, for another library's "
        "from_dlpack.\n\nstream is the consumer's on a GPU (a handle, 1 for CUDA's "
        "default stream, -1 for no synchronization); max_version (1, 0) or more gives "
        "a versioned capsule, which can be read-only; dl_device (1, 0) requests a copy "
        "on the CPU; copy=True always copies, False never. BufferError if the Tensor "
        "requires gradients or is on a simulated GPU."),
    DT_METHOD(dlpack_device, "__dlpack_device__",
              "The Tensor's DLPack device: (1, 0) is the CPU, (2, i) CUDA GPU i. "
              "BufferError on a simulated GPU."),
    DT_FUNCTION(to_dlpack, "to_dlpack",
                "A DLPack capsule of the tensor's memory: tensor.__dlpack__()."),
};

int dt_setup_dlpack(PyObject *module)
{
    if (DT_ADD_FUNCTIONS(module, rows) < 0)
        return -1;
    return dt_add_properties(attributes);
}
