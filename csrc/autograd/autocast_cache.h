/* The casts of parameters that an autocast block keeps: a parameter that is used again, in
 * a recurrent network or while gradients accumulate, is cast once. */
#ifndef DT_AUTOGRAD_AUTOCAST_CACHE_H
#define DT_AUTOGRAD_AUTOCAST_CACHE_H

#include "tensor/tensor.h"

/* Whether a cast of t may be kept: t is a float32 leaf that requires gradients, no recall
 * frees its memory (recall.h), and no graph captures the cast. */
bool dt_autocast_cache_takes(const dt_tensor *t);

/* Makes out a second tensor of the cast of t to a type that is kept. False: there is
 * none, or t was written since. */
bool dt_autocast_cache_find(dt_tensor *out, const dt_tensor *t, dt_dtype dtype);

/* Keeps a cast of t. -1 after dt_fail. */
int dt_autocast_cache_keep(const dt_tensor *t, const dt_tensor *cast);

/* Drops the casts that the calling thread keeps. */
void dt_autocast_cache_clear(void);

#endif
