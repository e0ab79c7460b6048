/* Functions that modes of a program, and classes with __torch_function__, take over. The
 * entries of all functions (functions.h), operators and subscripts ask here first; what
 * follows from that is in pydevtensor/overrides.py. */
#ifndef DT_PYTHON_OVERRIDES_H
#define DT_PYTHON_OVERRIDES_H

#include "python/module.h"

/* Not 0 while any thread has a mode, and once there is an object of a subclass of Tensor
 * that takes functions over: 1 for that, and 2 for each mode. */
extern int dt_overrides;

/* MODULE.FUNCTION(what, args, kwargs), where args and kwargs are those of a call of a
 * function, or of a method of self. Takes over `what`; NULL: an exception is set. */
PyObject *dt_call_whole(const char *module, const char *function, PyObject *what,
                        PyObject *self, PyObject *const *values, Py_ssize_t count,
                        PyObject *kwnames);

/* Lets a mode, or the class of an argument, take over the call of a function with this
 * entry. The result, NULL with an exception, or Py_NotImplemented, which is not a new
 * reference, where nobody does. self: of a method; or NULL. */
PyObject *dt_override(void *entry, PyObject *self, PyObject *const *values,
                      Py_ssize_t count, PyObject *kwnames);
/* The same for an operator or protocol by its name: of b alone, of both, or with a
 * value. b and c may be NULL. */
PyObject *dt_override_operator(const char *name, PyObject *a, PyObject *b, PyObject *c);
/* The same where a call has failed with a TypeError, which stays pending where nobody takes
 * the call over, or an operator does not know an operand: of objects that are no Tensors. */
PyObject *dt_override_failed(const char *name, PyObject *self, PyObject *const *values,
                             Py_ssize_t count, PyObject *kwnames);

#define DT_OVERRIDE(call)                                                              \
    do {                                                                               \
        if (__builtin_expect(dt_overrides, 0)) {                                       \
            PyObject *made_ = call;                                                    \
            if (made_ != Py_NotImplemented)                                            \
                return made_;                                                          \
        }                                                                              \
    } while (0)

/* Before an object of a subclass is made. -1 with an exception set. */
int dt_override_note(PyTypeObject *type);

#endif
