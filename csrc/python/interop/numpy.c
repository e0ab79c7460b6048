/* NumPy arrays and tensors over the same memory. NumPy is imported on first use. */
#include "autograd/variable.h"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION    NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include "device/released.h"
#include "python/functions.h"
#include "python/history.h"
#include "tensor/ops/copy.h"

/* Imports NumPy's C API if needed; -1 with ImportError or MemoryError. */
static int need_numpy(void)
{
    static bool ready;
    if (ready)
        return 0;
    /* Not PyArray_ImportNumPyAPI, which prints its exceptions. */
    if (_import_array() < 0) {
        if (PyErr_ExceptionMatches(PyExc_MemoryError))
            return -1;
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_Format(PyExc_ImportError,
                     "this needs NumPy, which cannot be imported (%S); install it with "
                     "pip install numpy",
                     value ? value : Py_None);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return -1;
    }
    ready = true;
    return 0;
}

/* Whether the program has imported NumPy. If not, no value can be an array. */
static bool numpy_is_loaded(void)
{
    static bool loaded;
    if (!loaded) {
        PyObject *modules = PyImport_GetModuleDict();
        loaded = PyDict_GetItemString(modules, "numpy.core.multiarray") ||
                 PyDict_GetItemString(modules, "numpy._core.multiarray");
    }
    if (!loaded)
        return false;
    if (!need_numpy())
        return true;
    PyErr_Clear(); /* for want of memory: what asks here takes no exceptions */
    return false;
}

/* NumPy's type numbers; NPY_NOTYPE if there is none. */
#define NPY_BFLOAT16 NPY_NOTYPE
static const int type_numbers[DT_NDTYPES] = {
#define DT_DTYPE(ID, name, alias, type) NPY_##ID,
#include "ops/dtype.def"
};

static int dtype_of_number(int number)
{
    for (int d = 0; d < DT_NDTYPES; d++)
        if (type_numbers[d] != NPY_NOTYPE &&
            PyArray_EquivTypenums(type_numbers[d], number))
            return d;
    return -1;
}

bool dt_numpy_is_array(PyObject *value)
{
    if (PyLong_Check(value) || PyFloat_Check(value) || PyList_Check(value))
        return false;
    return numpy_is_loaded() && PyArray_Check(value);
}

int dt_numpy_scalar_dtype(PyObject *value)
{
    if (!numpy_is_loaded() || !PyArray_IsScalar(value, Generic))
        return -1;
    PyArray_Descr *descr = PyArray_DescrFromScalar(value);
    if (!descr) {
        PyErr_Clear();
        return -1;
    }
    int dtype = dtype_of_number(descr->type_num);
    Py_DECREF((PyObject *)descr);
    return dtype;
}

/* --- NumPy array of a tensor --- */

/* An array over a CPU tensor's memory, which it keeps alive. */
static PyObject *array_of(PyObject *object)
{
    const dt_tensor *t = dt_tensor_of(object);
    dt_dtype dtype = (dt_dtype)t->dtype;
    npy_intp shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    static char nothing;
    if (need_numpy())
        return NULL;
    if (dt_tensor_used_by_host("numpy", t))
        return dt_raise();
    for (int d = 0; d < t->ndim; d++) {
        shape[d] = (npy_intp)t->shape[d];
        strides[d] = (npy_intp)(t->strides[d] * (int64_t)dt_dtype_size(dtype));
    }
    if (type_numbers[dtype] == NPY_NOTYPE)
        return PyErr_Format(PyExc_TypeError,
                            "numpy(): NumPy has no type %s; convert the tensor with "
                            ".float() first",
                            dt_dtype_name(dtype));
    /* The array holds its own tensor: the program's tensor may be given other
     * memory. */
    dt_tensor_object *keeper = dt_tensor_object_detached(dt_py.tensor_type, t);
    if (!keeper)
        return NULL;
    PyObject *array = PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DescrFromType(type_numbers[dtype]), t->ndim, shape,
        strides, t->numel ? dt_tensor_lend(t) : &nothing,
        t->storage->read_only ? 0 : NPY_ARRAY_WRITEABLE, NULL);
    if (!array) {
        Py_DECREF((PyObject *)keeper);
        return NULL;
    }
    PyArray_UpdateFlags((PyArrayObject *)array, NPY_ARRAY_C_CONTIGUOUS |
                                                    NPY_ARRAY_F_CONTIGUOUS |
                                                    NPY_ARRAY_ALIGNED);
    if (PyArray_SetBaseObject((PyArrayObject *)array, (PyObject *)keeper) < 0)
        Py_CLEAR(array);
    return array;
}

