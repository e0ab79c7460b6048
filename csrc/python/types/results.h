/* Named tuples of two results: torch.return_types.max(values=..., indices=...). */
#ifndef DT_PYTHON_TYPES_RESULTS_H
#define DT_PYTHON_TYPES_RESULTS_H

#include "python/arguments.h"

/* RESULT(name, first, second): one line per function. */
#define DT_RESULTS(RESULT)                                                             \
    RESULT(max, values, indices)                                                       \
    RESULT(min, values, indices)

typedef enum dt_pair_type {
#define RESULT(name, first, second) DT_RESULT_##name,
    DT_RESULTS(RESULT)
#undef RESULT
        DT_NRESULTS
} dt_pair_type;

/* Returns the two results of a function: a named tuple that takes over both
 * references or, if the argument at out_at is given, a named tuple of its tensors
 * after copying. NULL with an exception set, also if status is -1. first and second
 * may be NULL after a failed allocation. */
PyObject *dt_finish_pair(const dt_args *args, int out_at, dt_pair_type type,
                         dt_tensor_object *first, dt_tensor_object *second, int status);

/* torch.return_types.name, of the names in "(values, indices)"; made at the first use and
 * kept. Borrowed; NULL with an exception set. */
PyTypeObject *dt_named_tuple_type(const char *name, const char *results);
/* As dt_finish_pair for `count` results of a type. */
PyObject *dt_finish_results(const dt_args *args, int out_at, PyTypeObject *type,
                            int count, dt_tensor_object **results);

#endif
