/* Shared by the kernels of attention of 16 bits. */
#ifndef DT_CUDA_KERNELS_ATTENTION_TENSOR_CORES_H
#define DT_CUDA_KERNELS_ATTENTION_TENSOR_CORES_H

#include "cuda/kernels/attention.h"
#include "cuda/kernels/async_copy.h"
#include "cuda/kernels/compute.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/mma.h"
#include "cuda/kernels/warp.h"
#include "ops/attention.h"

/* A row's logarithm, to base 2, of the sum of its exponentials, and the dot product of out and
 * its gradient. */
struct alignas(8) Statistic {
    float log_sum, dot;
};

struct TensorCoreTask {
    dt_attention_call call;
    Dropout dropout;
    Statistic *statistics; /* for each head `padded` rows */
    unsigned group;        /* heads of query to one of key */
    unsigned tiles;        /* blocks for each head */
    unsigned padded;
};
POINTERS_OF(TensorCoreTask, f(s.call.query.data); f(s.call.key.data);
            f(s.call.value.data); f(s.call.out.data); f(s.call.mask); f(s.call.log_sum);
            f(s.call.grad.data); f(s.call.query_grad.data); f(s.call.key_grad.data);
            f(s.call.value_grad.data); each_pointer(s.dropout, f); f(s.statistics);)

/* The kernels for compute capability 9.0 (attention_warpgroups.cu): whether they take a call,
 * forward or backward; the forward pass; and the gradients, which need task.statistics,
 * padded to a multiple of 64 rows. */
bool attention_fits_warpgroups(const dt_attention_call *call, int capability);
int attention_of_warpgroups(dt_stream stream, TensorCoreTask &task);
int attention_gradients_of_warpgroups(dt_stream stream, TensorCoreTask &task);

/* The same with dropout (attention_dropout.cu), for all calls and capabilities. */
int attention_with_dropout(dt_stream stream, TensorCoreTask &task);
int attention_gradients_with_dropout(dt_stream stream, TensorCoreTask &task);

#define LOG2_E 1.44269504088896340736f
#define LN_2   0.693147180559945309417f

static __device__ __forceinline__ float power_of_2(float exponent)
{
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
#else
    return op_exp2(exponent);
#endif
}

/* Combines the values of the four lanes that share a row. */
template <class Combine>
static __device__ __forceinline__ float along_row(float value, Combine combine)
{
    return reduce_lanes<4>(value, combine);
}

#endif
