/* The states of generators. */
#ifndef DT_TENSOR_OPS_RANDOM_H
#define DT_TENSOR_OPS_RANDOM_H

#include "device/random.h"
#include "tensor/tensor.h"

/* The state of a generator as bytes: DT_TWISTER_STATE of the CPU's, in PyTorch's
 * layout, DT_PHILOX_STATE of a GPU's (seed, then offset). Both take the lock. */
#define DT_TWISTER_STATE 5056
#define DT_PHILOX_STATE  16
void dt_generator_save(dt_generator *generator, bool twister, unsigned char *bytes);
/* Fails where the bytes are no state, and then changes nothing. */
int dt_generator_restore(dt_generator *generator, bool twister,
                         const unsigned char *bytes);

#endif
