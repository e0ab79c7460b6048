/* The interface between the core and the backends: one struct of functions.
 *
 * A backend serves all devices of its type, numbered from 0. Every call names its
 * device, alone or in a stream; there is no current device. Functions return 0, or
 * -1 after dt_fail; void functions cannot fail. They may be called from any thread,
 * with no lock held. Copies and work are asynchronous: a call may return before the
 * work has run, in stream order. Only functions said to synchronize block the host. */
#ifndef DT_DEVICE_BACKEND_H
#define DT_DEVICE_BACKEND_H

#include "base/error.h"
#include "device/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BACKEND_VERSION 1

/* A device and one of its streams. handle is the backend's, NULL for the
 * default stream. The CPU has no streams and runs work at once. */
typedef struct dt_stream {
    int device;
    void *handle;
} dt_stream;

typedef struct dt_device_properties {
    char name[256];
    int major, minor; /* compute capability; 0 on the CPU */
    size_t total_memory;
    int multi_processor_count;
    int warp_size;
    int max_threads_per_multi_processor;
    int max_threads_per_block;
    size_t shared_memory_per_block, shared_memory_per_block_optin;
    size_t l2_cache_size;
    bool integrated;
    bool simulated;
    int physical; /* the physical GPU; virtual devices share one */
    char uuid[40];
    int pci_domain, pci_bus, pci_device;
} dt_device_properties;

/* MEMORY_COUNTER(name): a statistic of a caching allocator, kept as current, peak
 * and running totals. The names are PyTorch's. */
#define DT_MEMORY_COUNTERS(MEMORY_COUNTER)                                             \
    MEMORY_COUNTER(allocated_bytes) /* in use by tensors, rounded up to blocks */      \
    MEMORY_COUNTER(reserved_bytes)  /* allocated from the driver */                    \
    MEMORY_COUNTER(requested_bytes) /* requested by tensors */                         \
    MEMORY_COUNTER(allocation)      /* live blocks */                                  \
    MEMORY_COUNTER(segment)         /* live allocations from the driver */

typedef struct dt_memory_counter {
    int64_t current, peak, allocated, freed;
} dt_memory_counter;

typedef struct dt_memory_stats {
#define MEMORY_COUNTER(name) dt_memory_counter name;
    DT_MEMORY_COUNTERS(MEMORY_COUNTER)
#undef MEMORY_COUNTER
    int64_t num_alloc_retries; /* times that the cache was freed to satisfy a request */
    int64_t num_ooms;
} dt_memory_stats;

static inline void dt_memory_count(dt_memory_counter *counter, int64_t change)
{
    counter->current += change;
    if (change > 0)
        counter->allocated += change;
    else
        counter->freed -= change;
    if (counter->current > counter->peak)
        counter->peak = counter->current;
}

static inline void dt_memory_reset_peaks(dt_memory_stats *stats)
{
#define MEMORY_COUNTER(name) stats->name.peak = stats->name.current;
    DT_MEMORY_COUNTERS(MEMORY_COUNTER)
#undef MEMORY_COUNTER
}

struct dt_chain;
struct dt_chain_end;
struct dt_extent;
struct dt_generator;
struct dt_nn_call;
struct dt_attention_call;
struct dt_dropout_mask_call;
struct dt_rnn_call;
struct dt_convolution;
struct dt_pooling_call;
struct dt_resample_call;
struct dt_lapack_call;
struct dt_module_code;
struct dt_module_kernel;
struct dt_module_source;
struct dt_module_call;
struct dt_collective_call;
struct dt_fourier_call;
struct dt_group_call;
struct dt_group_functions;
struct dt_race;

/* Receives NAME=VALUE facts for people: versions, libraries, instruction sets. */
typedef void (*dt_fact_visitor)(void *context, const char *name, const char *value);

/* A block of a GPU's cache of memory. */
typedef struct dt_memory_block {
    void *segment, *data; /* a segment's blocks follow one another */
    void *stream;
    size_t size, requested;
    bool taken, pending; /* by a tensor; freed, but streams still use it */
} dt_memory_block;
typedef void (*dt_block_visitor)(void *context, const dt_memory_block *block);

