/* The instructions of tensor cores and ldmatrix, on the host. The last lane of a warp to
 * arrive reads the fragments of PTX from each lane: so a fragment in the wrong lane or
 * register gives a wrong product here too. */
#ifndef DT_SIM_TENSOR_CORE_H
#define DT_SIM_TENSOR_CORE_H

#include "sim/reductions.h"

namespace sim {

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

/* The fragments of a lane, where it has them. */
struct Fragments {
    const unsigned *a, *b;
    float *c;
};

typedef float Eight __attribute__((vector_size(32)));

template <class T>
SIM_QUIET void multiply(Fragments *const *lanes)
{
    constexpr unsigned each = sizeof(T) == 2 ? 2 : 1; /* elements of a register */
    float a[16][8 * each];
    Eight b[8 * each], c[16];
    for (unsigned l = 0; l < 32; l++)
        for (unsigned half = 0; half < 2; half++) {
            const unsigned group = l / 4, t = l % 4, row = group + 8 * half;
            memcpy((float *)&c[row] + 2 * t, lanes[l]->c + 2 * half, 2 * sizeof(float));
            for (unsigned upper = 0; upper < 2; upper++) {
                float pair[2];
                widen<T>(lanes[l]->a[half + 2 * upper], pair);
                memcpy(&a[row][(t + 4 * upper) * each], pair, each * sizeof(float));
            }
            float pair[2];
            widen<T>(lanes[l]->b[half], pair);
            for (unsigned h = 0; h < each; h++)
                b[(t + 4 * half) * each + h][group] = pair[h];
        }
    for (unsigned row = 0; row < 16; row++) {
        Eight sums = c[row];
        for (unsigned k = 0; k < 8 * each; k++)
            sums += a[row][k] * b[k];
        c[row] = sums;
    }
    for (unsigned l = 0; l < 32; l++)
        for (unsigned half = 0; half < 2; half++)
            memcpy(lanes[l]->c + 2 * half,
                   (const float *)&c[l / 4 + 8 * half] + 2 * (l % 4),
                   2 * sizeof(float));
}

/* mma.sync.m16n8k16, or m16n8k8 of float32: c += a @ b, of 16 by 16 and 16 by 8 elements,
 * with the fragments of cuda/kernels/mma.h. Products are exact; sums are rounded in the
 * order of k, where a tensor core's order is not documented. */
template <class T>
inline void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    Fragments mine = {a, b, c};
    meet(32, mine, multiply<T>);
}

/* The row whose address a lane passes, the registers that it loads, and the addresses that
 * these come from. */
struct Row {
    const uint16_t *given;
    unsigned *to;
    const uint16_t *from[4][2];
};

template <bool TRANSPOSED>
SIM_QUIET void load(Row *const *lanes)
{
    for (unsigned l = 0; l < 32; l++)
        for (unsigned m = 0; m < 4; m++) {
            const unsigned group = l / 4, pair = l % 4 * 2;
            Row *const *rows = lanes + 8 * m;
            auto &from = lanes[l]->from[m];
            for (unsigned h = 0; h < 2; h++)
                from[h] = TRANSPOSED ? rows[pair + h]->given + group
                                     : rows[group]->given + pair + h;
            lanes[l]->to[m] = *from[0] | (unsigned)*from[1] << 16;
        }
}

/* ldmatrix.x4: four matrices of 8 by 8 elements of 16 bits; lane 8 * m + r passes the
 * address of row r of matrix m. */
template <bool TRANSPOSED>
inline void load_matrices(unsigned (&to)[4], const void *row)
{
    if ((uintptr_t)row % 16)
        trap();
    Row mine = {(const uint16_t *)row, to, {}};
    meet(32, mine, load<TRANSPOSED>);
#ifdef SIM_CHECKED /* each lane's loads */
    for (auto &pair : mine.from)
        for (const volatile uint16_t *from : pair)
            (void)*from;
#endif
}

} /* namespace sim */

#endif
