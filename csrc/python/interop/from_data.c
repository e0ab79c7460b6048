/* Tensors from data: numbers, nested sequences, NumPy arrays, other tensors.
 *
 * Sequences are read twice: first for shape and dtype, then into a buffer. The
 * caller's data may change in between (a sequence can run any code), so the second
 * pass checks every length again. */
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/history.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

typedef struct reader {
    const char *function; /* for messages */
    int ndim;             /* -1 until the first number is found */
    int64_t shape[DT_MAX_NDIM];
    int dtype; /* common dtype so far; -1: none */
    bool infer;
} reader;

/* --- one value --- */

/* Converts a leaf to a number: 1 and *out, 0 if it is not a number, -1 with an
 * exception set. */
static int leaf_number(reader *r, PyObject *leaf, dt_scalar *out)
{
    if (dt_tensor_check(leaf)) {
        const dt_tensor *t = dt_tensor_of(leaf);
        if (t->numel != 1)
            return DT_SET_ERROR(
                PyExc_ValueError,
                "%s(): the data contain a tensor of %zd elements; only one "
                "element converts to a number, use torch.stack for more",
                r->function, (Py_ssize_t)t->numel);
        return dt_python_item(r->function, t, out) < 0 ? -1 : 1;
    }
    int found = dt_scalar_from_python(leaf, out);
    if (found < 0 && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Clear();
        PyErr_Format(
            PyExc_ValueError,
            "%s(): %s does not fit into 64 bits; use a float, or dtype=torch.float64 "
            "with float() values",
            r->function, dt_describe(leaf, text, sizeof text));
    }
    return found;
}

static int not_a_number(reader *r, PyObject *leaf, PyObject *exception)
{
    char text[DT_DESCRIBE_TEXT];
    return DT_SET_ERROR(
        exception, "%s(): the data contain %s; give numbers, or sequences of numbers",
        r->function, dt_describe(leaf, text, sizeof text));
}

static int leaf_type(reader *r, PyObject *leaf)
{
    dt_scalar number;
    int dtype = -1;
    if (PyFloat_CheckExact(leaf))
        dtype = dt_default_dtype();
    else if (PyComplex_CheckExact(leaf))
        dtype = dt_dtype_to_complex(dt_default_dtype());
    else if (PyLong_CheckExact(leaf))
        dtype = DT_INT64;
    else if (PyBool_Check(leaf))
        dtype = DT_BOOL;
    else if (dt_tensor_check(leaf))
        dtype = dt_tensor_of(leaf)->dtype;
    else
        dtype = dt_numpy_scalar_dtype(leaf);
    if (dtype < 0) {
        int found = leaf_number(r, leaf, &number);
        if (found < 0)
            return -1;
        if (!found && (PyUnicode_Check(leaf) || PyBytes_Check(leaf)))
            return not_a_number(
                r, leaf, r->ndim && r->dtype < 0 ? PyExc_ValueError : PyExc_TypeError);
        if (!found)
            return not_a_number(r, leaf, PyExc_RuntimeError);
        dtype = number.kind == DT_KIND_FLOAT     ? dt_default_dtype()
                : number.kind == DT_KIND_INTEGER ? DT_INT64
                                                 : DT_BOOL;
    }
    r->dtype = r->dtype < 0
                   ? dtype
                   : (int)dt_dtype_promote((dt_dtype)r->dtype, (dt_dtype)dtype);
    return 0;
}

static bool is_sequence(PyObject *value)
{
    if (PyFloat_CheckExact(value) || PyLong_CheckExact(value))
        return false;
    if (PyList_Check(value) || PyTuple_Check(value))
        return true;
    return !PyUnicode_Check(value) && !PyBytes_Check(value) && !PyDict_Check(value) &&
           !dt_tensor_check(value) && PySequence_Check(value) &&
           PySequence_Size(value) >= 0;
}

/* --- first pass: shape and dtype --- */

static int uneven(reader *r, int depth)
{
    return DT_SET_ERROR(
        PyExc_TypeError,
        "%s(): the data is ragged: at depth %d numbers and sequences are "
        "mixed; nest all of them equally",
        r->function, depth);
}

