/* The rows of DT_OWN_KERNEL, few of which a program calls: others would pay for their
 * instructions and registers in the kernels of a type. */
#include "cuda/kernels/elementwise_kernels.h"

#define SPECIAL_TYPE(type)                                                             \
    {{{nullptr, start_rows<type, type, type, 2, OWN_ROWS>,                             \
       start_rows<type, type, type, 3, OWN_ROWS>, nullptr},                            \
      {nullptr, nullptr, nullptr, nullptr}},                                           \
     nullptr}

const elementwise_kernels elementwise_special_float32 = SPECIAL_TYPE(float);
const elementwise_kernels elementwise_special_float64 = SPECIAL_TYPE(double);
