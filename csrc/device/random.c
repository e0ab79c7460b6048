#include "device/random.h"

#include <string.h>

#include "base/interrupt.h"

#define SHIFT 397

static void start_generator(dt_generator *generator, uint64_t seed)
{
    generator->seed = seed;
    uint32_t word = (uint32_t)seed;
    generator->words[0] = word;
    for (uint32_t i = 1; i < DT_TWISTER_WORDS; i++) {
        word = 1812433253u * (word ^ (word >> 30)) + i;
        generator->words[i] = word;
    }
    generator->next = DT_TWISTER_WORDS;
    generator->normal_kept = false;
    generator->normal = 0;
    generator->offset = 0;
}

void dt_generator_init(dt_generator *generator, uint64_t seed)
{
    static unsigned made;
    memset(generator, 0, sizeof *generator);
    generator->lock =
        DT_LOCK_GENERATOR +
        (int)(__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % DT_LOCK_COPIES);
    start_generator(generator, seed);
}

void dt_generator_seed(dt_generator *generator, uint64_t seed)
{
    dt_lock(generator->lock);
    start_generator(generator, seed);
    dt_unlock(generator->lock);
}

static uint32_t twist(uint32_t high, uint32_t low)
{
    uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (joined >> 1) ^ (low & 1 ? 0x9908b0dfu : 0);
}

static void refill(dt_generator *generator)
{
    uint32_t *w = generator->words;
    int i = 0;
    for (; i < DT_TWISTER_WORDS - SHIFT; i++)
        w[i] = w[i + SHIFT] ^ twist(w[i], w[i + 1]);
    for (; i < DT_TWISTER_WORDS - 1; i++)
        w[i] = w[i + SHIFT - DT_TWISTER_WORDS] ^ twist(w[i], w[i + 1]);
    w[i] = w[SHIFT - 1] ^ twist(w[i], w[0]);
    generator->next = 0;
}

uint32_t dt_generator_u32(dt_generator *generator)
{
    if (generator->next >= DT_TWISTER_WORDS)
        refill(generator);
    uint32_t word = generator->words[generator->next++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ (word >> 18);
}

uint64_t dt_generator_u64(dt_generator *generator)
{
    uint64_t high = dt_generator_u32(generator);
    return high << 32 | dt_generator_u32(generator);
}

int dt_generator_check(dt_generator *generator)
{
    if (!dt_interrupt_is_due())
        return 0;
    dt_unlock(generator->lock);
    int status = dt_interrupt_check();
    dt_lock(generator->lock);
    return status;
}
