/* Tensors from nothing: constants, progressions, random numbers. */
#ifndef DT_TENSOR_OPS_CREATE_H
#define DT_TENSOR_OPS_CREATE_H

#include "device/random.h"
#include "tensor/tensor.h"

struct dt_call;

/* The type that a factory is asked for, dtype being parameter `first`. */
dt_dtype dt_factory_dtype(const struct dt_call *call, int first, dt_dtype otherwise);

/* Fails where the value is not of the type's range. */
int dt_full(const char *what, dt_tensor *out, dt_dtype dtype, int ndim,
            const int64_t *shape, dt_device device, dt_scalar value);
int dt_fill_into(const char *what, dt_tensor *target, dt_scalar value);

/* start, start + step, ... up to but without end. dtype -1: int64 where all three are
 * integers, else the default floating type. */
int dt_arange(dt_tensor *out, dt_scalar start, dt_scalar end, dt_scalar step, int dtype,
              dt_device device);

/* Fills target with random numbers of generator (NULL: the device's own). */
int dt_random_into(const char *what, dt_tensor *target, dt_distribution distribution,
                   dt_scalar low, dt_scalar high, dt_generator *generator);

/* The default generator of a device, lent; seeded at first use from the system's
 * randomness. */
dt_generator *dt_default_generator(dt_device device);

/* Seeds the default generator of the CPU and of all GPUs, also those not used yet. */
void dt_seed_all(uint64_t seed);
void dt_seed_cuda(uint64_t seed);

#endif
