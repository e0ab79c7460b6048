/* The part of the CUDA runtime that this project uses, for simulated GPUs. Names,
 * signatures and error codes are CUDA's, so the same sources build with nvcc.
 *
 * Stricter than a GPU, on purpose: host code that touches device memory faults; a
 * copy reads its source and writes its target when it runs, even for pageable
 * memory; a kernel can access only the blocks that its arguments point into. Looser,
 * unless the setting "sticky" is 1: an error in a kernel is reported once, at the next
 * synchronization, and the device remains usable. */
#ifndef DT_SIM_CUDA_RUNTIME_H
#define DT_SIM_CUDA_RUNTIME_H

#define SIM_CUDA       1 /* this is the simulated runtime */
#define CUDART_VERSION 13000

#include <stddef.h>
#include <stdint.h>

/* ERROR(name, number, text) */
#define SIM_ERRORS(ERROR)                                                              \
    ERROR(cudaSuccess, 0, "no error")                                                  \
    ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                \
    ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                               \
    ERROR(cudaErrorInitializationError, 3, "initialization error")                     \
    ERROR(cudaErrorCudartUnloading, 4, "driver shutting down")                         \
    ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")          \
    ERROR(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                    \
    ERROR(cudaErrorInvalidSymbol, 13, "invalid device symbol")                         \
    ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")    \
    ERROR(cudaErrorInsufficientDriver, 35,                                             \
          "CUDA driver version is insufficient for CUDA runtime version")              \
    ERROR(cudaErrorDevicesUnavailable, 46,                                             \
          "CUDA-capable device(s) is/are busy or unavailable")                         \
    ERROR(cudaErrorInvalidDeviceFunction, 98, "invalid device function")               \
    ERROR(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                \
    ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                       \
    ERROR(cudaErrorDeviceUninitialized, 201, "invalid device context")                 \
    ERROR(cudaErrorNoKernelImageForDevice, 209, "no kernel image for this device")     \
    ERROR(cudaErrorAlreadyAcquired, 210, "resource already mapped")                    \
    ERROR(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")       \
    ERROR(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported")         \
    ERROR(cudaErrorUnsupportedPtxVersion, 222,                                         \
          "the provided PTX was compiled with an unsupported toolchain")               \
    ERROR(cudaErrorFileNotFound, 301, "file not found")                                \
    ERROR(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported")  \
    ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")              \
    ERROR(cudaErrorIllegalState, 401, "the operation cannot be performed now")         \
    ERROR(cudaErrorSymbolNotFound, 500, "named symbol not found")                      \
    ERROR(cudaErrorNotReady, 600, "device not ready")                                  \
    ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")    \
    ERROR(cudaErrorLaunchOutOfResources, 701,                                          \
          "too many resources requested for launch")                                   \
    ERROR(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")      \
    ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")    \
    ERROR(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")      \
    ERROR(cudaErrorContextIsDestroyed, 709, "context is destroyed")                    \
    ERROR(cudaErrorAssert, 710, "device-side assert triggered")                        \
    ERROR(cudaErrorTooManyPeers, 711, "peer mapping resources exhausted")              \
    ERROR(cudaErrorHostMemoryAlreadyRegistered, 712,                                   \
          "part or all of the requested memory range is already mapped")               \
    ERROR(cudaErrorHostMemoryNotRegistered, 713,                                       \
          "pointer does not correspond to a registered memory region")                 \
    ERROR(cudaErrorHardwareStackError, 714, "hardware stack error")                    \
    ERROR(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")  \
    ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                       \
    ERROR(cudaErrorInvalidAddressSpace, 717,                                           \
          "operation not supported on global/shared address space")                    \
    ERROR(cudaErrorInvalidPc, 718, "invalid program counter")                          \
    ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                   \
    ERROR(cudaErrorCooperativeLaunchTooLarge, 720,                                     \
          "too many blocks in cooperative launch")                                     \
    ERROR(cudaErrorNotPermitted, 800, "operation not permitted")                       \
    ERROR(cudaErrorNotSupported, 801, "operation not supported")                       \
    ERROR(cudaErrorSystemNotReady, 802, "system not yet initialized")                  \
    ERROR(cudaErrorSystemDriverMismatch, 803,                                          \
          "system has unsupported display driver / cuda driver combination")           \
    ERROR(cudaErrorStreamCaptureUnsupported, 900,                                      \
          "operation not permitted when stream is capturing")                          \
    ERROR(cudaErrorStreamCaptureInvalidated, 901,                                      \
          "operation failed due to a previous error during capture")                   \
    ERROR(cudaErrorStreamCaptureMerge, 902, "operation would merge two captures")      \
    ERROR(cudaErrorStreamCaptureUnmatched, 903,                                        \
          "the stream did not begin the capture")                                      \
    ERROR(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")   \
    ERROR(cudaErrorStreamCaptureIsolation, 905,                                        \
          "dependency created on uncaptured work in another stream")                   \
    ERROR(cudaErrorStreamCaptureImplicit, 906,                                         \
          "operation would make the legacy stream depend on a capturing stream")       \
    ERROR(cudaErrorCapturedEvent, 907,                                                 \
          "operation not permitted on an event last recorded in a capturing stream")   \
    ERROR(cudaErrorStreamCaptureWrongThread, 908,                                      \
          "attempt to terminate a thread-local capture in another thread")             \
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
    cudaMemcpyDefault = 4 /* as the addresses say */
};

