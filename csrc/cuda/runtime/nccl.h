/* The part of NCCL that is used: collective calls of GPUs. Declared here as in cublas.h. */
#ifndef DT_CUDA_RUNTIME_NCCL_H
#define DT_CUDA_RUNTIME_NCCL_H

#include <cuda_runtime.h>

#include "cuda/runtime/library.h"
#include "device/collective.h"

typedef struct ncclComm *dt_nccl_comm;
typedef struct dt_nccl_id {
    char bytes[DT_COMMUNICATOR_ID];
} dt_nccl_id;

enum {
    DT_NCCL_SUCCESS = 0,
    DT_NCCL_CUDA_ERROR = 1,
    DT_NCCL_SYSTEM_ERROR = 2,
    DT_NCCL_INVALID_ARGUMENT = 4,
    DT_NCCL_INVALID_USAGE = 5,
    DT_NCCL_REMOTE_ERROR = 6,
    DT_NCCL_IN_PROGRESS = 7
};
enum {
    DT_NCCL_INT8 = 0,
    DT_NCCL_UINT8 = 1,
    DT_NCCL_INT32 = 2,
    DT_NCCL_INT64 = 4,
    DT_NCCL_FLOAT16 = 6,
    DT_NCCL_FLOAT32 = 7,
    DT_NCCL_FLOAT64 = 8,
    DT_NCCL_BFLOAT16 = 9
};

/* Reductions are dt_collective_reduction. */
#define DT_NCCL_FUNCTIONS(FUNCTION)                                                    \
    FUNCTION(version, ncclGetVersion, (int *version))                                  \
    FUNCTION(id, ncclGetUniqueId, (dt_nccl_id * out))                                  \
    FUNCTION(init, ncclCommInitRank,                                                   \
             (dt_nccl_comm * comm, int ranks, dt_nccl_id id, int rank))                \
    FUNCTION(destroy, ncclCommDestroy, (dt_nccl_comm comm))                            \
    FUNCTION(abort, ncclCommAbort, (dt_nccl_comm comm))                                \
    FUNCTION(async_error, ncclCommGetAsyncError, (dt_nccl_comm comm, int *error))      \
    FUNCTION(group_start, ncclGroupStart, ())                                          \
    FUNCTION(group_end, ncclGroupEnd, ())                                              \
    FUNCTION(all_reduce, ncclAllReduce,                                                \
             (const void *send, void *receive, size_t count, int type, int reduction,  \
              dt_nccl_comm comm, cudaStream_t stream))                                 \
    FUNCTION(broadcast, ncclBroadcast,                                                 \
             (const void *send, void *receive, size_t count, int type, int root,       \
              dt_nccl_comm comm, cudaStream_t stream))                                 \
    FUNCTION(reduce, ncclReduce,                                                       \
             (const void *send, void *receive, size_t count, int type, int reduction,  \
              int root, dt_nccl_comm comm, cudaStream_t stream))                       \
    FUNCTION(all_gather, ncclAllGather,                                                \
             (const void *send, void *receive, size_t count, int type,                 \
              dt_nccl_comm comm, cudaStream_t stream))                                 \
    FUNCTION(reduce_scatter, ncclReduceScatter,                                        \
             (const void *send, void *receive, size_t count, int type, int reduction,  \
              dt_nccl_comm comm, cudaStream_t stream))                                 \
    FUNCTION(send, ncclSend,                                                           \
             (const void *send, size_t count, int type, int peer, dt_nccl_comm comm,   \
              cudaStream_t stream))                                                    \
    FUNCTION(receive, ncclRecv,                                                        \
             (void *receive, size_t count, int type, int peer, dt_nccl_comm comm,      \
              cudaStream_t stream))

typedef struct dt_nccl {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_NCCL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    const char *(*error_string)(int status);
    const char *(*last_error)(dt_nccl_comm comm); /* NULL in old versions */
} dt_nccl;

extern dt_library nccl_library;

/* Opens NCCL, once; NULL after dt_fail. */
const dt_nccl *nccl_get(void);

#endif
