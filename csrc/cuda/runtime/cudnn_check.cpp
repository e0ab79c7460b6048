/* Compares the declarations in cudnn.h with NVIDIA's header, where installed. */
#include "cuda/runtime/cudnn.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
#include <stddef.h>

#include "cuda/runtime/signature.h"

#define SAME(ours, theirs)                                                             \
    static_assert((int)DT_CUDNN_##ours == (int)CUDNN_##theirs, "cudnn.h differs")
SAME(BAD_PARAM, STATUS_BAD_PARAM);
SAME(INTERNAL_ERROR, STATUS_INTERNAL_ERROR);
SAME(ALLOC_FAILED, STATUS_ALLOC_FAILED);
SAME(FLOAT, DATA_FLOAT);
SAME(DOUBLE, DATA_DOUBLE);
SAME(HALF, DATA_HALF);
SAME(BFLOAT16, DATA_BFLOAT16);
SAME(DEFAULT_MATH, DEFAULT_MATH);
SAME(TENSOR_OP_MATH, TENSOR_OP_MATH);
SAME(FMA_MATH, FMA_MATH);
SAME(NCHW, TENSOR_NCHW);
SAME(CROSS_CORRELATION, CROSS_CORRELATION);
SAME(DETERMINISTIC, DETERMINISTIC);

#define SAME_CHOICE(theirs)                                                            \
    static_assert(                                                                     \
        sizeof(dt_cudnn_choice) == sizeof(theirs) &&                                   \
            offsetof(dt_cudnn_choice, algorithm) == offsetof(theirs, algo) &&          \
            offsetof(dt_cudnn_choice, status) == offsetof(theirs, status) &&           \
            offsetof(dt_cudnn_choice, workspace) == offsetof(theirs, memory) &&        \
            offsetof(dt_cudnn_choice, determinism) == offsetof(theirs, determinism) && \
            offsetof(dt_cudnn_choice, math) == offsetof(theirs, mathType),             \
        "cudnn.h differs");                                                            \
    template <>                                                                        \
    struct plain<theirs *> : plain<dt_cudnn_choice *> {}
SAME_CHOICE(cudnnConvolutionFwdAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_CHOICE(cudnnConvolutionBwdFilterAlgoPerf_t);

/* Descriptions compare as the pointers that they are. */
#define SAME_DESCRIPTION(theirs)                                                       \
    template <>                                                                        \
    struct plain<theirs> : plain<void *> {};                                           \
    template <>                                                                        \
    struct plain<theirs *> : plain<void **> {}
SAME_DESCRIPTION(cudnnTensorDescriptor_t);
SAME_DESCRIPTION(cudnnFilterDescriptor_t);
SAME_DESCRIPTION(cudnnConvolutionDescriptor_t);
DT_CUDNN_FUNCTIONS(DT_SAME_FUNCTION)
static_assert(std::is_same<size_t(void), decltype(cudnnGetVersion)>::value,
              "cudnnGetVersion is declared otherwise by NVIDIA");
#endif
#endif