/* How an event is made: its time can be asked for; who waits for it leaves the core to
 * other threads; other processes may open it. */
enum { DT_EVENT_TIMED = 1, DT_EVENT_BLOCKING = 2, DT_EVENT_INTERPROCESS = 4 };

/* Bytes by which another process opens memory or an event. */
enum { DT_IPC_HANDLE = 64 };

typedef struct dt_backend {
    int version;      /* DT_BACKEND_VERSION */
    const char *name; /* of the type of devices */

    /* --- devices --- */
    /* Number of usable devices, maybe 0. Never fails, creates no context. */
    int (*device_count)(void);
    /* Why there is no device, or why some GPUs are unusable, as sentences that end
     * with what to do; "" if there is nothing to report. Borrowed, valid for the
     * life of the process. */
    const char *(*why_unavailable)(void);
    int (*device_properties)(int device, dt_device_properties *out);
    void (*facts)(dt_fact_visitor visit, void *context);
    bool (*can_access_peer)(int device, int peer);
    /* Synchronizes with all work of the device. */
    int (*device_synchronize)(int device);

    /* --- streams and events (NULL where there are no streams) --- */
    int (*stream_new)(int device, int priority, void **out_stream);
    void (*stream_free)(int device, void *stream); /* queued work still runs */
    int (*stream_query)(dt_stream stream);         /* 1: all done, 0: not yet */
    int (*stream_synchronize)(dt_stream stream);   /* synchronizes */
    int (*event_new)(int device, unsigned flags, void **out_event); /* DT_EVENT_... */
    void (*event_free)(void *event);
    int (*event_record)(void *event, dt_stream stream);
    int (*event_query)(void *event);       /* 1: reached or never recorded */
    int (*event_synchronize)(void *event); /* synchronizes */
    /* The stream waits; the host does not. */
    int (*stream_wait_event)(void *event, dt_stream stream);
    int (*event_elapsed)(void *start, void *end, float *out_milliseconds);
    /* The handle of an event made with DT_EVENT_INTERPROCESS, and the event of a handle
     * of another process, whose own event has to be there while this one is used. */
    int (*event_export)(void *event, char *out_handle);
    int (*event_open)(int device, const char *handle, void **out_event);

    /* --- memory --- */
    /* Allocates at least `bytes` (1 or more), aligned to 64 bytes or better,
     * contents undefined, for use on stream. Frees cached blocks before it fails
     * with DT_ERROR_DEVICE_MEMORY (CPU: DT_ERROR_CPU_TENSOR_MEMORY). */
    int (*allocate)(dt_stream stream, size_t bytes, void **out);
    /* Frees the block; queued work may still use it. `bytes` as allocated. */
    void (*release)(int device, void *data, size_t bytes);
    /* Records a use of a block, also of pinned memory, on a stream other than its own:
     * its memory is not reused before the work is done that is queued on that stream
     * when it is released. NULL where there are no streams. */
    int (*record_use)(dt_stream stream, void *data);
    /* The version of cuDNN, such as 91900 for 9.19.0, which it opens; 0 without one. */
    int (*cudnn_version)(void);
    /* The same of cuFFT. */
    int (*cufft_version)(void);
    int (*memory_info)(int device, size_t *out_free, size_t *out_total);
    void (*memory_stats)(int device, dt_memory_stats *out);
    /* Calls visit for each block of the cache, segment by segment. NULL: it has none. */
    void (*memory_blocks)(int device, dt_block_visitor visit, void *context);
    void (*reset_peaks)(int device);
    /* The fraction of the device's memory that this process may allocate, from 0 to 1.
     * A negative one changes nothing. Returns the old fraction. NULL: there is no bound. */
    double (*memory_fraction)(int device, double fraction);
    int (*empty_cache)(int device);
    /* The handle of the driver's allocation that has a block, and where the block is in
     * it. NULL where there are no streams. */
    int (*ipc_export)(int device, void *data, char *out_handle, size_t *out_offset);
    /* Opens such an allocation of another process, which is closed as often as it was
     * opened, when this process has no work left that uses it. */
    int (*ipc_open)(int device, const char *handle, void **out);
    void (*ipc_close)(int device, void *opened);

    /* --- copies of bytes (NULL where the device's memory is the host's) --- */
    /* Host to device. The source may be changed or freed on return. Synchronizes only
     * if the source is pinned, or too large to be staged whole. */
    int (*copy_to_device)(dt_stream stream, void *target, const void *source,
                          size_t bytes);
    /* Device to host. Synchronizes. */
    int (*copy_to_host)(dt_stream stream, void *target, const void *source,
                        size_t bytes);
    /* Device to device, directly or staged through the host. Ordered after the work
     * queued on both streams, and before later work on both. Does not synchronize. */
    int (*copy_peer)(dt_stream target_stream, void *target, dt_stream source_stream,
                     const void *source, size_t bytes);

    /* --- page-locked (pinned) host memory (NULL where there are no streams) --- */
    /* Allocates at least `bytes` (1 or more) of pinned memory, aligned to 64 bytes
     * or better, through the driver of `device`; all devices can use it. Fails with
     * DT_ERROR_CPU_TENSOR_MEMORY or DT_ERROR_DEVICE_MEMORY. */
    int (*pinned_allocate)(int device, size_t bytes, void **out);
    /* Frees a block; queued copies may still use it. */
    void (*pinned_release)(void *data);
    /* Copies from pinned memory, which must not change until the copy is done, or into
     * it, which must not be read. The caller records the use. Does not synchronize. */
    int (*pinned_copy)(dt_stream stream, void *target, const void *source, size_t bytes,
                       bool to_host);

    /* --- work: operands are on the stream's device --- */
#define WORK(member, parameters, ...) int(*member) parameters;
#include "device/works.def"
    /* Runs a chain, not interrupted: on the CPU at once, where it cannot fail, on a GPU as
     * one kernel. Returns -1 after dt_fail; else how often such a chain has run without a
     * kernel of its own, if it may have one. NULL: there are no chains (device/fusion.h). */
    int (*chain)(dt_stream stream, const struct dt_chain *chain);
    /* The number of such a kernel, or -1 after dt_fail. source: that of `chain`, which the
     * caller frees. exact: any compiler's kernel gives the same bits. NULL: none. */
    int (*chain_source)(int device, const struct dt_chain *chain, char **source,
                        bool *exact);
    /* Chains of that number have this kernel from now on. */
    void (*chain_compiled)(int number, const struct dt_module_kernel *kernel);
    /* No chain has run yet, or has a kernel. */
    void (*chain_forget)(void);
    /* Whether a chain may have the operation, or DT_CHAIN_CONVERT, as a step. The result
     * is dense, and nothing is complex. */
    bool (*chain_step)(int op, const dt_plan *plan);
    /* Whether a chain may have the end; if so, it has its memory for partial results.
     * NULL: no ends. */
    bool (*chain_end)(const struct dt_chain *chain, struct dt_chain_end *end);
    /* b of a product, arranged once for all products with about as many rows: their
     * `packed`, which the caller frees. NULL, without an error: BLAS is as fast, or no
     * memory is left. May be NULL itself. */
    void *(*gemm_pack)(const dt_gemm *gemm);
    /* task over 0..count-1 on several threads, at most `grain` items a call. NULL but on
     * the CPU. */
    void (*parallel)(void (*task)(void *context, int64_t begin, int64_t end),
                     void *context, int64_t count, int64_t grain);
    /* convolution, pooling, resample and rnn take floats of 16 bits, moments, nn,
     * optim_step and foreach_norm as `stored`; elementwise those of one type beside
     * float32, bools and uint8 beside either, and computes in float32 then. */
    bool halves;
    /* The CPU's alone: ranks of one machine, for simulated NCCL. */
    const struct dt_group_functions *groups;

    /* --- graphs (NULL where there are no streams) --- */
    /* From now on the stream's work is captured, not run, and so is that of streams
     * that wait for it. mode: cudaStreamCaptureMode. pool: the number of the pool that
     * the memory comes from. generators: those that may be drawn from; they have to
     * outlive the graph. One graph of a device is captured at a time. */
    int (*graph_begin)(dt_stream stream, int mode, uint64_t pool,
                       struct dt_generator *const *generators, int count, void **out);
    int (*graph_end)(dt_stream stream, void *graph); /* of the stream that began */
    /* Makes the graph that was ended ready for launches, again if it was. keep: what
     * was captured stays, for graph_native, graph_dump and the next time. */
    int (*graph_instantiate)(dt_stream stream, void *graph, bool keep);
    /* CUDA's handle of what was captured, or of what is launched; NULL: there is
     * none. */
    void *(*graph_native)(void *graph, bool launched);
    int (*graph_dump)(void *graph, const char *path); /* as a DOT file */
    /* The graph is ready. Launches run one after another. */
    int (*graph_launch)(dt_stream stream, void *graph);
    int (*graph_capturing)(dt_stream stream); /* 1: a graph takes its work */
    void (*graph_free)(void *graph);          /* ends the capture; launches still run */

    /* --- kernels of the program (device/module.h; NULL for the CPU) --- */
    /* Loads a module from a file, for a device. It is never unloaded. */
    int (*module_load)(int device, const char *path, void **out);
    /* The kernel that the module has by a name. described: its own name and parameters,
     * copied; NULL where the module has them. */
    int (*module_kernel)(void *module, const char *name,
                         const struct dt_module_kernel *described,
                         const struct dt_module_kernel **out);
    /* Compiles for a GPU; 0 too where the source is wrong. */
    int (*module_compile)(const struct dt_module_source *source,
                          struct dt_module_code *out);
    /* The file of the compiler, and 1000 MAJOR + 10 MINOR of its version; NULL after
     * dt_fail. */
    const char *(*module_compiler)(int *version);
    /* A __device__ or __constant__ variable; waits for the device. */
    int (*module_variable)(int device, void *module, const char *name, int access,
                           void *host, size_t *bytes);
    /* A number about a kernel, by CUfunction_attribute; -1: not known. set: gives it to the
     * kernel. */
    int (*module_attribute)(int device, const struct dt_module_kernel *kernel,
                            int attribute, bool set, int *value);

    /* --- communicators, of NCCL (device/collective.h; NULL where there are no streams) */
    /* The version of NCCL, such as 23203 for 2.32.3, which it opens. -1 after dt_fail. */
    int (*nccl_version)(void);
    /* The DT_COMMUNICATOR_ID bytes that ranks meet by. */
    int (*communicator_id)(char *out);
    /* Waits until all ranks have called it. call: for messages. */
    int (*communicator_new)(int device, const char *id, int ranks, int rank,
                            const struct dt_group_call *call, void **out);
    /* Waits for its calls; or with `abort` ends those that are under way. */
    void (*communicator_free)(void *communicator, bool abort);
    /* As event_query, of an event or NULL, also while a graph is captured: 1: reached, 0:
     * not yet, -1 after dt_fail: the communicator has failed. */
    int (*communicator_check)(void *communicator, void *event);

    /* The program records uses of memory on other streams, as in PyTorch: dt_storage_use
     * does not. Of simulated GPUs alone. */
    bool program_records;
    /* Observe all activity from the start (device/activity.h); NULL: none. */
    const struct dt_observer *observers[2];
    /* For a simulated GPU model (sim/clock.h); else NULL. clock: its time
     * in nanoseconds. span: when the work of the calling thread's last operation begins
     * and ends on it; false if it had no work. */
    int64_t (*clock)(void);
    bool (*span)(int64_t *begin, int64_t *end);
} dt_backend;

