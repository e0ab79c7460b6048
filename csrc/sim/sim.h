/* The simulated GPUs' own controls, in C: what a test or a teacher turns, and what they
 * count.
 *
 * Each setting also has an environment variable, read once before the first use:
 *     PYDEVTENSOR_SIM_GPUS=2          devices
 *     PYDEVTENSOR_SIM_MEMORY=64M      bytes of each (K, M, G, T; default 1G)
 *     PYDEVTENSOR_SIM_SCHEDULE=lazy   eager, lazy or random:SEED (default eager)
 *     PYDEVTENSOR_SIM_PEER=0          no peer access between devices (default 1)
 *     PYDEVTENSOR_SIM_FAIL=malloc:3   failures on demand
 * Setters give 0, or -1 when the value is not legal or comes too late; dt_sim_complaint
 * says why. All functions may be called from any thread. */
#ifndef DT_SIM_SIM_H
#define DT_SIM_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before the first use of a device only. 0 to DT_SIM_MAX_DEVICES; 0: no device is
 * found. */
#define DT_SIM_MAX_DEVICES 32
int dt_sim_set_devices(int count);
int dt_sim_set_memory(size_t bytes);

/* When queued work runs, at any time:
 *
 *     eager         at once
 *     lazy          when something waits for it
 *     random:SEED   at each call a random part of what is ready, of random streams
 *
 * In each, asking whether work is done runs one piece of it, and a queue of more than
 * DT_SIM_QUEUE_LIMIT pieces runs its oldest. */
#define DT_SIM_QUEUE_LIMIT 1024
int dt_sim_set_schedule(const char *text);

/* Whether peer access may be enabled from now on. */
int dt_sim_set_peer(int allowed);

/* "malloc:3,copy:5": the third cudaMalloc from now on fails, and the fifth copy, once.
 * Kinds: malloc, host, copy, memset, launch, stream, event. "" takes all back. */
int dt_sim_set_failures(const char *text);

/* Why the last setter of this thread, or the environment, was refused; "" if it was
 * not. */
const char *dt_sim_complaint(void);

/* COUNTER(name) */
#define DT_SIM_COUNTERS(COUNTER)                                                       \
    COUNTER(launches)                                                                  \
    COUNTER(copies_to_device)                                                          \
    COUNTER(copies_to_host)                                                            \
    COUNTER(copies_on_device)                                                          \
    COUNTER(copies_between_devices) /* counted at the device that receives */          \
    COUNTER(copies_on_host)                                                            \
    COUNTER(bytes_to_device)                                                           \
    COUNTER(bytes_to_host)                                                             \
    COUNTER(bytes_on_device)                                                           \
    COUNTER(bytes_between_devices)                                                     \
    COUNTER(memsets)                                                                   \
    COUNTER(host_functions)                                                            \
    COUNTER(waits) /* of the host: stream, event, device */                            \
    COUNTER(mallocs)                                                                   \
    COUNTER(frees)                                                                     \
    COUNTER(host_mallocs)                                                              \
    COUNTER(host_frees)                                                                \
    COUNTER(violations)

typedef struct dt_sim_counters {
#define COUNTER(name) int64_t name;
    DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
} dt_sim_counters;

/* What has been asked for so far (not: what has run). device -1: of all devices. */
void dt_sim_count(int device, dt_sim_counters *out);
/* Sets all counters and the kernels' numbers to 0. */
void dt_sim_count_reset(void);
/* Each kernel launched so far, by name. visit must not call back into the simulator. */
void dt_sim_count_kernels(void (*visit)(void *context, const char *kernel,
                                        int64_t launches),
                          void *context);

/* The last thing that simulated work did wrong, as a sentence; "" if nothing yet.
 * Copies at most size - 1 bytes; gives the text's whole length. */
size_t dt_sim_violation(char *out, size_t size);

/* Pieces of work queued and not yet run. device -1: on all devices. */
int64_t dt_sim_pending(int device);

/* Whether an address is one of simulated device memory. */
int dt_sim_is_device_address(const void *pointer);

/* 1 when built with AddressSanitizer: then reads outside of a kernel's blocks are
 * noticed. */
int dt_sim_is_sanitized(void);

#ifdef __cplusplus
}
#endif
#endif
