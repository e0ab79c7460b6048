/* The instructions of tensor cores and ldmatrix, on the host. The lanes of a warp show
 * each other their operands, as the fragments of PTX, and each computes its own results:
 * so a fragment in the wrong lane or register gives a wrong product here too. */
#ifndef DT_SIM_TENSOR_CORE_H
#define DT_SIM_TENSOR_CORE_H

#include "sim/intrinsics.h"

namespace sim {

/* f(operands of all lanes), for a warp of a block of one dimension. */
template <class Mine, class F>
inline void with_lanes(const Mine &mine, F f)
{
    SIM_SHARED(Mine[32][32], shown);
    Mine(&warp)[32] = shown[threadIdx.x / 32];
    warp[lane()] = mine;
    __syncwarp();
    f(warp);
    __syncwarp(); /* before the next operands overwrite them */
}

/* The elements of a register: two of 16 bits, or the part of a float32 that counts. */
template <class Half>
inline void widen(unsigned pair, float (&to)[2])
{
    for (unsigned h = 0; h < 2; h++) {
        Half half;
        half.bits = (uint16_t)(pair >> 16 * h);
        to[h] = (float)half;
    }
}
template <>
inline void widen<float>(unsigned bits, float (&to)[2])
{
    bits &= 0xFFFFE000u;
    memcpy(to, &bits, sizeof bits);
    to[1] = 0;
}

/* mma.sync.m16n8k16, or m16n8k8 of float32: c += a @ b, of 16 by 16 and 16 by 8 elements,
 * with the fragments of cuda/kernels/mma.h. Products are exact; sums are rounded in the
 * order of k, where a tensor core's order is not documented. */
template <class T>
inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    struct Operands {
        float a[4][2], b[2][2];
    } mine;
    for (int r = 0; r < 4; r++)
        widen<T>(a[r], mine.a[r]);
    for (int r = 0; r < 2; r++)
        widen<T>(b[r], mine.b[r]);
    const unsigned group = lane() / 4, in_group = lane() % 4;
    with_lanes(mine, [&](const Operands(&all)[32]) {
        for (unsigned i = 0; i < 4; i++) {
            const Operands *row = all + 4 * group,
                           *column = all + 4 * (2 * in_group + i % 2);
            for (unsigned upper = 0; upper < 2; upper++)
                for (unsigned l = 0; l < 4; l++)
                    for (unsigned h = 0; h < 2; h++)
                        c[i] += row[l].a[i / 2 + 2 * upper][h] * column[l].b[upper][h];
        }
    });
}

/* ldmatrix.x4: four matrices of 8 by 8 elements of 16 bits; lane 8 * m + r passes the
 * address of row r of matrix m. */
template <bool TRANSPOSED>
inline void load_matrices(unsigned (&to)[4], const void *row)
{
    if ((uintptr_t)row % 16)
        trap();
    const unsigned group = lane() / 4, in_group = lane() % 4;
    with_lanes((const uint16_t *)row, [&](const uint16_t *const(&rows)[32]) {
        for (unsigned m = 0; m < 4; m++) {
            const uint16_t *const *of = rows + 8 * m;
            unsigned low =
                TRANSPOSED ? of[2 * in_group][group] : of[group][2 * in_group];
            unsigned high =
                TRANSPOSED ? of[2 * in_group + 1][group] : of[group][2 * in_group + 1];
            to[m] = low | high << 16;
        }
    });
}

} /* namespace sim */

#endif
