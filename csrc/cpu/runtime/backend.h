/* The functions of the CPU's backend: dt_cpu_NAME is NAME of dt_backend, whose contract
 * is in device/backend.h
 * or device/works.def. */
#ifndef DT_CPU_RUNTIME_BACKEND_H
#define DT_CPU_RUNTIME_BACKEND_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MEMBER(name) __typeof__(*((dt_backend *)0)->name) dt_cpu_##name;
DT_BACKEND_MEMBERS(MEMBER)
#undef MEMBER
#define WORK(name, parameters, ...) int dt_cpu_##name parameters;
#define GPU_WORK(...)
#include "device/works.def"

int dt_cpu_chain(dt_stream stream, const struct dt_chain *chain);
bool dt_cpu_chain_step(int op, const dt_plan *plan);
bool dt_cpu_chain_end(const struct dt_chain *chain, struct dt_chain_end *end);
void *dt_cpu_gemm_pack(const dt_gemm *gemm);

/* Maximum number of bytes that the allocator caches for reuse. */
size_t dt_cpu_cache_limit(void);

#ifdef __cplusplus
}
#endif
#endif
