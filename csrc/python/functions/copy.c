/* From one type, device or layout to another; copies. */
#include <string.h>

#include "python/types/device.h"
#include "python/types/format.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "autograd/recorded.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"

/* self itself where nothing changes and no copy is asked for, else a converted copy. */
static PyObject *convert(PyObject *self, dt_dtype dtype, dt_device device, bool copy,
                         bool non_blocking)
{
    const dt_tensor *x = dt_tensor_of(self);
    dt_device from = dt_tensor_device(x);
    if (!copy && x->dtype == dtype && dt_device_equal(from, device))
        return Py_NewRef(self);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    bool waits = !dt_device_equal(from, device);
    if (non_blocking && waits && x->dtype == dtype && x->storage->pinned)
        DT_RUN(status, true, dt_recorded_to_non_blocking(&out->tensor, x, device));
    else
        DT_RUN(status, waits || x->numel > DT_LONG_NUMEL,
               dt_recorded_to(&out->tensor, x, dtype, device));
    return dt_tensor_result(out, status);
}

/* made, which is `self` in another type or on another device (or NULL), brought into
 * the format of the argument at i; `copy`: into memory of its own. Takes the reference
 * over; NULL with an exception set. */
static PyObject *formatted(const dt_args *args, int i, PyObject *made, bool copy)
{
    dt_format format = DT_FORMAT_PRESERVE;
    if (!made)
        return NULL;
    const dt_tensor *x = dt_tensor_of(made);
    if (dt_take_format(args, i, &format) < 0 ||
        (dt_format_check(args->signature->name, format, x->ndim) < 0 &&
         (dt_raise(), true))) {
        Py_DECREF(made);
        return NULL;
    }
    bool own = made != args->slots[0];
    bool fits = format == DT_FORMAT_PRESERVE || dt_format_is_of(format, x);
    /* As in PyTorch, contiguous_format is what a tensor has that has no other one. */
    if (format == DT_FORMAT_CONTIGUOUS && !own && !copy)
        fits = x->contiguous || !(dt_format_is_of(DT_FORMAT_CHANNELS, x) ||
                                  dt_format_is_of(DT_FORMAT_CHANNELS_3D, x));
    if (fits && (own || !copy))
        return made;
    dt_tensor_object *out = dt_tensor_object_new();
    dt_tensor turned = {.storage = NULL}, dense = {.storage = NULL};
    if (!out) {
        Py_DECREF(made);
        return NULL;
    }
    int64_t order[DT_MAX_NDIM], inverse[DT_MAX_NDIM];
    int status;
    DT_BEGIN_ALLOW_THREADS
    if (format == DT_FORMAT_CONTIGUOUS) {
        status = x->contiguous ? dt_recorded_to(&out->tensor, x, (dt_dtype)x->dtype,
                                                dt_tensor_device(x))
                               : dt_recorded_contiguous(&out->tensor, x);
    } else {
        /* Turned so that the channels are last, dense, and turned back. */
        dt_format_order(x->ndim, order, inverse);
        status = DT_CALL(permute, &turned, dt_value_tensor(x),
                         dt_value_ints(x->ndim, order));
        if (!status)
            status = turned.contiguous
                         ? dt_recorded_to(&dense, &turned, (dt_dtype)x->dtype,
                                          dt_tensor_device(x))
                         : dt_recorded_contiguous(&dense, &turned);
        if (!status)
            status = DT_CALL(permute, &out->tensor, dt_value_tensor(&dense),
                             dt_value_ints(x->ndim, inverse));
        dt_tensor_clear(&dense);
        dt_tensor_clear(&turned);
    }
    DT_END_ALLOW_THREADS
    Py_DECREF(made);
    return dt_tensor_result(out, status);
}

static int take_named(const dt_args *args, int i, const dt_tensor *x, dt_device *out)
{
    if (dt_given(args, i))
        return dt_take_device(args, i, out);
    *out = dt_tensor_device(x);
    return 0;
}

#define TO_END                                                                         \
    "non_blocking: bool = False, copy: bool = False, *, memory_format: Format = None)"
