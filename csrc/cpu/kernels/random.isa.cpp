/* The transforms behind random numbers that are done for many at a time. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"

namespace {

/* In each block of 16 the first eight uniforms give a radius, the others an angle. Maths:
 * Exact for float64, whose numbers then are PyTorch's to the last bit. */
template <typename T, typename Maths>
void normal(int64_t n, void *uniforms, double mean, double deviation)
{
    const T two_pi = (T)6.283185307179586476925286766559;
    const T shift = (T)mean, scale = (T)deviation;
    T *x = (T *)uniforms;
    for (int64_t i = 0; i < n; i += 16) {
        T *low = x + i, *high = x + i + 8;
        DT_VECTOR_LOOP
        for (int j = 0; j < 8; j++) {
            T radius = op_sqrt(-2 * Maths::log(1 - low[j])), angle = two_pi * high[j];
            low[j] = mad(radius * Maths::cos(angle), scale, shift);
            high[j] = mad(radius * Maths::sin(angle), scale, shift);
        }
    }
}

void temper(int64_t n, uint32_t *out, const uint32_t *words)
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

} // namespace

const dt_random_kernels DT_ISA_NAME(dt_random) = {normal<float, Quick>,
                                                  normal<double, Exact>, temper};