DT_PUBLIC(numpy, "numpy(self: Tensor, *, force: bool = False)")
{
    const dt_tensor *t = v[0].tensor;
    bool force = v[1].b;
    dt_device device = dt_tensor_device(t), cpu = dt_device_make(DT_CPU, 0);
    if (!force && dt_grad_enabled && dt_requires_grad(t))
        return PyErr_Format(
            PyExc_RuntimeError,
            "numpy(): this Tensor requires gradients, which NumPy cannot "
            "record; use .detach().numpy()");
    if (dt_device_check_memory(device))
        return dt_raise();
    if (dt_device_is_host(device))
        return array_of(args->slots[0]);
    if (!force) {
        char text[DT_DEVICE_TEXT];
        return PyErr_Format(
            PyExc_TypeError,
            "numpy(): the tensor is on %s, and NumPy needs CPU memory; make a "
            "copy with .cpu().numpy() or .numpy(force=True)",
            dt_device_text(device, text));
    }
    dt_tensor_object *copy = dt_tensor_object_new();
    if (!copy)
        return NULL;
    int status;
    DT_RUN(status, true,
           dt_to_format(&copy->tensor, t, (dt_dtype)t->dtype, cpu, DT_FORMAT_PRESERVE,
                        false),
           &t);
    DT_REF result = dt_tensor_result(copy, status);
    return result ? array_of(result) : NULL;
}

/* --- tensor of a NumPy array --- */

static int check_shareable(PyArrayObject *array, int *dtype)
{
    PyArray_Descr *descr = PyArray_DESCR(array);
    int size = (int)PyArray_ITEMSIZE(array);
    if (PyArray_NDIM(array) > DT_MAX_NDIM)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "from_numpy(): the array has %d dimensions, a tensor has at most "
            "%d; reshape "
            "it first",
            PyArray_NDIM(array), DT_MAX_NDIM);
    *dtype = dtype_of_number(descr->type_num);
    if (*dtype < 0)
        return DT_SET_ERROR(
            PyExc_TypeError,
            "from_numpy(): no tensor type matches %R; convert the array with .astype() "
            "to bool, an integer of 8 to 64 bits, a float of 16 to 64, or a complex "
            "type of "
            "64 or 128",
            descr);
    if (PyArray_ISBYTESWAPPED(array))
        return DT_SET_ERROR(
            PyExc_ValueError,
            "from_numpy(): the array's byte order is not this machine's; convert it "
            "with .astype(array.dtype.newbyteorder('='))");
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp stride = PyArray_STRIDE(array, d);
        if (stride < 0)
            return DT_SET_ERROR(
                PyExc_ValueError,
                "from_numpy(): the stride of dimension %d is negative (%zd), "
                "which tensors cannot have; use array.copy()",
                d, (Py_ssize_t)stride);
        if (stride % size)
            return DT_SET_ERROR(
                PyExc_ValueError,
                "from_numpy(): the stride of %zd bytes in dimension %d is not "
                "a multiple of the element's %d; use array.copy()",
                (Py_ssize_t)stride, d, size);
    }
    if ((uintptr_t)PyArray_DATA(array) % (uintptr_t)size)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "from_numpy(): the array's elements are not aligned; use array.copy()");
    return 0;
}

PyObject *dt_numpy_to_tensor(PyObject *value)
{
    PyArrayObject *array = (PyArrayObject *)value;
    int dtype;
    if (check_shareable(array, &dtype))
        return NULL;
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    dt_tensor *t = &object->tensor;
    int64_t size = (int64_t)dt_dtype_size((dt_dtype)dtype);
    t->dtype = (unsigned char)dtype;
    t->ndim = (unsigned char)PyArray_NDIM(array);
    for (int d = 0; d < t->ndim; d++) {
        t->shape[d] = PyArray_DIM(array, d);
        t->strides[d] = PyArray_STRIDE(array, d) / size;
    }
    int64_t extent = dt_shape_extent(t->ndim, t->shape, t->strides);
    if (!extent) /* NumPy's strides are arbitrary here */
        dt_shape_strides(t->ndim, t->shape, t->strides);
    PyObject *made = dt_tensor_object_over(
        object, dt_device_make(DT_CPU, 0), extent ? PyArray_DATA(array) : NULL,
        (size_t)(extent * size), !PyArray_ISWRITEABLE(array), dt_object_free, value);
    if (made)
        Py_INCREF(value);
    return made;
}

DT_PUBLIC(from_numpy, "from_numpy(ndarray: Any)")
{
    PyObject *array = args->slots[0];
    if (need_numpy())
        return NULL;
    if (!PyArray_Check(array))
        return PyErr_Format(
            PyExc_TypeError,
            "from_numpy(): the argument is a %.100s; give a NumPy array, or use "
            "torch.tensor() for other data",
            Py_TYPE(array)->tp_name);
    if (!PyArray_ISWRITEABLE((PyArrayObject *)array) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "from_numpy(): the array is read-only, and so is its tensor; use "
                     "array.copy() to write",
                     1) < 0)
        return NULL;
    return dt_numpy_to_tensor(array);
}

static const dt_function rows[] = {
    DT_METHOD(numpy, "numpy",
              "A NumPy array that shares the tensor's memory.\n\nA tensor on a GPU "
              "raises TypeError unless force=True, which copies it.",
              "torch.tensor([1, 2]).numpy()", "array([1, 2])"),
    DT_FUNCTION(
        from_numpy, "from_numpy",
        "A tensor that shares the memory of ndarray, a NumPy array.\n\nTypeError for "
        "unsupported element types, ValueError for unsupported layouts "
        "(negative strides, other byte orders).",
        "torch.from_numpy(torch.tensor([1, 2]).numpy())", "tensor([1, 2])"),
};

int dt_setup_numpy(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
