/* `from_dlpack`: Tensors over other libraries' memory. The capsule comes from
 * outside, so everything in it is checked. */
#include "python/interop/dlpack.h"

#include "autograd/variable.h"
#include "device/stream.h"
#include "tensor/ops/copy.h"

static int dtype_from(const dl_array *array)
{
    for (int d = 0; d < DT_NDTYPES; d++) {
        uint8_t code, bits;
        dt_dlpack_type((dt_dtype)d, &code, &bits);
        if (code == array->code && bits == array->bits && array->lanes == 1)
            return d;
    }
    PyErr_Format(PyExc_BufferError,
                 "from_dlpack(): no tensor type matches DLPack's type code %d with %d "
                 "bits and %d lanes; convert first, e.g. to float32",
                 array->code, array->bits, array->lanes);
    return -1;
}

/* Other libraries' deleters may use Python; they take the GIL themselves. */
static void release_legacy(void *owner)
{
    dl_legacy *managed = owner;
    if (managed->deleter && Py_IsInitialized())
        managed->deleter(managed);
}
static void release_versioned(void *owner)
{
    dl_versioned *managed = owner;
    if (managed->deleter && Py_IsInitialized())
        managed->deleter(managed);
}

static int refuse(const char *reason)
{
    PyErr_Format(PyExc_BufferError, "from_dlpack(): %s", reason);
    return -1;
}

/* Reads and checks the array's geometry into t, and the bytes from its first element
 * to the end of its last. */
static int read_geometry(const dl_array *array, dt_tensor *t, size_t *reach)
{
    int dtype = dtype_from(array);
    if (dtype < 0)
        return -1;
    if (array->ndim < 0 || array->ndim > DT_MAX_NDIM) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack(): the array has %d dimensions, a tensor has 0 to "
                     "%d; reshape it first",
                     (int)array->ndim, DT_MAX_NDIM);
        return -1;
    }
    if (array->ndim && !array->shape)
        return refuse("the capsule has no shape; ask its producer for a valid one");
    t->dtype = (unsigned char)dtype;
    t->ndim = (unsigned char)array->ndim;
    for (int d = 0; d < t->ndim; d++)
        t->shape[d] = array->shape[d];
    int64_t size = (int64_t)dt_dtype_size((dt_dtype)dtype), last = 0;
    int64_t numel = dt_shape_numel("from_dlpack", t->ndim, t->shape,
                                   dt_dtype_size((dt_dtype)dtype));
    if (numel < 0)
        return dt_raise_status();
    dt_shape_strides(t->ndim, t->shape, t->strides);
    for (int d = 0; d < t->ndim && array->strides && numel; d++) {
        int64_t stride = array->strides[d], steps;
        if (stride < 0 && t->shape[d] > 1)
            return refuse("the array has a negative stride, which tensors cannot have; "
                          "copy it first");
        t->strides[d] = t->shape[d] > 1 ? stride : t->strides[d];
        if (__builtin_mul_overflow(t->shape[d] - 1, t->strides[d], &steps) ||
            __builtin_add_overflow(last, steps, &last))
            return refuse("the strides exceed the address space; ask the capsule's "
                          "producer for a valid one");
    }
    if (!array->strides && numel)
        last = numel - 1;
    int64_t bytes = 0;
    if (numel && (__builtin_add_overflow(last, 1, &last) ||
                  __builtin_mul_overflow(last, size, &bytes)))
        return refuse("the strides exceed the address space; ask the capsule's "
                      "producer for a valid one");
    *reach = (size_t)bytes;
    return 0;
}

/* A Tensor over the array's memory, which owner keeps alive. Takes over owner only
 * on success. */
static PyObject *adopt(const dl_array *array, bool read_only, void (*release)(void *),
                       void *owner)
{
    dt_device device;
    size_t bytes;
    dt_tensor_object *object = NULL;
    if (dt_dlpack_find_device("from_dlpack()", array->device, &device) < 0)
        return NULL;
    object = dt_tensor_object_new();
    if (!object)
        return NULL;
    dt_tensor *t = &object->tensor;
    if (read_geometry(array, t, &bytes) < 0)
        goto fail;
    char *data = bytes ? (char *)array->data + array->byte_offset : NULL;
    if (bytes && !array->data) {
        refuse("the capsule has no memory for its elements; ask its producer for a "
               "valid one");
        goto fail;
    }
    if ((uintptr_t)data & (dt_dtype_size((dt_dtype)t->dtype) - 1)) {
        refuse("the elements are not aligned in memory; copy the array first");
        goto fail;
    }
    t->offset = 0;
    t->history = NULL;
    t->unversioned = false;
    t->storage =
        dt_storage_new_borrowed(device, data, bytes, read_only, release, owner);
    if (!t->storage) {
        dt_raise();
        goto fail;
    }
    dt_tensor_update(t);
    return (PyObject *)object;
fail:
    Py_DECREF((PyObject *)object);
    return NULL;
}