static int measure(reader *r, PyObject *data, int depth)
{
    if (!is_sequence(data)) {
        if (PyErr_Occurred())
            PyErr_Clear(); /* __len__ fails: not a sequence */
        if (r->ndim < 0)
            r->ndim = depth;
        else if (r->ndim != depth)
            return uneven(r, depth);
        return r->infer ? leaf_type(r, data) : 0;
    }
    if (depth == DT_MAX_NDIM)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "%s(): the data is nested deeper than the %d dimensions that a tensor can "
            "have; flatten it first",
            r->function, DT_MAX_NDIM);
    DT_REF items = PySequence_Fast(data, "the data is not a sequence");
    if (!items)
        return -1;
    Py_ssize_t length = PySequence_Fast_GET_SIZE(items);
    if (r->ndim >= 0 && depth >= r->ndim)
        return uneven(r, depth);
    if (r->shape[depth] < 0) /* the first sequence at each depth */
        r->shape[depth] = length;
    if (r->shape[depth] != length)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "%s(): the data is ragged: a sequence at depth %d has %zd items where "
            "others have %zd; give all of them the same length",
            r->function, depth, length, (Py_ssize_t)r->shape[depth]);
    if (!length && r->ndim < 0)
        r->ndim = depth + 1;
    if (!length && r->ndim != depth + 1)
        return uneven(r, depth);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
        DT_REF item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        if (measure(r, item, depth + 1))
            return -1;
    }
    return 0;
}

/* --- second pass: elements --- */

/* Writes a float or an int of the usual dtype; false: write_leaf() has the general way. */
static bool write_quick(PyObject *leaf, dt_dtype dtype, char *out)
{
    if (dtype == DT_FLOAT32 && PyFloat_CheckExact(leaf)) {
        const float value = (float)PyFloat_AS_DOUBLE(leaf);
        memcpy(out, &value, sizeof value);
        return true;
    }
    if (dtype == DT_INT64 && PyLong_CheckExact(leaf)) {
        int overflow;
        const long long value = PyLong_AsLongLongAndOverflow(leaf, &overflow);
        memcpy(out, &value, sizeof value);
        return !overflow;
    }
    return false;
}

static int write_leaf(reader *r, PyObject *leaf, dt_dtype dtype, char *out)
{
    dt_scalar number;
    if (write_quick(leaf, dtype, out))
        return 0;
    if (dt_dtype_is_complex(dtype) &&
        (dt_is_complex_number(leaf) ||
         (dt_tensor_check(leaf) &&
          dt_dtype_is_complex((dt_dtype)dt_tensor_of(leaf)->dtype)))) {
        DT_REF value = dt_tensor_check(leaf) ? PyObject_CallMethod(leaf, "item", NULL)
                                             : Py_NewRef(leaf);
        if (!value)
            return -1;
        const Py_complex z = PyComplex_AsCComplex(value);
        if (z.real == -1 && PyErr_Occurred())
            return -1;
        dt_element element = dt_element_from_complex(dtype, z.real, z.imag);
        memcpy(out, element.bytes, dt_dtype_size(dtype));
        return 0;
    }
    int found = leaf_number(r, leaf, &number);
    if (found <= 0)
        return found < 0 ? -1 : not_a_number(r, leaf, PyExc_TypeError);
    if (dt_dtype_kind(dtype) == DT_KIND_INTEGER && number.kind == DT_KIND_FLOAT &&
        !(number.f > -9223372036854775808.0 && number.f < 9223372036854775808.0))
        return DT_SET_ERROR(PyExc_RuntimeError,
                            "%s(): %R is not a 64-bit integer; use a floating dtype",
                            r->function, leaf);
    if (dt_dtype_kind(dtype) == DT_KIND_INTEGER && number.kind != DT_KIND_FLOAT &&
        !dt_scalar_fits(dtype, number))
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): the number %lld does not fit into the type %s; use a wider dtype",
            r->function, (long long)number.i, dt_dtype_name(dtype));
    dt_element element = dt_element_from_scalar(dtype, number);
    memcpy(out, element.bytes, dt_dtype_size(dtype));
    return 0;
}

static int changed(reader *r)
{
    return DT_SET_ERROR(PyExc_ValueError, "%s(): the data changed while it was read",
                        r->function);
}

static int write_all(reader *r, PyObject *data, int depth, dt_dtype dtype, char **out)
{
    if (depth == r->ndim) {
        if (write_leaf(r, data, dtype, *out))
            return -1;
        *out += dt_dtype_size(dtype);
        return 0;
    }
    DT_REF items = PySequence_Fast(data, "the data changed while it was read");
    if (!items)
        return -1;
    for (int64_t i = 0; i < r->shape[depth]; i++) {
        if (i >= PySequence_Fast_GET_SIZE(items))
            return changed(r);
        DT_REF item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        if (write_all(r, item, depth + 1, dtype, out))
            return -1;
    }
    return PySequence_Fast_GET_SIZE(items) == r->shape[depth] ? 0 : changed(r);
}

