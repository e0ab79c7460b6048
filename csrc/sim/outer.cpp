/* Without the instruction for it, each product that is rounded with its sum is a call of the
 * C library. */
#include "outer.h"
#include <math.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace sim {

static void by_the_library(float (*sums)[4], const float *x, const float *y)
{
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            sums[i][k] = fmaf(x[i], y[k], sums[i][k]);
}

#ifdef __x86_64__
__attribute__((target("fma"))) static void
by_instructions(float (*sums)[4], const float *x, const float *y)
{
    const __m128 columns = _mm_loadu_ps(y);
    for (int i = 0; i < 4; i++)
        _mm_storeu_ps(sums[i],
                      _mm_fmadd_ps(_mm_set1_ps(x[i]), columns, _mm_loadu_ps(sums[i])));
}

void (*const add_outer)(float (*)[4], const float *,
                        const float *) = __builtin_cpu_supports("fma") ? by_instructions
                                                                       : by_the_library;
#else
void (*const add_outer)(float (*)[4], const float *, const float *) = by_the_library;
#endif

} /* namespace sim */
