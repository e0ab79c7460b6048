/* Scans along rows and down columns, of the types that the core brings others to. */
#include <math.h>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/typed.h"

/* Whole numbers wrap round and lose nothing in any order; float32 has room in double.
 * A float64 row of common length is added one by one, as anybody would, and as NumPy
 * does. */
#define T          int64_t
#define ACC        int64_t
#define DT_NAME    INT64
#define SEQUENTIAL 64
#include "cpu/kernels/scan.inc"
#undef SEQUENTIAL
#undef DT_NAME
#undef ACC
#undef T

#define DT_T_FLOAT
#define T          float
#define ACC        double
#define DT_NAME    FLOAT32
#define SEQUENTIAL 64
#include "cpu/kernels/scan.inc"
#undef SEQUENTIAL
#undef DT_NAME
#undef T
#define T          double
#define DT_NAME    FLOAT64
#define SEQUENTIAL 32768
#include "cpu/kernels/scan.inc"
#undef SEQUENTIAL
#undef DT_NAME
#undef ACC
#undef T
#undef DT_T_FLOAT

const dt_scan_kernels DT_ISA_NAME(dt_scan) = {
    .scan =
        {
            [DT_INT64] = scans_INT64,
            [DT_FLOAT32] = scans_FLOAT32,
            [DT_FLOAT64] = scans_FLOAT64,
        },
};
