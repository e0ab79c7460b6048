/* The meeting point of the core and the backends: one struct of functions.
 *
 * A backend answers for all devices of its type, numbered from 0. Every call names its
 * device, alone or inside a queue; nothing depends on a current device. Functions
 * return 0, or -1 after dt_fail; those that give nothing back cannot fail. They are
 * called from any thread, with no lock held. Work is queued: a function of the third
 * group or a copy may return before the work has run, in the order of its queue; only
 * those said to wait do wait. */
#ifndef DT_DEVICE_BACKEND_H
#define DT_DEVICE_BACKEND_H

#include "base/error.h"
#include "device/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BACKEND_VERSION 1

/* The device and stream on which work is put. stream is the backend's own handle; NULL
 * is the device's default stream. The CPU has none and runs work at once. */
typedef struct dt_queue {
    int device;
    void *stream;
} dt_queue;

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
    int physical; /* the card behind it: several virtual devices share one */
    char uuid[40];
    int pci_domain, pci_bus, pci_device;
} dt_device_properties;

/* MEMORY_COUNTER(name): bytes or counts that a caching allocator keeps a current value,
 * a peak and running totals of. The names are PyTorch's. */
#define DT_MEMORY_COUNTERS(MEMORY_COUNTER)                                             \
    MEMORY_COUNTER(allocated_bytes) /* handed out to tensors, rounded up to blocks */  \
    MEMORY_COUNTER(reserved_bytes)  /* taken from the driver */                        \
    MEMORY_COUNTER(requested_bytes) /* asked for by tensors */                         \
    MEMORY_COUNTER(allocation)      /* live blocks */                                  \
    MEMORY_COUNTER(segment)         /* live allocations from the driver */

typedef struct dt_memory_counter {
    int64_t current, peak, allocated, freed;
} dt_memory_counter;

typedef struct dt_memory_stats {
#define MEMORY_COUNTER(name) dt_memory_counter name;
    DT_MEMORY_COUNTERS(MEMORY_COUNTER)
#undef MEMORY_COUNTER
    int64_t num_alloc_retries; /* times that the cache was emptied for want of memory */
    int64_t num_ooms;
} dt_memory_stats;

struct dt_generator;
struct dt_nn_call;

/* NAME=VALUE facts about a backend for people: versions, libraries, instruction sets.
 */
typedef void (*dt_fact_visitor)(void *context, const char *name, const char *value);

