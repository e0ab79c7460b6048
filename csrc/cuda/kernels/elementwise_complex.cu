/* The elementwise kernels of complex numbers: one file for each group of types, so that
 * they are compiled side by side. */
#include "cuda/kernels/elementwise_kernels.h"

NO_POINTERS(dt_complex64)
NO_POINTERS(dt_complex128)

ELEMENTWISE_TYPE(COMPLEX64, dt_complex64, ELEMENTWISE_TERNARY(dt_complex64), nullptr,
                 nullptr)
ELEMENTWISE_TYPE(COMPLEX128, dt_complex128, ELEMENTWISE_TERNARY(dt_complex128), nullptr,
                 (elementwise_start<bool, dt_complex128, dt_complex128, 3>))
