/* Layouts (strided only) and memory formats as Python objects. */
#ifndef DT_PYTHON_TYPES_FORMAT_H
#define DT_PYTHON_TYPES_FORMAT_H

#include "python/arguments.h"

/* FORMAT(ID, name): a memory format. PRESERVE keeps the strides of a dense source.
 * The channels-last formats, for 4 and 5 dimensions, store [n, channels, ...] as [n,
 * ..., channels]. */
#define DT_FORMATS(FORMAT)                                                             \
    FORMAT(PRESERVE, preserve_format)                                                  \
    FORMAT(CONTIGUOUS, contiguous_format)                                              \
    FORMAT(CHANNELS, channels_last)                                                    \
    FORMAT(CHANNELS_3D, channels_last_3d)

typedef enum dt_format {
#define FORMAT(ID, name) DT_FORMAT_##ID,
    DT_FORMATS(FORMAT)
#undef FORMAT
        DT_NFORMATS
} dt_format;

bool dt_layout_object_check(PyObject *value);
bool dt_format_object_check(PyObject *value);

/* torch.strided: a new reference; cannot fail. */
PyObject *dt_strided(void);

/* Argument takers, as in arguments.h. *out is unchanged for None or if not given. */
int dt_take_layout(const dt_args *args, int i);
int dt_take_format(const dt_args *args, int i, dt_format *out);

/* Checks that a tensor of ndim dimensions can have the format; -1 with RuntimeError. */
int dt_format_check(const char *function, dt_format format, int ndim);

/* Whether x has the format. PRESERVE and CONTIGUOUS mean row-major. */
bool dt_format_is_of(dt_format format, const dt_tensor *x);

/* The strides of a dense tensor in the format, which must not be PRESERVE. */
void dt_format_strides(dt_format format, int ndim, const int64_t *shape,
                       int64_t *strides);

/* The memory order of dimensions, outermost first, and its inverse; channels-last
 * only. */
void dt_format_order(int ndim, int64_t *order, int64_t *inverse);

#endif
