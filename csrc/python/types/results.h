/* Named tuples of results: torch.return_types.max(values=..., indices=...). */
#ifndef DT_PYTHON_TYPES_RESULTS_H
#define DT_PYTHON_TYPES_RESULTS_H

#include "python/arguments.h"

/* torch.return_types.name, of the names in "(values, indices)"; made at the first use and
 * kept. Borrowed; NULL with an exception set. */
PyTypeObject *dt_named_tuple_type(const char *name, const char *results);
/* Returns `count` results: a named tuple that takes over the references or, if the argument
 * at out_at (-1: none) is given, a named tuple of its tensors after copying. NULL with an
 * exception set. */
PyObject *dt_finish_results(const dt_args *args, int out_at, PyTypeObject *type,
                            int count, dt_tensor_object **results);

#endif
