/* Conversions from one type, device or layout to another, and copies. */
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "autograd/recorded.h"

/* The target of a conversion. */
typedef struct target {
    dt_dtype dtype;
    dt_device device;
    dt_format format;
    bool non_blocking;
    bool copies; /* even where nothing changes */
} target;

static target as_it_is(const dt_tensor *x)
{
    return (target){.dtype = (dt_dtype)x->dtype, .device = dt_tensor_home(x)};
}

/* As in PyTorch, contiguous_format is what a tensor has that has no other one. */
static bool is_in_format(const dt_tensor *x, dt_format format)
{
    if (format == DT_FORMAT_PRESERVE || dt_format_is_of(format, x))
        return true;
    return format == DT_FORMAT_CONTIGUOUS && !dt_format_is_of(DT_FORMAT_CHANNELS, x) &&
           !dt_format_is_of(DT_FORMAT_CHANNELS_3D, x);
}

/* self itself where nothing changes and no copy is asked for. */
static PyObject *converted(const char *function, PyObject *self, target t)
{
    const dt_tensor *x = dt_tensor_of(self);
    bool stays = dt_device_equal(t.device, dt_tensor_home(x));
    if (!t.copies && stays && t.dtype == x->dtype && is_in_format(x, t.format))
        return Py_NewRef(self);
    if (dt_format_check(function, t.format, x->ndim) < 0)
        return dt_raise();
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, !stays || x->numel > DT_LONG_NUMEL,
           dt_recorded_to_format(&out->tensor, x, t.dtype, t.device, t.format,
                                 t.non_blocking),
           &x);
    return dt_tensor_result(out, status);
}

/* The Tensor of the first argument as it is, in the format of the argument at i. */
static target target_of(const dt_value *v, int i)
{
    target t = as_it_is(v[0].tensor);
    t.format = (dt_format)v[i].i;
    return t;
}

#define TO_END                                                                         \
    "non_blocking: bool = False, copy: bool = False, *, memory_format: Format = None)"
DT_PUBLIC(to,
          "to(input: Tensor, dtype: Dtype, " TO_END " | "
          "to(input: Tensor, device: Device = None, dtype: Dtype = None, " TO_END " | "
          "to(input: Tensor, other: Tensor, " TO_END)
{
    int flags = args->form == 1 ? 3 : 2;
    target t = target_of(v, flags + 2);
    t.non_blocking = v[flags].b;
    t.copies = v[flags + 1].b;
    if (args->form == 1 && v[1].given)
        t.device = v[1].device;
    if (args->form == 2) {
        t.dtype = (dt_dtype)v[1].tensor->dtype;
        t.device = dt_tensor_home(v[1].tensor);
    } else if (v[flags - 1].given) {
        t.dtype = (dt_dtype)v[flags - 1].dtype;
    }
    return converted("to", args->slots[0], t);
}

DT_PUBLIC(type_as, "type_as(input: Tensor, other: Tensor)")
{
    return converted("type_as", args->slots[0], as_it_is(v[1].tensor));
}

/* x.to(device) and x.to(dtype), without a choice among forms. */
static PyObject *to_quick(DT_CALL_PARAMETERS)
{
    DT_OVERRIDE(dt_override((void *)to_quick, self, values, count, kwnames));
    if (count == 1 && !kwnames) {
        target t = as_it_is(dt_tensor_of(self));
        if (dt_device_object_check(values[0]) || PyUnicode_Check(values[0])) {
            if (dt_device_from_python("to", "device", values[0], &t.device) < 0 ||
                dt_device_resolve(t.device, &t.device) < 0)
                return NULL;
            return converted("to", self, t);
        }
        if (dt_dtype_check(values[0]) && dt_dtype_from_python(values[0], &t.dtype))
            return converted("to", self, t);
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "other") ==
            0)
            return PyErr_Format(
                PyExc_TypeError,
                "to() takes the tensor to be like by position only: to(other)");
    return to_method(self, values, count, kwnames);
}

