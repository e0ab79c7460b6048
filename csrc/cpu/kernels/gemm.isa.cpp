/* The own matrix product: packed panels and a tile of the result in registers. For
 * integers, and for floats where no BLAS is found. */
#include <string.h>
#include <type_traits>

#include "cpu/kernels/kernels.h"

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

namespace {

template <typename T>
struct Product {
    /* Bools are bytes that are 0 or 1, and their product the or of ands. */
    static constexpr bool logical = std::is_same_v<T, bool>;
    typedef std::conditional_t<logical, uint8_t, T> E;
    typedef E V __attribute__((vector_size(VECTOR)));
    static constexpr int64_t tile_columns = TILE_VECTORS * (VECTOR / (int)sizeof(E));

    static DT_INLINE V multiply_add(V c, V a, V b)
    {
        if constexpr (logical)
            return c | (a & b);
        else
            return c + a * b;
    }
    static DT_INLINE E scaled_sum(E c, double alpha, E x)
    {
        if constexpr (logical)
            return c | x;
        else if constexpr (std::is_integral_v<T>)
            return (E)(c + (E)((E)(int64_t)alpha * x));
        else
            return c + (E)alpha * x;
    }

    /* Panels of TILE_ROWS rows, column after column, filled up with zeros. */
    static void pack_a(int64_t m, int64_t k, const E *a, int64_t row, int64_t col,
                       E *out)
    {
        for (int64_t i = 0; i < m; i += TILE_ROWS)
            for (int64_t p = 0; p < k; p++)
                for (int64_t r = 0; r < TILE_ROWS; r++)
                    *out++ = i + r < m ? a[(i + r) * row + p * col] : (E)0;
    }
    static void pack_b(int64_t k, int64_t n, const E *b, int64_t row, int64_t col,
                       E *out)
    {
        for (int64_t j = 0; j < n; j += tile_columns)
            for (int64_t p = 0; p < k; p++, out += tile_columns) {
                const E *from = b + p * row + j * col;
                if (col == 1 && n - j >= tile_columns) {
                    memcpy(out, from, tile_columns * sizeof(E));
                    continue;
                }
                for (int64_t s = 0; s < tile_columns; s++)
                    out[s] = j + s < n ? from[s * col] : (E)0;
            }
    }
    static void tile(int64_t k, const E *a, const E *b, E *out)
    {
        V sums[TILE_ROWS][TILE_VECTORS];
        memset(sums, 0, sizeof sums);
        for (int64_t p = 0; p < k; p++, a += TILE_ROWS, b += tile_columns) {
            const V *bv = (const V *)b;
            V b0 = bv[0], b1 = bv[1];
#pragma GCC unroll 16
            for (int r = 0; r < TILE_ROWS; r++) {
                V ar = a[r] - V{}; /* the element in every lane */
                sums[r][0] = multiply_add(sums[r][0], ar, b0);
                sums[r][1] = multiply_add(sums[r][1], ar, b1);
            }
        }
        memcpy(out, sums, sizeof sums);
    }

    static void run(const dt_gemm_args *g)
    {
        E *packed_a = (E *)g->scratch, *packed_b = packed_a + BLOCK_M * BLOCK_K;
        const E *a = (const E *)g->a, *b = (const E *)g->b;
        E *c = (E *)g->c;
        for (int64_t j0 = 0; j0 < g->n; j0 += BLOCK_N)
            for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {
                int64_t n = g->n - j0 > BLOCK_N ? BLOCK_N : g->n - j0;
                int64_t k = g->k - p0 > BLOCK_K ? BLOCK_K : g->k - p0;
                pack_b(k, n, b + p0 * g->b_row + j0 * g->b_col, g->b_row, g->b_col,
                       packed_b);
                for (int64_t i0 = 0; i0 < g->m; i0 += BLOCK_M) {
                    int64_t m = g->m - i0 > BLOCK_M ? BLOCK_M : g->m - i0;
                    pack_a(m, k, a + i0 * g->a_row + p0 * g->a_col, g->a_row, g->a_col,
                           packed_a);
                    for (int64_t j = 0; j < n; j += tile_columns)
                        for (int64_t i = 0; i < m; i += TILE_ROWS)
                            add_tile(g, k, packed_a + i * k, packed_b + j * k,
                                     m - i > TILE_ROWS ? TILE_ROWS : m - i,
                                     n - j > tile_columns ? tile_columns : n - j,
                                     c + (i0 + i) * g->c_row + j0 + j);
                }
            }
    }
    static DT_INLINE void add_tile(const dt_gemm_args *g, int64_t k, const E *a,
                                   const E *b, int64_t rows, int64_t columns, E *c)
    {
        alignas(VECTOR) E sums[TILE_ROWS * tile_columns];
        tile(k, a, b, sums);
        for (int64_t r = 0; r < rows; r++, c += g->c_row)
            for (int64_t s = 0; s < columns; s++)
                c[s] = scaled_sum(c[s], g->alpha, sums[r * tile_columns + s]);
    }
};

} // namespace

const dt_gemm_kernels DT_ISA_NAME(dt_gemm) = {
    {
#define DT_DTYPE(ID, name, alias, type)      Product<type>::run,
#define DT_DTYPE_HALF(ID, name, alias, type) nullptr,
#include "ops/dtype.def"
    },
    (BLOCK_M * BLOCK_K + (BLOCK_N + 2 * VECTOR) * BLOCK_K) * sizeof(int64_t),
};