DT_PUBLIC(to,
          "to(input: Tensor, dtype: Dtype, " TO_END " | "
          "to(input: Tensor, device: Device = None, dtype: Dtype = None, " TO_END " | "
          "to(input: Tensor, other: Tensor, " TO_END)
{
    dt_tensor *x, *other;
    bool non_blocking, copy;
    int dtype = -1;
    dt_device device;
    int flags = args->form == 1 ? 3 : 2;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        dt_take_bool(args, flags, &non_blocking) < 0 ||
        dt_take_bool(args, flags + 1, &copy) < 0)
        return NULL;
    device = dt_tensor_device(x);
    if (args->form == 2) {
        if (dt_take_tensor(args, 1, &other) < 0)
            return NULL;
        dtype = other->dtype;
        device = dt_tensor_device(other);
    } else if (args->form == 0) {
        if (dt_take_dtype(args, 1, &dtype) < 0)
            return NULL;
    } else if (take_named(args, 1, x, &device) < 0 ||
               dt_take_dtype(args, 2, &dtype) < 0) {
        return NULL;
    }
    dt_format format = DT_FORMAT_PRESERVE;
    if (dt_take_format(args, flags + 2, &format) < 0)
        return NULL;
    PyObject *made =
        convert(args->slots[0], dtype < 0 ? (dt_dtype)x->dtype : (dt_dtype)dtype,
                device, copy && format == DT_FORMAT_PRESERVE, non_blocking);
    return formatted(args, flags + 2, made, copy);
}

DT_PUBLIC(type_as, "type_as(input: Tensor, other: Tensor)")
{
    dt_tensor *other;
    if (dt_take_tensor(args, 1, &other) < 0)
        return NULL;
    return convert(args->slots[0], (dt_dtype)other->dtype, dt_tensor_device(other),
                   false, false);
}

/* x.to(device) and x.to(dtype), without a choice among forms. */
static PyObject *to_quick(DT_CALL_PARAMETERS)
{
    if (count == 1 && !kwnames) {
        const dt_tensor *x = dt_tensor_of(self);
        dt_dtype dtype = (dt_dtype)x->dtype;
        dt_device device = dt_tensor_device(x);
        if (dt_device_object_check(values[0]) || PyUnicode_Check(values[0])) {
            if (dt_device_from_python("to", "device", values[0], &device) < 0 ||
                dt_device_resolve(device, &device) < 0)
                return NULL;
            return convert(self, dtype, device, false, false);
        }
        if (dt_dtype_check(values[0]) && dt_dtype_from_python(values[0], &dtype))
            return convert(self, dtype, device, false, false);
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "other") ==
            0) {
            PyErr_SetString(
                PyExc_TypeError,
                "to() takes the tensor to be like by position only: to(other)");
            return NULL;
        }
    return to_method(self, values, count, kwnames);
}

DT_PUBLIC(cpu, "cpu(input: Tensor, *, memory_format: Format = None)")
{
    return formatted(args, 1,
                     convert(args->slots[0],
                             (dt_dtype)dt_tensor_of(args->slots[0])->dtype,
                             dt_device_make(DT_CPU, 0), false, false),
                     false);
}

DT_PUBLIC(cuda,
          "cuda(input: Tensor, device: Device = None, non_blocking: bool = False, "
          "memory_format: Format = None)")
{
    dt_device device = dt_device_make(DT_CUDA, -1);
    bool non_blocking;
    if (dt_take_bool(args, 2, &non_blocking) < 0)
        return NULL;
    if (dt_given(args, 1)) {
        if (dt_device_from_python("cuda", "device", args->slots[1], &device) < 0)
            return NULL;
        if (dt_device_is_cpu(device)) {
            PyErr_SetString(PyExc_RuntimeError,
                            "cuda(): device is the CPU; give a GPU, or use .cpu()");
            return NULL;
        }
    }
    if (dt_device_resolve(device, &device) < 0)
        return NULL;
    return formatted(args, 3,
                     convert(args->slots[0],
                             (dt_dtype)dt_tensor_of(args->slots[0])->dtype, device,
                             false, non_blocking),
                     false);
}

