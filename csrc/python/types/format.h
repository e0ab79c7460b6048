/* Layouts (strided only) and memory formats as Python objects. */
#ifndef DT_PYTHON_TYPES_FORMAT_H
#define DT_PYTHON_TYPES_FORMAT_H

#include "python/arguments.h"
#include "tensor/format.h"

bool dt_layout_object_check(PyObject *value);
bool dt_format_object_check(PyObject *value);

/* torch.strided: a new reference; cannot fail. */
PyObject *dt_strided(void);

/* Argument takers, as in arguments.h. *out is unchanged for None or if not given. */
int dt_take_layout(const dt_args *args, int i);
int dt_take_format(const dt_args *args, int i, dt_format *out);

#endif
