/* The controls and counters of simulated GPUs, in C.
 *
 * Each setting also has an environment variable, read once before the first use:
 *
 *     PYDEVTENSOR_SIM_GPUS=2          number of devices
 *     PYDEVTENSOR_SIM_MEMORY=64M      bytes per device (K, M, G, T; default 1G)
 *     PYDEVTENSOR_SIM_CARD=t4         a card of cards.def, or several (default none)
 *     PYDEVTENSOR_SIM_HOST=fixed      the host's time: measured or fixed (default
 *                                     measured)
 *     PYDEVTENSOR_SIM_SCHEDULE=lazy   eager, lazy or random:SEED (default eager)
 *     PYDEVTENSOR_SIM_PEER=0          no peer access between devices (default 1)
 *     PYDEVTENSOR_SIM_STICKY=1        a device is lost after a fault (default 0)
 *     PYDEVTENSOR_SIM_CUDNN=0         there is no cuDNN (default 1)
 *     PYDEVTENSOR_SIM_CUFFT=0         there is no cuFFT (default 1)
 *     PYDEVTENSOR_SIM_FAIL=malloc:3   failures on demand
 *     PYDEVTENSOR_SIM_RACES=warn      off, warn or error (default off)
 *     PYDEVTENSOR_SIM_RECORD_STREAM=manual
 *                                     automatic or manual (default automatic)
 *
 * All functions may be called from any thread. */
#ifndef DT_SIM_SIM_H
#define DT_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes a setting, given as text like its environment variable: 0, or -1 if the value
 * is invalid or comes too late; dt_sim_complaint says why.
 *
 * "devices" and "memory": before the first use of a device only. "devices" takes 0 to
 * DT_MAX_SIMULATED; with 0 no device is found.
 *
 * "card" and "host": before the first use of a device only. With a card, devices have its
 * properties, its memory unless "memory" is set, and a clock (clock.h); with "t4,h200" each
 * has a clock, and the first card's properties and clock are the devices'. "" for none.
 *
 * "schedule": when queued work runs; may change at any time:
 *
 *     eager         at once
 *     lazy          when something waits for it
 *     random:SEED   at each call, some of the ready work of random streams
 *
 * In each, a stream with more than DT_SIM_QUEUE_LIMIT units runs its oldest. A query of a
 * stream or event runs one unit of work; with a card, the clock answers it, and what the
 * clock says is done runs.
 *
 * "peer": whether peer access may be enabled from now on, 0 or 1.
 *
 * "sticky": 1: once a fault was reported, every call that needs the device fails with it,
 * as on a GPU. 0 repairs the device.
 *
 * "races": what becomes of accesses to the same memory that nothing orders (race.h); from
 * "off" to another before the first use of a device only.
 *
 * "record_stream": before the first use of a device only. "manual": work that runs after its
 * memory was handed out again finds the next owner's values, as on a GPU; "automatic": that
 * is a fault. The core reads it to know whether its operations record their uses of memory.
 *
 * "failures": "malloc:3,copy:5+": from now on the third cudaMalloc fails, once, and the
 * fifth copy and all copies after it; "malloc:1:46": with error 46 of CUDA. Kinds: malloc,
 * host, copy, memset, launch, stream and event (their creation), record and wait (of an
 * event, in a stream), capture and graph (beginning and instantiating). "" clears the
 * list. */
#define DT_SIM_QUEUE_LIMIT 1024
int dt_sim_set(const char *name, const char *text);

/* Why this thread's last setting, or the environment, was rejected; "" if accepted. */
const char *dt_sim_complaint(void);

/* COUNTER(name) */
#define DT_SIM_COUNTERS(COUNTER)                                                       \
    COUNTER(calls) /* of the runtime but cudaGetLastError, by current device */        \
    COUNTER(launches)                                                                  \
    COUNTER(graph_launches) /* whose kernels are not among the launches */             \
    COUNTER(copies_to_device)                                                          \
    COUNTER(copies_to_host)                                                            \
    COUNTER(copies_on_device)                                                          \
    COUNTER(copies_between_devices) /* counted on the receiving device */              \
    COUNTER(copies_on_host)                                                            \
    COUNTER(bytes_to_device)                                                           \
    COUNTER(bytes_to_host)                                                             \
    COUNTER(bytes_on_device)                                                           \
    COUNTER(bytes_between_devices)                                                     \
    COUNTER(memsets)                                                                   \
    COUNTER(host_functions)                                                            \
    COUNTER(waits)          /* of the host, for a stream, event or device */           \
    COUNTER(blocking_waits) /* of them, those that leave the core to other threads */  \
    COUNTER(mallocs)                                                                   \
    COUNTER(frees)                                                                     \
    COUNTER(host_mallocs)                                                              \
    COUNTER(host_frees)                                                                \
    COUNTER(failures) /* on demand */                                                  \
    COUNTER(violations)

typedef struct dt_sim_counters {
#define COUNTER(name) int64_t name;
    DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
} dt_sim_counters;

/* Calls made so far, whether or not the work has run. device -1: all devices. */
void dt_sim_count(int device, dt_sim_counters *out);
/* The last error in simulated work, as a sentence; "" if none. Copies at most size -
 * 1 bytes; returns the text's full length. */
size_t dt_sim_violation(char *out, size_t size);

/* Units of work queued and not yet run. device -1: all devices. */
int64_t dt_sim_pending(int device);

/* For Python: "count DEVICE" replies with the counters as JSON, "kernels" with the file
 * and name of each launched one, "clock" with the clocks, "schedule" and "record_stream"
 * with these settings. "schedule lazy" and others set one; the reply is a complaint or
 * "". For collectives of processes (pydevtensor/distributed/_clocks.py): "ready DEVICE
 * STREAM" and "meet DEVICE STREAM TIME" as clock_ready and clock_meet, device -1 being
 * the host; between "hide 1" and "hide 0", which reply with what was before, this
 * thread's calls take no time of the clock. */
__attribute__((visibility("default"))) int dt_sim_control(const char *command,
                                                          char *reply, size_t size);

#ifdef __cplusplus
}
#endif
#endif