enum cudaMemoryType : int {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};

struct cudaPointerAttributes {
    cudaMemoryType type;
    int device; /* that memory of a device is on, else the current one */
    void *devicePointer, *hostPointer;
};

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef void (*cudaHostFn_t)(void *);
typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;
typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
    char reserved[64];
} cudaIpcEventHandle_t;

#define cudaHostAllocDefault       0x00
#define cudaHostAllocPortable      0x01
#define cudaHostAllocMapped        0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaMemAttachGlobal        0x01
#define cudaMemAttachHost          0x02
#define cudaStreamDefault          0x00
#define cudaStreamNonBlocking      0x01
#define cudaEventDefault           0x00
#define cudaEventBlockingSync      0x01
#define cudaEventDisableTiming     0x02
#define cudaEventInterprocess      0x04

#define cudaIpcMemLazyEnablePeerAccess 0x01

enum cudaStreamCaptureMode : int {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus : int {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};

#define cudaGraphDebugDotFlagsVerbose 0x01

/* The fields of CUDA's struct that the CUDA backend reads, and those that programs print.
 * Clock rates, which CUDA 13 no longer has here, are 0. */
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin;
    int warpSize;
    int maxThreadsPerBlock, maxThreadsPerMultiProcessor;
    int major, minor;
    int multiProcessorCount;
    int integrated;
    int l2CacheSize;
    int pciBusID, pciDeviceID, pciDomainID;
    size_t totalConstMem, memPitch, sharedMemPerMultiprocessor;
    int maxThreadsDim[3], maxGridSize[3];
    int regsPerBlock, regsPerMultiprocessor, maxBlocksPerMultiProcessor;
    int memoryBusWidth, memoryClockRate, clockRate;
    int asyncEngineCount, deviceOverlap, concurrentKernels;
    int unifiedAddressing, managedMemory, concurrentManagedAccess, canMapHostMemory;
    int computeMode, ECCEnabled, tccDriver, kernelExecTimeoutEnabled, isMultiGpuBoard;
    int cooperativeLaunch, streamPrioritiesSupported;
};

