/* The reductions of integers: one file for each group of types, so that they are
 * compiled side by side. */
#include "cuda/reduce_kernels.h"

REDUCTIONS(INT64, int64_t)
REDUCTIONS(INT32, int32_t)
REDUCTIONS(INT16, int16_t)
