/* The part of cuDNN that is used: its convolutions, which use the tensor cores of recent
 * GPUs better than products of patches do. Nothing installs it for this library; where it
 * is found, as beside PyTorch, a real GPU's convolutions are its. Declared here as in
 * cublas.h. */
#ifndef DT_CUDA_RUNTIME_CUDNN_H
#define DT_CUDA_RUNTIME_CUDNN_H

#include <cuda_runtime.h>

#include "cuda/runtime/library.h"
#include "device/convolution.h"

typedef struct cudnnContext *dt_cudnn_handle;
/* Statuses from BAD_PARAM to below INTERNAL_ERROR: it has no way to compute that. */
enum {
    DT_CUDNN_BAD_PARAM = 2000,
    DT_CUDNN_INTERNAL_ERROR = 4000,
    DT_CUDNN_ALLOC_FAILED = 4003
};
enum {
    DT_CUDNN_FLOAT = 0,
    DT_CUDNN_DOUBLE = 1,
    DT_CUDNN_HALF = 2,
    DT_CUDNN_BFLOAT16 = 9
};
/* How it may multiply: by default float32 may be rounded to TF32. */
enum { DT_CUDNN_DEFAULT_MATH = 0, DT_CUDNN_TENSOR_OP_MATH = 1, DT_CUDNN_FMA_MATH = 3 };
enum { DT_CUDNN_NCHW = 0 };
enum { DT_CUDNN_CROSS_CORRELATION = 1 };
enum { DT_CUDNN_DETERMINISTIC = 1 };

/* A way to compute a convolution, the best first. */
typedef struct dt_cudnn_choice {
    int algorithm, status;
    float time;
    size_t workspace; /* bytes that it needs */
    int determinism, math;
    int reserved[3];
} dt_cudnn_choice;

/* Descriptions of tensors, weights and convolutions are void here. */
#define DT_CUDNN_CHOOSE                                                                \
    (dt_cudnn_handle handle, void *a, void *b, void *convolution, void *out,           \
     int wanted, int *found, dt_cudnn_choice *choices)
#define DT_CUDNN_CONVOLVE                                                              \
    (dt_cudnn_handle handle, const void *alpha, void *a_is, const void *a, void *b_is, \
     const void *b, void *convolution, int algorithm, void *workspace,                 \
     size_t workspace_bytes, const void *beta, void *out_is, void *out)
#define DT_CUDNN_FUNCTIONS(FUNCTION)                                                   \
    FUNCTION(create, cudnnCreate, (dt_cudnn_handle * handle))                          \
    FUNCTION(destroy, cudnnDestroy, (dt_cudnn_handle handle))                          \
    FUNCTION(set_stream, cudnnSetStream,                                               \
             (dt_cudnn_handle handle, cudaStream_t stream))                            \
    FUNCTION(tensor_create, cudnnCreateTensorDescriptor, (void **tensor))              \
    FUNCTION(tensor_destroy, cudnnDestroyTensorDescriptor, (void *tensor))             \
    FUNCTION(tensor_set, cudnnSetTensorNdDescriptor,                                   \
             (void *tensor, int type, int ndim, const int *shape, const int *strides)) \
    FUNCTION(weight_create, cudnnCreateFilterDescriptor, (void **weight))              \
    FUNCTION(weight_destroy, cudnnDestroyFilterDescriptor, (void *weight))             \
    FUNCTION(weight_set, cudnnSetFilterNdDescriptor,                                   \
             (void *weight, int type, int format, int ndim, const int *shape))         \
    FUNCTION(convolution_create, cudnnCreateConvolutionDescriptor,                     \
             (void **convolution))                                                     \
    FUNCTION(convolution_destroy, cudnnDestroyConvolutionDescriptor,                   \
             (void *convolution))                                                      \
    FUNCTION(convolution_set, cudnnSetConvolutionNdDescriptor,                         \
             (void *convolution, int ndim, const int *padding, const int *stride,      \
              const int *dilation, int mode, int compute_type))                        \
    FUNCTION(convolution_set_math, cudnnSetConvolutionMathType,                        \
             (void *convolution, int math))                                            \
    FUNCTION(convolution_set_groups, cudnnSetConvolutionGroupCount,                    \
             (void *convolution, int groups))                                          \
    FUNCTION(choose_output, cudnnGetConvolutionForwardAlgorithm_v7, DT_CUDNN_CHOOSE)   \
    FUNCTION(choose_input, cudnnGetConvolutionBackwardDataAlgorithm_v7,                \
             DT_CUDNN_CHOOSE)                                                          \
    FUNCTION(choose_weight, cudnnGetConvolutionBackwardFilterAlgorithm_v7,             \
             DT_CUDNN_CHOOSE)                                                          \
    FUNCTION(output, cudnnConvolutionForward, DT_CUDNN_CONVOLVE)                       \
    FUNCTION(input, cudnnConvolutionBackwardData, DT_CUDNN_CONVOLVE)                   \
    FUNCTION(weight, cudnnConvolutionBackwardFilter, DT_CUDNN_CONVOLVE)                \
    FUNCTION(add, cudnnAddTensor,                                                      \
             (dt_cudnn_handle handle, const void *alpha, void *a_is, const void *a,    \
              const void *beta, void *c_is, void *c))

typedef struct dt_cudnn {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_CUDNN_FUNCTIONS(FUNCTION)
#undef FUNCTION
    size_t (*version)(void);
} dt_cudnn;

extern dt_library cudnn_library;

/* Opens cuDNN, once; NULL if it is not installed. DT_LOCK_LIBRARY_CALLS is held. */
const dt_cudnn *cudnn_get(void);

/* Bytes of all patches from which on cuDNN is quicker than products of them. */
int64_t cudnn_from_bytes(void);

/* Computes a convolution by cuDNN: 1 when it is queued, 0 if it is not installed or cannot,
 * -1 after dt_fail. */
int cudnn_convolve(dt_stream stream, const dt_convolution *call);

#endif
