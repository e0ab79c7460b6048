/* Dropout in the kernels of attention. Whether a share stays depends on its position alone,
 * not on a kernel's tiles, so that all kernels, forward and backward, draw the same mask.
 *
 * Scores are in blocks of 16 rows and 16 keys, of 64 counters of Philox each. That of row i
 * and key k, both below 8, has a word for (i, k), (i, k + 8), (i + 8, k) and (i + 8, k + 8).
 * A lane has these four in the fragments of tensor cores, with rows across and with rows
 * down. */
#ifndef DT_CUDA_KERNELS_ATTENTION_DROPOUT_H
#define DT_CUDA_KERNELS_ATTENTION_DROPOUT_H

#include "cuda/kernels/attention.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/vector.h"

#include "ops/philox.h"

#define DROPOUT_SIDE 16 /* rows or keys of a block */

namespace {

/* The first counter of the block that has this row and this key of a head, whose number is
 * batch * heads + head. */
static __device__ __forceinline__ uint64_t block_counter(const Dropout &d, int64_t head,
                                                         int64_t row, int64_t key)
{
    return (uint64_t)((head * d.row_blocks + row / DROPOUT_SIDE) * d.key_blocks +
                      key / DROPOUT_SIDE) *
           64;
}

/* Draws words by counters that are relative to the call's first. */
struct DropoutDraw {
    uint64_t seed, offset;
    uint32_t last;
    __device__ __forceinline__ explicit DropoutDraw(const Dropout &d)
        : seed(d.start.seed), offset(d.start.offset), last(d.last)
    {
        if (d.start.state) {
            seed = d.start.state[0];
            offset += d.start.state[1];
        }
    }
    /* Calls f(word's number, whether its share stays). */
    template <class F>
    __device__ __forceinline__ void each(uint64_t counter, F f) const
    {
        const dt_philox drawn = dt_philox_words(seed, offset + counter, 0);
        UNROLL
        for (int w = 0; w < 4; w++)
            f(w, drawn.words[w] <= last);
    }
};

/* One thread leaves seed and first counter to the calls that draw the mask again. */
static __device__ __forceinline__ void leave_start(const Dropout &d)
{
    if (!d.leave || blockIdx.x || threadIdx.x)
        return;
    const DropoutDraw draw(d);
    d.leave[0] = draw.seed;
    d.leave[1] = draw.offset;
}

} // namespace

#endif
