/* Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", 2011): four random words from a counter and a key, without state, for C and
 * CUDA alike.
 *
 * The includer may define DT_FN (qualifiers of functions). */
#ifndef DT_OPS_PHILOX_H
#define DT_OPS_PHILOX_H

#include <stdint.h>

#ifndef DT_FN
#define DT_FN static inline
#endif

typedef struct dt_philox {
    uint32_t words[4];
} dt_philox;

DT_FN dt_philox dt_philox_round(dt_philox c, uint32_t k0, uint32_t k1)
{
    uint64_t a = (uint64_t)0xD2511F53u * c.words[0],
             b = (uint64_t)0xCD9E8D57u * c.words[2];
    dt_philox next;
    next.words[0] = (uint32_t)(b >> 32) ^ c.words[1] ^ k0;
    next.words[1] = (uint32_t)b;
    next.words[2] = (uint32_t)(a >> 32) ^ c.words[3] ^ k1;
    next.words[3] = (uint32_t)a;
    return next;
}

/* The words of counter under the key seed; the counter's high half is `high`. */
DT_FN dt_philox dt_philox_words(uint64_t seed, uint64_t counter, uint64_t high)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    dt_philox c;
    c.words[0] = (uint32_t)counter;
    c.words[1] = (uint32_t)(counter >> 32);
    c.words[2] = (uint32_t)high;
    c.words[3] = (uint32_t)(high >> 32);
    for (int round = 0; round < 10; round++) {
        c = dt_philox_round(c, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

#endif
