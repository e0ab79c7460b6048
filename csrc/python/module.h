/* Process-wide state of the binding, and the list of its initializers.
 *
 * The main interpreter alone has it, so that type checks are one load and one compare. A
 * sub-interpreter gets an ImportError. */
#ifndef DT_PYTHON_MODULE_H
#define DT_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030d0000
#define Py_HashPointer _Py_HashPointer
#endif

#include "base/dtype.h"
#include "base/error.h"
#include "device/device.h"

/* SETUP(name): calls `int dt_setup_name(PyObject *module)` at import, in this order;
 * -1 with an exception set. TABLE(name): adds the functions of dt_name_functions. A file
 * that adds types, functions or methods defines one of them and is listed here; it may
 * rely on the ones before it. */
#define DT_SETUPS(SETUP, TABLE)                                                        \
    SETUP(errors)                                                                      \
    SETUP(namespaces)                                                                  \
    SETUP(process)                                                                     \
    SETUP(dtype_type)                                                                  \
    SETUP(size_type)                                                                   \
    SETUP(device_type)                                                                 \
    SETUP(tensor_type)                                                                 \
    SETUP(defaults)                                                                    \
    SETUP(operations)                                                                  \
    SETUP(composite)                                                                   \
    SETUP(indexing)                                                                    \
    SETUP(lapack)                                                                      \
    SETUP(updates)                                                                     \
    SETUP(conversions)                                                                 \
    SETUP(properties)                                                                  \
    SETUP(node_type)                                                                   \
    SETUP(history)                                                                     \
    SETUP(autograd)                                                                    \
    TABLE(modes)                                                                       \
    TABLE(python_function)                                                             \
    SETUP(construct)                                                                   \
    SETUP(extract)                                                                     \
    SETUP(buffer)                                                                      \
    SETUP(numpy)                                                                       \
    SETUP(mapping)                                                                     \
    SETUP(dlpack)                                                                      \
    SETUP(generator_type)                                                              \
    TABLE(cuda)                                                                        \
    TABLE(graphs)                                                                      \
    TABLE(kernels)                                                                     \
    SETUP(source_lines)                                                                \
    TABLE(memory)                                                                      \
    TABLE(ipc)                                                                         \
    TABLE(recorder)                                                                    \
    SETUP(fusion)                                                                      \
    TABLE(guards)                                                                      \
    TABLE(groups_quick)                                                                \
    TABLE(groups)                                                                      \
    TABLE(communicators)                                                               \
    SETUP(races)                                                                       \
    SETUP(sparse)                                                                      \
    SETUP(overrides)                                                                   \
    SETUP(module_base)

#define SETUP(name) int dt_setup_##name(PyObject *module);
#define TABLE(name) extern PyMethodDef dt_##name##_functions[];
DT_SETUPS(SETUP, TABLE)
#undef SETUP
#undef TABLE

/* Set at import and constant afterwards; the references are never dropped. */
typedef struct dt_python {
    PyObject *module;
    PyTypeObject *tensor_type;
    PyTypeObject *device_type;
    PyTypeObject *dtype_type;
    PyTypeObject *size_type;
    PyTypeObject *generator_type;     /* csrc/python/types/generator.c */
    PyObject *dtypes[DT_NDTYPES];     /* the objects behind pydevtensor.float32, ... */
    PyObject *exceptions[DT_NERRORS]; /* by dt_error_code */
    PyObject *cpu;                    /* device('cpu') */
    PyObject *sparse_type; /* set when pydevtensor.sparse is imported; or NULL */
} dt_python;

extern dt_python dt_py;

/* Declares a reference that is dropped at the end of the block, if not NULL. */
#define DT_REF __attribute__((cleanup(dt_drop))) PyObject *
static inline void dt_drop(PyObject **object)
{
    Py_XDECREF(*object);
}

/* Creates a heap type and adds it to the module under the last part of its name, of
 * objects of `size` bytes (0: as its base). base NULL: object. Returns one reference, which
 * is never dropped; NULL with an exception set. */
PyTypeObject *dt_add_type(PyObject *module, const char *name, size_t size,
                          unsigned long flags, PyTypeObject *base, PyType_Slot *slots);

/* Calls a function of a module, which is imported if it is not yet. The format is
 * Py_BuildValue's, for a tuple of the arguments. */
PyObject *dt_python_call(const char *module, const char *function, const char *format,
                         ...);

/* Appends an item, whose reference it takes. *list becomes NULL, with an exception set, if
 * the item is NULL or there is no memory. */
void dt_list_append(PyObject **list, PyObject *item);

/* Adds value to the module without stealing the reference. */
int dt_add_object(PyObject *module, const char *name, PyObject *value);

#endif
