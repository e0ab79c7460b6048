/* The kernel of a recurrent step: rnn_float64.cu has those of float64, rnn.cu the
 * others. */
#ifndef DT_CUDA_KERNELS_RNN_H
#define DT_CUDA_KERNELS_RNN_H

#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/layout.h"
#include "cuda/runtime/backend.h"
#include "device/rnn_ops.h"

#undef DT_FN
#define DT_FN static __device__ __forceinline__
#include "ops/rnn_cells.h"

int rnn_of_float64(dt_stream stream, const dt_rnn_call *call);

namespace {

struct RnnCall {
    void *operands[DT_RNN_OPERANDS];
    int64_t rows[DT_RNN_OPERANDS]; /* elements from a row to the next */
    int64_t n, numel;
    LongDivider by_n;
};
POINTERS_OF(RnnCall, for (void *&p : s.operands) f(p);)

/* A thread has one element of the hidden state. */
template <class Op, typename S>
__global__ void step_kernel(GRID_CONSTANT(RnnCall) call)
{
    int64_t i = thread_number();
    if (i >= call.numel)
        return;
    int64_t row = divide(i, call.by_n);
    void *at[DT_RNN_OPERANDS];
    UNROLL
    for (int k = 0; k < DT_RNN_OPERANDS; k++)
        at[k] = (S *)call.operands[k] + row * call.rows[k];
    Op::run(rnn::named<Op, S>(at), call.n, i - row * call.n);
}

template <class Op, typename S>
int start_step(dt_stream stream, const RnnCall &call)
{
    return START("starting a recurrent step", stream, (step_kernel<Op, S>), call.numel,
                 call);
}

template <typename S>
int run_step(dt_stream stream, const dt_rnn_call *given)
{
    static int (*const table[DT_NRNN])(dt_stream stream, const RnnCall &call) = {
#define RNN_OP(op, ...) start_step<rnn::op, S>,
#include "ops/rnn.def"
    };
    RnnCall call;
    for (int k = 0; k < DT_RNN_OPERANDS; k++) {
        call.operands[k] = given->operands[k];
        call.rows[k] = given->operands[k] ? dt_rnn_row(given, k) : 0;
    }
    call.n = given->n;
    call.numel = given->rows * given->n;
    call.by_n = long_divider_for(given->n);
    return table[given->op](stream, call);
}

} // namespace

#endif
