/* The own matrix product: packed panels and a tile of the result in registers. For
 * integers, for floats where no BLAS is found, and where BLAS would arrange the operands
 * longer than it multiplies (matmul.c). */
#include "cpu/kernels/gemm_direct.h"

/* A block of a (BLOCK_M x BLOCK_K) stays in the second cache, a panel of b in the first,
 * a block of b (BLOCK_K x BLOCK_N) in the third. */
#define BLOCK_K 256
#define BLOCK_M (TILE_ROWS * 16)
#define BLOCK_N 2048
/* So many rows are done before arranging a panel of b pays. */
#define DIRECT_ROWS (TILE_ROWS * 4)

namespace {

template <typename T>
struct Product : Tile<T> {
    typedef typename Tile<T>::E E;
    using Tile<T>::logical;
    static constexpr int64_t tile_columns = Tile<T>::columns;
    /* Whether the last rows have a tile of their own; others are filled up with zeros. */
    static constexpr bool fits = std::is_floating_point_v<E>;

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

    static void transpose(int64_t rows, int64_t columns, const E *from, int64_t row,
                          E *to, int64_t to_row)
    {
        constexpr int size = sizeof(E), log2 = size == 8 ? 3 : size / 2;
        dt_cpu_kernels.copy->transpose[log2](rows, columns, (char *)to, to_row * size,
                                             (const char *)from, row * size);
    }
    /* Panels of TILE_ROWS rows, column after column. */
    static void pack_a(int64_t m, int64_t k, const E *a, int64_t row, int64_t col,
                       E *out)
    {
        int64_t i = 0;
        for (; i + TILE_ROWS <= m; i += TILE_ROWS, a += TILE_ROWS * row)
            if (!logical && row == 1)
                for (int64_t p = 0; p < k; p++, out += TILE_ROWS)
                    memcpy(out, a + p * col, TILE_ROWS * sizeof(E));
            else if (!logical && col == 1) {
                transpose(TILE_ROWS, k, a, row, out, TILE_ROWS);
                out += TILE_ROWS * k;
            } else
                for (int64_t p = 0; p < k; p++, out += TILE_ROWS)
                    for (int64_t r = 0; r < TILE_ROWS; r++)
                        out[r] = loaded(a[r * row + p * col]);
        int64_t rest = m - i, rows = fits ? rest : TILE_ROWS;
        if (rest && !logical && fits && col == 1)
            transpose(rest, k, a, row, out, rest);
        else if (rest)
            for (int64_t p = 0; p < k; p++, out += rows)
                for (int64_t r = 0; r < rows; r++)
                    out[r] = r < rest ? loaded(a[r * row + p * col]) : (E)0;
    }
    /* Panels of tile_columns columns, row after row, filled up with zeros. */
    static void pack_b(int64_t k, int64_t n, const E *b, int64_t row, int64_t col,
                       E *out)
    {
        for (int64_t j = 0; j < n; j += tile_columns, b += tile_columns * col) {
            int64_t columns = n - j > tile_columns ? tile_columns : n - j;
            if (columns < tile_columns)
                memset(out, 0, (size_t)(k * tile_columns) * sizeof(E));
            if (!logical && col == 1)
                for (int64_t p = 0; p < k; p++)
                    copy_columns(columns, b + p * row, out + p * tile_columns);
            else if (!logical && row == 1)
                transpose(columns, k, b, col, out, tile_columns);
            else
                /* Rows of 64 bytes, so that each line is read once. */
                for (int64_t p0 = 0; p0 < k; p0 += LINE) {
                    int64_t end = k - p0 > LINE ? p0 + LINE : k;
                    for (int64_t s = 0; s < columns; s++)
                        for (int64_t p = p0; p < end; p++)
                            out[p * tile_columns + s] = loaded(b[p * row + s * col]);
                }
            out += k * tile_columns;
        }
    }
    static constexpr int64_t LINE = 64 / (int64_t)sizeof(E);
    static DT_INLINE void copy_columns(int64_t columns, const E *from, E *to)
    {
        if (columns == tile_columns)
            memcpy(to, from, tile_columns * sizeof(E));
        else
            memcpy(to, from, (size_t)columns * sizeof(E));
    }
    static void run(const dt_gemm_args *g)
    {
        E *packed_a = (E *)g->scratch;
        E *packed_b = packed_a + least(BLOCK_M, round(g->m, TILE_ROWS)) *
                                     round(least(BLOCK_K, g->k), LINE);
        const E *a = (const E *)g->a, *b = (const E *)g->b;
        E *c = (E *)g->c;
        for (int64_t j0 = 0; j0 < g->n; j0 += BLOCK_N)
            for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {
                int64_t n = least(BLOCK_N, g->n - j0), k = least(BLOCK_K, g->k - p0);
                bool fresh = g->fresh && p0 == 0;
                pack_b(k, n, b + p0 * g->b_row + j0 * g->b_col, g->b_row, g->b_col,
                       packed_b);
                for (int64_t i0 = 0; i0 < g->m; i0 += BLOCK_M) {
                    int64_t m = least(BLOCK_M, g->m - i0);
                    pack_a(m, k, a + i0 * g->a_row + p0 * g->a_col, g->a_row, g->a_col,
                           packed_a);
                    add_tiles(g, m, n, k, packed_a, packed_b, k, fresh,
                              c + i0 * g->c_row + j0);
                }
            }
    }
    /* a: where a tile's rows and its columns begin. */
    enum Layout { PACKED, BY_ROWS, BY_COLUMNS };
    /* panel: the rows that panels of b have. */
    template <Layout layout = PACKED>
    static DT_INLINE void add_tiles(const dt_gemm_args *g, int64_t m, int64_t n,
                                    int64_t k, const E *a, const E *packed_b,
                                    int64_t panel, bool fresh, E *c)
    {
        const int64_t step = layout == PACKED    ? k
                             : layout == BY_ROWS ? DT_GEMM_PITCH
                                                 : 1;
        for (int64_t j = 0; j < n; j += tile_columns)
            for (int64_t i = 0; i < m; i += TILE_ROWS)
                add_tile<layout>(g, k, a + i * step, packed_b + j * panel,
                                 least(TILE_ROWS, m - i), least(tile_columns, n - j),
                                 fresh, c + i * g->c_row + j);
    }

