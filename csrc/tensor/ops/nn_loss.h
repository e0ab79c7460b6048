/* Losses over classes: softmax and cross entropy as one operation. */
#ifndef DT_TENSOR_OPS_NN_LOSS_H
#define DT_TENSOR_OPS_NN_LOSS_H

#include "tensor/call.h"

typedef enum dt_loss_reduction {
    DT_LOSS_EACH,
    DT_LOSS_MEAN,
    DT_LOSS_SUM
} dt_loss_reduction;

typedef struct dt_loss_options {
    const char *what; /* cross_entropy or nll_loss: a literal */
    bool scores;      /* the input is scores, of which log_softmax is taken; else it is
                         log-probabilities already */
    bool shares;      /* the target has a share for each class, else a class */
    dt_loss_reduction reduction;
    int64_t ignored;  /* the class of elements that do not count */
    double smoothing; /* of labels: the part that goes to all classes alike */
} dt_loss_options;

/* What the gradient needs besides the input: each may hold nothing. */
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

#endif