/* ATTRIBUTE(name, number, the member of cudaDeviceProp) */
#define SIM_ATTRIBUTES(ATTRIBUTE)                                                      \
    ATTRIBUTE(MaxThreadsPerBlock, 1, maxThreadsPerBlock)                               \
    ATTRIBUTE(MaxBlockDimX, 2, maxThreadsDim[0])                                       \
    ATTRIBUTE(MaxBlockDimY, 3, maxThreadsDim[1])                                       \
    ATTRIBUTE(MaxBlockDimZ, 4, maxThreadsDim[2])                                       \
    ATTRIBUTE(MaxGridDimX, 5, maxGridSize[0])                                          \
    ATTRIBUTE(MaxGridDimY, 6, maxGridSize[1])                                          \
    ATTRIBUTE(MaxGridDimZ, 7, maxGridSize[2])                                          \
    ATTRIBUTE(MaxSharedMemoryPerBlock, 8, sharedMemPerBlock)                           \
    ATTRIBUTE(TotalConstantMemory, 9, totalConstMem)                                   \
    ATTRIBUTE(WarpSize, 10, warpSize)                                                  \
    ATTRIBUTE(MaxPitch, 11, memPitch)                                                  \
    ATTRIBUTE(MaxRegistersPerBlock, 12, regsPerBlock)                                  \
    ATTRIBUTE(ClockRate, 13, clockRate)                                                \
    ATTRIBUTE(GpuOverlap, 15, deviceOverlap)                                           \
    ATTRIBUTE(MultiProcessorCount, 16, multiProcessorCount)                            \
    ATTRIBUTE(KernelExecTimeout, 17, kernelExecTimeoutEnabled)                         \
    ATTRIBUTE(Integrated, 18, integrated)                                              \
    ATTRIBUTE(CanMapHostMemory, 19, canMapHostMemory)                                  \
    ATTRIBUTE(ComputeMode, 20, computeMode)                                            \
    ATTRIBUTE(ConcurrentKernels, 31, concurrentKernels)                                \
    ATTRIBUTE(EccEnabled, 32, ECCEnabled)                                              \
    ATTRIBUTE(PciBusId, 33, pciBusID)                                                  \
    ATTRIBUTE(PciDeviceId, 34, pciDeviceID)                                            \
    ATTRIBUTE(TccDriver, 35, tccDriver)                                                \
    ATTRIBUTE(MemoryClockRate, 36, memoryClockRate)                                    \
    ATTRIBUTE(GlobalMemoryBusWidth, 37, memoryBusWidth)                                \
    ATTRIBUTE(L2CacheSize, 38, l2CacheSize)                                            \
    ATTRIBUTE(MaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor)            \
    ATTRIBUTE(AsyncEngineCount, 40, asyncEngineCount)                                  \
    ATTRIBUTE(UnifiedAddressing, 41, unifiedAddressing)                                \
    ATTRIBUTE(PciDomainId, 50, pciDomainID)                                            \
    ATTRIBUTE(ComputeCapabilityMajor, 75, major)                                       \
    ATTRIBUTE(ComputeCapabilityMinor, 76, minor)                                       \
    ATTRIBUTE(StreamPrioritiesSupported, 78, streamPrioritiesSupported)                \
    ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor)        \
    ATTRIBUTE(MaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor)                \
    ATTRIBUTE(ManagedMemory, 83, managedMemory)                                        \
    ATTRIBUTE(IsMultiGpuBoard, 84, isMultiGpuBoard)                                    \
    ATTRIBUTE(ConcurrentManagedAccess, 89, concurrentManagedAccess)                    \
    ATTRIBUTE(CooperativeLaunch, 95, cooperativeLaunch)                                \
    ATTRIBUTE(MaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin)                \
    ATTRIBUTE(MaxBlocksPerMultiprocessor, 106, maxBlocksPerMultiProcessor)

enum cudaDeviceAttr : int {
#define ATTRIBUTE(name, number, member) cudaDevAttr##name = number,
    SIM_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
};

/* Whole programs (program.h) link with the simulator's library. */
#pragma GCC visibility push(default)

/* --- devices and versions --- */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
/* A driver function: whether the device has a context, which takes memory. */
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);

/* --- errors --- */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
/* CUDA's text, followed by the details for a fault in a kernel or copy that this thread
 * has received. Borrowed until this thread's next call. */
const char *cudaGetErrorString(cudaError_t error);

/* --- memory --- */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *pointer); /* synchronizes first, like CUDA's */
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer); /* synchronizes first */
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer);
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *opened);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream = 0);
/* Rows of `width` bytes, whose first bytes are a pitch apart. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream = 0);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = 0);

/* --- streams and events --- */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags,
                                         int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);

/* --- graphs --- */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *out);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
/* As DOT: which work comes before which. */
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

#pragma GCC visibility pop

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

#ifndef SIM_MODULE
#include "intrinsics.h"
#include "kernel.h"
#endif

#endif
