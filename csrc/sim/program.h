/* The header that `pydevtensor nvcc` puts before each file of a program, after module.h. It
 * has launches, and the functions of CUDA's runtime that the library itself does not call.
 * Programs link with the simulator's library. */
#ifndef DT_SIM_PROGRAM_H
#define DT_SIM_PROGRAM_H

#include <assert.h> /* the C library's instead of module.h's, which is for kernels alone */
#include <tuple>
#include "cuda_runtime.h"
#include "program_calls.h"

/* Calling conventions; empty on Linux. */
#define CUDART_CB
#define CUDARTAPI

/* The bounds of the section of __device__ variables. It has whole pages, and each device
 * maps its own memory over them. The first and the last object of a program define them. */
extern "C" char dt_device_begin[], dt_device_end[];
extern "C" const dt_program_array dt_program_arrays[];

namespace sim {

inline const int program_started =
    dt_program_start(&dt_module_services, SIM_PROGRAM_ABI, dt_device_begin,
                     dt_device_end, dt_program_arrays);

/* A launch: the kernel's name, and the values between <<< and >>>. */
struct Launching {
    const char *name;
    bool barriers; /* its threads may wait for one another */
    bool strides;  /* a thread may use several elements of each array */
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
                  "the arguments of a launch are copied byte by byte");
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

/* A launch before it gets its arguments. Of a template: they determine its parameters. */
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

/* Tells what __launch_bounds__ of a kernel says. */
inline bool bounded(const char *name, int threads)
{
    return dt_program_bound(name, threads) != 0;
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

/* --- attributes of kernels --- */
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
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs; /* registers are not known: 0 */
    int ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
namespace sim {
/* A kernel with its name. `pydevtensor nvcc` writes named() around the kernels that are
 * arguments of the functions below. */
template <class F>
struct Named {
    const char *name;
    F kernel;
};
template <class F>
Named<F> named(const char *name, F kernel)
{
    return {name, kernel};
}
template <class F>
const char *name_of(const F &)
{
    return "";
}
template <class F>
const char *name_of(const Named<F> &kernel)
{
    return kernel.name;
}
} /* namespace sim */
template <class F>
cudaError_t cudaFuncSetAttribute(F kernel, cudaFuncAttribute attribute, int value)
{
    return dt_program_attribute(sim::name_of(kernel), attribute, value);
}
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, F kernel)
{
    *out = {};
    return dt_program_shared(sim::name_of(kernel), &out->sharedSizeBytes,
                             &out->maxDynamicSharedSizeBytes, &out->maxThreadsPerBlock);
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache)
{
    return cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache)
{
    return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F kernel,
                                                          int threads, size_t shared)
{
    return dt_program_occupancy(sim::name_of(kernel), blocks, threads, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F kernel,
                                               size_t shared = 0, int limit = 0)
{
    return dt_program_block(sim::name_of(kernel), grid, block, shared, limit);
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
/* Sets *at to byte `offset` of a symbol, which has `bytes` from there on. */
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

/* --- memory --- */
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

/* --- synchronous copies --- */
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
inline cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width,
                                     size_t rows, cudaStream_t stream = 0)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < rows && !error; i++)
        error = cudaMemsetAsync((char *)to + i * pitch, value, width, stream);
    return error;
}
inline cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width,
                                size_t rows)
{
    return cudaMemset2DAsync(to, pitch, value, width, rows);
}
/* Boxes of rows: a pitch is the bytes of a row, `ysize` rows are a slice. */
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};
typedef struct cudaArray *cudaArray_t; /* which simulated GPUs do not have */
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
};
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth)
{
    return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z)
{
    return {x, y, z};
}
inline cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t x, size_t y)
{
    return {p, pitch, x, y};
}
namespace sim {
/* The first byte of row y of slice z. */
inline char *row_of(const cudaPitchedPtr &box, size_t y, size_t z)
{
    return (char *)box.ptr + (z * box.ysize + y) * box.pitch;
}
inline bool fits(const cudaPitchedPtr &box, const cudaPos &at, const cudaExtent &size)
{
    return at.x + size.width <= box.pitch &&
           (size.depth <= 1 || at.y + size.height <= box.ysize);
}
} /* namespace sim */
inline cudaError_t cudaMalloc3D(cudaPitchedPtr *out, cudaExtent size)
{
    *out = {nullptr, 0, size.width, size.height};
    return cudaMallocPitch(&out->ptr, &out->pitch, size.width,
                           size.height * size.depth);
}
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *p,
                                     cudaStream_t stream = 0)
{
    const cudaPos &to = p->dstPos, &from = p->srcPos;
    if (p->srcArray || p->dstArray)
        return dt_program_answer(cudaErrorNotSupported);
    if (!sim::fits(p->dstPtr, to, p->extent) || !sim::fits(p->srcPtr, from, p->extent))
        return dt_program_answer(cudaErrorInvalidValue);
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < p->extent.depth && !error; z++)
        error = cudaMemcpy2DAsync(
            sim::row_of(p->dstPtr, to.y, to.z + z) + to.x, p->dstPtr.pitch,
            sim::row_of(p->srcPtr, from.y, from.z + z) + from.x, p->srcPtr.pitch,
            p->extent.width, p->extent.height, p->kind, stream);
    return error;
}
inline cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *p)
{
    cudaError_t error = cudaMemcpy3DAsync(p);
    return error ? error : cudaStreamSynchronize(0);
}
inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr box, int value, cudaExtent size,
                                     cudaStream_t stream = 0)
{
    if (!sim::fits(box, {}, size))
        return dt_program_answer(cudaErrorInvalidValue);
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < size.depth && !error; z++)
        error = cudaMemset2DAsync(sim::row_of(box, 0, z), box.pitch, value, size.width,
                                  size.height, stream);
    return error;
}
inline cudaError_t cudaMemset3D(cudaPitchedPtr box, int value, cudaExtent size)
{
    return cudaMemset3DAsync(box, value, size);
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
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status,
                                     void *data);
namespace sim {
struct Callback {
    cudaStreamCallback_t function;
    cudaStream_t stream;
    void *data;

    static void run(void *self)
    {
        const Callback call = *(Callback *)self;
        delete (Callback *)self;
        call.function(call.stream, cudaSuccess, call.data);
    }
};
} /* namespace sim */
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                         cudaStreamCallback_t function, void *data,
                                         unsigned flags)
{
    if (!function || flags)
        return dt_program_answer(cudaErrorInvalidValue);
    auto *call = new sim::Callback{function, stream, data};
    const cudaError_t error = cudaLaunchHostFunc(stream, sim::Callback::run, call);
    if (error)
        delete call;
    return error;
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
/* The form of CUDA 11; node and log describe an error. */
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

/* `pydevtensor nvcc` needs these words in the preprocessed program. */
#undef __global__
#undef __device__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#undef __noinline__ /* which is an attribute's name to the C++ library */

#endif
