/* `Tensor`: the core's struct inside a Python object. */
#ifndef DT_PYTHON_TYPES_TENSOR_H
#define DT_PYTHON_TYPES_TENSOR_H

#include "python/errors.h"
#include "python/module.h"
#include "python/threads.h"
#include "tensor/ops/elementwise.h"

typedef struct dt_tensor_object {
    PyObject_HEAD PyObject *weakrefs;
    PyObject *dict; /* of subclasses and of tensors with attributes; or NULL */
    dt_tensor tensor;
    /* If the object is another tensor's .grad: the pointer to this object and what
     * keeps that pointer alive; else NULL. */
    void **slot;
    dt_history *keeper;
} dt_tensor_object;

/* A subclass of int, list or the like has their layout, and so cannot be one of Tensor:
 * a flag says so sooner than its bases would. */
static inline bool dt_tensor_check(PyObject *value)
{
    const unsigned long builtin = Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS |
                                  Py_TPFLAGS_TUPLE_SUBCLASS |
                                  Py_TPFLAGS_UNICODE_SUBCLASS |
                                  Py_TPFLAGS_DICT_SUBCLASS;
    PyTypeObject *type = Py_TYPE(value);
    return type == dt_py.tensor_type || (!PyType_HasFeature(type, builtin) &&
                                         PyType_IsSubtype(type, dt_py.tensor_type));
}

/* The core's tensor inside an object known to be a Tensor, borrowed. */
static inline dt_tensor *dt_tensor_of(PyObject *object)
{
    return &((dt_tensor_object *)object)->tensor;
}

/* A Tensor with an empty struct: the caller fills ->tensor and calls
 * dt_tensor_result before any other code sees it. NULL with an exception set. */
dt_tensor_object *dt_tensor_object_new(void);

/* The same for a subclass. */
dt_tensor_object *dt_tensor_object_new_of(PyTypeObject *type);

/* Tracks the object by the garbage collector if its graph refers to Python objects. */
void dt_tensor_object_track(dt_tensor_object *object);

/* Returns the object if status is 0; else drops it, raises the core's error and
 * returns NULL:
 *
 *     dt_tensor_object *out = dt_tensor_object_new();
 *     if (!out)
 *         return NULL;
 *     return dt_tensor_result(out, dt_view_t(&out->tensor, x)); */
static inline PyObject *dt_tensor_result(dt_tensor_object *object, int status)
{
    if (__builtin_expect(status < 0, 0)) {
        Py_DECREF((PyObject *)object);
        return dt_raise();
    }
    if (__builtin_expect(object->tensor.history != NULL, 0))
        dt_tensor_object_track(object);
    return (PyObject *)object;
}

/* Makes *slot point to the object for as long as it lives, or until forget. An
 * object has at most one slot. */
void dt_tensor_object_bind(dt_tensor_object *object, void **slot, dt_history *keeper);
void dt_tensor_object_forget(dt_tensor_object *object);

/* A new object that takes over t. Leaves t empty, also on failure. */
PyObject *dt_tensor_object_steal(dt_tensor *t);

/* Completes an object whose type, shape and strides are set with memory that is another's,
 * until the last tensor over it calls release(owner). After a failure, which drops the
 * object and raises, that is not called. */
PyObject *dt_tensor_object_over(dt_tensor_object *object, dt_device device, void *data,
                                size_t bytes, bool read_only, void (*release)(void *),
                                void *owner);

/* Gives back a reference to a Python object that the core held, from whichever thread, and
 * also after finalization. */
void dt_object_free(void *object);

/* Converts a core scalar to bool, int or float; an element to complex, too. */
PyObject *dt_scalar_to_python(dt_scalar scalar);
PyObject *dt_element_to_python(dt_dtype dtype, const void *bytes);

/* Whether value is a complex number of Python or NumPy; and such a number as a CPU tensor
 * without dimensions. */
bool dt_is_complex_number(PyObject *value);
PyObject *dt_complex_from_python(PyObject *value, dt_dtype dtype);
/* The type of a complex number in a call with the tensor `beside` it, or NULL. */
static inline dt_dtype dt_complex_type_beside(const dt_tensor *beside)
{
    return dt_dtype_to_complex(beside && dt_dtype_is_inexact((dt_dtype)beside->dtype)
                                   ? (dt_dtype)beside->dtype
                                   : dt_default_dtype());
}

/* Converts a Python bool, int or float, or an object with __index__ or __float__
 * that is neither a tensor nor a sequence (a NumPy scalar). 1 and *out; 0 if value
 * is not a number; -1 with an exception set (OverflowError beyond 64 bits, TypeError
 * for complex numbers). */
int dt_scalar_from_python(PyObject *value, dt_scalar *out);
/* The same of an operand: a Tensor, too. */
static inline int dt_operand_from_python(PyObject *value, dt_arg *out)
{
    if (dt_tensor_check(value)) {
        *out = dt_arg_tensor(dt_tensor_of(value));
        return 1;
    }
    dt_scalar scalar;
    int status = dt_scalar_from_python(value, &scalar);
    if (status > 0)
        *out = dt_arg_scalar(scalar);
    return status;
}

/* For the garbage collector (autograd.c): visits the Python hooks and functions that
 * only this tensor's graph keeps alive, and drops the graph. */
int dt_history_traverse(const dt_tensor *t, visitproc visit, void *arg);
void dt_history_drop(dt_tensor *t);

/* A new Size, and a plain tuple of ints (strides). NULL with an exception set. */
PyObject *dt_size_new(int ndim, const int64_t *sizes);
PyObject *dt_int_tuple_new(int count, const int64_t *values);

/* self[indices] = values, or += values; indices is a tuple of Tensors. -1 with an
 * exception set. */
int dt_tensor_index_put(PyObject *self, PyObject *indices, PyObject *values,
                        bool accumulate);

/* Slots of the type in subscript.c and from_data.c. */
PyObject *dt_tensor_subscript(PyObject *self, PyObject *key);
int dt_tensor_ass_subscript(PyObject *self, PyObject *key,
                            PyObject *value); /* NULL: del */
PyObject *dt_tensor_construct(PyTypeObject *type, PyObject *args,
                              PyObject *kwargs); /* tp_new */

/* The buffer protocol: buffer.c. */
int dt_tensor_get_buffer(PyObject *self, Py_buffer *view, int flags);
void dt_tensor_release_buffer(PyObject *self, Py_buffer *view);

/* Whether value is a NumPy array. Never imports NumPy: without it there are no
 * arrays. */
bool dt_numpy_is_array(PyObject *value);

/* The element type of a NumPy scalar; -1 if value is not one or tensors lack the
 * type. */
int dt_numpy_scalar_dtype(PyObject *value);

/* A tensor over the array's memory, which it keeps alive. A new reference; NULL with
 * TypeError or ValueError if the memory cannot be shared. */
PyObject *dt_numpy_to_tensor(PyObject *array);

/* Whether data is an array of another library than NumPy: its type has __dlpack__ or
 * __array__. Then a Tensor over its memory, for `function`; NULL with an exception set. */
bool dt_is_foreign_array(PyObject *data);
PyObject *dt_adopt_array(const char *function, PyObject *data);

/* Creates a tensor from data (numbers, nested sequences, arrays, tensors):
 * from_data.c. dtype -1: inferred. A new reference. `function` is for messages. */
PyObject *dt_tensor_from_data(const char *function, PyObject *data, int dtype,
                              dt_device device);

#endif
