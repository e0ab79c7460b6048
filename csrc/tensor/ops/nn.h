/* Operations along one dimension of a tensor, a row at a time: ops/nn.def. */
#ifndef DT_TENSOR_OPS_NN_H
#define DT_TENSOR_OPS_NN_H

#include "device/nn.h"
#include "device/nn_ops.h"
#include "tensor/call.h"

/* --- calls and softmax --- */

/* A call that is being put together, and the tensors that live for it. */
typedef struct dt_nn_rows {
    dt_nn_call call;
    dt_dtype dtype; /* of the results */
    dt_device device;
    bool failed;
    bool keeps_type; /* results of the kinds that are of the call's `dtype` stay so; set
                        after dt_nn_begin */
    int count;
    dt_tensor held[DT_NN_OPERANDS];
    dt_tensor *results[DT_NN_OPERANDS];
} dt_nn_rows;

/* Begins a call on the rows along dim (0 to ndim-1) of tensors of that shape; dim -1:
 * the whole is one row. After a failure the following calls do nothing, so that only
 * dt_nn_run need be asked. */
void dt_nn_begin(dt_nn_rows *rows, const char *op_name, dt_dtype dtype,
                 dt_device device, int ndim, const int64_t *shape, int dim);
/* Operand `at`, an NN_AT, is t, made row-major and of the operand's type where it is
 * not so already; t NULL: there is none. stored: NN_IS_STORED. */
void dt_nn_take(dt_nn_rows *rows, int at, bool stored, const dt_tensor *t);
/* Operand `at` is t as it is. */
void dt_nn_take_as_it_is(dt_nn_rows *rows, int at, const dt_tensor *t);
/* Operand `at` is a new tensor, out. */
void dt_nn_make(dt_nn_rows *rows, int at, bool stored, dt_tensor *out, int ndim,
                const int64_t *shape);
#define NN_TAKE(rows, op, operand, t)                                                  \
    dt_nn_take(rows, NN_AT(op, operand), NN_IS_STORED(op, operand), t)
#define NN_TAKE_AS_IT_IS(rows, op, operand, t)                                         \
    dt_nn_take_as_it_is(rows, NN_AT(op, operand), t)
#define NN_MAKE(rows, op, operand, out, ndim, shape)                                   \
    dt_nn_make(rows, NN_AT(op, operand), NN_IS_STORED(op, operand), out, ndim, shape)
/* Runs the call, unless there is nothing to write, and releases what was held. -1
 * after dt_fail. */
int dt_nn_run(dt_nn_rows *rows, dt_nn_op op);

/* The gradient of softmax or log_softmax along dim (0 to ndim-1), from the result and
 * its gradient. */
int dt_softmax_gradient(dt_nn_op op, dt_tensor *out, const dt_tensor *g,
                        const dt_tensor *y, int dim);

/* The gradient of logsumexp: g and y have an element for each row of x along dim. */
int dt_logsumexp_gradient(dt_tensor *out, const dt_tensor *g, const dt_tensor *x,
                          const dt_tensor *y, int dim);

/* --- losses over classes --- */

typedef enum dt_loss_reduction {
    DT_LOSS_EACH,
    DT_LOSS_MEAN,
    DT_LOSS_SUM
} dt_loss_reduction;

typedef struct dt_loss_options {
    const char *op_name; /* cross_entropy or nll_loss: a literal */
    bool scores; /* the input is scores, of which log_softmax is taken; else it is
                         log-probabilities already */
    bool shares; /* the target has a share for each class, else a class */
    dt_loss_reduction reduction;
    int64_t ignored;  /* the class of elements that do not count */
    double smoothing; /* of labels: the share that is divided among all classes */
} dt_loss_options;

/* Tensors that the gradient needs besides the input; each may be empty. */
typedef struct dt_loss_kept {
    dt_tensor max, log_sum; /* of each row of scores: see ops/nn.def */
    dt_tensor total;        /* what a mean was divided by */
} dt_loss_kept;

/* The options of a call of cross_entropy (scores) or nll_loss. -1 after dt_fail. */
int dt_loss_options_of(dt_loss_options *out, bool scores, const dt_value *args,
                       const dt_tensor *x, const dt_tensor *target);

/* The dimension of the classes in an input of that many. */
static inline int dt_loss_dim(int ndim)
{
    return ndim > 1 ? 1 : 0;
}

/* The gradient for x where g is that for the loss. Without scores, x is asked for its
 * shape only. */
int dt_class_loss_gradient(dt_tensor *out, const dt_tensor *g, const dt_loss_kept *kept,
                           const dt_tensor *x, const dt_tensor *target,
                           const dt_tensor *weight, const dt_loss_options *options);

/* --- normalization --- */

/* The forward function of batch_norm, but for what it asks of autograd. */
int dt_batch_norm(dt_call *call);

/* The gradients for x, weight and bias; NULL: not wanted. Rows are of the last `count`
 * dimensions; mean and rstd (1 / deviation) have an element a row. */
int dt_layer_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            int count, const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd);
/* The same; mean and rstd have an element a channel, which is dimension 1. */
int dt_batch_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd, bool training);

#endif
