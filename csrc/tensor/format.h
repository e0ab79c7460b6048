/* Memory formats: the order of a tensor's dimensions in memory. */
#ifndef DT_TENSOR_FORMAT_H
#define DT_TENSOR_FORMAT_H

#include "tensor/tensor.h"

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

/* Checks that a tensor of ndim dimensions can have the format; -1 after
 * dt_fail. */
int dt_format_check(const char *function, dt_format format, int ndim);

/* Whether x has the format. PRESERVE and CONTIGUOUS mean row-major. */
bool dt_format_is_of(dt_format format, const dt_tensor *x);

/* The strides of a dense tensor in the format, which must not be PRESERVE. */
void dt_format_strides(dt_format format, int ndim, const int64_t *shape,
                       int64_t *strides);

#endif