/* --- page-locked memory --- */

DT_PUBLIC(pin_memory, "pin_memory(input: Tensor, device: Device = None)")
{
    const dt_tensor *x = dt_tensor_of(args->slots[0]);
    return x->storage->pinned ? Py_NewRef(args->slots[0])
                              : dt_pinned("pin_memory", args->slots[0]);
}

DT_PUBLIC(is_pinned, "is_pinned(input: Tensor, device: Device = None)")
{
    return PyBool_FromLong(dt_tensor_of(args->slots[0])->storage->pinned);
}

/* --- by the names of types --- */

#define DT_DTYPE(ID, name, alias, type, class)                                         \
    DT_PUBLIC(to_##name, #name "(input: Tensor, *, memory_format: Format = None)")     \
    {                                                                                  \
        dt_tensor *x;                                                                  \
        if (dt_take_tensor(args, 0, &x) < 0)                                           \
            return NULL;                                                               \
        return formatted(                                                              \
            args, 1,                                                                   \
            convert(args->slots[0], DT_##ID, dt_tensor_device(x), false, false),       \
            false);                                                                    \
    }
#include "ops/dtype.def"

/* "torch.FloatTensor", "torch.cuda.FloatTensor" */
static PyObject *type_name(const dt_tensor *x)
{
    return PyUnicode_FromFormat("torch.%s%s",
                                dt_device_is_cpu(dt_tensor_device(x)) ? "" : "cuda.",
                                dt_dtypes[x->dtype].class_name);
}

DT_PUBLIC(type, "type(input: Tensor, dtype: Any = None, non_blocking: bool = False)")
{
    dt_tensor *x;
    dt_dtype dtype;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (!dt_given(args, 1))
        return type_name(x);
    dt_device device = dt_tensor_device(x);
    PyObject *wanted = args->slots[1];
    if (dt_dtype_from_python(wanted, &dtype))
        return convert(args->slots[0], dtype, device, false, false);
    PyObject *owned = NULL;
    if (PyType_Check(wanted)) { /* torch.FloatTensor itself */
        PyObject *name = PyObject_GetAttrString(wanted, "__name__");
        owned = name ? PyUnicode_FromFormat("torch.%U", name) : NULL;
        Py_XDECREF(name);
        if (!owned)
            return NULL;
        wanted = owned;
    }
    const char *text = PyUnicode_Check(wanted) ? PyUnicode_AsUTF8(wanted) : NULL;
    PyErr_Clear();
    if (text && !strncmp(text, "torch.", 6)) {
        bool on_gpu = !strncmp(text + 6, "cuda.", 5);
        const char *class_name = text + 6 + (on_gpu ? 5 : 0);
        for (int d = 0; d < DT_NDTYPES; d++)
            if (!strcmp(class_name, dt_dtypes[d].class_name)) {
                Py_XDECREF(owned);
                if (!on_gpu)
                    device = dt_device_make(DT_CPU, 0);
                else if (dt_device_is_cpu(device) &&
                         dt_device_resolve(dt_device_make(DT_CUDA, -1), &device) < 0)
                    return NULL;
                return convert(args->slots[0], (dt_dtype)d, device, false, false);
            }
    }
    char given[DT_DESCRIBE_TEXT];
    PyErr_Format(
        text ? PyExc_ValueError : PyExc_TypeError,
        "type(): %s names no type; give a dtype such as torch.float32, or a name such "
        "as 'torch.FloatTensor'",
        dt_describe(args->slots[1], given, sizeof given));
    Py_XDECREF(owned);
    return NULL;
}

/* --- copies --- */

DT_PUBLIC(clone, "clone(input: Tensor, *, memory_format: Format = None)")
{
    dt_tensor *x;
    dt_format format = DT_FORMAT_PRESERVE;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_format(args, 1, &format) < 0)
        return NULL;
    if (format != DT_FORMAT_PRESERVE)
        return formatted(args, 1, Py_NewRef(args->slots[0]), true);
    return convert(args->slots[0], (dt_dtype)x->dtype, dt_tensor_device(x), true,
                   false);
}

DT_PUBLIC(contiguous, "contiguous(input: Tensor, memory_format: Format = None)")
{
    dt_tensor *x;
    dt_format format = DT_FORMAT_CONTIGUOUS;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_format(args, 1, &format) < 0)
        return NULL;
    if (format == DT_FORMAT_PRESERVE && !x->contiguous) {
        PyErr_SetString(PyExc_RuntimeError,
                        "contiguous(): preserve_format is no order; give "
                        "contiguous_format or channels_last");
        return NULL;
    }
    if (format > DT_FORMAT_CONTIGUOUS)
        return formatted(args, 1, Py_NewRef(args->slots[0]), false);
    if (x->contiguous)
        return Py_NewRef(args->slots[0]);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL, dt_recorded_contiguous(&out->tensor, x));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(copy_, "copy_(input: Tensor, src: Value, non_blocking: bool = False)")
{
    dt_tensor *x;
    dt_arg source;
    bool non_blocking;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_value(args, 1, &source) < 0 ||
        dt_take_bool(args, 2, &non_blocking) < 0)
        return NULL;
    int status;
    bool waits = source.tensor &&
                 !dt_device_equal(dt_tensor_device(x), dt_tensor_device(source.tensor));
    if (waits && non_blocking && !dt_recording(x) && !dt_recording(source.tensor))
        DT_RUN(status, true, dt_copy_non_blocking_into("copy_", x, source.tensor));
    else
        DT_RUN(status, waits || x->numel > DT_LONG_NUMEL,
               source.tensor ? dt_recorded_copy_into("copy_", x, source.tensor)
                             : DT_CALL_INTO(fill, x, dt_value_scalar(source.scalar)));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    {"to", &to_signature, NULL, to_quick,
     "Of another type or on another device; itself where nothing changes."},
    DT_METHOD(type_as, "type_as",
              "Of the type and on the device of other; itself where nothing changes."),
    DT_METHOD(cpu, "cpu", "On the CPU; itself where it is there already."),
    DT_METHOD(cuda, "cuda", "On a GPU, the current one if none is named."),
    DT_METHOD(
        pin_memory, "pin_memory",
        "In page-locked memory of the CPU: copies between it and a GPU with\n"
        "non_blocking=True wait for nobody; itself where it is already. RuntimeError\n"
        "where there is no GPU."),
    DT_METHOD(is_pinned, "is_pinned", "Whether it is in page-locked memory."),
    DT_METHOD(type, "type", "The name of its type, or a conversion to the type given."),
    DT_BOTH(clone, "clone",
            "A copy.\n\n"
            "In memory of its own; the gradient goes through."),
    DT_METHOD(contiguous, "contiguous",
              "In row-major order; itself where it is already."),
    DT_METHOD(copy_, "copy_",
              "Copy the elements of src, converting and broadcasting (RuntimeError "
              "where its shape does not).\n\nWith non_blocking=True a copy between a "
              "GPU and page-locked memory, of one type and shape, is only queued: what "
              "comes to the CPU is there after torch.cuda.synchronize() or an event."),
};

/* x.float(), x.long(), ...: named after the old classes, FloatTensor and so on. */
#define DT_DTYPE(ID, name, alias, type, class) static char name##_word[] = #class;
#include "ops/dtype.def"
static const dt_function type_rows[] = {
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    {name##_word, &to_##name##_signature, NULL, to_##name##_method, "As " #name "."},
#include "ops/dtype.def"
};

int dt_setup_conversions(PyObject *module)
{
    char *words[] = {
#define DT_DTYPE(ID, name, alias, type, class) name##_word,
#include "ops/dtype.def"
    };
    for (int d = 0; d < DT_NDTYPES; d++) {
        *strstr(words[d], "Tensor") = '\0';
        for (char *c = words[d]; *c; c++)
            *c = (char)Py_TOLOWER(*c);
    }
    return DT_ADD_FUNCTIONS(module, rows) < 0 ? -1
                                              : DT_ADD_FUNCTIONS(module, type_rows);
}
