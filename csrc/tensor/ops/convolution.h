/* Convolutions: their arguments, checked. */
#ifndef DT_TENSOR_OPS_CONVOLUTION_H
#define DT_TENSOR_OPS_CONVOLUTION_H

#include "ops/window.h"
#include "tensor/call.h"

/* The numbers of a convolution over ndim dimensions; those of dt_window and the sizes of
 * the result. */
typedef struct dt_convolution_sizes {
    int ndim;
    int64_t size[DT_WINDOW_DIMS]; /* of the result, without batch and channels */
    int64_t stride[DT_WINDOW_DIMS], padding[DT_WINDOW_DIMS], dilation[DT_WINDOW_DIMS];
} dt_convolution_sizes;

/* Arguments as Python gives them. */
typedef struct dt_convolution_args {
    const dt_tensor *input, *weight, *bias; /* input with a batch; bias may be NULL */
    const dt_value *stride, *padding, *dilation,
        *output_padding;      /* the last: NULL: 0 */
    const char *padding_text; /* 'same' or 'valid' in place of padding, or NULL */
    bool transposed;
    int64_t groups;
} dt_convolution_args;

/* Checks them and computes the sizes. -1 after dt_fail. */
int dt_convolution_check(const char *op_name, const dt_convolution_args *args,
                         dt_convolution_sizes *out);

/* Whether GPUs may round the elements of float32 to TF32 in convolutions and in the steps
 * of recurrent layers. True at first. */
extern bool dt_convolution_tf32;
/* Whether GPUs may leave convolutions to cuDNN, true at first; and then only to what gives
 * the same bits each time, which dt_deterministic asks for too. */
extern bool dt_cudnn_enabled, dt_cudnn_deterministic;

#endif
