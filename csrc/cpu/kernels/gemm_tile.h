/* The tile of a matrix product that stays in registers: for gemm.isa.cpp and
 * convolution.isa.cpp, which are compiled for each instruction set. */
#ifndef DT_CPU_KERNELS_GEMM_TILE_H
#define DT_CPU_KERNELS_GEMM_TILE_H

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

namespace {

template <typename T>
struct Tile {
    /* Bools are bytes that are 0 or 1, and their product the or of ands. */
    static constexpr bool logical = std::is_same_v<T, bool>;
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
    /* out = a @ b: TILE_ROWS rows of a, where element (r, p) is at r * row + p * step, and a
     * panel of b, in which `columns` elements follow `columns` others. b and out are
     * aligned to VECTOR. */
    template <int64_t row, int64_t step>
    static void multiply(int64_t k, const E *a, const E *b, E *out)
    {
        V sums[TILE_ROWS][TILE_VECTORS];
        memset(sums, 0, sizeof sums);
        for (int64_t p = 0; p < k; p++, a += step, b += columns) {
            const V *bv = (const V *)b;
            V b0 = bv[0], b1 = bv[1];
#pragma GCC unroll 16
            for (int r = 0; r < TILE_ROWS; r++) {
                V ar = a[r * row] - V{}; /* the element in every lane */
                sums[r][0] = multiply_add(sums[r][0], ar, b0);
                sums[r][1] = multiply_add(sums[r][1], ar, b1);
            }
        }
        memcpy(out, sums, sizeof sums);
    }
};

} // namespace

#endif