DT_PUBLIC(cpu, "cpu(input: Tensor, *, memory_format: Format = None)")
{
    target t = target_of(v, 1);
    t.device = dt_device_make(DT_CPU, 0);
    return converted("cpu", args->slots[0], t);
}

DT_PUBLIC(cuda,
          "cuda(input: Tensor, device: Device = None, non_blocking: bool = False, "
          "memory_format: Format = None)")
{
    target t = target_of(v, 3);
    t.non_blocking = v[2].b;
    t.device = v[1].given ? v[1].device : dt_device_make(DT_CUDA, -1);
    if (dt_device_is_cpu(t.device))
        return PyErr_Format(PyExc_RuntimeError,
                            "cuda(): device is the CPU; give a GPU, or use .cpu()");
    return dt_device_resolve(t.device, &t.device) < 0
               ? NULL
               : converted("cuda", args->slots[0], t);
}

/* --- page-locked memory --- */

DT_PUBLIC(pin_memory, "pin_memory(input: Tensor, device: Device = None)")
{
    return v[0].tensor->storage->pinned ? Py_NewRef(args->slots[0])
                                        : dt_pinned("pin_memory", args->slots[0]);
}

DT_PUBLIC(is_pinned, "is_pinned(input: Tensor, device: Device = None)")
{
    return PyBool_FromLong(v[0].tensor->storage->pinned);
}

/* --- by the names of types --- */

#define NAMED(TYPE)                                                                    \
    TYPE(bool, BOOL, bool, "torch.tensor([0, 2]).bool()", "tensor([False,  True])")    \
    TYPE(byte, UINT8, uint8, "torch.tensor([1.0, 2.0]).byte()",                        \
         "tensor([1, 2], dtype=torch.uint8)")                                          \
    TYPE(char, INT8, int8, "torch.tensor([1.0, 2.0]).char()",                          \
         "tensor([1, 2], dtype=torch.int8)")                                           \
    TYPE(short, INT16, int16, "torch.tensor([1.0, 2.0]).short()",                      \
         "tensor([1, 2], dtype=torch.int16)")                                          \
    TYPE(int, INT32, int32, "torch.tensor([1.7, -2.7]).int()",                         \
         "tensor([ 1, -2], dtype=torch.int32)")                                        \
    TYPE(long, INT64, int64, "torch.tensor([1.7, -2.7]).long()", "tensor([ 1, -2])")   \
    TYPE(half, FLOAT16, float16, "torch.tensor([0.1]).half()",                         \
         "tensor([0.1000], dtype=torch.float16)")                                      \
    TYPE(bfloat16, BFLOAT16, bfloat16, "torch.tensor([0.1]).bfloat16()",               \
         "tensor([0.1001], dtype=torch.bfloat16)")                                     \
    TYPE(float, FLOAT32, float32, "torch.tensor([1, 2]).float()", "tensor([1., 2.])")  \
    TYPE(double, FLOAT64, float64, "torch.tensor([1, 2]).double()",                    \
         "tensor([1., 2.], dtype=torch.float64)")                                      \
    TYPE(cfloat, COMPLEX64, complex64, "torch.tensor([1, 2]).cfloat()",                \
         "tensor([1.+0.j, 2.+0.j])")                                                   \
    TYPE(cdouble, COMPLEX128, complex128, "torch.tensor([1, 2]).cdouble()",            \
         "tensor([1.+0.j, 2.+0.j], dtype=torch.complex128)")

static PyObject *to_dtype(const dt_args *args, const dt_value *v, dt_dtype dtype)
{
    target t = target_of(v, 1);
    t.dtype = dtype;
    return converted(args->signature->name, args->slots[0], t);
}

