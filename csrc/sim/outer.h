/* Products that a thread adds to a square of sums in its registers. */
#ifndef DT_SIM_OUTER_H
#define DT_SIM_OUTER_H

#include "sim/cuda_runtime.h"

namespace sim {

/* sums[i][k] += x[i] * y[k], each product and sum rounded once. */
extern SIM_HIDDEN void (*const add_outer)(float (*sums)[4], const float *x,
                                          const float *y);

} /* namespace sim */

#endif
