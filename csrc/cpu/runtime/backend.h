/* The functions of the CPU's backend: dt_cpu_NAME is NAME of dt_backend, whose contract
 * is in device/backend.h. */
#ifndef DT_CPU_RUNTIME_BACKEND_H
#define DT_CPU_RUNTIME_BACKEND_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MEMBER(name): a function of dt_backend that the CPU has; the others are NULL. */
#define DT_CPU_MEMBERS(MEMBER)                                                         \
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
    MEMBER(empty_cache)                                                                \
    MEMBER(fill)                                                                       \
    MEMBER(copy)                                                                       \
    MEMBER(elementwise)                                                                \
    MEMBER(reduce)                                                                     \
    MEMBER(argreduce)                                                                  \
    MEMBER(gemm)                                                                       \
    MEMBER(arange)                                                                     \
    MEMBER(random)                                                                     \
    MEMBER(index)                                                                      \
    MEMBER(optim_step)                                                                 \
    MEMBER(scan)                                                                       \
    MEMBER(moments)                                                                    \
    MEMBER(sort)                                                                       \
    MEMBER(search)                                                                     \
    MEMBER(nn)                                                                         \
    MEMBER(foreach_norm)

#define MEMBER(name) __typeof__(*((dt_backend *)0)->name) dt_cpu_##name;
DT_CPU_MEMBERS(MEMBER)
#undef MEMBER

/* Maximum number of bytes that the allocator caches for reuse. */
size_t dt_cpu_cache_limit(void);

#ifdef __cplusplus
}
#endif
#endif
