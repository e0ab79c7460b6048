/* The buffer protocol in both directions, and access to storages for checkpoints. */
#include "autograd/variable.h"
#include "device/released.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "tensor/ops/copy.h"
#include "tensor/view.h"

/* --- exporting a CPU tensor's memory --- */

/* The format characters of the struct module; NULL where there is none. */
static const char *const formats[DT_NDTYPES] = {
    [DT_BOOL] = "?",    [DT_UINT8] = "B",   [DT_INT8] = "b",
    [DT_INT16] = "h",   [DT_INT32] = "i",   [DT_INT64] = sizeof(long) == 8 ? "l" : "q",
    [DT_FLOAT16] = "e", [DT_FLOAT32] = "f", [DT_FLOAT64] = "d",
};

/* One export keeps the memory, even if the tensor is given another storage. */
typedef struct export {
    dt_storage *storage;
    Py_ssize_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
} export;

/* Whether the elements are in column-major (Fortran) order. */
static bool is_fortran(const dt_tensor *t)
{
    int64_t expected = 1;
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] != 1 && t->strides[d] != expected)
            return t->numel == 0;
        expected *= t->shape[d];
    }
    return true;
}

/* Why the tensor cannot be exported with these flags; NULL if it can. */
static const char *refusal(const dt_tensor *t, int flags)
{
    bool c = t->contiguous, f = is_fortran(t);
    if (dt_requires_grad(t))
        return "buffer: the Tensor requires gradients, and external writes are not "
               "differentiable; use detach()";
    if ((flags & PyBUF_WRITABLE) && t->storage->read_only)
        return "buffer: the Tensor's memory is read-only, and a writable buffer was "
               "requested; use clone()";
    if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !c) ||
        ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !f) ||
        ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !c && !f) ||
        ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !c))
        return "buffer: the Tensor is not contiguous, as was requested; use "
               "contiguous()";
    return NULL;
}

int dt_tensor_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    const dt_tensor *t = dt_tensor_of(self);
    view->obj = NULL;
    if (!t->storage)
        return DT_SET_ERROR(PyExc_BufferError, "buffer: the Tensor is empty");
    dt_dtype dtype = (dt_dtype)t->dtype;
    if (dt_device_check_memory(dt_tensor_device(t)))
        return dt_raise_status();
    if (!dt_device_is_host(dt_tensor_device(t))) {
        char text[DT_DEVICE_TEXT];
        return DT_SET_ERROR(
            PyExc_BufferError,
            "buffer: the Tensor is on %s, and only the CPU's memory can "
            "be shared; copy it with .cpu()",
            dt_device_text(dt_tensor_device(t), text));
    }
    const char *format = formats[dtype];
    if (!format)
        return DT_SET_ERROR(
            PyExc_BufferError,
            "buffer: %s has no buffer format; convert it with .to(torch.float32)",
            dt_dtype_name(dtype));
    const char *reason = refusal(t, flags);
    if (reason)
        return DT_SET_ERROR(PyExc_BufferError, "%s", reason);
    if (dt_tensor_used_by_host("memoryview", t)) {
        dt_raise();
        return -1;
    }
    export *kept = PyMem_Malloc(sizeof *kept);
    if (!kept) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t size = (Py_ssize_t)dt_dtype_size(dtype);
    kept->storage = dt_storage_retain(t->storage);
    for (int d = 0; d < t->ndim; d++) {
        kept->shape[d] = (Py_ssize_t)t->shape[d];
        kept->strides[d] = (Py_ssize_t)t->strides[d] * size;
    }
    /* Empty tensors may have no memory, and some consumers reject NULL. */
    view->buf = t->numel ? dt_tensor_lend(t) : t->storage->inline_data;
    view->obj = Py_NewRef(self);
    view->len = (Py_ssize_t)t->numel * size;
    view->itemsize = size;
    view->readonly = t->storage->read_only;
    view->ndim = t->ndim;
    view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL;
    view->shape = flags & PyBUF_ND ? kept->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? kept->strides : NULL;
    view->suboffsets = NULL;
    view->internal = kept;
    return 0;
}

void dt_tensor_release_buffer(PyObject *Py_UNUSED(self), Py_buffer *view)
{
    export *kept = view->internal;
    if (view->len)
        kept->storage->lent--;
    dt_storage_release(kept->storage);
    PyMem_Free(kept);
}

