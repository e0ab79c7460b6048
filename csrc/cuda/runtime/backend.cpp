/* The CUDA backend's table of functions, and how the core opens it. */
#include "cuda/runtime/backend.h"

#include <stdio.h>

#include <string>

#include "cuda/runtime/cudnn.h"
#include "cuda/runtime/cufft.h"
#include "cuda/runtime/cusolver.h"
#include "cuda/runtime/nccl.h"
#include "device/activity.h"
#include "device/lapack.h"
#ifdef DT_SIMULATED
#include "sim/core.h"
#include "sim/race.h"
#include "sim/sim.h"
/* sim/operation.cpp */
const dt_observer *sim_observer();
int64_t sim_clock();
bool sim_span(int64_t *begin, int64_t *end);
bool sim_program_records(); /* sim/control.cpp */
#endif

static void visit_version(dt_fact_visitor visit, void *context, const char *name,
                          int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    visit(context, name, version ? text : "none");
}

/* `minors`: how many minor versions a major one has in the library's number. */
static void visit_library(dt_fact_visitor visit, void *context, const char *name,
                          const dt_library *library, int minors)
{
    char text[64];
    const int version = library->version;
    snprintf(text, sizeof text, "%d.%d.%d", version / 100 / minors,
             version / 100 % minors, version % 100);
    visit(context, name, version ? text : "not loaded yet");
    snprintf(text, sizeof text, "%s_path", name);
    visit(context, text, library->path);
}

void dt_cuda_facts(dt_fact_visitor visit, void *context)
{
    char text[128];
    int driver = 0, runtime = 0, used = 0;
    cuda_succeeds(cudaDriverGetVersion(&driver));
    cudaRuntimeGetVersion(&runtime);
#ifdef DT_SIMULATED
    visit(context, "kind", "simulated");
#else
    visit(context, "kind", "real");
    visit_version(visit, context, "driver", driver);
#endif
    visit_version(visit, context, "runtime", runtime);
    visit_library(visit, context, "cublas", &cublas_library, 100);
    visit_library(visit, context, "cusolver", &cusolver_library, 10);
    visit_library(visit, context, "cudnn", &cudnn_library, 100);
    visit_library(visit, context, "cufft", &cufft_library, 10);
    visit_library(visit, context, "nccl", &nccl_library, 100);
    text[0] = '\0';
    for (const int *a = device_architectures; *a && used < (int)sizeof text - 8; a++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d.%d",
                         used ? " " : "", *a / 10, *a % 10);
    visit(context, "architectures", text);
}

/* A simulated GPU raises here what the call found. */
#ifdef DT_SIMULATED
#define RACE_ANSWER(status) sim::race_answer(status)
#else
#define RACE_ANSWER(status) (status)
#endif

struct Restore {
    ~Restore() { device_restore(); }
};

template <auto run>
constexpr bool without_device = false;
#define NAME(name)                                                                     \
    template <>                                                                        \
    constexpr bool without_device<dt_cuda_##name> = true;
DT_CUDA_WITHOUT_DEVICE(NAME)
#undef NAME

/* A function of the table: `run`, for those that begin with a stream after device_use. */
template <auto run, class F = decltype(run)>
struct WithDevice;
template <auto run, class R, class... A>
struct WithDevice<run, R (*)(A...)> {
    static R call(A... arguments)
    {
        Restore after;
        if constexpr (std::is_same_v<R, int>)
            return RACE_ANSWER(run(arguments...));
        else
            return run(arguments...);
    }
};
template <auto run, class... A>
struct WithDevice<run, int (*)(dt_stream, A...)> {
    static int call(dt_stream stream, A... arguments)
    {
        Restore after;
        bool failed = !without_device<run> && device_use(stream.device);
        return RACE_ANSWER(failed ? -1 : run(stream, arguments...));
    }
};

extern "C" __attribute__((visibility("default"))) const dt_backend *
dt_backend_open(const dt_host *host)
{
    dt_error_share(host->error_slot);
    dt_lock_share(host->locks);
    if (host->version != DT_BACKEND_VERSION) {
        dt_fail(DT_ERROR_RUNTIME, "the CUDA backend has version %d, the core %d",
                DT_BACKEND_VERSION, host->version);
        return nullptr;
    }
    device_table_configure(host->virtual_devices);
    library_set_search(host->library_directories);
#ifdef DT_SIMULATED
    sim::core = *host;
    if (dt_sim_set("devices", std::to_string(host->simulated_devices).c_str())) {
        dt_fail(DT_ERROR_VALUE, "%s", dt_sim_complaint());
        return nullptr;
    }
#endif
    static dt_backend backend;
    backend.version = DT_BACKEND_VERSION;
    backend.name = "cuda";
    backend.halves = true;
#define MEMBER(name)    backend.name = WithDevice<dt_cuda_##name>::call;
#define WORK(name, ...) MEMBER(name)
    DT_BACKEND_MEMBERS(MEMBER)
    DT_BACKEND_GPU_MEMBERS(MEMBER)
#include "device/works.def"
    MEMBER(chain)
    backend.chain_step = dt_cuda_chain_step;
    backend.chain_end = dt_cuda_chain_end;
    backend.chain_source = dt_cuda_chain_source;
    backend.chain_compiled = dt_cuda_chain_compiled;
    backend.chain_forget = dt_cuda_chain_forget;
#undef MEMBER
#ifdef DT_SIMULATED
    backend.program_records = sim_program_records();
    backend.observers[0] = sim_observer();
    backend.observers[1] = sim::race_observer();
    if (backend.observers[0]) {
        backend.clock = sim_clock;
        backend.span = sim_span;
    }
#endif
    return &backend;
}