    /* --- the same b again and again: blocks of BLOCK_K rows, in panels each --- */

    static void pack(const dt_gemm_args *g, void *out)
    {
        const E *b = (const E *)g->b;
        E *to = (E *)out;
        for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {
            int64_t k = least(BLOCK_K, g->k - p0);
            pack_b(k, g->n, b + p0 * g->b_row, g->b_row, g->b_col, to);
            to += k * round(g->n, tile_columns);
        }
    }
    static void run_packed(const dt_gemm_args *g, int64_t begin, int64_t end)
    {
        const int64_t first = begin * tile_columns,
                      n = least(end * tile_columns, g->n) - first;
        const E *packed_b = (const E *)g->b;
        const bool by_rows = fits && g->a_row == DT_GEMM_PITCH && g->a_col == 1;
        const bool by_columns = fits && g->a_col == DT_GEMM_PITCH && g->a_row == 1;
        for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K) {
            const int64_t k = least(BLOCK_K, g->k - p0),
                          panel = least(BLOCK_K, g->packed_k - p0);
            const E *b = packed_b + first * panel;
            const bool fresh = g->fresh && p0 == 0;
            for (int64_t i0 = 0; i0 < g->m; i0 += BLOCK_M) {
                const int64_t m = least(BLOCK_M, g->m - i0);
                const E *a = (const E *)g->a + i0 * g->a_row + p0 * g->a_col;
                E *packed_a = (E *)g->scratch;
                E *c = (E *)g->c + first + i0 * g->c_row;
                if (by_rows) {
                    add_tiles<BY_ROWS>(g, m, n, k, a, b, panel, fresh, c);
                } else if (by_columns) {
                    add_tiles<BY_COLUMNS>(g, m, n, k, a, b, panel, fresh, c);
                } else {
                    pack_a(m, k, a, g->a_row, g->a_col, packed_a);
                    add_tiles(g, m, n, k, packed_a, b, panel, fresh, c);
                }
            }
            packed_b += panel * round(g->packed_n, tile_columns);
        }
    }

    /* --- b's rows in runs, and few rows of a: panels of b are packed one by one, if at
     * all --- */

