/* The elementwise kernels of integers and bools. */
#include "cuda/kernels/elementwise_kernels.h"

#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    ELEMENTWISE_TYPE(ID, bool, nullptr, nullptr, nullptr)
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    ELEMENTWISE_TYPE(ID, type, ELEMENTWISE_TERNARY(type), nullptr,                     \
                     (elementwise_start<bool, type, type, 3>))
#define DT_DTYPE_FLOAT(...)
#include "ops/dtype.def"
