/* The elementwise kernels of integers and bools. */
#include "cuda/kernels/elementwise_kernels.h"

#define DT_DTYPE(ID, name, alias, type, class) ELEMENTWISE(ID, type)
#define DT_DTYPE_FLOAT(...)
#include "ops/dtype.def"
