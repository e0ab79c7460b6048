/* The CUDA backend's table of functions, and how the core opens it. */
#include "device/backend.h"

#include <stdio.h>

#include <string>

#include "cuda/runtime/allocator.h"
#include "cuda/kernels/convert.h"
#include "cuda/runtime/cublas.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/foreach_norm.h"
#include "cuda/kernels/matmul.h"
#include "cuda/kernels/nonzero.h"
#include "cuda/runtime/pinned.h"
#include "cuda/kernels/arange.h"
#include "cuda/kernels/random.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/nn.h"
#include "cuda/kernels/scan.h"
#include "cuda/kernels/index.h"
#include "cuda/kernels/sort.h"
#include "cuda/runtime/stream.h"
#include "cuda/runtime/transfer.h"
#include "cuda/kernels/optim.h"
#ifdef DT_SIMULATED
#include "sim/sim.h"
void sim_cublas_set_gemm(int (*gemm)(dt_stream stream,
                                     const dt_gemm *gemm)); /* sim/blas.cpp */
#endif

static void visit_version(dt_fact_visitor visit, void *context, const char *name,
                          int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    visit(context, name, version ? text : "none");
}

static void facts(dt_fact_visitor visit, void *context)
{
    char text[128];
    int driver = 0, runtime = 0, used = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        cudaGetLastError();
    cudaRuntimeGetVersion(&runtime);
#ifdef DT_SIMULATED
    visit(context, "kind", "simulated");
#else
    visit(context, "kind", "real");
    visit_version(visit, context, "driver", driver);
#endif
    visit_version(visit, context, "runtime", runtime);
    int cublas = matmul_cublas_version();
    if (cublas)
        snprintf(text, sizeof text, "%d.%d.%d", cublas / 10000, cublas / 100 % 100,
                 cublas % 100);
    visit(context, "cublas", cublas ? text : "not loaded yet");
    visit(context, "cublas_path", cublas_path());
    text[0] = '\0';
    for (const int *a = device_architectures; *a && used < (int)sizeof text - 8; a++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d.%d",
                         used ? " " : "", *a / 10, *a % 10);
    visit(context, "architectures", text);
}

static const dt_backend backend = {
    DT_BACKEND_VERSION,
    "cuda",
    device_count,
    device_why_unavailable,
    device_properties,
    facts,
    device_can_access_peer,
    device_synchronize,
    stream_new,
    stream_free,
    stream_query,
    stream_synchronize,
    event_new,
    event_free,
    event_record,
    event_query,
    event_synchronize,
    stream_wait_event,
    event_elapsed,
    allocator_allocate,
    allocator_release,
    allocator_record_use,
    allocator_memory_info,
    allocator_stats,
    allocator_reset_peaks,
    allocator_empty_cache,
    transfer_to_device,
    transfer_to_host,
    transfer_peer,
    pinned_allocate,
    pinned_release,
    pinned_to_device,
    pinned_to_host,
    convert_fill,
    convert_copy,
    elementwise_run,
    reduce_run,
    reduce_arg,
    matmul_gemm,
    arange_run,
    random_run,
    index_run,
    optim_run,
    nonzero_count,
    nonzero_write,
    scan_run,
    moments_run,
    sort_run,
    search_run,
    nn_run,
    foreach_norm_run,
};

extern "C" __attribute__((visibility("default"))) const dt_backend *
dt_backend_open(const dt_host *host)
{
    dt_error_share(host->error_slot);
    if (host->version != DT_BACKEND_VERSION) {
        dt_fail(DT_ERROR_RUNTIME, "the CUDA backend has version %d, the core %d",
                DT_BACKEND_VERSION, host->version);
        return nullptr;
    }
    device_table_configure(host->virtual_devices);
    cublas_set_search(host->library_directories);
#ifdef DT_SIMULATED
    sim_cublas_set_gemm(host->cpu_gemm);
    if (dt_sim_set("devices", std::to_string(host->simulated_devices).c_str())) {
        dt_fail(DT_ERROR_VALUE, "%s", dt_sim_complaint());
        return nullptr;
    }
#endif
    return &backend;
}
