/* Attributes of Tensor, and predicates on tensors. */
#include "cpu/runtime/cpu.h"
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "autograd/recorded.h"
#include "ops/elementwise_ops.h"
#include "tensor/view.h"

/* --- attributes --- */

#define GETTER(NAME, result)                                                           \
    static PyObject *get_##NAME(PyObject *self, void *Py_UNUSED(context))              \
    {                                                                                  \
        const dt_tensor *x = dt_tensor_of(self);                                       \
        return result;                                                                 \
    }
GETTER(shape, dt_size_new(x->ndim, x->shape))
GETTER(dtype, dt_dtype_object_get((dt_dtype)x->dtype))
GETTER(device, dt_device_object_of(dt_tensor_home(x)))
GETTER(ndim, PyLong_FromLong(x->ndim))
GETTER(is_cuda, PyBool_FromLong(dt_tensor_home(x).type == DT_CUDA))
GETTER(is_cpu, PyBool_FromLong(dt_device_is_cpu(dt_tensor_home(x))))
GETTER(is_meta, PyBool_FromLong(!dt_device_has_data(dt_tensor_home(x))))
GETTER(itemsize, PyLong_FromSize_t(dt_dtype_size((dt_dtype)x->dtype)))
GETTER(nbytes,
       PyLong_FromLongLong(x->numel *(int64_t)dt_dtype_size((dt_dtype)x->dtype)))
#undef GETTER

static PyObject *get_transposed(PyObject *self, void *batch)
{
    const dt_tensor *x = dt_tensor_of(self);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    if (!batch)
        status = DT_CALL(reverse, &out->tensor, dt_value_tensor(x));
    else if (x->ndim > 1 && dt_dtype_is_complex((dt_dtype)x->dtype))
        status = DT_CALL(transpose, &out->tensor, dt_value_tensor(x), dt_value_int(-1),
                         dt_value_int(-2));
    else
        status = DT_CALL(adjoint, &out->tensor, dt_value_tensor(x));
    return dt_tensor_result(out, status);
}

static PyObject *get_layout(PyObject *Py_UNUSED(self), void *Py_UNUSED(unused))
{
    return dt_strided();
}

/* Attributes that are False for every tensor of this library, for generic code. */
static PyObject *get_never(PyObject *Py_UNUSED(self), void *Py_UNUSED(unused))
{
    Py_RETURN_FALSE;
}
/* The real (which is 0) or the imaginary parts of a complex Tensor, a view. */
static PyObject *part_of(PyObject *self, int which)
{
    DT_LOCAL(pairs);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status = DT_CALL(view_as_real, &pairs, dt_value_tensor(dt_tensor_of(self)));
    if (!status)
        status = DT_CALL(select, &out->tensor, dt_value_tensor(&pairs),
                         dt_value_int(-1), dt_value_int(which));
    return dt_tensor_result(out, status);
}
static PyObject *get_real(PyObject *self, void *Py_UNUSED(unused))
{
    return dt_dtype_is_complex((dt_dtype)dt_tensor_of(self)->dtype) ? part_of(self, 0)
                                                                    : Py_NewRef(self);
}
static PyObject *get_imag(PyObject *self, void *Py_UNUSED(unused))
{
    if (dt_dtype_is_complex((dt_dtype)dt_tensor_of(self)->dtype))
        return part_of(self, 1);
    return PyErr_Format(
        PyExc_RuntimeError,
        "imag: this Tensor is real; use torch.zeros_like(x) for the imaginary part");
}
/* x.real = value, x.imag = value */
static int set_part(PyObject *self, PyObject *value, void *get)
{
    DT_REF part = value ? ((getter)get)(self, NULL) : NULL;
    if (!value)
        PyErr_SetString(PyExc_RuntimeError,
                        "del: real and imag belong to every Tensor; assign to them");
    return part ? PyObject_SetItem(part, Py_Ellipsis, value) : -1;
}
static PyObject *get_adjoint(PyObject *self, void *batch)
{
    int ndim = dt_tensor_of(self)->ndim;
    if (batch ? ndim == 1 : ndim == 1 || ndim > 2)
        return PyErr_Format(
            PyExc_RuntimeError,
            "%s: the Tensor has %d dimensions; give %s, or use permute()",
            batch ? "mH" : "H", ndim, batch ? "a batch of matrices" : "a matrix");
    DT_REF transposed = get_transposed(self, batch);
    return transposed ? PyObject_CallMethod(transposed, "conj", NULL) : NULL;
}

