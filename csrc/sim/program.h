/* The header that `pydevtensor nvcc` puts before each file of a program, after module.h:
 * the functions of CUDA's runtime that the backend does without, and launches. Programs link
 * with the simulator's library. */
#ifndef DT_SIM_PROGRAM_H
#define DT_SIM_PROGRAM_H

#include <assert.h> /* C's, in place of module.h's: hosts assert too */
#include <tuple>
#include "cuda_runtime.h"
#include "program_calls.h"

/* How CUDA's functions and their callbacks are called, which one system alone says. */
#define CUDART_CB
#define CUDARTAPI

/* __device__ variables are in a section of whole pages, in place of which each device has
 * memory of its own; the two objects that the program is linked between have its ends. */
extern "C" char dt_device_begin[], dt_device_end[];

namespace sim {

inline const int program_started = dt_program_start(
    &dt_module_services, SIM_PROGRAM_ABI, dt_device_begin, dt_device_end);

/* The place of a launch: its kernel, and what is between <<< and >>>. */
struct Launching {
    const char *name;
    bool barriers; /* its threads may wait for one another */
    bool strides;  /* a thread may use more than an element of each array */
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;

    template <class F>
    auto with(F kernel) const;
};

inline Launching launching(const char *name, bool barriers, bool strides, dim3 grid,
                           dim3 block, size_t shared = 0, cudaStream_t stream = 0)
{
    return {name, barriers, strides, grid, block, shared, stream};
}

template <class F>
constexpr dt_module_parameter describe_closure()
{
    static_assert(std::is_trivially_copyable_v<F>,
                  "what a launch takes along is copied byte by byte");
    return {'s', false, false, 1, sizeof(F), alignof(F)};
}

template <class F, class... A>
struct Call {
    static constexpr dt_module_parameter parameters[] = {describe_closure<F>(),
                                                         describe<A>()...};

    template <size_t... I>
    static void call(void *const *values, Indices<I...>)
    {
        (*(F *)values[0])(*(A *)values[I + 1]...);
    }
    static void run(void *const *values)
    {
        call(values, typename IndicesTo<sizeof...(A)>::type());
    }
};

template <class F, class... A>
void launch(const Launching &how, F kernel, A... arguments)
{
    using C = Call<F, A...>;
    void *values[] = {(void *)&kernel, (void *)&arguments...};
    const dt_module_kernel made = {how.name, (void *)&C::run,       how.barriers,
                                   false,    1 + (int)sizeof...(A), C::parameters};
    dt_program_launch(&made, how.grid, how.block, how.shared, values, how.stream,
                      how.strides);
}

/* A launch that waits for its arguments: of a template, whose parameters they say. */
template <class F>
struct Launchable {
    Launching how;
    F kernel;

    template <class... A>
    void operator()(A... arguments) const
    {
        launch(how, kernel, arguments...);
    }
};
template <class... P>
struct Launchable<void (*)(P...)> {
    Launching how;
    void (*kernel)(P...);

    void operator()(P... arguments) const
    {
        launch<void (*)(P...), std::remove_cv_t<P>...>(how, kernel, arguments...);
    }
};

template <class F>
auto Launching::with(F kernel) const
{
    return Launchable<F>{*this, kernel};
}

/* For cudaLaunchKernel: kernels by their addresses. */
template <auto kernel>
bool enlist(const char *name, bool barriers)
{
    static const dt_module_kernel made = kernel_named<kernel>(name, barriers);
    dt_program_enlist((const void *)kernel, &made);
    return true;
}

} /* namespace sim */

inline cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block,
                                    void **arguments, size_t shared = 0,
                                    cudaStream_t stream = 0)
{
    const dt_module_kernel *made = dt_program_enlisted(kernel);
    if (!made)
        return dt_program_answer(cudaErrorInvalidDeviceFunction);
    return dt_program_launch(made, grid, block, shared, arguments, stream, 1);
}
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                             void **arguments, size_t shared = 0,
                             cudaStream_t stream = 0)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared,
                            stream);
}

/* --- of kernels --- */
enum cudaFuncAttribute : int {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaFuncCache : int {
    cudaFuncCachePreferNone = 0,
    cudaFuncCachePreferShared = 1,
    cudaFuncCachePreferL1 = 2,
    cudaFuncCachePreferEqual = 3
};
template <class F>
cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute attribute, int value)
{
    return dt_program_attribute(attribute, value);
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache)
{
    return cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *, int threads,
                                                          size_t shared)
{
    return dt_program_occupancy(blocks, threads, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F *,
                                               size_t shared = 0, int limit = 0)
{
    return dt_program_block(grid, block, shared, limit);
}

/* --- symbols --- */
template <class T>
cudaError_t cudaGetSymbolAddress(void **out, const T &symbol)
{
    return dt_program_symbol(out, (const void *)&symbol, sizeof(T));
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t *out, const T &symbol)
{
    void *at;
    *out = sizeof(T);
    return dt_program_symbol(&at, (const void *)&symbol, sizeof(T));
}
/* *at: byte `offset` of a symbol, behind which `bytes` are. */
template <class T>
cudaError_t dt_program_part(void **at, const T &symbol, size_t bytes, size_t offset)
{
    if (offset > sizeof(T) || bytes > sizeof(T) - offset)
        return dt_program_answer(cudaErrorInvalidValue);
    cudaError_t error = dt_program_symbol(at, (const void *)&symbol, sizeof(T));
    if (!error)
        *at = (char *)*at + offset;
    return error;
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t bytes,
                                    size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                    cudaStream_t stream = 0)
{
    void *at = NULL;
    cudaError_t error = dt_program_part(&at, symbol, bytes, offset);
    return error ? error : cudaMemcpyAsync(at, from, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes,
                                      size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                      cudaStream_t stream = 0)
{
    void *at = NULL;
    cudaError_t error = dt_program_part(&at, symbol, bytes, offset);
    return error ? error : cudaMemcpyAsync(to, at, bytes, kind, stream);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes,
                               size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    cudaError_t error = cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind);
    return error ? error : cudaStreamSynchronize(0);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes,
                                 size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    cudaError_t error = cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind);
    return error ? error : cudaStreamSynchronize(0);
}

