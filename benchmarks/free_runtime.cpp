/* A CUDA runtime whose functions do nothing, in no time: what is left of an operation is
 * the library's own time (bench_host_time.py). Linked in place of CUDA's into the backend
 * that nvcc builds. Counts the calls of each function. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace {

struct Counter {
    const char *name;
    int64_t calls;
    Counter *next;
    explicit Counter(const char *function) : name(function), calls(0), next(first)
    {
        first = this;
    }
    static Counter *first;
};
Counter *Counter::first;

/* Addresses that nobody reads. */
char *device_memory = (char *)((uintptr_t)1 << 40);

struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;

} /* namespace */

#define FREE_AS(result, value, name, parameters, ...)                                  \
    static Counter count_##name(#name);                                                \
    extern "C" result CUDARTAPI name parameters                                        \
    {                                                                                  \
        count_##name.calls++;                                                          \
        __VA_ARGS__;                                                                   \
        return value;                                                                  \
    }
/* FREE(function, parameters, its assignments to outputs) */
#define FREE(name, parameters, ...)                                                    \
    FREE_AS(cudaError_t, cudaSuccess, name, parameters, ##__VA_ARGS__)

/* Calls visit(name, calls) for each function. */
extern "C" __attribute__((visibility("default"))) void
dt_free_runtime_visit(void (*visit)(const char *name, int64_t calls))
{
    for (Counter *each = Counter::first; each; each = each->next)
        visit(each->name, each->calls);
}

/* --- devices and errors --- */

FREE(cudaGetDeviceCount, (int *count), *count = 1)
FREE(cudaGetDevice, (int *device), *device = 0)
FREE(cudaSetDevice, (int))
FREE(cudaDeviceSynchronize, ())
FREE(cudaDriverGetVersion, (int *version), *version = CUDART_VERSION)
FREE(cudaRuntimeGetVersion, (int *version), *version = CUDART_VERSION)
FREE(cudaDeviceGetAttribute, (int *value, cudaDeviceAttr attribute, int),
     *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0)
FREE(cudaGetDeviceProperties, (cudaDeviceProp *out, int), memset(out, 0, sizeof *out),
     out->major = 9, out->multiProcessorCount = 132, out->warpSize = 32,
     out->maxThreadsPerMultiProcessor = 2048, out->totalGlobalMem = (size_t)80 << 30)
FREE(cudaDeviceCanAccessPeer, (int *can, int, int), *can = 0)
FREE(cudaDeviceEnablePeerAccess, (int, unsigned))
FREE(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), *least = 0,
     *greatest = -1)
FREE(cudaGetLastError, ())
FREE_AS(const char *, "", cudaGetErrorName, (cudaError_t))
FREE_AS(const char *, "", cudaGetErrorString, (cudaError_t))

/* --- memory --- */

FREE(cudaMemGetInfo, (size_t * left, size_t *total), *left = *total = (size_t)80 << 30)
FREE(cudaMalloc, (void **out, size_t bytes), *out = device_memory,
     device_memory += (bytes + 511) & ~(size_t)511)
FREE(cudaFree, (void *))
FREE(cudaHostAlloc, (void **out, size_t bytes, unsigned), *out = calloc(1, bytes))
FREE(cudaFreeHost, (void *memory), free(memory))
FREE(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void *),
     *out = cudaPointerAttributes())
FREE(cudaMemcpyAsync, (void *, const void *, size_t, cudaMemcpyKind, cudaStream_t))
FREE(cudaMemcpyPeerAsync, (void *, int, const void *, int, size_t, cudaStream_t))
FREE(cudaMemsetAsync, (void *, int, size_t, cudaStream_t))

/* --- streams, events, graphs --- */

FREE(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned, int),
     *out = (cudaStream_t)calloc(1, 1))
FREE(cudaStreamDestroy, (cudaStream_t stream), free(stream))
FREE(cudaStreamSynchronize, (cudaStream_t))
FREE(cudaStreamQuery, (cudaStream_t))
FREE(cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned))
FREE(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned),
     *out = (cudaEvent_t)calloc(1, 1))
FREE(cudaEventDestroy, (cudaEvent_t event), free(event))
FREE(cudaEventRecord, (cudaEvent_t, cudaStream_t))
FREE(cudaEventQuery, (cudaEvent_t))
FREE(cudaEventSynchronize, (cudaEvent_t))
FREE(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t, cudaEvent_t),
     *milliseconds = 0)
FREE(cudaStreamBeginCapture, (cudaStream_t, cudaStreamCaptureMode))
FREE(cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *out), *out = nullptr)
FREE(cudaStreamIsCapturing, (cudaStream_t, cudaStreamCaptureStatus *out),
     *out = cudaStreamCaptureStatusNone)
FREE(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode *))
FREE(cudaGraphInstantiateWithFlags,
     (cudaGraphExec_t * out, cudaGraph_t, unsigned long long), *out = nullptr)
FREE(cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t))
FREE(cudaGraphDebugDotPrint, (cudaGraph_t, const char *, unsigned))
FREE(cudaGraphDestroy, (cudaGraph_t))
FREE(cudaGraphExecDestroy, (cudaGraphExec_t))

/* --- launches, as nvcc writes them --- */

FREE_AS(unsigned, 0, __cudaPushCallConfiguration,
        (dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream),
        configuration = {grid, block, shared, stream})
FREE(__cudaPopCallConfiguration,
     (dim3 * grid, dim3 *block, size_t *shared, void *stream),
     *grid = configuration.grid, *block = configuration.block,
     *shared = configuration.shared, *(cudaStream_t *)stream = configuration.stream)
FREE(__cudaGetKernel, (cudaKernel_t * out, const void *function),
     *out = (cudaKernel_t)function)
FREE(__cudaLaunchKernel, (cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t))
FREE(cudaLaunchKernel, (const void *, dim3, dim3, void **, size_t, cudaStream_t))

extern "C" {
static void *binary;
void **CUDARTAPI __cudaRegisterFatBinary(void *)
{
    return &binary;
}
void CUDARTAPI __cudaRegisterFatBinaryEnd(void **) {}
void CUDARTAPI __cudaUnregisterFatBinary(void **) {}
void CUDARTAPI __cudaRegisterFunction(void **, const char *, char *, const char *, int,
                                      uint3 *, uint3 *, dim3 *, dim3 *, int *)
{
}
}
