/* The instructions of tensor cores and ldmatrix, on the host. The last lane of a warp to
 * arrive reads the fragments of PTX from each lane: so a fragment in the wrong lane or
 * register gives a wrong product here too. ldmatrix needs no other lane: each one computes
 * the addresses that others pass. */
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

/* A product of a lane's fragments, and where it is added. */
struct Product {
    unsigned a[4], b[2];
    float *c;
};

typedef float Eight __attribute__((vector_size(32)));

/* c += a @ b, of 16 by 16 and 16 by 8 elements, or 16 by 8 and 8 by 8 of float32, with the
 * fragments of cuda/kernels/mma.h. Products are exact; sums are rounded in the order of k,
 * where a tensor core's order is not documented. */
template <class T>
SIM_QUIET void multiply(const Product *const *lanes)
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

/* Products that a warp computes together: its lanes meet once for all. */
template <class T, unsigned MOST>
class WarpProducts {
    Product list[MOST];
    unsigned count = 0;

  public:
    void add(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
    {
        if (count == MOST)
            run();
        list[count++] = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, c};
    }
    void run()
    {
        meet(32, *this, multiply_all);
        count = 0;
    }

  private:
    /* The products of other lanes are on their stacks. */
    static SIM_QUIET void multiply_all(WarpProducts *const *all)
    {
        const Product *lanes[32];
        for (unsigned i = 0; i < all[0]->count; i++) {
            for (unsigned l = 0; l < 32; l++) {
                if (i >= all[l]->count)
                    trap();
                lanes[l] = &all[l]->list[i];
            }
            multiply<T>(lanes);
        }
    }
};

/* ldmatrix.x4: four matrices of 8 by 8 elements of 16 bits, for lane `lane`; at(8 * m + r) is
 * the address of row r of matrix m. */
template <bool TRANSPOSED, class At>
inline void load_matrices(unsigned (&to)[4], At at, int lane)
{
    if ((uintptr_t)at(lane) % 16)
        trap();
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int m = 0; m < 4; m++) {
        uint16_t halves[2];
        for (int h = 0; h < 2 && TRANSPOSED; h++)
            halves[h] = ((const uint16_t *)at(8 * m + pair + h))[group];
        if (!TRANSPOSED)
            memcpy(halves, (const uint16_t *)at(8 * m + group) + pair, sizeof halves);
        memcpy(&to[m], halves, sizeof halves);
    }
}

} /* namespace sim */

#endif
