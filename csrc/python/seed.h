/* Seeds as Python gives them. */
#ifndef DT_PYTHON_SEED_H
#define DT_PYTHON_SEED_H

#include <stdint.h>

#include "python/module.h"

/* What a Generator starts from where no seed is given: PyTorch's. */
#define DT_DEFAULT_SEED UINT64_C(67280421310721)

/* An int from -2^63 to 2^64-1. -1 with TypeError or ValueError that names `function`.
 */
int dt_seed_from_python(const char *function, PyObject *value, uint64_t *out);

/* A seed from the system's randomness. -1 with OSError. */
int dt_seed_draw(uint64_t *out);

#endif
