/* The part of the CUDA runtime that this project uses, for simulated GPUs. Names,
 * signatures and error codes are CUDA's, so the same sources build with nvcc.
 *
 * Stricter than a GPU, on purpose: host code that touches device memory faults; a
 * copy reads its source and writes its target when it runs, even for pageable
 * memory; a kernel can access only the blocks that its arguments point into. Looser:
 * an error in a kernel is reported once, at the next synchronization, and the device
 * remains usable. */
#ifndef DT_SIM_CUDA_RUNTIME_H
#define DT_SIM_CUDA_RUNTIME_H

#define SIM_CUDA       1 /* this is the simulated runtime */
#define CUDART_VERSION 13000

#include <stddef.h>
#include <stdint.h>
#include "vectors.h"

/* ERROR(name, number, text) */
#define SIM_ERRORS(ERROR)                                                              \
    ERROR(cudaSuccess, 0, "no error")                                                  \
    ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                \
    ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                               \
    ERROR(cudaErrorInitializationError, 3, "initialization error")                     \
    ERROR(cudaErrorCudartUnloading, 4, "driver shutting down")                         \
    ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")          \
    ERROR(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                 \
    ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")    \
    ERROR(cudaErrorInsufficientDriver, 35,                                             \
          "CUDA driver version is insufficient for CUDA runtime version")              \
    ERROR(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy")       \
    ERROR(cudaErrorInvalidDeviceFunction, 98, "invalid device function")               \
    ERROR(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                \
    ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                       \
    ERROR(cudaErrorNoKernelImageForDevice, 209, "no kernel image for this device")     \
    ERROR(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")       \
    ERROR(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported")         \
    ERROR(cudaErrorUnsupportedPtxVersion, 222, "PTX made by an unsupported toolchain") \
    ERROR(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported")  \
    ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")              \
    ERROR(cudaErrorNotReady, 600, "device not ready")                                  \
    ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")    \
    ERROR(cudaErrorLaunchOutOfResources, 701,                                          \
          "too many resources requested for launch")                                   \
    ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")    \
    ERROR(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")      \
    ERROR(cudaErrorAssert, 710, "device-side assert triggered")                        \
    ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                       \
    ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                   \
    ERROR(cudaErrorNotPermitted, 800, "operation not permitted")                       \
    ERROR(cudaErrorNotSupported, 801, "operation not supported")                       \
    ERROR(cudaErrorSystemNotReady, 802, "system not yet initialized")                  \
    ERROR(cudaErrorSystemDriverMismatch, 803, "driver and system do not match")        \
    ERROR(cudaErrorCompatNotSupportedOnDevice, 804,                                    \
          "forward compatibility not supported")                                       \
    ERROR(cudaErrorUnknown, 999, "unknown error")

enum cudaError : int {
#define ERROR(name, number, text) name = number,
    SIM_ERRORS(ERROR)
#undef ERROR
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind : int {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
enum cudaMemoryType : int {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *);
typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

#define cudaHostAllocDefault       0x00
#define cudaHostAllocPortable      0x01
#define cudaHostAllocMapped        0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaStreamDefault          0x00
#define cudaStreamNonBlocking      0x01
#define cudaStreamLegacy           ((cudaStream_t)0x1)
#define cudaStreamPerThread        ((cudaStream_t)0x2)
#define cudaEventDefault           0x00
#define cudaEventBlockingSync      0x01
#define cudaEventDisableTiming     0x02
#define cudaEventRecordDefault     0x00
#define cudaEventWaitDefault       0x00

/* The fields of CUDA's struct that apply to a simulated device. */
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    size_t totalConstMem;
    int major;
    int minor;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryBusWidth;
    int l2CacheSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    size_t sharedMemPerBlockOptin;
    int maxBlocksPerMultiProcessor;
    size_t reservedSharedMemPerBlock;
};

enum cudaDeviceAttr : int {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrTotalConstantMemory = 9,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrComputeMode = 20,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrPciBusId = 33,
    cudaDevAttrPciDeviceId = 34,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrAsyncEngineCount = 40,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrPciDomainId = 50,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106
};
enum cudaComputeMode : int {
    cudaComputeModeDefault = 0,
    cudaComputeModeExclusive = 1,
    cudaComputeModeProhibited = 2,
    cudaComputeModeExclusiveProcess = 3
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes;
    size_t constSizeBytes;
    size_t localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion;
    int binaryVersion;
    int cacheModeCA;
    int maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
};
enum cudaFuncAttribute : int {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer;
    void *hostPointer;
};

/* --- devices and versions --- */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *out, int length, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);

/* --- errors --- */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
/* CUDA's text. For an error in a kernel or copy that this thread has been told of,
 * followed by the details. Borrowed until this thread's next call. */
const char *cudaGetErrorString(cudaError_t error);

/* --- memory --- */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *pointer); /* synchronizes first, like CUDA's */
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *pointer); /* synchronizes first */
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream = 0);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = 0);

/* --- streams and events --- */
cudaError_t cudaStreamCreate(cudaStream_t *out);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags,
                                         int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);

/* --- kernels --- */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute,
                                 int value);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *kernel,
                                                          int block_size,
                                                          size_t shared);

template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, void (*kernel)(P...))
{
    return cudaFuncGetAttributes(out, reinterpret_cast<const void *>(kernel));
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute,
                                 int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute,
                                value);
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          void (*kernel)(P...),
                                                          int block_size, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void *>(kernel), block_size, shared);
}
template <class T>
cudaError_t cudaMalloc(T **out, size_t bytes)
{
    return cudaMalloc(reinterpret_cast<void **>(out), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T **out, size_t bytes, unsigned flags)
{
    return cudaHostAlloc(reinterpret_cast<void **>(out), bytes, flags);
}

#include "intrinsics.h"
#include "kernel.h"

#endif
