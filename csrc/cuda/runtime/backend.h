/* The functions of the CUDA backend, and what its files share. dt_cuda_NAME is NAME of
 * dt_backend, whose contract is in device/backend.h or device/works.def. Those that begin with a
 * stream are called with the stream's device current, but for DT_CUDA_WITHOUT_DEVICE. */
#ifndef DT_CUDA_RUNTIME_BACKEND_H
#define DT_CUDA_RUNTIME_BACKEND_H

#include <cuda_runtime.h>
#include <type_traits>

#include "base/lock.h"
#include "device/attention.h"
#include "device/device.h"
#include "device/convolution.h"
#include "device/nn.h"
#include "device/rnn.h"

#define MEMBER(name) std::remove_pointer_t<decltype(dt_backend::name)> dt_cuda_##name;
DT_BACKEND_MEMBERS(MEMBER)
DT_BACKEND_GPU_MEMBERS(MEMBER)
#undef MEMBER
#define WORK(name, parameters, ...) int dt_cuda_##name parameters;
#include "device/works.def"

bool dt_cuda_chain_step(int op, const dt_plan *plan);
bool dt_cuda_chain_end(const struct dt_chain *chain, struct dt_chain_end *end);
int dt_cuda_chain(dt_stream stream, const struct dt_chain *chain);
int dt_cuda_chain_source(int device, const struct dt_chain *chain, char **source,
                         bool *exact);
void dt_cuda_chain_compiled(int number, const struct dt_module_kernel *kernel);
void dt_cuda_chain_forget();

/* The functions that need no current device, since others of the same operation set it. */
#define DT_CUDA_WITHOUT_DEVICE(NAME)                                                   \
    NAME(allocate) /* it makes its device current where it asks CUDA for memory */     \
    NAME(record_use)                                                                   \
    NAME(graph_capturing)

/* --- failed CUDA calls as errors of the core --- */

/* Fails with the step that failed, CUDA's name and text for the error, and what to
 * do. Clears CUDA's last error, so that the next call starts clean. Returns -1. */
int cuda_fail(cudaError_t error, const char *doing);

/* Whether the call succeeded; if not, clears CUDA's last error. */
bool cuda_succeeds(cudaError_t error);

/* Returns -1 from the enclosing function if the call fails. */
#define CUDA_TRY(doing, call)                                                          \
    do {                                                                               \
        cudaError_t cuda_status = (call);                                              \
        if (cuda_status != cudaSuccess)                                                \
            return cuda_fail(cuda_status, doing);                                      \
    } while (0)

/* --- the library's own memory on the host (operator_new.cpp) --- */

/* Whether operator new has used much of its reserve, as the host is out of memory. */
bool reserve_is_low(void);

/* --- the device table: maps device numbers to physical GPUs --- */

/* Sets how many virtual devices share the first GPU (0: none). Call once, at the
 * start. */
void device_table_configure(int virtual_devices);

/* -1 after dt_fail if there is no such device, or if the process was forked after CUDA was
 * used. */
int device_check(int device);

/* Makes the GPU behind the device current in the calling thread; fails as device_check. */
int device_use(int device);

/* Makes the GPU current again that was before the calling thread's device_use: other
 * libraries' current device must not change under them. */
void device_restore(void);

/* Whether the process was forked after CUDA was used: then its GPU memory is its
 * parent's. */
bool device_is_inherited(void);

/* The CUDA ordinal of the GPU behind a device. */
int device_ordinal(int device);

/* Number of devices that share a GPU: 1 unless they are virtual. */
int device_sharing(void);

/* Enables peer access of one GPU's kernels and copies to the other's memory, if
 * possible. Never fails. */
void device_enable_peer(int device, int peer);

/* Compute capabilities of the built kernels as 10 * major + minor, terminated by 0. */
extern const int device_architectures[];

/* --- memory for kernels --- */

/* Memory on the device for kernels that are queued on the stream while it lives: the
 * next owner's work on the stream runs after them. `data` is NULL after dt_fail. */
struct Scratch {
    dt_stream stream;
    size_t bytes;
    void *data;

    Scratch(dt_stream on, size_t size) : stream(on), bytes(size), data(nullptr)
    {
        if (dt_cuda_allocate(stream, bytes, &data))
            data = nullptr;
    }
    Scratch(const Scratch &) = delete;
    ~Scratch()
    {
        if (data)
            dt_cuda_release(stream.device, data, bytes);
    }
};

/* The driver's allocation that has a taken block (allocator.cpp); NULL: none has. */
void *heap_segment(int device, void *data);

/* --- kernels --- */

int matmul_integers(dt_stream stream, const dt_gemm *gemm);

/* Sorts one row of whole numbers that are not negative by their lowest `bytes` bytes. */
int sort_numbers(dt_stream stream, const dt_sorting *s, int bytes);

/* Makes info DT_LAPACK_NOT_FINITE for each of `batch` matrices with an element that is
 * not finite, and that matrix zeros: an iteration on them ends. */
int lapack_refuse(dt_stream stream, dt_dtype dtype, void *matrices, int64_t size,
                  int64_t batch, int32_t *info);

/* A table of `count` pointers, from first on, `step` bytes apart. */
int lapack_table(dt_stream stream, void **table, const void *first, int64_t step,
                 int64_t count);

/* Where info is 0, makes it what was found. */
int lapack_join(dt_stream stream, int32_t *info, const int32_t *found, int64_t batch);

#endif