/* Creates a CPU tensor from numbers and sequences; the caller clears it. */
static int read_data(reader *r, dt_tensor *out, PyObject *data)
{
    for (int d = 0; d < DT_MAX_NDIM; d++)
        r->shape[d] = -1;
    if (measure(r, data, 0))
        return -1;
    if (r->dtype < 0)
        r->dtype = (int)dt_default_dtype(); /* no number at all */
    if (dt_tensor_empty(r->function, out, (dt_dtype)r->dtype, r->ndim, r->shape,
                        dt_device_make(DT_CPU, 0)))
        return dt_raise_status();
    char *cursor = dt_tensor_data(out);
    return write_all(r, data, 0, (dt_dtype)r->dtype, &cursor);
}

/* A tensor over an array's memory, or over that of a contiguous copy where it cannot be
 * shared. */
static PyObject *from_array(PyObject *array)
{
    PyObject *made = dt_numpy_to_tensor(array);
    if (made || !PyErr_ExceptionMatches(PyExc_ValueError))
        return made;
    PyErr_Clear();
    DT_REF copy = PyObject_CallMethod(array, "copy", NULL);
    return copy ? dt_numpy_to_tensor(copy) : NULL;
}

PyObject *dt_tensor_from_data(const char *function, PyObject *data, int dtype,
                              dt_device device)
{
    DT_LOCAL(source);
    if (dt_tensor_check(data)) {
        dt_tensor_alias(&source, dt_tensor_of(data));
    } else if (dt_numpy_is_array(data)) {
        DT_REF shared = from_array(data);
        if (!shared)
            return NULL;
        dt_tensor_alias(&source, dt_tensor_of(shared));
    } else {
        reader r = {
            .function = function, .ndim = -1, .dtype = dtype, .infer = dtype < 0};
        if (read_data(&r, &source, data))
            return NULL;
        if (dt_device_is_cpu(device))
            return dt_tensor_object_steal(&source);
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, source.numel > DT_LONG_NUMEL || dt_device_has_streams(device),
           dt_to_format(&out->tensor, &source,
                        dtype < 0 ? (dt_dtype)source.dtype : (dt_dtype)dtype, device,
                        DT_FORMAT_PRESERVE, false),
           NULL);
    return dt_tensor_result(out, status);
}

/* --- functions --- */

bool dt_is_foreign_array(PyObject *data)
{
    PyObject *type = (PyObject *)Py_TYPE(data);
    return !dt_tensor_check(data) && !PyList_Check(data) && !PyTuple_Check(data) &&
           !PyLong_Check(data) && !PyFloat_Check(data) && !dt_numpy_is_array(data) &&
           (PyObject_HasAttrString(type, "__dlpack__") ||
            PyObject_HasAttrString(type, "__array__"));
}

PyObject *dt_adopt_array(const char *function, PyObject *data)
{
    return dt_python_call("pydevtensor._functions.interop", "adopt", "(Os)", data,
                          function);
}

/* data, or a Tensor over its memory if it is another library's array. */
static PyObject *adopt(const dt_args *args)
{
    PyObject *data = args->slots[0];
    return dt_is_foreign_array(data) ? dt_adopt_array(args->signature->name, data)
                                     : Py_NewRef(data);
}

/* The argument device; without it a Tensor's data stay where they are. */
static dt_device device_for(const dt_value *device, PyObject *data)
{
    return device->given || !dt_tensor_check(data) ? device->device
                                                   : dt_tensor_home(dt_tensor_of(data));
}

DT_PUBLIC(tensor, "tensor(data: Any, *, dtype: Dtype = None, device: Device = None, "
                  "requires_grad: bool = False, pin_memory: bool = False)")
{
    DT_REF data = adopt(args);
    return data ? dt_finish_factory(args, 0,
                                    dt_tensor_from_data("tensor", data, v[1].dtype,
                                                        device_for(&v[2], data)))
                : NULL;
}

DT_PUBLIC(new_tensor, "new_tensor(input: Tensor, data: Any, *, " DT_FACTORY_KWARGS ")")
{
    const dt_tensor *x = v[0].tensor;
    int dtype = v[2].given ? v[2].dtype : x->dtype;
    dt_device device = v[4].given ? v[4].device : dt_tensor_home(x);
    return dt_finish_factory(
        args, 2, dt_tensor_from_data("new_tensor", args->slots[1], dtype, device));
}

