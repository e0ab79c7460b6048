/* The elementwise kernels of float64: one file for each group of types, so that they
 * are compiled side by side. */
#include "cuda/kernels/elementwise_kernels.h"

ELEMENTWISE_TYPE(FLOAT64, double, ELEMENTWISE_TERNARY(double),
                 ELEMENTWISE_QUATERNARY(double), nullptr)