/* Written in Python: few libraries ask for it. */
static PyObject *get_cuda_array_interface(PyObject *self, void *Py_UNUSED(unused))
{
    return dt_python_call("pydevtensor._functions.interop", "cuda_array_interface",
                          "(O)", self);
}

static PyGetSetDef attributes[] = {
    {"__cuda_array_interface__", get_cuda_array_interface, NULL,
     "The memory of a Tensor on a real GPU, for CuPy, Numba and others (version 3).\n\n"
     "AttributeError on the CPU and on simulated GPUs, RuntimeError for a Tensor that "
     "requires gradients.",
     NULL},
#define NEVER(name, op_name) {#name, get_never, NULL, "False: " op_name, NULL}
    NEVER(is_sparse, "every element is kept."),
    NEVER(is_sparse_csr, "every element is kept."),
    NEVER(is_quantized, "there are no quantized types."),
    NEVER(is_nested, "every row has the same size."),
    NEVER(is_mkldnn, "memory is laid out by strides."),
    NEVER(is_mps, "devices are the CPU and CUDA ones."),
    NEVER(is_xla, "devices are the CPU and CUDA ones."),
    NEVER(is_xpu, "devices are the CPU and CUDA ones."),
    NEVER(is_ipu, "devices are the CPU and CUDA ones."),
    NEVER(is_maia, "devices are the CPU and CUDA ones."),
    NEVER(is_mtia, "devices are the CPU and CUDA ones."),
    NEVER(is_vulkan, "devices are the CPU and CUDA ones."),
#undef NEVER
    {"layout", get_layout, NULL, "torch.strided.", NULL},
    {"real", get_real, set_part, "The real parts, a view; a real tensor itself.",
     (void *)get_real},
    {"imag", get_imag, set_part,
     "The imaginary parts, a view; RuntimeError of a real tensor.", (void *)get_imag},
    {"H", get_adjoint, NULL, "The conjugate transpose of a matrix.", NULL},
    {"mH", get_adjoint, NULL, "The last two dimensions transposed, conjugate.",
     (void *)1},
    {"shape", get_shape, NULL, "The size of each dimension.", NULL},
    {"dtype", get_dtype, NULL, "The element type.", NULL},
    {"device", get_device, NULL, "Where the elements are.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"is_cuda", get_is_cuda, NULL, "Whether it is on a GPU.", NULL},
    {"is_cpu", get_is_cpu, NULL, "Whether it is on the CPU.", NULL},
    {"is_meta", get_is_meta, NULL, "Whether it has a shape and no data.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes per element.", NULL},
    {"T", get_transposed, NULL, "The dimensions reversed.", NULL},
    {"mT", get_transposed, NULL, "The last two dimensions transposed.", (void *)1},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- methods --- */

/* One of `count` values by an index that may be negative, or all of them through
 * `all`. */
static PyObject *one_or_all(const dt_args *args, const dt_value *v,
                            const int64_t *values,
                            PyObject *(*all)(int, const int64_t *))
{
    const dt_tensor *x = v[0].tensor;
    if (!v[1].given)
        return all(x->ndim, values);
    int wrapped = dt_shape_wrap_dim(args->signature->name, v[1].i, x->ndim);
    if (wrapped < 0)
        return dt_raise();
    if (!x->ndim)
        return PyErr_Format(PyExc_IndexError, "%s(): the Tensor is 0-dim; omit dim",
                            args->signature->name);
    return PyLong_FromLongLong(values[wrapped]);
}

DT_PUBLIC(size, "size(input: Tensor, dim: int = None)")
{
    return one_or_all(args, v, v[0].tensor->shape, dt_size_new);
}
DT_PUBLIC(stride, "stride(input: Tensor, dim: int = None)")
{
    return one_or_all(args, v, v[0].tensor->strides, dt_int_tuple_new);
}

/* A predicate on a tensor, computed by an expression in x. */
#define QUESTION(NAME, make, answer)                                                   \
    DT_PUBLIC(NAME, #NAME "(input: Tensor)")                                           \
    {                                                                                  \
        const dt_tensor *x = v[0].tensor;                                              \
        return make(answer);                                                           \
    }
QUESTION(numel, PyLong_FromLongLong, x->numel)
QUESTION(nelement, PyLong_FromLongLong, x->numel)
QUESTION(dim, PyLong_FromLong, x->ndim)
QUESTION(ndimension, PyLong_FromLong, x->ndim)
QUESTION(storage_offset, PyLong_FromLongLong, x->offset)
QUESTION(element_size, PyLong_FromSize_t, dt_dtype_size((dt_dtype)x->dtype))
QUESTION(data_ptr, PyLong_FromVoidPtr,
         dt_device_has_data(dt_tensor_device(x)) ? dt_tensor_export(x) : NULL)
QUESTION(is_floating_point, PyBool_FromLong, dt_dtype_is_float((dt_dtype)x->dtype))
QUESTION(is_signed, PyBool_FromLong, dt_dtype_is_signed((dt_dtype)x->dtype))
QUESTION(is_complex, PyBool_FromLong, dt_dtype_is_complex((dt_dtype)x->dtype))
QUESTION(_is_read_only, PyBool_FromLong, x->storage->read_only)
QUESTION(is_conj, PyBool_FromLong, x->numel < 0)
QUESTION(is_neg, PyBool_FromLong, x->numel < 0)
QUESTION(is_inference, PyBool_FromLong, x->numel < 0)
QUESTION(get_device, PyLong_FromLong,
         dt_device_is_single(dt_tensor_home(x)) ? -1 : dt_tensor_home(x).index)

DT_PUBLIC(is_contiguous, "is_contiguous(input: Tensor, memory_format: Format = None)")
{
    dt_format format = v[1].given ? (dt_format)v[1].i : DT_FORMAT_CONTIGUOUS;
    return PyBool_FromLong(dt_format_is_of(format, v[0].tensor));
}

DT_PUBLIC(is_tensor, "is_tensor(obj: Any)")
{
    PyObject *type = (PyObject *)Py_TYPE(args->slots[0]);
    return PyBool_FromLong(dt_tensor_check(args->slots[0]) ||
                           type == dt_py.sparse_type);
}

DT_PUBLIC(result_type, "result_type(tensor1: Value, tensor2: Value)")
{
    return dt_dtype_object_get(
        dt_result_type(DT_ARGS(dt_value_operand(&v[0]), dt_value_operand(&v[1])), 2));
}

DT_PUBLIC(promote_types, "promote_types(type1: Dtype, type2: Dtype)")
{
    return dt_dtype_object_get(
        dt_dtype_promote((dt_dtype)v[0].dtype, (dt_dtype)v[1].dtype));
}

/* For finfo: max, eps, tiny, resolution. */
DT_PUBLIC(float_limits, "_float_limits(type: Dtype)")
{
    dt_float_limits limits = dt_dtype_limits((dt_dtype)v[0].dtype);
    return Py_BuildValue("(dddd)", limits.max, limits.eps, limits.tiny,
                         limits.resolution);
}

DT_PUBLIC(can_cast, "can_cast(from_: Dtype, to: Dtype)")
{
    bool can =
        dt_check_cast("can_cast", (dt_dtype)v[0].dtype, (dt_dtype)v[1].dtype) == 0;
    dt_error_clear();
    return PyBool_FromLong(can);
}

/* Number of live storages on a device, for leak tests. */
DT_PUBLIC(storage_count, "_storage_count(device: Device = None)")
{
    return PyLong_FromLongLong(dt_storage_count(v[0].device));
}

/* Complex operations that are the identity on real tensors. */
#define ITSELF(NAME, TEXT)                                                             \
    DT_PUBLIC(NAME, TEXT)                                                              \
    {                                                                                  \
        return Py_NewRef(args->slots[0]);                                              \
    }
ITSELF(resolve_conj, "resolve_conj(input: Tensor)")
ITSELF(resolve_neg, "resolve_neg(input: Tensor)")

DT_PUBLIC(conj, "conj(input: Tensor)")
{
    const dt_tensor *x = v[0].tensor;
    if (!dt_dtype_is_complex((dt_dtype)x->dtype))
        return Py_NewRef(args->slots[0]);
    dt_tensor_object *out = dt_tensor_object_new();
    return out ? dt_tensor_result(out,
                                  dt_recorded_elementwise(DT_OP_conjugate, &out->tensor,
                                                          DT_ARGS(dt_arg_tensor(x))))
               : NULL;
}
DT_PUBLIC(conj_physical_, "conj_physical_(input: Tensor)")
{
    dt_tensor *x = dt_tensor_of(args->slots[0]);
    if (dt_dtype_is_complex((dt_dtype)x->dtype) &&
        dt_recorded_elementwise_into(DT_OP_conjugate, x, DT_ARGS(dt_arg_tensor(x))) < 0)
        return dt_raise();
    return Py_NewRef(args->slots[0]);
}
DT_PUBLIC(real, "real(input: Tensor)")
{
    return get_real(args->slots[0], NULL);
}
DT_PUBLIC(imag, "imag(input: Tensor)")
{
    return get_imag(args->slots[0], NULL);
}

DT_PUBLIC(is_nonzero, "is_nonzero(input: Tensor)")
{
    const dt_tensor *x = v[0].tensor;
    if (x->numel != 1)
        return PyErr_Format(
            PyExc_RuntimeError,
            "is_nonzero(): the Tensor has %lld elements; give one of a single "
            "element, such as x.any() or x.all()",
            (long long)x->numel);
    int truth = PyObject_IsTrue(args->slots[0]);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}
DT_PUBLIC(is_same_size, "is_same_size(input: Tensor, other: Tensor)")
{
    const dt_tensor *x = v[0].tensor, *other = v[1].tensor;
    return PyBool_FromLong(
        dt_shape_equal(x->ndim, x->shape, other->ndim, other->shape));
}
DT_PUBLIC(is_set_to, "is_set_to(input: Tensor, tensor: Tensor)")
{
    const dt_tensor *x = v[0].tensor, *other = v[1].tensor;
    return PyBool_FromLong(
        x->storage == other->storage && x->offset == other->offset &&
        dt_shape_equal(x->ndim, x->shape, other->ndim, other->shape) &&
        dt_shape_equal(x->ndim, x->strides, other->ndim, other->strides));
}

DT_PUBLIC(set_num_threads, "set_num_threads(num: int)")
{
    int64_t threads = v[0].i;
    threads = threads > INT32_MAX   ? INT32_MAX
              : threads < INT32_MIN ? INT32_MIN
                                    : threads;
    if (dt_cpu_set_num_threads((int)threads) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}
DT_PUBLIC(get_num_threads, "get_num_threads()")
{
    return PyLong_FromLong(dt_cpu_get_num_threads());
}

static const dt_function rows[] = {
    DT_METHOD(size, "size",
              "The size of each dimension as a Size, or with dim of that dimension as "
              "an int.",
              "torch.zeros(2, 3).size()", "torch.Size([2, 3])"),
    DT_METHOD(
        stride, "stride",
        "The stride of each dimension in elements, or with dim of that dimension.",
        "torch.zeros(2, 3).stride()", "(3, 1)"),
    DT_BOTH(numel, "numel", "The number of elements.", "torch.zeros(2, 3).numel()",
            "6"),
    DT_METHOD(nelement, "nelement", "The number of elements.",
              "torch.zeros(2, 3).nelement()", "6"),
    DT_METHOD(dim, "dim", "The number of dimensions.", "torch.zeros(2, 3).dim()", "2"),
    DT_METHOD(ndimension, "ndimension", "The number of dimensions.",
              "torch.zeros(2, 3).ndimension()", "2"),
    DT_METHOD(storage_offset, "storage_offset",
              "Offset of the first element in the storage, in elements.",
              "torch.arange(5)[2:].storage_offset()", "2"),
    DT_METHOD(element_size, "element_size", "Bytes per element.",
              "torch.zeros(2, 3).element_size()", "4"),
    DT_METHOD(data_ptr, "data_ptr", "The address of the first element, on its device.",
              "x = torch.arange(4)\nx[1:].data_ptr() - x.data_ptr()", "8"),
    DT_BOTH(get_device, "get_device", "The index of its GPU; -1 on the CPU.",
            "torch.zeros(2).get_device()", "-1"),
    DT_BOTH(is_floating_point, "is_floating_point", "Whether it holds floats.",
            "torch.tensor([1, 2]).is_floating_point()", "False"),
    DT_BOTH(is_complex, "is_complex", "Whether it holds complex numbers.",
            "torch.tensor([1, 2]).is_complex()", "False"),
    DT_BOTH(is_signed, "is_signed", "Whether its dtype can represent negative values.",
            "torch.tensor([1, 2]).is_signed()", "True"),
    DT_BOTH(is_conj, "is_conj", "Always False: there are no lazy conjugates.",
            "torch.ones(2).is_conj()", "False"),
    DT_BOTH(is_neg, "is_neg", "Always False: there are no lazy negations.",
            "torch.ones(2).is_neg()", "False"),
    DT_BOTH(is_inference, "is_inference",
            "Always False: tensors made in inference_mode() are like others.",
            "torch.ones(2).is_inference()", "False"),
    DT_FUNCTION(real, "real",
                "The real parts of a complex Tensor, a view; a real Tensor itself.",
                "torch.real(torch.tensor([1 + 2j]))", "tensor([1.])"),
    DT_FUNCTION(
        imag, "imag",
        "The imaginary parts of a complex Tensor, a view. RuntimeError of a real one.",
        "torch.imag(torch.ones(2))",
        "Traceback (most recent call last):\n    ...\n"
        "RuntimeError: imag: this Tensor is real; use torch.zeros_like(x) for the "
        "imaginary part"),
    DT_BOTH(conj, "conj", "The complex conjugates, a new Tensor; a real Tensor itself.",
            "torch.tensor([1 + 2j]).conj()", "tensor([1.-2.j])"),
    DT_BOTH(conj_physical_, "conj_physical_",
            "Make each element its complex conjugate, and return the Tensor.",
            "torch.tensor([1 + 2j]).conj_physical_()", "tensor([1.-2.j])"),
    DT_BOTH(resolve_conj, "resolve_conj",
            "The Tensor itself: there are no lazy conjugates.",
            "torch.tensor([1.0, 2.0]).resolve_conj()", "tensor([1., 2.])"),
    DT_BOTH(resolve_neg, "resolve_neg",
            "The Tensor itself: there are no lazy negations.",
            "torch.tensor([1.0, 2.0]).resolve_neg()", "tensor([1., 2.])"),
    DT_BOTH(is_nonzero, "is_nonzero",
            "Whether the single element is not 0.\n\nReturns a bool; synchronizes with "
            "the GPU. RuntimeError if there is not exactly one element.",
            "torch.tensor([2]).is_nonzero()", "True"),
    DT_BOTH(is_same_size, "is_same_size", "Whether both have the same shape.",
            "torch.ones(2).is_same_size(torch.zeros(2))", "True"),
    DT_METHOD(is_set_to, "is_set_to",
              "Whether this Tensor and tensor are the same view of the same memory.",
              "x = torch.ones(2)\nx.is_set_to(x[:]), x.is_set_to(x.clone())",
              "(True, False)"),
    DT_METHOD(is_contiguous, "is_contiguous",
              "Whether it is row-major without gaps, or dense in memory_format.",
              "torch.zeros(2, 3).t().is_contiguous()", "False"),
    DT_FUNCTION(is_tensor, "is_tensor", "Whether obj is a Tensor.",
                "torch.is_tensor([1, 2])", "False"),
    DT_FUNCTION(result_type, "result_type",
                "The dtype of an operation on tensor1 and tensor2, Tensors or "
                "numbers.\n\nBeside a Tensor with dimensions, a number or a Tensor "
                "without any counts only where it is of a higher kind: bool, integer, "
                "floating.",
                "torch.result_type(torch.tensor([1, 2]), 1.0)", "torch.float32"),
    DT_FUNCTION(promote_types, "promote_types",
                "The dtype in which an operation on Tensors of the dtypes type1 and "
                "type2 computes. See also result_type().",
                "torch.promote_types(torch.int32, torch.float32)", "torch.float32"),
    DT_FUNCTION(_is_read_only, "_is_read_only", "Whether its memory cannot be written.",
                "", ""),
    DT_FUNCTION(float_limits, "_float_limits", "The limits of a floating type.", "",
                ""),
    DT_FUNCTION(can_cast, "can_cast",
                "Whether results of the dtype from_ may be stored in Tensors of the "
                "dtype to: not floats as integers, nor numbers as bools.",
                "torch.can_cast(torch.float32, torch.int32)", "False"),
    DT_FUNCTION(storage_count, "_storage_count",
                "The number of live storages on a device.", "", ""),
    DT_FUNCTION(set_num_threads, "set_num_threads",
                "Set num as the maximum number of CPU threads, those of the BLAS "
                "included.\n\nRuntimeError for fewer than 1.",
                "torch.set_num_threads(torch.get_num_threads())", ""),
    DT_FUNCTION(get_num_threads, "get_num_threads",
                "The maximum number of CPU threads.", "torch.get_num_threads() >= 1",
                "True"),
};

int dt_setup_properties(PyObject *module)
{
    if (DT_ADD_FUNCTIONS(module, rows) < 0)
        return -1;
    return dt_add_properties(attributes);
}