typedef struct dt_backend {
    int version;      /* DT_BACKEND_VERSION */
    const char *name; /* "cpu" or "cuda" */

    /* --- devices --- */
    /* How many devices can be used; 0 where there is none. Never fails, creates no
     * context. */
    int (*device_count)(void);
    /* Why device_count is 0, or which cards were left out and why, as sentences that
     * end with what to do; "" when there is nothing to say. Lent, valid for ever. */
    const char *(*why_unavailable)(void);
    int (*device_properties)(int device, dt_device_properties *out);
    void (*facts)(dt_fact_visitor visit, void *context);
    bool (*can_access_peer)(int device, int peer);
    /* Waits for all work of the device. */
    int (*device_wait)(int device);

    /* --- streams and events (NULL for a backend without: the CPU) --- */
    int (*stream_new)(int device, int priority, void **out_stream);
    void (*stream_free)(int device, void *stream); /* pending work still runs */
    int (*stream_query)(dt_queue queue);           /* 1: all done, 0: not yet */
    int (*stream_wait)(dt_queue queue);            /* the host waits */
    int (*event_new)(int device, bool timing, void **out_event);
    void (*event_free)(void *event);
    int (*event_record)(void *event, dt_queue queue);
    int (*event_query)(void *event); /* 1: reached (or never recorded) */
    int (*event_wait)(void *event);  /* the host waits */
    int (*event_block)(void *event,
                       dt_queue queue); /* the queue waits, on the device */
    int (*event_elapsed)(void *start, void *end, float *out_milliseconds);

    /* --- memory --- */
    /* A block of at least `bytes` (1 or more), aligned to 64 bytes or better, whose
     * contents are undefined, for use on queue. Fails with DT_ERROR_DEVICE_MEMORY (CPU:
     * DT_ERROR_HOST_MEMORY) after having tried to free what is cached. */
    int (*allocate)(dt_queue queue, size_t bytes, void **out);
    /* Gives the block back; work already queued may still use it. `bytes` as allocated.
     */
    void (*release)(int device, void *data, size_t bytes);
    /* The block is now also used on queue, another than it was allocated for: release
     * will wait for that, on the device. NULL for the CPU. */
    int (*record_use)(dt_queue queue, void *data);
    int (*memory_info)(int device, size_t *out_free, size_t *out_total);
    void (*memory_stats)(int device, dt_memory_stats *out);
    void (*reset_peaks)(int device);
    int (*empty_cache)(int device);

    /* --- copies of bytes (NULL for the CPU) --- */
    /* Host to device. The source may be changed or freed as soon as it returns; may
     * wait when the copy is large. */
    int (*upload)(dt_queue queue, void *target, const void *source, size_t bytes);
    /* Device to host. Waits until the bytes are there. */
    int (*download)(dt_queue queue, void *target, const void *source, size_t bytes);
    /* Device to device, peer to peer or staged; runs after what is queued on both, and
     * both queues go on after it. Does not wait. */
    int (*copy_peer)(dt_queue target_queue, void *target, dt_queue source_queue,
                     const void *source, size_t bytes);

    /* --- page-locked memory of the host's (NULL for the CPU) --- */
    /* A block of at least `bytes` (1 or more), aligned to 64 bytes or better, that
     * every device copies from by itself; device: the one whose driver is asked. Fails
     * with DT_ERROR_HOST_MEMORY or DT_ERROR_DEVICE_MEMORY. */
    int (*pinned_allocate)(int device, size_t bytes, void **out);
    /* Gives a block back; copies already queued may still use it. */
    void (*pinned_release)(void *data);
    /* Host to device from within such a block, which is to stay as it is until the
     * copy is over. Does not wait. */
    int (*pinned_upload)(dt_queue queue, void *target, const void *source,
                         size_t bytes);
    /* Device to host, into such a block, which nobody is to look at until the copy is
     * over. Does not wait. */
    int (*pinned_download)(dt_queue queue, void *target, const void *source,
                           size_t bytes);

    /* --- work: operands are on the queue's device --- */
    int (*fill)(dt_queue queue, const dt_plan *plan); /* operand 1 is immediate */
    int (*copy)(dt_queue queue, const dt_plan *plan); /* converts operand 1 to 0 */
    int (*unary)(dt_queue queue, dt_unary_op op, const dt_plan *plan);
    int (*binary)(dt_queue queue, dt_binary_op op, const dt_plan *plan);
    /* Operand 1, bools, chooses between 2 and 3, which have the result's type. */
    int (*where)(dt_queue queue, const dt_plan *plan);
    int (*reduce)(dt_queue queue, dt_reduce_op op, const dt_reduction *reduction);
    /* The first greatest (greatest: true) or least element and its index along the
     * folded dimensions in row-major order; a NaN counts as the greatest and as the
     * least. */
    int (*argreduce)(dt_queue queue, bool greatest, const dt_reduction *reduction);
    int (*gemm)(dt_queue queue, const dt_gemm *gemm);
    int (*arange)(dt_queue queue, const dt_arange_call *call);
    int (*random)(dt_queue queue, struct dt_generator *generator,
                  const dt_random_call *call);
    int (*index)(dt_queue queue, dt_index_op op, const dt_index_call *selection);
    int (*optim_step)(dt_queue queue, const dt_optim_call *call);
    int (*ternary)(dt_queue queue, dt_ternary_op op, const dt_plan *plan);
    /* Where bools are true, in two steps, since the result's size lies between them:
     * the first leaves the count as the last number of the workspace. NULL for the CPU.
     */
    int (*nonzero_count)(dt_queue queue, const dt_nonzero_call *call);
    int (*nonzero_write)(dt_queue queue, const dt_nonzero_call *call);
    int (*scan)(dt_queue queue, dt_scan_op op, const dt_scan *scan);
    /* The variance of what is folded, with the divisor max(0, count - parameter), into
     * output, and the mean into mean unless that is NULL; float32 or float64. Nothing
     * folded gives NaN. */
    int (*moments)(dt_queue queue, void *mean, const dt_reduction *reduction);
    int (*sort)(dt_queue queue, const dt_sorting *sorting);
    int (*search)(dt_queue queue, const dt_search *search);
    /* An index out of range: the CPU fails with DT_ERROR_INDEX before anything is
     * written; a GPU lets the row be, and the next wait for the device fails. */
    int (*nn)(dt_queue queue, const struct dt_nn_call *call);
    int (*foreach_norm)(dt_queue queue, dt_reduce_op op,
                        const dt_foreach_norm_call *call);
} dt_backend;

/* What the core gives a backend that lives in a library of its own. */
typedef struct dt_host {
    int version; /* DT_BACKEND_VERSION */
    dt_error *(*error_slot)(void);
    /* The CPU's matrix product, for simulated cuBLAS. */
    int (*cpu_gemm)(dt_queue queue, const dt_gemm *gemm);
    int simulated_devices; /* how many to simulate (simulated build only) */
    int virtual_devices; /* 0: cards as they are; n: n devices that share the first card
                          */
    const char
        *library_directories; /* colon-separated; where Python packages are, lent */
} dt_host;

/* The one exported symbol of such a library. Called once. NULL after dt_fail. */
typedef const dt_backend *(*dt_backend_open_fn)(const dt_host *host);
#define DT_BACKEND_OPEN_SYMBOL "dt_backend_open"

#ifdef __cplusplus
}
#endif
#endif
