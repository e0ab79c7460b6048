#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu/runtime/allocator.h"
#include "cpu/runtime/blas.h"
#include "cpu/runtime/cpu.h"
#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/foreach_norm.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/moments.h"
#include "cpu/runtime/pool.h"
#include "cpu/kernels/random.h"
#include "cpu/kernels/reduce.h"
#include "cpu/kernels/nn.h"
#include "cpu/kernels/scan.h"
#include "cpu/kernels/index.h"
#include "cpu/kernels/sort.h"
#include "cpu/kernels/optim.h"

dt_kernels dt_cpu_kernels;

static void choose(void)
{
    dt_cpu_kernels.isa = dt_isa_choose();
    switch (dt_cpu_kernels.isa) {
#define ISA(name, test)                                                                \
    case DT_ISA_##name:                                                                \
        dt_cpu_kernels.elementwise = &dt_elementwise_##name;                           \
        dt_cpu_kernels.copy = &dt_copy_##name;                                         \
        dt_cpu_kernels.reduce = &dt_reduce_##name;                                     \
        dt_cpu_kernels.gemm = &dt_gemm_##name;                                         \
        dt_cpu_kernels.random = &dt_random_##name;                                     \
        dt_cpu_kernels.update = &dt_optim_##name;                                      \
        dt_cpu_kernels.scan = &dt_scan_##name;                                         \
        dt_cpu_kernels.moments = &dt_moments_##name;                                   \
        dt_cpu_kernels.nn = &dt_nn_##name;                                             \
        break;
        DT_ISAS(ISA)
#undef ISA
    case DT_NISAS:
        break;
    }
}

void dt_kernels_choose(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
}

static int device_count(void)
{
    return 1;
}

static const char *why_unavailable(void)
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

static int device_properties(int device, dt_device_properties *out)
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

static void facts(dt_fact_visitor visit, void *context)
{
    char text[64];
    visit(context, "cpu.isa", dt_isa_name(dt_cpu_kernels.isa));
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

static bool can_access_peer(int device, int peer)
{
    (void)device;
    (void)peer;
    return true;
}

static int device_synchronize(int device)
{
    (void)device;
    return 0;
}

static const dt_backend backend = {
    .version = DT_BACKEND_VERSION,
    .name = "cpu",
    .device_count = device_count,
    .why_unavailable = why_unavailable,
    .device_properties = device_properties,
    .facts = facts,
    .can_access_peer = can_access_peer,
    .device_synchronize = device_synchronize,
    .allocate = dt_cpu_allocate,
    .release = dt_cpu_release,
    .memory_info = dt_cpu_memory_info,
    .memory_stats = dt_cpu_memory_stats,
    .reset_peaks = dt_cpu_reset_peaks,
    .empty_cache = dt_cpu_empty_cache,
    .fill = dt_cpu_fill,
    .copy = dt_cpu_copy,
    .elementwise = dt_cpu_elementwise,
    .reduce = dt_cpu_reduce,
    .argreduce = dt_cpu_argreduce,
    .gemm = dt_cpu_gemm,
    .arange = dt_cpu_arange,
    .random = dt_cpu_random,
    .index = dt_cpu_index,
    .optim_step = dt_cpu_optim,
    .scan = dt_cpu_scan,
    .moments = dt_cpu_moments,
    .sort = dt_cpu_sort,
    .search = dt_cpu_search,
    .nn = dt_cpu_nn,
    .foreach_norm = dt_cpu_foreach_norm,
};

const dt_backend *dt_cpu_backend(void)
{
    dt_kernels_choose();
    return &backend;
}
