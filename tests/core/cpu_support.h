/* Shared by the tests of the CPU backend: checks, plans over odd layouts, elements. */
#ifndef DT_TESTS_CPU_SUPPORT_H
#define DT_TESTS_CPU_SUPPORT_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/runtime/cpu.h"

/* The types before the complex ones, with which backends only compute element by element:
 * tests in Python do. */
enum { NREAL = DT_COMPLEX64 };

static int failures;

#define CHECK(condition, ...)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                     \
            printf(__VA_ARGS__);                                                       \
            printf("\n");                                                              \
            if (++failures > 20)                                                       \
                exit(1);                                                               \
        }                                                                              \
    } while (0)

static const dt_stream stream = {0, NULL};

static uint64_t noise_state = 88172645463325252u;
static inline uint64_t noise(void)
{
    noise_state ^= noise_state << 13;
    noise_state ^= noise_state >> 7;
    return noise_state ^= noise_state << 17;
}
/* From here on the noise is that of a name, whatever was tested before: a new row of a
 * table changes the numbers of no other. */
static inline void noise_of(const char *name)
{
    noise_state = 14695981039346656037u;
    for (; *name; name++)
        noise_state = (noise_state ^ (unsigned char)*name) * 1099511628211u;
}
/* In [low, high). */
static inline double noise_between(double low, double high)
{
    return low + (high - low) * ((double)(noise() >> 11) * 0x1p-53);
}

/* Memory between sentinels, which check_bounds verifies. */
#define GUARD 64
static inline char *guarded_new(size_t bytes)
{
    char *memory = malloc(bytes + 2 * GUARD + 64);
    if (!memory)
        exit(2);
    memset(memory, 0x5a, bytes + 2 * GUARD + 64);
    return memory + GUARD;
}
static inline void guarded_free(char *data, size_t bytes)
{
    for (int i = 0; i < GUARD; i++) {
        CHECK(data[-1 - i] == 0x5a, "written before the beginning");
        CHECK(data[bytes + (size_t)i] == 0x5a, "written past the end");
    }
    free(data - GUARD);
}

static inline void put(dt_dtype dtype, void *at, double value)
{
    dt_scalar scalar = dt_dtype_is_float(dtype) ? dt_scalar_float(value)
                                                : dt_scalar_int((int64_t)value);
    dt_element e = dt_element_from_scalar(dtype, scalar);
    memcpy(at, e.bytes, dt_dtype_size(dtype));
}
static inline double get(dt_dtype dtype, const void *at)
{
    return dt_scalar_as_double(dt_element_to_scalar(dtype, at));
}

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