/* --- importing external memory --- */

static void release_view(PyObject *owner)
{
    Py_buffer *view = PyCapsule_GetPointer(owner, NULL);
    PyBuffer_Release(view);
    PyMem_Free(view);
}

/* A buffer to hold, writable if possible. NULL with ValueError or the exporter's
 * error. */
static Py_buffer *take_buffer(PyObject *object)
{
    if (!PyObject_CheckBuffer(object))
        return (Py_buffer *)PyErr_Format(
            PyExc_ValueError,
            "frombuffer(): a %.100s has no buffer; give bytes, a bytearray, a "
            "memoryview, an array or an mmap",
            Py_TYPE(object)->tp_name);
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    if (!view)
        return (Py_buffer *)PyErr_NoMemory();
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) == 0)
        return view;
    if (PyErr_ExceptionMatches(PyExc_BufferError) ||
        PyErr_ExceptionMatches(PyExc_TypeError) ||
        PyErr_ExceptionMatches(PyExc_ValueError)) { /* NumPy raises ValueError for
                                                       read-only arrays */
        PyErr_Clear();
        if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) == 0) {
            if (PyErr_WarnEx(PyExc_UserWarning,
                             "frombuffer(): the buffer is read-only, and so is its "
                             "tensor; use clone() to write",
                             1) == 0)
                return view;
            PyBuffer_Release(view);
        }
    }
    PyMem_Free(view);
    return NULL;
}

/* The number of elements to use; -1 with ValueError. */
static int64_t count_elements(const Py_buffer *view, int64_t size, int64_t count,
                              int64_t offset)
{
    if (view->len == 0 || count == 0)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "frombuffer(): the buffer has %zd bytes and count is %lld; neither "
            "may be 0, use torch.empty(0) instead",
            view->len, (long long)count);
    if (offset < 0 || offset >= view->len)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "frombuffer(): offset is %lld; give 0 to %zd, less than the buffer's "
            "bytes",
            (long long)offset, view->len - 1);
    int64_t room = view->len - offset;
    if (count < 0 && room % size)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "frombuffer(): %lld bytes after the offset are not a multiple of "
            "the element's %lld; give count",
            (long long)room, (long long)size);
    if (count > room / size)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "frombuffer(): count is %lld, and after the offset there is room "
            "for %lld elements of %lld bytes; give a smaller one",
            (long long)count, (long long)(room / size), (long long)size);
    return count < 0 ? room / size : count;
}

DT_PUBLIC(frombuffer, "frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, "
                      "offset: int = 0, requires_grad: bool = False)")
{
    int64_t size = (int64_t)dt_dtype_size((dt_dtype)v[1].dtype), offset = v[3].i;
    Py_buffer *view = take_buffer(args->slots[0]);
    if (!view)
        return NULL;
    DT_REF owner = PyCapsule_New(view, NULL, release_view);
    if (!owner) {
        PyBuffer_Release(view);
        PyMem_Free(view);
        return NULL;
    }
    int64_t numel = count_elements(view, size, v[2].i, offset);
    if (numel < 0)
        return NULL;
    char *data = (char *)view->buf + offset;
    if ((uintptr_t)data % (uintptr_t)size)
        return PyErr_Format(PyExc_ValueError,
                            "frombuffer(): offset %lld puts elements of %lld bytes "
                            "where they are not aligned; copy the part first, with "
                            "bytearray()",
                            (long long)offset, (long long)size);
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    object->tensor.dtype = (unsigned char)v[1].dtype;
    object->tensor.ndim = 1;
    object->tensor.shape[0] = numel;
    object->tensor.strides[0] = 1;
    PyObject *made = dt_tensor_object_over(object, dt_device_make(DT_CPU, 0), data,
                                           (size_t)(numel * size), view->readonly,
                                           dt_object_free, owner);
    if (made)
        Py_INCREF(owner);
    return dt_with_grad(args, 4, made);
}

/* --- storages, for checkpoints --- */

DT_PUBLIC(storage_key, "_storage_key(input: Tensor)")
{
    return PyLong_FromVoidPtr(v[0].tensor->storage);
}