DT_PUBLIC(as_tensor, "as_tensor(data: Any, dtype: Dtype = None, device: Device = None)")
{
    DT_REF data = adopt(args);
    if (!data)
        return NULL;
    int dtype = v[1].dtype;
    dt_device device = device_for(&v[2], data);
    PyObject *shared = NULL;
    if (dt_tensor_check(data)) {
        shared = Py_NewRef(data);
    } else if (dt_numpy_is_array(data)) {
        shared = dt_numpy_to_tensor(data);
        if (!shared)
            PyErr_Clear(); /* copied below, or rejected there */
    }
    if (shared) {
        const dt_tensor *t = dt_tensor_of(shared);
        if ((dtype < 0 || dtype == t->dtype) &&
            dt_device_equal(device, dt_tensor_home(t)))
            return shared;
        Py_DECREF(shared);
    }
    return dt_tensor_from_data("as_tensor", data, dtype, device);
}

/* --- the class: Tensor(2, 3), Tensor([1, 2]) --- */

static PyObject *construct_old(const char *function, dt_dtype dtype,
                               PyObject *const *values, Py_ssize_t count)
{
    dt_device cpu = dt_device_make(DT_CPU, 0);
    int64_t shape[DT_MAX_NDIM];
    shape[0] = 0;
    if (count == 1 && Py_TYPE(values[0]) == dt_py.size_type) {
        count = PyTuple_GET_SIZE(values[0]);
        values = ((PyTupleObject *)values[0])->ob_item;
    } else if (count == 1) {
        int found =
            dt_tensor_check(values[0]) ? 0 : dt_int_from_python(values[0], shape);
        if (found <= 0)
            return found < 0 ? NULL
                             : dt_tensor_from_data(function, values[0], dtype, cpu);
    }
    if (count > DT_MAX_NDIM)
        return PyErr_Format(PyExc_RuntimeError,
                            "%s(): %zd sizes were given; at most %d are possible",
                            function, count, DT_MAX_NDIM);
    for (Py_ssize_t d = 0; d < count; d++) {
        int found = dt_int_from_python(values[d], &shape[d]);
        char text[DT_DESCRIBE_TEXT];
        if (!found)
            PyErr_Format(
                PyExc_TypeError,
                "%s(): the sizes contain %s; give ints, or one sequence of data",
                function, dt_describe(values[d], text, sizeof text));
        if (found <= 0)
            return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int ndim = count ? (int)count : 1; /* without sizes: no elements */
    return dt_tensor_result(
        out, dt_tensor_empty(function, &out->tensor, dtype, ndim, shape, cpu));
}

PyObject *dt_tensor_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_GET_SIZE(kwargs))
        return PyErr_Format(
            PyExc_TypeError,
            "Tensor() takes sizes or data, and no keywords; use torch.tensor(data, "
            "dtype=..., device=...) or torch.empty(...)");
    PyObject *made =
        construct_old("Tensor", dt_default_dtype(), ((PyTupleObject *)args)->ob_item,
                      PyTuple_GET_SIZE(args));
    if (!made || type == dt_py.tensor_type)
        return made;
    dt_tensor_object *out = dt_tensor_object_detached(type, dt_tensor_of(made));
    Py_DECREF(made);
    return (PyObject *)out;
}

static const dt_function rows[] = {
    DT_FUNCTION(
        tensor, "tensor",
        "A new tensor with a copy of data: a number, nested sequences of "
        "numbers, a NumPy array or a tensor.\n\nWithout dtype: bool for bools, "
        "int64 for ints, the default floating type for floats, an array's own "
        "type. device: by default data's, or the default one. requires_grad: "
        "whether gradients are computed for it, of floats alone. pin_memory: in "
        "page-locked memory, for copies to a GPU. ValueError for ragged data, "
        "TypeError for non-numbers. See also as_tensor(), which shares memory.",
        "torch.tensor([[1, 2], [3, 4]])", "tensor([[1, 2],\n        [3, 4]])"),
    DT_METHOD(new_tensor, "new_tensor",
              "Like tensor(data), with the type and device of this Tensor.\n\ndtype, "
              "layout, device, requires_grad and pin_memory are those of empty().",
              "torch.tensor([1.0]).new_tensor([3, 4])", "tensor([3., 4.])"),
    DT_FUNCTION(as_tensor, "as_tensor",
                "Like tensor(), but without a copy if data is a tensor or NumPy array "
                "that fits: of dtype and on device, where these are given.",
                "torch.as_tensor([1, 2])", "tensor([1, 2])"),
};

int dt_setup_construct(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
