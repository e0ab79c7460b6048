/* The own matrix product: packed panels and a tile of the result in registers. For
 * integers, and for floats where no BLAS is found. */
#include "cpu/kernels/gemm_tile.h"

/* A block of a (BLOCK_M x BLOCK_K) stays in the second cache, a panel of b in the
 * first. */
#define BLOCK_K 256
#define BLOCK_M (TILE_ROWS * 16)
#define BLOCK_N 1024

namespace {

template <typename T>
struct Product : Tile<T> {
    typedef typename Tile<T>::E E;
    using Tile<T>::logical;
    static constexpr int64_t tile_columns = Tile<T>::columns;

    static DT_INLINE E loaded(E x) { return logical ? (E)(x != 0) : x; }
    static DT_INLINE E scaled_sum(E c, double alpha, E x)
    {
        if constexpr (logical)
            return loaded(c) | x;
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
                    *out++ = i + r < m ? loaded(a[(i + r) * row + p * col]) : (E)0;
    }
    static void pack_b(int64_t k, int64_t n, const E *b, int64_t row, int64_t col,
                       E *out)
    {
        for (int64_t j = 0; j < n; j += tile_columns)
            for (int64_t p = 0; p < k; p++, out += tile_columns) {
                const E *from = b + p * row + j * col;
                if (!logical && col == 1 && n - j >= tile_columns) {
                    memcpy(out, from, tile_columns * sizeof(E));
                    continue;
                }
                for (int64_t s = 0; s < tile_columns; s++)
                    out[s] = j + s < n ? loaded(from[s * col]) : (E)0;
            }
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
        Tile<T>::template multiply<TILE_ROWS, TILE_VECTORS, 1, TILE_ROWS>(k, a, b,
                                                                          sums);
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
