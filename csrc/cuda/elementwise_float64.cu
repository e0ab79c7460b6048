/* The elementwise kernels of float64: one file for each group of types, so that they
 * are compiled side by side. */
#include "cuda/elementwise_kernels.h"

#define ROW_TYPE double
#define ROW_KIND KIND_FLOAT
const elementwise_table elementwise_FLOAT64 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