DT_PUBLIC(storage_bytes, "_storage_bytes(input: Tensor)")
{
    const dt_tensor *t = v[0].tensor;
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    dt_tensor *out = &object->tensor;
    dt_tensor_alias(out, t);
    out->dtype = DT_UINT8;
    out->ndim = 1;
    out->offset = 0;
    out->shape[0] = (int64_t)t->storage->bytes;
    out->strides[0] = 1;
    dt_tensor_update(out);
    return (PyObject *)object;
}

DT_PUBLIC(storage_resize, "_storage_resize(input: Tensor, bytes: int)")
{
    if (v[1].i < 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "resize_(): the size is %lld; give a number of bytes",
                            (long long)v[1].i);
    return dt_storage_resize(v[0].tensor->storage, (size_t)v[1].i) < 0
               ? dt_raise()
               : Py_NewRef(Py_None);
}

DT_PUBLIC(storage_resizable, "_storage_resizable(input: Tensor)")
{
    const dt_storage *storage = v[0].tensor->storage;
    return PyBool_FromLong(!storage->borrowed && !storage->lent);
}

DT_PUBLIC(storage_extent, "_storage_extent(input: Tensor)")
{
    const dt_storage *storage = v[0].tensor->storage;
    return Py_BuildValue("Kn", (unsigned long long)(uintptr_t)storage->data,
                         (Py_ssize_t)dt_storage_room(storage));
}

DT_PUBLIC(storage_take, "_storage_take(input: Tensor, source: Tensor)")
{
    return dt_storage_take(v[0].tensor->storage, v[1].tensor->storage) < 0
               ? dt_raise()
               : Py_NewRef(Py_None);
}

DT_PUBLIC(storage_view, "_storage_view(input: Tensor, dtype: Dtype, size: Sizes, "
                        "stride: Sizes, offset: int = 0, requires_grad: bool = False)")
{
    const dt_tensor *t = v[0].tensor;
    dt_dtype dtype = (dt_dtype)v[1].dtype;
    int ndim = v[2].count, nstrides = v[3].count;
    DT_LOCAL(typed);
    if (ndim != nstrides || (uintptr_t)t->storage->data % dt_dtype_size(dtype))
        return PyErr_Format(
            PyExc_RuntimeError,
            "_storage_view(): %d sizes, %d strides and memory at %p do not "
            "match; give as many strides as sizes, and aligned memory",
            ndim, nstrides, t->storage->data);
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    dt_tensor_alias(&typed, t);
    typed.dtype = (unsigned char)dtype;
    int status =
        dt_view_as_strided(&object->tensor, &typed, ndim, v[2].ints, v[3].ints, v[4].i);
    return dt_with_grad(args, 5, dt_tensor_result(object, status));
}

static const dt_function rows[] = {
    DT_FUNCTION(frombuffer, "frombuffer",
                "A 1-dim tensor that shares a buffer's memory.\n\nbuffer supports the "
                "buffer protocol (bytes, bytearray, memoryview, array, mmap); count is "
                "in elements (-1: all), offset in bytes. requires_grad: whether "
                "gradients are computed for it. ValueError if they do not fit the "
                "buffer. A read-only buffer warns and gives a read-only tensor.",
                "torch.frombuffer(bytearray([1, 2, 3]), dtype=torch.uint8)",
                "tensor([1, 2, 3], dtype=torch.uint8)"),
    DT_FUNCTION(storage_key, "_storage_key",
                "An int that identifies the storage while it is alive.", "", ""),
    DT_FUNCTION(storage_key, "_storage_address", "The same as _storage_key().", "", ""),
    DT_FUNCTION(storage_bytes, "_storage_bytes",
                "The tensor's whole storage as a uint8 tensor.", "", ""),
    DT_FUNCTION(storage_resize, "_storage_resize",
                "Gives the tensor's storage another size in bytes, in place.", "", ""),
    DT_FUNCTION(storage_resizable, "_storage_resizable",
                "Whether the tensor's storage can have another size.", "", ""),
    DT_FUNCTION(storage_extent, "_storage_extent",
                "The address of the tensor's storage, and the most bytes that tensors "
                "on it may reach.",
                "", ""),
    DT_FUNCTION(storage_take, "_storage_take",
                "Gives the tensor's storage the memory of the source's, in place.", "",
                ""),
    DT_FUNCTION(storage_view, "_storage_view",
                "A view of the input's storage with any dtype, sizes and strides.", "",
                ""),
};

int dt_setup_buffer(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