#define TYPE(name, ID, ...)                                                            \
    DT_PUBLIC(to_##name, #name "(input: Tensor, *, memory_format: Format = None)")     \
    {                                                                                  \
        return to_dtype(args, v, DT_##ID);                                             \
    }
NAMED(TYPE)
#undef TYPE

/* --- copies --- */

DT_PUBLIC(clone, "clone(input: Tensor, *, memory_format: Format = None)")
{
    target t = target_of(v, 1);
    t.copies = true;
    return converted("clone", args->slots[0], t);
}

DT_PUBLIC(contiguous, "contiguous(input: Tensor, memory_format: Format = None)")
{
    target t = target_of(v, 1);
    const dt_tensor *x = v[0].tensor;
    if (!v[1].given)
        t.format = DT_FORMAT_CONTIGUOUS;
    if (t.format == DT_FORMAT_PRESERVE && !x->contiguous)
        return PyErr_Format(PyExc_RuntimeError,
                            "contiguous(): preserve_format is not an order; give "
                            "contiguous_format or channels_last");
    if (dt_format_is_of(t.format, x))
        return Py_NewRef(args->slots[0]);
    t.copies = true;
    return converted("contiguous", args->slots[0], t);
}

#define MEMORY_FORMAT                                                                  \
    " memory_format: the order of its elements in memory, by default the same."
static const dt_function rows[] = {
    {"to", &to_signature, NULL, to_quick,
     "Convert to another type or device; the Tensor itself where nothing changes.\n\n"
     "other: a Tensor whose type and device to use. non_blocking: a copy between "
     "page-locked memory and a GPU is only queued. copy: copy also where nothing "
     "changes." MEMORY_FORMAT,
     "torch.tensor([1, 2]).to(torch.float64)", "tensor([1., 2.], dtype=torch.float64)"},
    DT_METHOD(type_as, "type_as", "Convert to the type and device of other: to(other).",
              "torch.tensor([1.0, 2.0]).type_as(torch.tensor(0))", "tensor([1, 2])"),
    DT_METHOD(cpu, "cpu",
              "Copy to the CPU; the Tensor itself if it is there." MEMORY_FORMAT,
              "torch.tensor([1, 2]).cpu()", "tensor([1, 2])"),
    DT_METHOD(
        cuda, "cuda",
        "Copy to a GPU, by default the current one; the Tensor itself if it is there."
        "\n\nnon_blocking: a copy from page-locked memory is only queued. "
        "RuntimeError where device is the CPU." MEMORY_FORMAT " See also to().",
        "torch.tensor([1, 2]).cuda()", "tensor([1, 2], device='cuda:0')"),
    DT_METHOD(
        pin_memory, "pin_memory",
        "Copy to page-locked memory of the CPU; the Tensor itself if it is there.\n\n"
        "A copy between such memory and a GPU with non_blocking=True is only queued. "
        "device has no effect. RuntimeError where there is no GPU.",
        "torch.tensor([1, 2]).pin_memory().is_pinned()", "True"),
    DT_METHOD(is_pinned, "is_pinned",
              "Whether the Tensor is in page-locked memory. device has no effect.",
              "torch.tensor([1, 2]).is_pinned()", "False"),
    DT_BOTH(clone, "clone",
            "Copy the Tensor to new memory.\n\n"
            "Gradients pass through the copy. See also detach()." MEMORY_FORMAT,
            "x = torch.tensor([1, 2])\ny = x.clone().zero_()\nx", "tensor([1, 2])"),
    DT_METHOD(contiguous, "contiguous",
              "Copy to memory in row-major order; the Tensor itself if it is so.\n\n"
              "memory_format: torch.channels_last puts the channels of 4 dimensions "
              "last in memory instead (RuntimeError for others).",
              "torch.zeros(2, 3).t().contiguous().stride()", "(2, 1)"),
#define TYPE(name, ID, dtype, ...)                                                     \
    DT_METHOD(to_##name, #name, "The same as to(torch." #dtype ").", __VA_ARGS__),
    NAMED(TYPE)
#undef TYPE
};

int dt_setup_conversions(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
