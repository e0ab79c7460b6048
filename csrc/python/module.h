/* The binding's process-wide state, and how a file of csrc/python joins the module.
 *
 * One Python interpreter a process: type checks on the tiny path are one load and one
 * compare that way. A second interpreter gets an ImportError. */
#ifndef DT_PYTHON_MODULE_H
#define DT_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/dtype.h"
#include "base/error.h"
#include "device/device.h"

/* SETUP(name): `int dt_setup_name(PyObject *module)` runs at import, in this order, and
 * returns -1 with a Python exception set. A file that adds types, functions or methods
 * defines one and has its row here; it may rely on those before it. */
#define DT_SETUPS(SETUP)                                                               \
    SETUP(errors)                                                                      \
    SETUP(dtype_type)                                                                  \
    SETUP(size_type)                                                                   \
    SETUP(format_type)                                                                 \
    SETUP(device_type)                                                                 \
    SETUP(tensor_type)                                                                 \
    SETUP(defaults)                                                                    \
    SETUP(elementwise)                                                                 \
    SETUP(special)                                                                     \
    SETUP(ternary)                                                                     \
    SETUP(results)                                                                     \
    SETUP(reductions)                                                                  \
    SETUP(sorting)                                                                     \
    SETUP(scans)                                                                       \
    SETUP(statistics)                                                                  \
    SETUP(indexing)                                                                    \
    SETUP(embedding)                                                                   \
    SETUP(products)                                                                    \
    SETUP(updates)                                                                     \
    SETUP(composed)                                                                    \
    SETUP(rowwise)                                                                     \
    SETUP(losses)                                                                      \
    SETUP(views)                                                                       \
    SETUP(splits)                                                                      \
    SETUP(joins)                                                                       \
    SETUP(rearrangements)                                                              \
    SETUP(creation)                                                                    \
    SETUP(random)                                                                      \
    SETUP(conversions)                                                                 \
    SETUP(properties)                                                                  \
    SETUP(node_type)                                                                   \
    SETUP(history)                                                                     \
    SETUP(autograd)                                                                    \
    SETUP(python_function)                                                             \
    SETUP(construct)                                                                   \
    SETUP(extract)                                                                     \
    SETUP(buffer)                                                                      \
    SETUP(numpy)                                                                       \
    SETUP(dlpack)                                                                      \
    SETUP(dlpack_import)                                                               \
    SETUP(generator_type)                                                              \
    SETUP(stream_type)                                                                 \
    SETUP(event_type)                                                                  \
    SETUP(cuda)

#define SETUP(name) int dt_setup_##name(PyObject *module);
DT_SETUPS(SETUP)
#undef SETUP

/* NAME(word): strings used as attribute and keyword names, interned at import:
 * dt_py.s_word */
#define DT_NAMES(NAME)                                                                 \
    NAME(format_tensor)                                                                \
    NAME(tensor_repr)

/* Everything here is set at import and never changes; pointers are owned for ever. */
typedef struct dt_python {
    PyObject *module;
    PyTypeObject *tensor_type;
    PyTypeObject *device_type;
    PyTypeObject *dtype_type;
    PyTypeObject *size_type;
    PyTypeObject *generator_type;     /* csrc/python/types/generator.c */
    PyTypeObject *stream_type;        /* csrc/python/types/stream.c */
    PyTypeObject *event_type;         /* csrc/python/types/event.c */
    PyObject *dtypes[DT_NDTYPES];     /* the objects behind pydevtensor.float32, ... */
    PyObject *exceptions[DT_NERRORS]; /* by dt_error_code */
    PyObject *cpu;                    /* device('cpu') */
#define NAME(word) PyObject *s_##word;
    DT_NAMES(NAME)
#undef NAME
    /* Threads that work without the GIL, and may use the histories of tensors: it
     * changes only with the GIL held. */
    int outside;
} dt_python;

extern dt_python dt_py;

/* Makes a heap type from spec, adds it to the module under the last part of its name
 * and returns it: one reference that the caller keeps for ever. NULL with an exception
 * set. */
PyTypeObject *dt_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);

/* Adds value under name to the module, without stealing it. */
int dt_add_object(PyObject *module, const char *name, PyObject *value);

#endif
