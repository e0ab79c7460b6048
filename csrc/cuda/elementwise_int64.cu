/* The elementwise kernels of int64: one file for each group of types, so that they are
 * compiled side by side. */
#include "cuda/elementwise_kernels.h"

ELEMENTWISE(INT64, int64_t)