/* MEMBER(name): the functions above that every backend has, and those of GPUs, but for
 * the work, which device/works.def lists. */
#define DT_BACKEND_MEMBERS(MEMBER)                                                     \
    MEMBER(device_count)                                                               \
    MEMBER(why_unavailable)                                                            \
    MEMBER(device_properties)                                                          \
    MEMBER(facts)                                                                      \
    MEMBER(can_access_peer)                                                            \
    MEMBER(device_synchronize)                                                         \
    MEMBER(allocate)                                                                   \
    MEMBER(release)                                                                    \
    MEMBER(memory_info)                                                                \
    MEMBER(memory_stats)                                                               \
    MEMBER(reset_peaks)                                                                \
    MEMBER(empty_cache)

#define DT_BACKEND_GPU_MEMBERS(MEMBER)                                                 \
    MEMBER(stream_new)                                                                 \
    MEMBER(stream_free)                                                                \
    MEMBER(stream_query)                                                               \
    MEMBER(stream_synchronize)                                                         \
    MEMBER(event_new)                                                                  \
    MEMBER(event_free)                                                                 \
    MEMBER(event_record)                                                               \
    MEMBER(event_query)                                                                \
    MEMBER(event_synchronize)                                                          \
    MEMBER(stream_wait_event)                                                          \
    MEMBER(event_elapsed)                                                              \
    MEMBER(event_export)                                                               \
    MEMBER(event_open)                                                                 \
    MEMBER(memory_blocks)                                                              \
    MEMBER(memory_fraction)                                                            \
    MEMBER(ipc_export)                                                                 \
    MEMBER(ipc_open)                                                                   \
    MEMBER(ipc_close)                                                                  \
    MEMBER(record_use)                                                                 \
    MEMBER(cudnn_version)                                                              \
    MEMBER(cufft_version)                                                              \
    MEMBER(copy_to_device)                                                             \
    MEMBER(copy_to_host)                                                               \
    MEMBER(copy_peer)                                                                  \
    MEMBER(pinned_allocate)                                                            \
    MEMBER(pinned_release)                                                             \
    MEMBER(pinned_copy)                                                                \
    MEMBER(graph_begin)                                                                \
    MEMBER(graph_end)                                                                  \
    MEMBER(graph_instantiate)                                                          \
    MEMBER(graph_native)                                                               \
    MEMBER(graph_dump)                                                                 \
    MEMBER(graph_launch)                                                               \
    MEMBER(graph_capturing)                                                            \
    MEMBER(graph_free)                                                                 \
    MEMBER(module_load)                                                                \
    MEMBER(module_kernel)                                                              \
    MEMBER(module_compile)                                                             \
    MEMBER(module_compiler)                                                            \
    MEMBER(module_variable)                                                            \
    MEMBER(module_attribute)                                                           \
    MEMBER(nccl_version)                                                               \
    MEMBER(communicator_id)                                                            \
    MEMBER(communicator_new)                                                           \
    MEMBER(communicator_free)                                                          \
    MEMBER(communicator_check)

