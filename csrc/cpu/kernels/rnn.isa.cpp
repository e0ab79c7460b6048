/* The steps of ops/rnn.def as loops over the elements of a row. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"

#undef DT_FN
#define DT_FN   static DT_INLINE
#define op_exp  Quick::exp
#define op_tanh Quick::tanh
#include "ops/rnn_cells.h"

namespace {

template <class Op, typename T>
__attribute__((flatten)) void row_kernel(void *const *row, int64_t n)
{
    const auto at = rnn::named<Op, T>(row);
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        Op::run(at, n, i);
}

} // namespace

static dt_rnn_kernel *const rnn_float32[] = {
#define RNN_OP(op, ...) row_kernel<rnn::op, float>,
#include "ops/rnn.def"
};
static dt_rnn_kernel *const rnn_float64[] = {
#define RNN_OP(op, ...) row_kernel<rnn::op, double>,
#include "ops/rnn.def"
};
const dt_rnn_kernels DT_ISA_NAME(dt_rnn) = {rnn_float32, rnn_float64};
