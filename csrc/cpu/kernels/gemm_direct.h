/* Matrix products that read b where it is. Arranging it would take much of the time where
 * each element of it is used a few times only. */
#ifndef DT_CPU_KERNELS_GEMM_DIRECT_H
#define DT_CPU_KERNELS_GEMM_DIRECT_H

#include "cpu/kernels/gemm_tile.h"

/* Rows and columns of the tile of dot products, whose sums take most registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define DOT_ROWS    4
#define DOT_COLUMNS 6
#else
#define DOT_ROWS    3
#define DOT_COLUMNS 4
#endif

namespace {

/* Products whose operands both have their elements of k side by side. A vector of
 * products is summed for each element of c, and its lanes at the end. */
template <typename T>
struct Dots : Tile<T> {
    typedef T V __attribute__((vector_size(VECTOR)));
    typedef T Unaligned __attribute__((vector_size(VECTOR), aligned(sizeof(T))));
    static constexpr int lanes = VECTOR / (int)sizeof(T);
    static constexpr int numel = DOT_ROWS * DOT_COLUMNS;

    template <int... i>
    static DT_INLINE V sums_of_pairs(V a, V b, std::integer_sequence<int, i...>)
    {
        return __builtin_shufflevector(a, b, (2 * i)...) +
               __builtin_shufflevector(a, b, (2 * i + 1)...);
    }
    /* Sums the lanes of each of `count` vectors, neighbours first. */
    template <int count>
    static DT_INLINE void sum_lanes(V *v, T *out)
    {
        constexpr auto all = std::make_integer_sequence<int, lanes>{};
        int left = count;
#pragma GCC unroll 8
        for (int size = lanes; size > 1; size /= 2) {
            int pairs = left > 1 ? left / 2 : 1;
#pragma GCC unroll 8
            for (int i = 0; i < pairs; i++)
                v[i] = sums_of_pairs(v[2 * i % left], v[(2 * i + 1) % left], all);
            left = pairs;
        }
        memcpy(out, v, count * sizeof(T));
    }
    template <int from>
    static DT_INLINE void sum_all_lanes(V *v, T *out)
    {
        constexpr int rest = numel - from;
        if constexpr (rest >= lanes) {
            sum_lanes<lanes>(v + from, out + from);
            sum_all_lanes<from + lanes>(v, out);
        } else if constexpr (rest > 0) {
            constexpr int count = rest & -rest;
            sum_lanes<count>(v + from, out + from);
            sum_all_lanes<from + count>(v, out);
        }
    }

    static DT_INLINE void add_products(const T *const *a, const T *const *b, int64_t p,
                                       V *sums)
    {
        V of_a[DOT_ROWS];
#pragma GCC unroll 8
        for (int r = 0; r < DOT_ROWS; r++)
            of_a[r] = *(const Unaligned *)(a[r] + p);
#pragma GCC unroll 8
        for (int s = 0; s < DOT_COLUMNS; s++) {
            const V of_b = *(const Unaligned *)(b[s] + p);
#pragma GCC unroll 8
            for (int r = 0; r < DOT_ROWS; r++)
                sums[r * DOT_COLUMNS + s] += of_a[r] * of_b;
        }
    }
    static void tile(int64_t k, const T *const *a, const T *const *b, T *out)
    {
        V sums[numel];
        int64_t p = 0;
#pragma GCC unroll 32
        for (int i = 0; i < numel; i++)
            sums[i] = V{};
        for (; p + lanes <= k; p += lanes)
            add_products(a, b, p, sums);
        if (p < k) {
            alignas(VECTOR) T rest[DOT_ROWS + DOT_COLUMNS][lanes] = {};
            const T *of_a[DOT_ROWS], *of_b[DOT_COLUMNS];
            const size_t size = (size_t)(k - p) * sizeof(T);
            for (int r = 0; r < DOT_ROWS; r++)
                of_a[r] = (const T *)memcpy(rest[r], a[r] + p, size);
            for (int s = 0; s < DOT_COLUMNS; s++)
                of_b[s] = (const T *)memcpy(rest[DOT_ROWS + s], b[s] + p, size);
            add_products(of_a, of_b, 0, sums);
        }
        sum_all_lanes<0>(sums, out);
    }

    /* A tile that reaches past the end repeats the last row or column. */
    static void run(const dt_gemm_args *g)
    {
        const T *a[DOT_ROWS], *b[DOT_COLUMNS];
        alignas(VECTOR) T found[numel];
        for (int64_t j = 0; j < g->n; j += DOT_COLUMNS) {
            const int64_t columns = g->n - j < DOT_COLUMNS ? g->n - j : DOT_COLUMNS;
            for (int64_t s = 0; s < DOT_COLUMNS; s++)
                b[s] = (const T *)g->b + (j + (s < columns ? s : 0)) * g->b_col;
            for (int64_t i = 0; i < g->m; i += DOT_ROWS) {
                const int64_t rows = g->m - i < DOT_ROWS ? g->m - i : DOT_ROWS;
                for (int64_t r = 0; r < DOT_ROWS; r++)
                    a[r] = (const T *)g->a + (i + (r < rows ? r : 0)) * g->a_row;
                tile(g->k, a, b, found);
                for (int64_t r = 0; r < rows; r++) {
                    T *c = (T *)g->c + (i + r) * g->c_row + j;
                    for (int64_t s = 0; s < columns; s++) {
                        T x = (T)g->alpha * found[r * DOT_COLUMNS + s];
                        c[s] = g->fresh ? x : c[s] + x;
                    }
                }
            }
        }
    }
};

template <typename T>
double dot_of(int64_t n, const void *of_a, const void *of_b)
{
    constexpr int LANES = 256 / (int)sizeof(T); /* they keep the adders busy */
    const T *a = (const T *)of_a, *b = (const T *)of_b;
    T lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += a[i + j] * b[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += a[i + j] * b[i + j];
    for (int half = LANES / 2; half; half /= 2)
#pragma GCC unroll 1
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return (double)lane[0];
}

} // namespace

#endif
