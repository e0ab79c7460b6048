/* The transforms behind random numbers that are done for many at a time. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"

#define TWO_PI 6.283185307179586476925286766559

/* In each block of 16 the first eight uniforms give a radius, the others an angle. */
static void normal_float32(int64_t n, float *x, float mean, float deviation)
{
    for (int64_t i = 0; i < n; i += 16) {
        float *low = x + i, *high = x + i + 8;
        DT_VECTOR_LOOP
        for (int j = 0; j < 8; j++) {
            float radius = sqrtf(-2.0f * log_FLOAT32(1.0f - low[j]));
            float angle = (float)TWO_PI * high[j];
            low[j] = MADF(radius * cos_FLOAT32(angle), deviation, mean);
            high[j] = MADF(radius * sin_FLOAT32(angle), deviation, mean);
        }
    }
}

static void normal_float64(int64_t n, double *x, double mean, double deviation)
{
    for (int64_t i = 0; i < n; i += 16) {
        double *low = x + i, *high = x + i + 8;
        for (int j = 0; j < 8; j++) {
            double radius = sqrt(-2.0 * log(1.0 - low[j])), angle = TWO_PI * high[j];
            low[j] = MAD(radius * cos(angle), deviation, mean);
            high[j] = MAD(radius * sin(angle), deviation, mean);
        }
    }
}

static void temper(int64_t n, uint32_t *out, const uint32_t *words)
{
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = words[i];
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c5680u;
        word ^= (word << 15) & 0xefc60000u;
        out[i] = word ^ (word >> 18);
    }
}

const dt_random_kernels DT_ISA_NAME(dt_random) = {
    .normal_float32 = normal_float32,
    .normal_float64 = normal_float64,
    .temper = temper,
};
