/* Attention: checks, layouts and types; the kernels are the backends'. */
#ifndef DT_TENSOR_OPS_ATTENTION_H
#define DT_TENSOR_OPS_ATTENTION_H

#include "tensor/call.h"

/* The tensors of a call; mask may be NULL. */
typedef struct dt_attention {
    const dt_tensor *query, *key, *value, *mask;
    bool causal;
    double scale;
    int64_t groups; /* heads of query to a head of key and value */
    double dropout; /* the probability of a share to be dropped */
    /* The seed and first counter of its mask, which forward keeps; NULL: it draws a mask. */
    const dt_tensor *start;
} dt_attention;

/* The gradients of query, key and value, in their shapes broadcast against each other;
 * NULL: not wanted. g is that of out; log_sum is what forward kept. */
int dt_attention_gradients(dt_tensor *const *into, const dt_tensor *g,
                           const dt_attention *given, const dt_tensor *out,
                           const dt_tensor *log_sum);

/* The mask of a call with dropout: bools of the shape (..., L, S), whose other dimensions are
 * those of the call's result. start: as in dt_attention. */
int dt_attention_mask(dt_tensor *out, dt_device device, int ndim, const int64_t *shape,
                      double dropout, const dt_tensor *start);

#endif
