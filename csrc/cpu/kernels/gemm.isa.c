/* The own matrix product: packed panels and a tile of the result in registers. For
 * integers, and for floats where no BLAS is found. */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/typed.h"

/* Bytes of a vector register, and how many of them a row of the tile has. */
#if defined(__AVX512F__)
#define VECTOR    64
#define TILE_ROWS 12
#elif defined(__AVX__)
#define VECTOR    32
#define TILE_ROWS 6
#else
#define VECTOR    16
#define TILE_ROWS 4
#endif
#define TILE_VECTORS 2

/* A block of a (BLOCK_M x BLOCK_K) stays in the second cache, a panel of b in the
 * first. */
#define BLOCK_K 256
#define BLOCK_M (TILE_ROWS * 16)
#define BLOCK_N 1024

#define DT_EACH_TYPE "cpu/kernels/gemm.inc"
#include "cpu/kernels/types.inc"

const dt_gemm_kernels DT_ISA_NAME(dt_gemm) = {
    .product =
        {
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = product_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class)
#include "ops/dtype.def"
        },
    .scratch = ((size_t)BLOCK_M * BLOCK_K + (size_t)(BLOCK_N + 2 * VECTOR) * BLOCK_K) *
               8,
};