/* Consumes a capsule and returns a Tensor over its memory. */
static PyObject *from_capsule(PyObject *capsule, bool *copied)
{
    PyObject *made = NULL;
    *copied = false;
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        if (managed->major != DL_MAJOR) {
            PyErr_Format(
                PyExc_BufferError,
                "from_dlpack(): the capsule has DLPack version %u.%u, and version %d "
                "is supported; ask its producer with max_version=(%d, %d)",
                (unsigned)managed->major, (unsigned)managed->minor, DL_MAJOR, DL_MAJOR,
                DL_MINOR);
            return NULL;
        }
        *copied = (managed->flags & DL_COPIED) != 0;
        made = adopt(&managed->array, (managed->flags & DL_READ_ONLY) != 0,
                     release_versioned, managed);
        if (made)
            PyCapsule_SetName(capsule, USED_VERSIONED);
        return made;
    }
    if (PyCapsule_IsValid(capsule, LEGACY)) {
        dl_legacy *managed = PyCapsule_GetPointer(capsule, LEGACY);
        made = adopt(&managed->array, false, release_legacy, managed);
        if (made)
            PyCapsule_SetName(capsule, USED_LEGACY);
        return made;
    }
    char text[DT_DESCRIBE_TEXT];
    bool used = PyCapsule_IsValid(capsule, USED_LEGACY) ||
                PyCapsule_IsValid(capsule, USED_VERSIONED);
    PyErr_Format(PyExc_RuntimeError,
                 used ? "from_dlpack(): the capsule was already consumed%.0s; ask for "
                        "another with __dlpack__()"
                      : "from_dlpack(): the argument is %s; give an object with "
                        "__dlpack__(), or its capsule",
                 dt_describe(capsule, text, sizeof text));
    return NULL;
}

/* The device that object says its memory is on. */
static int ask_device(PyObject *object, dl_device *out)
{
    PyObject *pair = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (!pair)
        return -1;
    int64_t numbers[2] = {0, 0};
    int status = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2;
    for (int i = 0; i < 2 && status > 0; i++)
        status = dt_int_from_python(PyTuple_GET_ITEM(pair, i), &numbers[i]);
    if (status == 0)
        PyErr_Format(PyExc_TypeError,
                     "from_dlpack(): __dlpack_device__() of a %.100s returned %R; it "
                     "must return a tuple of two ints",
                     Py_TYPE(object)->tp_name, pair);
    Py_DECREF(pair);
    out->type = numbers[0] == (int32_t)numbers[0] ? (int32_t)numbers[0] : -1;
    out->id = numbers[1] == (int32_t)numbers[1] ? (int32_t)numbers[1] : -1;
    return status > 0 ? 0 : -1;
}

/* kwargs[name] = value, which is taken over; false with an exception set. */
static bool put(PyObject *words, const char *name, PyObject *value)
{
    int status = value ? PyDict_SetItemString(words, name, value) : -1;
    Py_XDECREF(value);
    return status == 0;
}

/* Keyword arguments of a __dlpack__ call; `all` adds those of version 1. */
static PyObject *keywords(dt_device where, bool all, bool to_cpu, PyObject *copy)
{
    PyObject *words = PyDict_New();
    if (!words)
        return NULL;
    bool good = true;
    if (!dt_device_is_cpu(where)) {
        void *stream = dt_stream_current(where).handle;
        good = put(words, "stream",
                   stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(1));
    }
    if (all && good)
        good = put(words, "max_version", Py_BuildValue("(ii)", DL_MAJOR, DL_MINOR));
    if (all && good && to_cpu)
        good = put(words, "dl_device", Py_BuildValue("(ii)", DL_CPU, 0));
    if (all && good && copy)
        good = put(words, "copy", Py_NewRef(copy));
    if (!good)
        Py_CLEAR(words);
    return words;
}

/* The capsule of an object that has __dlpack__. */
static PyObject *ask_capsule(PyObject *object, dt_device where, bool to_cpu,
                             PyObject *copy)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *nothing = PyTuple_New(0), *capsule = NULL, *words = NULL;
    if (!method || !nothing)
        goto done;
    words = keywords(where, true, to_cpu, copy);
    if (!words)
        goto done;
    capsule = PyObject_Call(method, nothing, words);
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* from before version 1: accepts only stream */
        Py_DECREF(words);
        words = keywords(where, false, false, NULL);
        if (words)
            capsule = PyObject_Call(method, nothing, words);
    }
