/* Random generators: the state behind `Generator` and the default one of each device.
 *
 * Two algorithms: the Mersenne Twister for the CPU (the numbers of PyTorch's CPU
 * generator), and Philox 4x32-10 for GPUs, where a number depends only on seed, offset
 * and element. */
#ifndef DT_DEVICE_RANDOM_H
#define DT_DEVICE_RANDOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TWISTER_WORDS 624

typedef struct dt_generator {
    pthread_mutex_t lock; /* held by whoever draws, from the first number to the last */
    uint64_t seed;
    /* Mersenne Twister (Matsumoto and Nishimura, 1998) */
    uint32_t words[DT_TWISTER_WORDS];
    int next;         /* the next unused word; DT_TWISTER_WORDS: none is left */
    bool normal_kept; /* a second normal of the pair below is waiting */
    double normal;
    /* Philox: numbers already given away, in units of one counter (four 32-bit words)
     */
    uint64_t offset;
} dt_generator;

/* Makes a generator with seed, in memory of the caller's. Cannot fail. */
void dt_generator_init(dt_generator *generator, uint64_t seed);
void dt_generator_destroy(dt_generator *generator);

/* Starts again from seed (the twister takes its low 32 bits). Takes the lock. */
void dt_generator_seed(dt_generator *generator, uint64_t seed);

/* The next 32 or 64 bits of the twister, the first draw being the high half of 64. The
 * caller holds the lock. */
uint32_t dt_generator_u32(dt_generator *generator);
uint64_t dt_generator_u64(dt_generator *generator);

/* Takes `counters` Philox counters: what to start from, with the seed in *out_seed.
 * Takes the lock. */
static inline uint64_t dt_generator_reserve(dt_generator *generator, uint64_t counters,
                                            uint64_t *out_seed)
{
    pthread_mutex_lock(&generator->lock);
    uint64_t offset = generator->offset;
    generator->offset += counters;
    *out_seed = generator->seed;
    pthread_mutex_unlock(&generator->lock);
    return offset;
}

#ifdef __cplusplus
}
#endif
#endif
