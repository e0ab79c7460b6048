/* The elementwise kernels of int32 and int16: one file for each group of types, so that
 * they are compiled side by side. */
#include "cuda/elementwise_kernels.h"

ELEMENTWISE(INT32, int32_t)
ELEMENTWISE(INT16, int16_t)
