/* The reductions of floats: one file for each group of types, so that they are compiled
 * side by side. */
#include "cuda/reduce_kernels.h"

REDUCTIONS(FLOAT32, float)
REDUCTIONS(FLOAT64, double)
