/* Calls that a program's modes, and classes with __torch_function__, take over. The entries of
 * all functions (functions.h), operators and subscripts ask here first;
 * pydevtensor/overrides.py then makes the calls. */
#ifndef DT_PYTHON_OVERRIDES_H
#define DT_PYTHON_OVERRIDES_H

#include "python/module.h"

/* 0 unless something may take calls over: 2 for each mode of any thread, and 1 once an object
 * of a subclass of Tensor with a __torch_function__ of its own was made. */
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
/* The same for an operator or protocol by its name, of one to three operands: b and c may be
 * NULL. */
PyObject *dt_override_operator(const char *name, PyObject *a, PyObject *b, PyObject *c);
/* The same for arguments that are not Tensors, after a call has failed with a TypeError or
 * because an operator does not know an operand. A pending exception stays pending unless
 * something takes the call over. */
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

/* Lets modes take over a public attribute of Tensor, from now on. -1 raised. */
int dt_override_attribute(PyGetSetDef *property);

/* Called before an object of a subclass of Tensor is made. -1 with an exception set. */
int dt_override_note(PyTypeObject *type);

#endif
