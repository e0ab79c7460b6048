/* `dtype`, `layout` and `memory_format`: one object for each value, compared by identity. */
#ifndef DT_PYTHON_TYPES_DTYPE_H
#define DT_PYTHON_TYPES_DTYPE_H

#include "python/arguments.h"
#include "tensor/format.h"

static inline bool dt_dtype_check(PyObject *value)
{
    return Py_TYPE(value) == dt_py.dtype_type;
}

/* The type's object: a new reference; cannot fail. */
static inline PyObject *dt_dtype_object_get(dt_dtype dtype)
{
    return Py_NewRef(dt_py.dtypes[dtype]);
}

/* Converts a dtype, or Python's bool, int or float. false, without an exception, for
 * anything else. */
bool dt_dtype_from_python(PyObject *value, dt_dtype *out);

/* Whether it is a dtype of PyTorch that no Tensor here has, such as complex64. */
bool dt_dtype_is_absent(PyObject *value);

bool dt_layout_object_check(PyObject *value);
bool dt_format_object_check(PyObject *value);

/* torch.strided: a new reference; cannot fail. */
PyObject *dt_strided(void);

/* Argument takers, as in arguments.h. *out is unchanged for None or if not given. */
int dt_take_layout(const dt_args *args, int i);
int dt_take_format(const dt_args *args, int i, dt_format *out);

#endif
