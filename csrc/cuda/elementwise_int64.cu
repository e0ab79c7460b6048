/* The elementwise kernels of int64: one file for each group of types, so that they are
 * compiled side by side. */
#include "cuda/elementwise_kernels.h"

#define ROW_TYPE int64_t
#define ROW_KIND KIND_INTEGER
const elementwise_table elementwise_INT64 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
