/* Attention on tensor cores, in files of its own: of 16 bits, and of float32 where it fits
 * a GPU of this compute capability. */
#ifndef DT_CUDA_KERNELS_ATTENTION_H
#define DT_CUDA_KERNELS_ATTENTION_H

#include "cuda/runtime/backend.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"
#include "device/attention.h"

/* A call's dropout, as the kernels read it (attention_dropout.h). */
struct Dropout {
    DrawStart start;
    uint64_t *leave; /* where the forward pass writes seed and first counter, or NULL */
    bool on;
    uint32_t last; /* shares of words up to it stay */
    int64_t row_blocks, key_blocks;
    double factor; /* of shares that stay */
};
POINTERS_OF(Dropout, f(s.start.state); f(s.leave);)

/* Reserves the counters of a call that draws its mask. */
int take_attention_dropout(dt_stream stream, const dt_dropout_mask_call *mask,
                           Dropout *out);

int attention_of_halves(dt_stream stream, const dt_attention_call *call,
                        const Dropout &dropout);
bool attention_fits_floats(const dt_attention_call *call, int capability);
int attention_of_floats(dt_stream stream, const dt_attention_call *call);

#endif
