/* Named singletons, such as torch.float32 and torch.channels_last: their repr, and a pickle
 * that is the name of the module's attribute. */
#ifndef DT_PYTHON_TYPES_NAMED_H
#define DT_PYTHON_TYPES_NAMED_H

#include "python/module.h"

typedef struct dt_named_object {
    PyObject_HEAD const char *name; /* a literal */
    int value;
} dt_named_object;

static inline int dt_named_value(PyObject *object)
{
    return ((dt_named_object *)object)->value;
}

/* Adds to the module a type of singletons. properties: its own, or NULL. The result's
 * reference is never dropped; NULL with an exception set. */
PyTypeObject *dt_named_type(PyObject *module, const char *name, const char *doc,
                            PyGetSetDef *properties);

/* Adds to the module the singleton of the type. One reference that the caller keeps;
 * NULL with an exception set. */
PyObject *dt_named_new(PyObject *module, PyTypeObject *type, const char *name,
                       int value);

#endif
