/* Random numbers that are more than one draw of a distribution an element. */
#ifndef DT_TENSOR_OPS_RANDOM_H
#define DT_TENSOR_OPS_RANDOM_H

#include "device/random.h"
#include "tensor/tensor.h"

/* In all of them a generator of NULL stands for the device's own. */

/* 0, ..., n - 1 in random order. Drawn on the host, also for a GPU, and then sent. */
int dt_randperm(dt_tensor *out, int64_t n, dt_dtype dtype, dt_device device,
                dt_generator *generator);

/* 1 where a uniform number is less than the probability in p (broadcast to target),
 * else 0. Probabilities are checked on the CPU alone, where that needs no wait. */
int dt_bernoulli_into(const char *what, dt_tensor *target, const dt_tensor *p,
                      dt_generator *generator);

/* Intervals between events of the given rate. */
int dt_exponential_into(const char *what, dt_tensor *target, double rate,
                        dt_generator *generator);

/* `count` indices for each row of weights p (of one or two dimensions), each drawn with
 * its weight. Waits for the weights of a GPU. */
int dt_multinomial(dt_tensor *out, const dt_tensor *p, int64_t count, bool replacement,
                   dt_generator *generator);

/* The state of a generator as bytes: DT_TWISTER_STATE of the CPU's, in PyTorch's
 * layout, DT_PHILOX_STATE of a GPU's (seed, then offset). Both take the lock. */
#define DT_TWISTER_STATE 5056
#define DT_PHILOX_STATE  16
void dt_generator_save(dt_generator *generator, bool twister, unsigned char *bytes);
/* Fails where the bytes are no state, and then changes nothing. */
int dt_generator_restore(dt_generator *generator, bool twister,
                         const unsigned char *bytes);

#endif
