/* Operations along one dimension of a tensor, a row at a time: ops/nn.def. */
#ifndef DT_TENSOR_OPS_NN_H
#define DT_TENSOR_OPS_NN_H

#include "device/nn.h"
#include "tensor/tensor.h"

/* A call that is being put together, and the tensors that live for it. */
typedef struct dt_nn_rows {
    dt_nn_call call;
    dt_dtype dtype; /* of the results; the call's own, where that computes */
    dt_device device;
    bool failed;
    bool keeps_type; /* results stay in the call's type, set after dt_nn_begin */
    int count;
    dt_tensor held[DT_NN_OPERANDS];
    dt_tensor *results[DT_NN_OPERANDS];
} dt_nn_rows;

/* Begins a call on the rows along dim (0 to ndim-1) of tensors of that shape; dim -1:
 * the whole is one row. After a failure the following calls do nothing, so that only
 * dt_nn_run need be asked. */
void dt_nn_begin(dt_nn_rows *rows, const char *what, dt_dtype dtype, dt_device device,
                 int ndim, const int64_t *shape, int dim);
/* Operand `at`, an NN_AT, is t, in row-major order and the call's type where it is not so already;
 * t NULL: there is none. Its elements are those of the rows, or one for each. */
void dt_nn_take(dt_nn_rows *rows, int at, const dt_tensor *t);
/* Operand `at` is t as it is. */
void dt_nn_take_as_it_is(dt_nn_rows *rows, int at, const dt_tensor *t);
/* Operand `at` is a new tensor, out. */
void dt_nn_make(dt_nn_rows *rows, int at, dt_tensor *out, int ndim,
                const int64_t *shape);
#define NN_TAKE(rows, op, operand, t) dt_nn_take(rows, NN_AT(op, operand), t)
#define NN_TAKE_AS_IT_IS(rows, op, operand, t)                                         \
    dt_nn_take_as_it_is(rows, NN_AT(op, operand), t)
#define NN_MAKE(rows, op, operand, out, ndim, shape)                                   \
    dt_nn_make(rows, NN_AT(op, operand), out, ndim, shape)
/* Runs the call, unless there is nothing to write, and releases what was held. -1
 * after dt_fail. */
int dt_nn_run(dt_nn_rows *rows, dt_nn_op op);

/* The gradient of softmax or log_softmax, from that of the result and the result, along dim (0 to ndim-1). */
int dt_softmax_gradient(dt_nn_op op, dt_tensor *out, const dt_tensor *g,
                        const dt_tensor *y, int dim);

/* The gradient of logsumexp: g and y have an element for each row of x along dim. */
int dt_logsumexp_gradient(dt_tensor *out, const dt_tensor *g, const dt_tensor *x,
                          const dt_tensor *y, int dim);

#endif