done:
    Py_XDECREF(words);
    Py_XDECREF(nothing);
    Py_XDECREF(method);
    return capsule;
}

/* Copies and moves the tensor (taken over) as requested. */
static PyObject *fit(PyObject *made, bool copied, const dt_device *wanted,
                     PyObject *copy)
{
    const dt_tensor *t = dt_tensor_of(made);
    dt_device target = wanted ? *wanted : dt_tensor_device(t);
    bool moves = !dt_device_equal(target, dt_tensor_device(t));
    if (!moves && (copied || copy != Py_True))
        return made;
    if (copy == Py_False) {
        char from[DT_DEVICE_TEXT], to[DT_DEVICE_TEXT];
        PyErr_Format(PyExc_ValueError,
                     "from_dlpack(): the data are on %s, and %s was requested with "
                     "copy=False; omit copy",
                     dt_device_text(dt_tensor_device(t), from),
                     dt_device_text(target, to));
        Py_DECREF(made);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out) {
        Py_DECREF(made);
        return NULL;
    }
    int status;
    DT_RUN(status, true, dt_to(&out->tensor, t, (dt_dtype)t->dtype, target));
    Py_DECREF(made);
    return dt_tensor_result(out, status);
}

DT_PUBLIC(from_dlpack,
          "from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool = None)")
{
    PyObject *object = args->slots[0], *copy = NULL;
    dt_device target, where, *wanted = NULL;
    bool flag, copied = false;
    if (dt_given(args, 1)) {
        if (dt_take_device(args, 1, &target) < 0)
            return NULL;
        wanted = &target;
    }
    if (dt_given(args, 2)) {
        if (dt_take_bool(args, 2, &flag) < 0)
            return NULL;
        copy = flag ? Py_True : Py_False;
    }
    if (dt_tensor_check(object)) { /* our own tensors, even on simulated GPUs */
        if (dt_requires_grad(dt_tensor_of(object))) {
            PyErr_SetString(PyExc_BufferError,
                            "from_dlpack(): the Tensor requires gradients, which would "
                            "be lost; use .detach()");
            return NULL;
        }
        dt_tensor_object *same = dt_tensor_object_new();
        if (!same)
            return NULL;
        dt_tensor_alias(&same->tensor, dt_tensor_of(object));
        return fit((PyObject *)same, false, wanted, copy);
    }
    PyObject *method = NULL;
    if (!PyCapsule_CheckExact(object)) {
        method = PyObject_GetAttrString(object, "__dlpack__");
        if (!method && !PyErr_ExceptionMatches(PyExc_AttributeError))
            return NULL;
        PyErr_Clear();
    }
    if (!method) { /* a capsule, or rejected as not being one */
        if (wanted || copy) {
            PyErr_SetString(
                PyExc_AssertionError,
                "from_dlpack(): device and copy do not apply to a capsule; give the "
                "object that made it, or use .to() and .clone() afterwards");
            return NULL;
        }
        return from_capsule(object, &copied);
    }
    Py_DECREF(method);
    dl_device named;
    if (ask_device(object, &named) < 0)
        return NULL;
    /* Ask the producer for a CPU copy if we cannot access its device. */
    bool to_cpu = wanted && dt_device_is_cpu(target) && named.type != DL_CPU &&
                  named.type != DL_CUDA_HOST;
    if (to_cpu)
        where = target;
    else if (dt_dlpack_find_device("from_dlpack()", named, &where) < 0)
        return NULL;
    PyObject *capsule = ask_capsule(object, where, to_cpu, copy);
    if (!capsule)
        return NULL;
    PyObject *made = from_capsule(capsule, &copied);
    Py_DECREF(capsule);
    return made ? fit(made, copied, wanted, copy) : NULL;
}

static const dt_function rows[] = {
    DT_FUNCTION(from_dlpack, "from_dlpack",
                "A Tensor that shares the memory of another library's "
                "array.\n\next_tensor has __dlpack__ and __dlpack_device__ (NumPy, "
                "PyTorch, CuPy, JAX), or is a capsule, which is consumed. device moves "
                "the data there; copy=True always copies, copy=False never (ValueError "
                "if a copy is needed). Read-only memory gives a read-only Tensor. "
                "BufferError for unsupported types, layouts and devices."),
};

int dt_setup_dlpack_import(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
