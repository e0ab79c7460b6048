/* The elementwise kernels of float16 and bfloat16, which are the same: both compute as
 * float32. */
#include "cuda/elementwise_kernels.h"

ELEMENTWISE(half, Bits16)
