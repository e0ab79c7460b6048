/* Compares the declarations in nccl.h with NVIDIA's header, where installed. */
#include "cuda/runtime/nccl.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<nccl.h>)
#include <nccl.h>

#include "cuda/runtime/signature.h"

#define SAME(ours, theirs)                                                             \
    static_assert((int)DT_NCCL_##ours == (int)nccl##theirs, "nccl.h differs");
SAME(SUCCESS, Success)
SAME(CUDA_ERROR, UnhandledCudaError)
SAME(SYSTEM_ERROR, SystemError)
SAME(INVALID_ARGUMENT, InvalidArgument)
SAME(INVALID_USAGE, InvalidUsage)
SAME(REMOTE_ERROR, RemoteError)
SAME(IN_PROGRESS, InProgress)
SAME(INT8, Int8)
SAME(UINT8, Uint8)
SAME(INT32, Int32)
SAME(INT64, Int64)
SAME(FLOAT16, Float16)
SAME(FLOAT32, Float32)
SAME(FLOAT64, Float64)
SAME(BFLOAT16, Bfloat16)

#define SAME_REDUCTION(ours, theirs)                                                   \
    static_assert((int)DT_COLLECTIVE_##ours == (int)nccl##theirs, "nccl.h differs");
SAME_REDUCTION(SUM, Sum)
SAME_REDUCTION(PRODUCT, Prod)
SAME_REDUCTION(MAX, Max)
SAME_REDUCTION(MIN, Min)
SAME_REDUCTION(AVERAGE, Avg)

static_assert(sizeof(dt_nccl_id) == sizeof(ncclUniqueId), "nccl.h differs");
template <>
struct plain<ncclUniqueId> : plain<dt_nccl_id> {};
template <>
struct plain<ncclUniqueId *> : plain<dt_nccl_id *> {};
template <>
struct plain<ncclResult_t *> : plain<int *> {};
DT_NCCL_FUNCTIONS(DT_SAME_FUNCTION)
static_assert(std::is_same<signature<decltype(ncclGetErrorString)>::type,
                           const char *(int)>::value,
              "ncclGetErrorString is declared otherwise by NVIDIA");
static_assert(
    std::is_same<const char *(dt_nccl_comm), decltype(ncclGetLastError)>::value,
    "ncclGetLastError is declared otherwise by NVIDIA");
#endif
#endif
