/* The elementwise kernels of the types of one byte: one file for each group of types,
 * so that they are compiled side by side. */
#include "cuda/elementwise_kernels.h"

ELEMENTWISE(BOOL, bool)
ELEMENTWISE(UINT8, uint8_t)
ELEMENTWISE(INT8, int8_t)
