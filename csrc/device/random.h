/* Random generators: the state of `Generator` and of each device's default
 * generator.
 *
 * The CPU uses the Mersenne Twister and gives PyTorch's numbers. GPUs use Philox
 * 4x32-10, where a number depends only on seed, offset and element index. */
#ifndef DT_DEVICE_RANDOM_H
#define DT_DEVICE_RANDOM_H

#include "base/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TWISTER_WORDS 624

typedef struct dt_generator {
    int lock; /* held for a whole draw; other generators may have the same */
    uint64_t seed;
    /* Mersenne Twister (Matsumoto and Nishimura, 1998) */
    uint32_t words[DT_TWISTER_WORDS];
    int next;         /* next unused word; DT_TWISTER_WORDS: refill */
    bool normal_kept; /* `normal` holds the second number of a Box-Muller pair */
    double normal;
    /* Philox: next unused counter (four 32-bit words each) */
    uint64_t offset;
} dt_generator;

/* Initializes a generator in the caller's memory. Cannot fail. */
void dt_generator_init(dt_generator *generator, uint64_t seed);

/* Restarts from seed (the twister uses its low 32 bits). Takes the lock. */
void dt_generator_seed(dt_generator *generator, uint64_t seed);

/* The next 32 or 64 bits of the twister; the first draw is the high half of 64. The
 * caller holds the lock. */
uint32_t dt_generator_u32(dt_generator *generator);
uint64_t dt_generator_u64(dt_generator *generator);

/* Between chunks of a long draw: asks whether to stop (base/interrupt.h), now and then, and
 * releases the lock meanwhile, since a handler may draw. -1 after dt_fail. */
int dt_generator_check(dt_generator *generator);

/* Reserves `counters` Philox counters; returns the first, and the seed in *out_seed.
 * Takes the lock. */
static inline uint64_t dt_generator_reserve(dt_generator *generator, uint64_t counters,
                                            uint64_t *out_seed)
{
    dt_lock(generator->lock);
    uint64_t offset = generator->offset;
    generator->offset += counters;
    *out_seed = generator->seed;
    dt_unlock(generator->lock);
    return offset;
}

#ifdef __cplusplus
}
#endif
#endif
