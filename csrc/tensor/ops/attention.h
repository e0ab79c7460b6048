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
} dt_attention;

/* The gradients of query, key and value, in their shapes broadcast against each other;
 * NULL: not wanted. g is that of out; log_sum is what forward kept. */
int dt_attention_gradients(dt_tensor *const *into, const dt_tensor *g,
                           const dt_attention *given, const dt_tensor *out,
                           const dt_tensor *log_sum);

#endif