    static void run_direct(const dt_gemm_args *g)
    {
        const E *a = (const E *)g->a, *b = (const E *)g->b;
        E *packed_a = (E *)g->scratch;
        E *panel = packed_a + least(BLOCK_M, round(g->m, TILE_ROWS)) *
                                  round(least(BLOCK_K, g->k), LINE);
        for (int64_t p0 = 0; p0 < g->k; p0 += BLOCK_K, b += BLOCK_K * g->b_row)
            for (int64_t i0 = 0; i0 < g->m; i0 += BLOCK_M) {
                const int64_t m = least(BLOCK_M, g->m - i0),
                              k = least(BLOCK_K, g->k - p0);
                const bool fresh = g->fresh && p0 == 0;
                pack_a(m, k, a + i0 * g->a_row + p0 * g->a_col, g->a_row, g->a_col,
                       packed_a);
                E *c = (E *)g->c + i0 * g->c_row;
                for (int64_t j = 0; j < g->n; j += tile_columns, c += tile_columns) {
                    const int64_t columns = least(tile_columns, g->n - j);
                    if (columns == tile_columns && m <= DIRECT_ROWS) {
                        add_direct_tiles(g, m, k, packed_a, b + j, fresh, c);
                    } else {
                        pack_b(k, columns, b + j, g->b_row, 1, panel);
                        add_tiles(g, m, columns, k, packed_a, panel, k, fresh, c);
                    }
                }
            }
    }
    static DT_INLINE void add_direct_tiles(const dt_gemm_args *g, int64_t m, int64_t k,
                                           const E *a, const E *b, bool fresh, E *c)
    {
        for (int64_t i = 0; i < m; i += TILE_ROWS)
            add_direct_tile(g, k, a + i * k, b, least(TILE_ROWS, m - i), fresh,
                            c + i * g->c_row);
    }
    static DT_INLINE void add_direct_tile(const dt_gemm_args *g, int64_t k, const E *a,
                                          const E *b, int64_t rows, bool fresh, E *c)
    {
        alignas(VECTOR) E sums[TILE_ROWS * tile_columns];
        constexpr auto all = std::make_integer_sequence<int, TILE_ROWS>{};
        Tile<T>::rows_of(rows, all)(k, a, b, g->b_row, sums);
        for (int64_t r = 0; r < rows; r++, c += g->c_row)
            add_row(g->alpha, tile_columns, sums + r * tile_columns, fresh, c);
    }
    static size_t scratch(int64_t m, int64_t n, int64_t k)
    {
        int64_t deep = round(least(BLOCK_K, k), LINE);
        return (size_t)(deep * (least(BLOCK_M, round(m, TILE_ROWS)) +
                                least(BLOCK_N, round(n, tile_columns)))) *
               sizeof(E);
    }
    static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
    static int64_t round(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

    template <Layout layout>
    static DT_INLINE void add_tile(const dt_gemm_args *g, int64_t k, const E *a,
                                   const E *b, int64_t rows, int64_t columns,
                                   bool fresh, E *c)
    {
        constexpr int row = layout == BY_ROWS ? DT_GEMM_PITCH : 1;
        constexpr int step = layout == BY_ROWS      ? 1
                             : layout == BY_COLUMNS ? DT_GEMM_PITCH
                                                    : TILE_ROWS;
        alignas(VECTOR) E sums[TILE_ROWS * tile_columns];
        if (fits && rows < TILE_ROWS) {
            if constexpr (fits)
                Tile<T>::template multiply_of<TILE_VECTORS, row,
                                              layout == PACKED ? 0 : step>(rows)(
                    k, a, b, sums);
        } else {
            Tile<T>::template multiply<TILE_ROWS, TILE_VECTORS, row, step>(k, a, b,
                                                                           sums);
        }
        for (int64_t r = 0; r < rows; r++, c += g->c_row)
            if (columns == tile_columns)
                add_row(g->alpha, tile_columns, sums + r * tile_columns, fresh, c);
            else
                add_row(g->alpha, columns, sums + r * tile_columns, fresh, c);
    }
    /* A fresh c holds nothing yet. */
    static DT_INLINE void add_row(double alpha, int64_t columns, const E *sums,
                                  bool fresh, E *c)
    {
        if (fresh)
            for (int64_t s = 0; s < columns; s++)
                c[s] = scaled_sum((E)0, alpha, sums[s]);
        else
            for (int64_t s = 0; s < columns; s++)
                c[s] = scaled_sum(c[s], alpha, sums[s]);
    }
};

} // namespace

const dt_gemm_kernels DT_ISA_NAME(dt_gemm) = {
    {
#define DT_DTYPE(ID, name, alias, type)      Product<type>::run,
#define DT_DTYPE_HALF(ID, name, alias, type) nullptr,
#define DT_DTYPE_COMPLEX(...)                nullptr,
#include "ops/dtype.def"
    },
    {
#define DT_DTYPE(ID, name, alias, type)      Product<type>::scratch,
#define DT_DTYPE_HALF(ID, name, alias, type) nullptr,
#define DT_DTYPE_COMPLEX(...)                nullptr,
#include "ops/dtype.def"
    },
#define FLOATS(type)                                                                   \
    {Product<type>::run_direct,   Dots<type>::run,     dot_of<type>,                   \
     Product<type>::tile_columns, Product<type>::pack, Product<type>::run_packed}
    FLOATS(float),
    FLOATS(double),
};
