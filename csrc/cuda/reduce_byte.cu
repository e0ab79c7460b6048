/* The reductions of the types of one byte: one file for each group of types, so that
 * they are compiled side by side. */
#include "cuda/reduce_kernels.h"

REDUCTIONS(BOOL, bool)
REDUCTIONS(UINT8, uint8_t)
REDUCTIONS(INT8, int8_t)
