/* How a function returns its results: as objects, or into the tensors of `out=`. */
#ifndef DT_PYTHON_OUTPUT_H
#define DT_PYTHON_OUTPUT_H

#include "python/arguments.h"

/* Ends a function whose last argument `out: Tensor = None` is at index i: without it
 * the object holding the result (as dt_tensor_result), else `out` itself, into which
 * the result was copied. An `out` without elements takes the result's shape; another
 * shape is a RuntimeError. */
PyObject *dt_finish(const dt_args *args, int i, dt_tensor_object *result, int status);

#define DT_MAX_NAMES                                                                   \
    96 /* characters of the names of a result's parts, with their end */

/* torch.return_types.name, of the names in "(values, indices)"; made at the first use and
 * kept, and found again by the address of `results`, which has to stay. Borrowed; NULL with
 * an exception set. */
PyTypeObject *dt_named_tuple_type(const char *name, const char *results);

/* Returns `count` results: a named tuple that takes over the references or, if the argument
 * at out_at (-1: none) is given, a named tuple of its tensors after copying. NULL with an
 * exception set. */
PyObject *dt_finish_results(const dt_args *args, int out_at, PyTypeObject *type,
                            int count, dt_tensor_object **results);

/* Raises that out= and gradients do not go together. */
void dt_output_refuse(const char *function);

/* Copies a result to `out`, unless it is there or has gradients, which is an error. -1
 * raised. */
int dt_output_into(const char *function, PyObject *out, PyObject *result);

/* Copies a result to self, the tensor of a function in place, which keeps its shape. -1
 * raised. */
int dt_copy_in_place(const char *function, PyObject *self, const dt_tensor *result);

/* Checks `out` against a result that was made, and copies; steals nothing. -1 raised.
 */
int dt_copy_to_output(const char *function, PyObject *out, const dt_tensor *result);

#endif