/* --- memory, of any pointer's type --- */
template <class T>
cudaError_t cudaMallocHost(T **out, size_t bytes, unsigned flags = 0)
{
    return cudaHostAlloc((void **)out, bytes, flags);
}
template <class T>
cudaError_t cudaMallocManaged(T **out, size_t bytes,
                              unsigned flags = cudaMemAttachGlobal)
{
    return dt_program_managed((void **)out, bytes, flags);
}
template <class T>
cudaError_t cudaMallocAsync(T **out, size_t bytes, cudaStream_t)
{
    return cudaMalloc((void **)out, bytes);
}
template <class T>
cudaError_t cudaMallocPitch(T **out, size_t *pitch, size_t width, size_t rows)
{
    *pitch = (width + 511) / 512 * 512;
    return cudaMalloc((void **)out, *pitch * rows);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T **out, void *pointer, unsigned)
{
    *out = (T *)pointer;
    return cudaSuccess;
}
#define cudaHostRegisterDefault  0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped   0x02
inline cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned)
{
    return bytes ? dt_program_register(pointer, bytes)
                 : dt_program_answer(cudaErrorInvalidValue);
}
inline cudaError_t cudaHostUnregister(void *pointer)
{
    return dt_program_register(pointer, 0);
}
inline cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    cudaError_t error = cudaStreamSynchronize(stream);
    return error ? error : cudaFree(pointer);
}

/* --- copies that the host waits for --- */
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                              cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind);
    return error ? error : cudaStreamSynchronize(0);
}
inline cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from,
                                size_t from_pitch, size_t width, size_t rows,
                                cudaMemcpyKind kind)
{
    cudaError_t error =
        cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind);
    return error ? error : cudaStreamSynchronize(0);
}
inline cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from,
                                  int from_device, size_t bytes)
{
    cudaError_t error = cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes);
    return error ? error : cudaStreamSynchronize(0);
}
/* The host does not wait for a fill. */
inline cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes);
}
inline cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width,
                                size_t rows)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < rows && !error; i++)
        error = cudaMemsetAsync((char *)to + i * pitch, value, width);
    return error;
}
/* Managed memory is the host's here, and each GPU reaches it: nothing has to move. */
enum cudaMemoryAdvise : int {
    cudaMemAdviseSetReadMostly = 1,
    cudaMemAdviseUnsetReadMostly = 2,
    cudaMemAdviseSetPreferredLocation = 3,
    cudaMemAdviseUnsetPreferredLocation = 4,
    cudaMemAdviseSetAccessedBy = 5,
    cudaMemAdviseUnsetAccessedBy = 6
};
enum cudaMemLocationType : int {
    cudaMemLocationTypeInvalid = 0,
    cudaMemLocationTypeDevice = 1,
    cudaMemLocationTypeHost = 2
};
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};
#define cudaCpuDeviceId (-1)
/* CUDA 13 takes a location where CUDA 12 takes a device. */
inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = 0)
{
    return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation, unsigned,
                                        cudaStream_t = 0)
{
    return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise, int)
{
    return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void *, size_t, cudaMemoryAdvise,
                                 cudaMemLocation)
{
    return cudaSuccess;
}

/* --- streams and events --- */
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}
inline cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}
inline cudaError_t cudaEventCreate(cudaEvent_t *out, unsigned flags = cudaEventDefault)
{
    return cudaEventCreateWithFlags(out, flags);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                        unsigned long long flags = 0)
{
    return cudaGraphInstantiateWithFlags(out, graph, flags);
}
/* As CUDA 11 had it; node and log are for what went wrong. */
typedef struct CUgraphNode_st *cudaGraphNode_t;
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                        cudaGraphNode_t *, char *log, size_t size)
{
    if (log && size)
        *log = 0;
    return cudaGraphInstantiateWithFlags(out, graph, 0);
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return cudaSuccess;
}

/* --- devices --- */
#define cudaDeviceScheduleAuto         0x00
#define cudaDeviceScheduleSpin         0x01
#define cudaDeviceScheduleYield        0x02
#define cudaDeviceScheduleBlockingSync 0x04
#define cudaDeviceMapHost              0x08
inline cudaError_t cudaSetDeviceFlags(unsigned)
{
    return cudaSuccess;
}
inline cudaError_t cudaDeviceReset()
{
    return cudaDeviceSynchronize();
}
enum cudaLimit : int {
    cudaLimitStackSize = 0,
    cudaLimitPrintfFifoSize = 1,
    cudaLimitMallocHeapSize = 2
};
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t)
{
    return cudaSuccess;
}
inline cudaError_t cudaProfilerStart()
{
    return cudaSuccess;
}
inline cudaError_t cudaProfilerStop()
{
    return cudaSuccess;
}

#undef NULL
#define NULL nullptr /* keeps its type in a launch */

/* `pydevtensor nvcc` reads these words of the program. */
#undef __global__
#undef __device__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __noinline__ /* which is an attribute's name to the C++ library */

#endif
