#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/layout.h"
#include "cuda/runtime/backend.h"
#include "device/rnn_ops.h"

#undef DT_FN
#define DT_FN static __device__ __forceinline__
#include "ops/rnn_cells.h"

namespace {

struct RnnCall {
    void *operands[DT_RNN_OPERANDS];
    int64_t rows[DT_RNN_OPERANDS]; /* elements from a row to the next */
    int64_t n, numel;
    LongDivider by_n;
};
POINTERS_OF(RnnCall, for (void *&p : s.operands) f(p);)

/* A thread has one element of the hidden state. */
template <class Op, typename T>
__global__ void step_kernel(GRID_CONSTANT(RnnCall) call)
{
    int64_t i = thread_number();
    if (i >= call.numel)
        return;
    int64_t row = divide(i, call.by_n);
    void *at[DT_RNN_OPERANDS];
    UNROLL
    for (int k = 0; k < DT_RNN_OPERANDS; k++)
        at[k] = (T *)call.operands[k] + row * call.rows[k];
    Op::run(rnn::named<Op, T>(at), call.n, i - row * call.n);
}

template <class Op>
int start_cells(dt_stream stream, const dt_rnn_call *given)
{
    RnnCall call;
    for (int k = 0; k < DT_RNN_OPERANDS; k++) {
        call.operands[k] = given->operands[k];
        call.rows[k] = given->operands[k] ? dt_rnn_row(given, k) : 0;
    }
    call.n = given->n;
    call.numel = given->rows * given->n;
    call.by_n = long_divider_for(given->n);
    if (given->dtype == DT_FLOAT32)
        return START("starting a recurrent step", stream, (step_kernel<Op, float>),
                     call.numel, call);
    return START("starting a recurrent step", stream, (step_kernel<Op, double>),
                 call.numel, call);
}

} // namespace

int dt_cuda_rnn(dt_stream stream, const dt_rnn_call *call)
{
    static int (*const table[DT_NRNN])(dt_stream stream, const dt_rnn_call *call) = {
#define RNN_OP(op, ...) start_cells<rnn::op>,
#include "ops/rnn.def"
    };
    return table[call->op](stream, call);
}
