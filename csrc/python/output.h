/* `out=`: where a result goes that the caller has a tensor for. */
#ifndef DT_PYTHON_OUTPUT_H
#define DT_PYTHON_OUTPUT_H

#include "python/arguments.h"

/* Ends a function whose last argument `out: Tensor = None` is at index i: without it
 * the object holding the result (as dt_tensor_result), else `out` itself, into which
 * the result was copied. An `out` without elements takes the result's shape; another
 * shape is a RuntimeError. */
PyObject *dt_finish(const dt_args *args, int i, dt_tensor_object *result, int status);

/* Raises that out= and gradients do not go together. */
void dt_output_refuse(const char *function);

/* Checks `out` against a result that was made, and copies; steals nothing. -1 raised.
 */
int dt_copy_to_output(const char *function, PyObject *out, const dt_tensor *result);

#endif
