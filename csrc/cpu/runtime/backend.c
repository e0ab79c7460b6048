#include "cpu/runtime/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/blas.h"
#include "cpu/runtime/cpu.h"
#include "cpu/runtime/group.h"
#include "cpu/runtime/pool.h"

dt_kernels dt_cpu_kernels;
static dt_isa isa;

static void choose_kernels(void)
{
    static const dt_kernels kernels[] = {
#define FAMILY(name, isa) &dt_##name##_##isa,
#define ISA(name, test)   {DT_KERNEL_FAMILIES(FAMILY, name)},
        DT_ISAS(ISA)
#undef ISA
#undef FAMILY
    };
    isa = dt_isa_choose();
    dt_cpu_kernels = kernels[isa];
}

int dt_cpu_device_count(void)
{
    return 1;
}

const char *dt_cpu_why_unavailable(void)
{
    return "";
}

static void read_processor_name(char *out, size_t size)
{
    snprintf(out, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
}

int dt_cpu_device_properties(int device, dt_device_properties *out)
{
    (void)device;
    memset(out, 0, sizeof *out);
    read_processor_name(out->name, sizeof out->name);
    size_t free_bytes;
    if (dt_cpu_memory_info(0, &free_bytes, &out->total_memory))
        return -1;
    long cores = sysconf(_SC_NPROCESSORS_ONLN), cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    out->multi_processor_count = cores > 0 ? (int)cores : 1;
    out->l2_cache_size = cache > 0 ? (size_t)cache : 0;
    out->warp_size = 1;
    out->integrated = true;
    return 0;
}

void dt_cpu_facts(dt_fact_visitor visit, void *context)
{
    char text[64];
    visit(context, "cpu.isa", dt_isa_name(isa));
    snprintf(text, sizeof text, "%d", dt_pool_threads());
    visit(context, "cpu.threads", text);
    snprintf(text, sizeof text, "%zu", dt_cpu_cache_limit());
    visit(context, "cpu.cache_limit", text);
    bool found = dt_blas_has(DT_FLOAT32);
    visit(context, "cpu.blas", found ? dt_blas_path() : "own");
    if (*dt_blas_config())
        visit(context, "cpu.blas_config", dt_blas_config());
    if (*dt_blas_core())
        visit(context, "cpu.blas_core", dt_blas_core());
}

bool dt_cpu_can_access_peer(int device, int peer)
{
    (void)device;
    (void)peer;
    return true;
}

int dt_cpu_device_synchronize(int device)
{
    (void)device;
    return 0;
}

static const dt_backend backend = {.version = DT_BACKEND_VERSION,
                                   .name = "cpu",
#define MEMBER(name)    .name = dt_cpu_##name,
#define WORK(name, ...) .name = dt_cpu_##name,
#define GPU_WORK(...)
                                   .chain = dt_cpu_chain,
                                   .chain_step = dt_cpu_chain_step,
                                   .chain_end = dt_cpu_chain_end,
                                   .gemm_pack = dt_cpu_gemm_pack,
                                   .parallel = dt_pool_run,
                                   .groups = &dt_group_of_cpu,
                                   DT_BACKEND_MEMBERS(MEMBER)
#undef MEMBER
#include "device/works.def"
};

const dt_backend *dt_cpu_backend(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_kernels);
    return &backend;
}
