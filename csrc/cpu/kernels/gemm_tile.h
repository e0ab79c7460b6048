/* The tile of a matrix product that stays in registers: for gemm.isa.cpp and
 * convolution.isa.cpp, which are compiled for each instruction set. */
#ifndef DT_CPU_KERNELS_GEMM_TILE_H
#define DT_CPU_KERNELS_GEMM_TILE_H

#include <string.h>
#include <type_traits>
#include <utility>

#include "cpu/kernels/kernels.h"

/* Bytes of a vector register; rows of the tile of most rows, and their registers. The
 * sums take half to three quarters of the processor's registers: of 32 with AVX-512 and
 * on aarch64, else of 16. */
#if defined(__AVX512F__)
#define VECTOR    64
#define TILE_ROWS 12
#elif defined(__AVX__)
#define VECTOR    32
#define TILE_ROWS 6
#elif defined(__aarch64__)
#define VECTOR    16
#define TILE_ROWS 8
#else
#define VECTOR    16
#define TILE_ROWS 4
#endif
#define TILE_VECTORS 2

namespace {

template <typename T>
struct Tile {
    /* Bools are packed as bytes that are 0 or 1, and their product is the or of ands. */
    static constexpr bool logical = std::is_same_v<T, dt_bool>;
    typedef std::conditional_t<logical, uint8_t, T> E;
    typedef E V __attribute__((vector_size(VECTOR)));
    static constexpr int64_t columns = TILE_VECTORS * (VECTOR / (int)sizeof(E));

    static DT_INLINE V multiply_add(V c, V a, V b)
    {
        if constexpr (logical)
            return c | (a & b);
        else
            return c + a * b;
    }
    /* out = a @ b: `rows` rows of a, where element (r, p) is at r * row + p * step, and a
     * panel of b, in which `vectors` registers follow `vectors` others. b and out are
     * aligned to VECTOR. */
    template <int rows, int vectors, int64_t row, int64_t step>
    static void multiply(int64_t k, const E *a, const E *b, E *out)
    {
        V sums[rows][vectors];
        for_each<rows, vectors>([&](int r, int v) { sums[r][v] = V{}; });
        for (int64_t p = 0; p < k; p++, a += step, b += vectors * VECTOR / sizeof(E)) {
            const V *bv = (const V *)b;
            for_each<rows, vectors>([&](int r, int v) {
                V ar = a[r * row] - V{}; /* the element in every lane */
                sums[r][v] = multiply_add(sums[r][v], ar, bv[v]);
            });
        }
        for_each<rows, vectors>(
            [&](int r, int v) { ((V *)out)[r * vectors + v] = sums[r][v]; });
    }
    /* The same, with b's rows where they are, b_row apart, and a as panels of `rows`. */
    template <int rows>
    static void multiply_rows(int64_t k, const E *a, const E *b, int64_t b_row, E *out)
    {
        typedef E U __attribute__((vector_size(VECTOR), aligned(sizeof(E))));
        V sums[rows][TILE_VECTORS];
        for_each<rows, TILE_VECTORS>([&](int r, int v) { sums[r][v] = V{}; });
        for (int64_t p = 0; p < k; p++, a += rows, b += b_row) {
            const U *bv = (const U *)b;
            for_each<rows, TILE_VECTORS>([&](int r, int v) {
                V ar = a[r] - V{};
                sums[r][v] = multiply_add(sums[r][v], ar, (V)bv[v]);
            });
        }
        for_each<rows, TILE_VECTORS>(
            [&](int r, int v) { ((V *)out)[r * TILE_VECTORS + v] = sums[r][v]; });
    }
    typedef void MultiplyRows(int64_t k, const E *a, const E *b, int64_t b_row, E *out);
    template <int... i>
    static MultiplyRows *rows_of(int64_t rows, std::integer_sequence<int, i...>)
    {
        static constexpr MultiplyRows *all[] = {multiply_rows<i + 1>...};
        return all[rows - 1];
    }
    /* Calls body(r, v), unrolled, so that arrays indexed by r and v stay in registers. */
    template <int rows, int vectors, typename Body>
    static DT_INLINE void for_each(Body body)
    {
#pragma GCC unroll 32
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
            for (int v = 0; v < vectors; v++)
                body(r, v);
    }
    /* The products of 1 to TILE_ROWS rows of two registers, or twice as many of one. Element
     * (r, p) is at r * row + p * step, where a step of 0 is `rows`. */
    typedef void Multiply(int64_t k, const E *a, const E *b, E *out);
    template <int vectors, int64_t row, int64_t step>
    static Multiply *multiply_of(int64_t rows)
    {
        constexpr int most = TILE_ROWS * TILE_VECTORS / vectors;
        return choose<vectors, row, step>(rows,
                                          std::make_integer_sequence<int, most>{});
    }
    template <int vectors, int64_t row, int64_t step, int... i>
    static Multiply *choose(int64_t rows, std::integer_sequence<int, i...>)
    {
        static constexpr Multiply *all[] = {multiply < i + 1, vectors, row,
                                            step ? step : i + 1 > ...};
        return all[rows - 1];
    }
};

} // namespace

#endif
