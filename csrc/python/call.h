/* Calls of records from Python. */
#ifndef DT_PYTHON_CALL_H
#define DT_PYTHON_CALL_H

#include "autograd/dispatch.h"
#include "python/functions.h"

/* Binds the arguments, runs the record and returns its results; NULL with an exception
 * set. */
PyObject *dt_call_record(dt_signature *signature, bool in_place, DT_CALL_PARAMETERS);
/* The same, sooner where the arguments are of the commonest kinds. */
PyObject *dt_call_record_quick(dt_signature *signature, bool in_place,
                               DT_CALL_PARAMETERS);

/* The results of a call that does not simply return one new tensor; takes `objects`, which
 * hold them, over. */
PyObject *dt_finish_record(const dt_args *args, const dt_op_info *info, dt_call *call,
                           dt_tensor_object **objects, int status);

/* Whether an argument is on another device than the first one. */
bool dt_call_crosses(const dt_call *c);
/* Whether other threads run while a call on this many elements computes. */
static inline bool dt_call_is_long(const dt_call *c, int64_t numel)
{
    unsigned flags = c->op->flags;
    return (flags & DT_LONG) ||
           numel > ((flags & DT_COSTLY) ? DT_LONG_NUMEL / 16 : DT_LONG_NUMEL) ||
           ((flags & DT_ANY_DEVICE) && dt_call_crosses(c));
}
/* dt_dispatch for such a call, whose arguments `values` are. `items`: the tensors of a list
 * among them. */
int dt_dispatch_long(dt_call *call, dt_value *values, const dt_tensor **items,
                     Py_ssize_t nitems);

#endif
