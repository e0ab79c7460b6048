/* The elementwise kernels of float32: one file for each group of types, so that they
 * are compiled side by side. */
#include "cuda/kernels/elementwise_kernels.h"

ELEMENTWISE_TYPE(FLOAT32, float, ELEMENTWISE_TERNARY(float),
                 ELEMENTWISE_QUATERNARY(float), nullptr)
