/* The calls of the attention kernels. */
#ifndef DT_DEVICE_ATTENTION_H
#define DT_DEVICE_ATTENTION_H

#include "base/dtype.h"

/* A matrix for each batch and head: strides in elements, those of a row next to each
 * other. */
typedef struct dt_attention_matrices {
    void *data;
    int64_t batch, head, row;
} dt_attention_matrices;

struct dt_generator;

/* Dropout of the shares: each of them stays with the probability `kept`, divided by it, or
 * is 0. The mask is drawn anew by each kernel that needs it, from a seed and a first
 * counter. A forward pass with a generator reserves counters and writes both to `start`;
 * other calls read them there. */
typedef struct dt_attention_dropout {
    int64_t *start; /* two numbers on the device; NULL: no dropout */
    double kept;
    struct dt_generator *generator;
} dt_attention_dropout;

/* out = softmax(scale * query @ key' + mask) @ value for each batch and head, in tiles,
 * so that there is never a matrix of length x key_length. A row without a key that counts
 * is zeros. Heads of query share those of key and value in groups of heads / key_heads.
 *
 * The backward pass reads out, log_sum and `grad`, the gradient of out, and writes those
 * gradients whose data is not NULL. Sizes are at least 1, but for `size`. Owns nothing. */
typedef struct dt_attention_call {
    dt_dtype dtype; /* float32, float64, or of 16 bits where these fit */
    bool causal;    /* row i takes keys 0 to i */
    int64_t batch, heads, key_heads, length, key_length, size, value_size;
    double scale;
    dt_attention_matrices query, key, value, out;
    const void *mask; /* bool: false is left out; or as log_sum: is added; NULL: none */
    bool mask_is_bool;
    int64_t mask_strides[4]; /* of batch, head, row, key; in elements */
    /* (batch, heads, length), float32 or float64: the logarithm of the sum of a row's
     * exponentials */
    void *log_sum;
    dt_attention_matrices grad, query_grad, key_grad, value_grad;
    dt_attention_dropout dropout; /* GPUs alone have it */
} dt_attention_call;

/* The mask of dropout alone: the one that an attention call has whose batch * heads,
 * length and key_length these are. Sizes are at least 1. Owns nothing. */
typedef struct dt_dropout_mask_call {
    dt_bool *out; /* (batch, length, key_length): whether a share stays */
    int64_t batch, length, key_length;
    dt_attention_dropout dropout; /* as of a forward pass; start is not NULL */
} dt_dropout_mask_call;

/* Whether a GPU of this compute capability, as 10 * major + minor, takes floats of 16 and of
 * 32 bits without a conversion, on tensor cores. */
static inline bool dt_attention_on_tensor_cores(const dt_attention_call *c,
                                                int capability)
{
    const int64_t longest = 1 << 30;
    return capability >= 80 && c->size <= 128 && c->value_size <= 128 &&
           c->length < longest && c->key_length < longest;
}

#endif
