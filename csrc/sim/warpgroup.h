/* The instructions of warpgroups, on the host (cuda/kernels/warpgroup.h). Operands in
 * shared memory are found as a tensor core finds them, from the 64 bits that describe
 * them, so a wrong layout gives wrong products here too. Sums are not a number from the
 * start of a product until it is awaited. Of two products in turn one reads shared memory
 * when it starts and one when it is awaited: whoever overwrites a tile too early or reads
 * one too early gets a wrong product. */
#ifndef DT_SIM_WARPGROUP_H
#define DT_SIM_WARPGROUP_H

#include "sim/tensor_core.h"

namespace sim {

void *dynamic_shared_memory();
/* Waits for `threads` threads at one of a block's barriers, or only arrives there. */
void meet_at(unsigned number, unsigned threads, bool waits);

inline unsigned shared_address(const void *p)
{
    return (unsigned)((uintptr_t)p & 0x3FFFF);
}

/* A barrier in shared memory, whose phases have numbers (phases.cpp). */
void phase_arrives(uint64_t *state);
void phase_ends(const uint64_t *state, unsigned parity);

inline void phase_begin(uint64_t *state, uint64_t arrivals)
{
    *state = arrivals | arrivals << 20;
}
inline void phase_arrive(uint64_t *state SIM_AND_LINE)
{
#ifdef SIM_CHECKED
    touch_atomic(state, sizeof *state, line);
#endif
    phase_arrives(state);
}
inline void phase_await(const uint64_t *state, unsigned parity SIM_AND_LINE)
{
#ifdef SIM_CHECKED
    touch_atomic(state, sizeof *state, line);
#endif
    phase_ends(state, parity);
}

/* A matrix in shared memory by its description: the element `along` the direction in which
 * elements are next to each other, of line `across`. */
struct SharedMatrix {
    uint64_t bits;

    unsigned field(int at) const { return (unsigned)(bits >> at & 0x3FFF) << 4; }
    const uint16_t *element(unsigned along, unsigned across) const
    {
        if (bits >> 62 != 1 || bits >> 49 & 7)
            trap(); /* other layouts than the swizzle of 128 bytes */
        const unsigned panels = field(16), groups = field(32);
        unsigned address = field(0) + along / 64 * panels + along % 64 * 2 +
                           across / 8 * groups + across % 8 * 128;
        address ^= address >> 3 & 0x70;
        char *base = (char *)dynamic_shared_memory();
        return (const uint16_t *)(base + ((address - shared_address(base)) & 0x3FFFF));
    }
};

template <class Half>
inline float widen_bits(unsigned bits)
{
    Half half;
    half.bits = (uint16_t)bits;
    return (float)half;
}

class Products {
    static constexpr int most = 32, columns = 16;
    struct Sums {
        float (*to)[4];
        int count, pending;
        float v[columns][4];
    } sums[4] = {};
    struct Product {
        Sums *sums;
        bool adds, computed, down, held;
        int group;
        SharedMatrix a, b;
        float rows[2][16], result[columns][4];
        void (*compute)(Product &);
    } products[most];
    int count = 0, groups = 0, number = 0;

    template <class Half>
    static void compute(Product &p)
    {
        const unsigned row = threadIdx.x / 32 % 4 * 16 + lane() / 4;
        for (unsigned h = 0; h < 2 && !p.held; h++)
            for (unsigned k = 0; k < 16; k++)
                p.rows[h][k] = widen_bits<Half>(*p.a.element(k, row + 8 * h));
        for (int i = 0; i < p.sums->count; i++)
            for (unsigned e = 0; e < 2; e++) {
                const unsigned column = (unsigned)i * 8 + lane() % 4 * 2 + e;
                p.result[i][e] = p.result[i][e + 2] = 0;
                for (unsigned k = 0; k < 16; k++) {
                    const float b = widen_bits<Half>(
                        *(p.down ? p.b.element(column, k) : p.b.element(k, column)));
                    p.result[i][e] += p.rows[0][k] * b;
                    p.result[i][e + 2] += p.rows[1][k] * b;
                }
            }
        p.computed = true;
    }
    /* The rows of a lane, of the fragments that the lanes of its group hold. */
    struct Held {
        const unsigned *a;
        Product *p;
    };
    template <class Half>
    static SIM_QUIET void tell_held(Held *const *lanes)
    {
        for (unsigned l = 0; l < 32; l++)
            for (unsigned h = 0; h < 2; h++)
                for (unsigned k = 0; k < 16; k++)
                    lanes[l]->p->rows[h][k] = widen_bits<Half>(
                        lanes[l / 4 * 4 + k % 8 / 2]->a[h + k / 8 * 2] >> k % 2 * 16);
    }
    Sums *sums_of(float (*c)[4], int m)
    {
        for (Sums &s : sums)
            if (s.pending && s.to == c)
                return &s;
        for (Sums &s : sums)
            if (!s.pending) {
                s.to = c;
                s.count = m;
                memcpy(s.v, c, (size_t)m * sizeof *c);
                memset(c, 0xFF, (size_t)m * sizeof *c);
                return &s;
            }
        trap();
    }
    template <class Half>
    void start(float (*c)[4], int m, Product &p, uint64_t b, bool adds)
    {
        p.sums = sums_of(c, m);
        p.sums->pending++;
        p.adds = adds;
        p.computed = false;
        p.group = groups;
        p.b.bits = b;
        p.compute = compute<Half>;
        if (number++ % 2)
            compute<Half>(p);
    }
    Product &next()
    {
        if (count == most)
            trap();
        return products[count++];
    }

  public:
    template <class Half, int M>
    void start(float (&c)[M][4], uint64_t a, uint64_t b, bool adds)
    {
        Product &p = next();
        p.down = p.held = false;
        p.a.bits = a;
        start<Half>(c, M, p, b, adds);
    }
    template <class Half, int M>
    void start_down(float (&c)[M][4], const unsigned (&a)[4], uint64_t b)
    {
        Product &p = next();
        p.down = p.held = true;
        Held mine = {a, &p};
        meet(32, mine, tell_held<Half>);
        start<Half>(c, M, p, b, true);
    }
    void commit() { groups++; }
    void await(int left)
    {
        int done = 0;
        for (; done < count && products[done].group < groups - left; done++) {
            Product &p = products[done];
            if (!p.computed)
                p.compute(p);
            for (int i = 0; i < p.sums->count; i++)
                for (int e = 0; e < 4; e++)
                    p.sums->v[i][e] = (p.adds ? p.sums->v[i][e] : 0) + p.result[i][e];
            if (!--p.sums->pending)
                memcpy(p.sums->to, p.sums->v, (size_t)p.sums->count * 16);
        }
        count -= done;
        memmove(products, products + done, (size_t)count * sizeof *products);
        __syncwarp(); /* one lane may tell others now */
    }
};

} /* namespace sim */

#endif