/* The core's side of a backend in a library of its own. */
typedef struct dt_host {
    int version; /* DT_BACKEND_VERSION */
    dt_error *(*error_slot)(void);
    struct dt_lock_table *locks;
    /* The CPU's matrix product, for simulated cuBLAS. */
    int (*cpu_gemm)(dt_stream stream, const dt_gemm *gemm);
    /* The CPU's convolution, for simulated cuDNN. */
    int (*cpu_convolution)(dt_stream stream, const struct dt_convolution *call);
    /* The CPU's LAPACK, for simulated cuSOLVER. */
    int (*cpu_lapack)(dt_stream stream, const struct dt_lapack_call *call);
    /* task(context, i, i + 1) for i < count on the CPU's threads, for simulated kernels. */
    void (*cpu_parallel)(void (*task)(void *context, int64_t begin, int64_t end),
                         void *context, int64_t count);
    const struct dt_group_functions *groups; /* the CPU's */
    int (*interrupted)(void);                /* dt_interrupt_check */
    int (*line)(void);                       /* dt_activity_line */
    void (*extents)(int work, const char *name, const void *call,
                    void (*visit)(void *context, const struct dt_extent *extent),
                    void *context);          /* dt_extents */
    int (*race)(const struct dt_race *race); /* dt_race_found */
    int (*kernel_warning)(long number);      /* dt_kernel_warning */
    int simulated_devices; /* number of simulated devices (simulator only) */
    int virtual_devices;   /* 0: physical GPUs; n: n devices that share the first GPU */
    /* Directories of Python packages, colon-separated; borrowed. */
    const char *library_directories;
} dt_host;

/* The exported symbol of such a library, called once. NULL after dt_fail. */
typedef const dt_backend *(*dt_backend_open_fn)(const dt_host *host);
#define DT_BACKEND_OPEN_SYMBOL "dt_backend_open"

#ifdef __cplusplus
}
#endif
#endif
