/* How tensors lie in memory, as Python names it: layouts, of which there is one, and
 * memory formats, the orders of dimensions. */
#ifndef DT_PYTHON_TYPES_FORMAT_H
#define DT_PYTHON_TYPES_FORMAT_H

#include "python/arguments.h"

/* FORMAT(ID, name): a memory format. PRESERVE: as what is copied lies, if it is dense.
 * The two of channels are for 4 and 5 dimensions, [n, channels, ...], in memory [n,
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

/* As the functions of arguments.h. *out is left as it is where None or nothing is
 * given. */
int dt_take_layout(const dt_args *args, int i);
int dt_take_format(const dt_args *args, int i, dt_format *out);

/* 0 where a tensor of so many dimensions can have the format; else -1 with
 * RuntimeError. */
int dt_format_check(const char *function, dt_format format, int ndim);

/* Whether a tensor lies row by row, or for a format of channels as that says. */
bool dt_format_is_of(dt_format format, const dt_tensor *x);

/* The strides of a dense tensor of the format, which is not PRESERVE. */
void dt_format_strides(dt_format format, int ndim, const int64_t *shape,
                       int64_t *strides);

/* The order of dimensions in memory, outermost first, and its inverse; for formats of
 * channels. */
void dt_format_order(int ndim, int64_t *order, int64_t *inverse);

#endif
