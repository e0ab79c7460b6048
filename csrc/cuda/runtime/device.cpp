#include "cuda/runtime/backend.h"

#include "cuda/runtime/mapping.h"
#include "cuda/runtime/nvml.h"
#include "cuda/runtime/kernel_errors.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GPUS DT_MAX_DEVICES

static struct {
    pthread_once_t once;
    int virtual_devices;
    int ngpus;
    int gpus[MAX_GPUS]; /* CUDA ordinals of the usable GPUs */
    char why[2048];
    unsigned used_by; /* 1 + dt_forks of the process that first used a device, or 0 */
    bool peers[MAX_GPUS][MAX_GPUS];             /* enabling was tried */
    dt_device_properties *properties[MAX_GPUS]; /* of devices, once asked for */
} table = {PTHREAD_ONCE_INIT, 0, 0, {0}, {0}, 0, {{false}}, {nullptr}};

bool cuda_succeeds(cudaError_t error)
{
    if (error != cudaSuccess)
        cudaGetLastError();
    return error == cudaSuccess;
}

int cuda_fail(cudaError_t error, const char *doing)
{
    static const struct {
        cudaError_t error;
        const char *advice;
    } known[] = {
        {cudaErrorMemoryAllocation, "free tensors on this device, or use smaller ones"},
        {cudaErrorInitializationError,
         "CUDA does not work in a process forked after it was used; start workers with "
         "multiprocessing's spawn method"},
        {cudaErrorDevicesUnavailable,
         "another process has this GPU for itself; see nvidia-smi"},
        {cudaErrorNoKernelImageForDevice,
         "build pydevtensor for this GPU: PYDEVTENSOR_CUDA_ARCHS=native pip install ."},
        {cudaErrorDeviceUninitialized,
         "the process that sent a tensor cannot open it; use the tensor itself"},
        {cudaErrorInvalidResourceHandle,
         "what another process sent can be opened while that process runs, by the same "
         "user; and an event is shared that was made with interprocess=True"},
        {cudaErrorECCUncorrectable,
         "the GPU's memory is damaged; restart the program, and reset the GPU if this "
         "happens again"},
        {cudaErrorUnsupportedPtxVersion,
         "update the driver, or build pydevtensor for this GPU: "
         "PYDEVTENSOR_CUDA_ARCHS=native pip install ."},
        {cudaErrorOperatingSystem, "the system refused it; check paths, and the limits "
                                   "of the process"},
        {cudaErrorIllegalAddress,
         "check the indices of your own kernels, and pointers from outside; without "
         "any, this is a bug in pydevtensor: please report the operations before it. A "
         "real GPU is lost to this process: restart the program"},
        {cudaErrorLaunchFailure,
         "a kernel of an operation before this one failed. A "
         "real GPU is lost to this process: restart the program"},
        {cudaErrorStreamCaptureUnsupported,
         "a graph is being captured, which lets nothing wait or allocate"},
        {cudaErrorStreamCaptureInvalidated, "a call during the capture of a graph was "
                                            "refused; capture it again without it"},
        {cudaErrorStreamCaptureUnjoined,
         "a stream that was forked during the capture has work that the capturing one "
         "does not wait for; let it wait_stream() before the capture ends"},
        {cudaErrorStreamCaptureIsolation, "a stream that captures waits for work "
                                          "outside of the capture; wait before the "
                                          "capture begins"},
        {cudaErrorSystemNotReady,
         "NVIDIA's fabric manager does not run on this machine; start it"},
        {cudaErrorSystemDriverMismatch, "the driver was updated; restart the machine"},
    };
    const char *advice = "the cause may be an operation before this one";
    cudaGetLastError();
    for (const auto &each : known)
        if (each.error == error)
            advice = each.advice;
    return dt_fail(DT_ERROR_ACCELERATOR, "CUDA failed while %s: %s (%s); %s", doing,
                   cudaGetErrorString(error), cudaGetErrorName(error), advice);
}

/* --- the table --- */

/* Whether the build has code that a GPU can run: a binary of its major version and
 * no later minor version, or PTX if the GPU is newer than all binaries. */
static bool runs_on(int capability)
{
    int newest = 0;
    for (const int *a = device_architectures; *a; a++) {
        newest = *a > newest ? *a : newest;
        if (*a / 10 == capability / 10 && *a <= capability)
            return true;
    }
    return newest == 0 || capability > newest;
}

static void explain(cudaError_t error)
{
    int driver = 0, runtime = 0;
    switch (error) {
    case cudaErrorInsufficientDriver: {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (!library && !driver)
            snprintf(table.why, sizeof table.why,
                     "There is no NVIDIA driver on this machine (libcuda.so.1 is "
                     "missing): install the driver for your GPU, or choose simulated "
                     "GPUs with PYDEVTENSOR_SIM_GPUS=2.");
        else
            snprintf(table.why, sizeof table.why,
                     "The NVIDIA driver is too old: it supports CUDA %d.%d, and "
                     "pydevtensor was "
                     "built for CUDA %d.%d. Update the driver, or build pydevtensor "
                     "with an older "
                     "nvcc.",
                     driver / 1000, driver % 1000 / 10, runtime / 1000,
                     runtime % 1000 / 10);
        if (library)
            dlclose(library);
        break;
    }
    case cudaErrorNoDevice:
        snprintf(table.why, sizeof table.why,
                 "The NVIDIA driver finds no CUDA device: check nvidia-smi and "
                 "CUDA_VISIBLE_DEVICES, or choose simulated GPUs with "
                 "PYDEVTENSOR_SIM_GPUS=2.");
        break;
    default:
        snprintf(table.why, sizeof table.why,
                 "CUDA does not start: %s (%s). Check nvidia-smi and the permissions "
                 "of /dev/nvidia*.",
                 cudaGetErrorString(error), cudaGetErrorName(error));
    }
    cudaGetLastError();
}

static void leave_out(int gpu, int capability)
{
    size_t used = strlen(table.why);
    snprintf(table.why + used, sizeof table.why - used,
             "%sGPU %d has compute capability %d.%d, which this build of pydevtensor "
             "does not support: build it with PYDEVTENSOR_CUDA_ARCHS=native.",
             used ? " " : "", gpu, capability / 10, capability % 10);
}

static void fill_table(void)
{
#ifdef DT_SIMULATED
    const char *visible = nullptr;
#else
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
#endif
    int count = nvml_count(runs_on, visible);
    for (; table.ngpus < count && table.ngpus < MAX_GPUS; table.ngpus++)
        table.gpus[table.ngpus] = table.ngpus;
    if (count)
        return;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        explain(error);
        return;
    }
    if (!count)
        explain(cudaErrorNoDevice);
    for (int gpu = 0; gpu < count && table.ngpus < MAX_GPUS; gpu++) {
        int major = 0, minor = 0;
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu);
        if (runs_on(10 * major + minor))
            table.gpus[table.ngpus++] = gpu;
        else
            leave_out(gpu, 10 * major + minor);
    }
}

static void need_table(void)
{
    pthread_once(&table.once, fill_table);
}

void device_table_configure(int virtual_devices)
{
    table.virtual_devices = virtual_devices;
}

static int count(void)
{
    return table.ngpus && table.virtual_devices ? table.virtual_devices : table.ngpus;
}

int dt_cuda_device_count(void)
{
    need_table();
    return count();
}

const char *dt_cuda_why_unavailable(void)
{
    need_table();
    return table.why;
}

int device_ordinal(int device)
{
    return table.gpus[table.virtual_devices ? 0 : device];
}

int device_sharing(void)
{
    return table.virtual_devices ? table.virtual_devices : 1;
}

/* The thread's current GPU before device_use changed it, or -1. */
static thread_local int foreign = -1;

bool device_is_inherited(void)
{
    unsigned used_by = __atomic_load_n(&table.used_by, __ATOMIC_RELAXED);
    return used_by && used_by != 1 + dt_forks();
}

int device_check(int device)
{
    need_table();
    if (device < 0 || device >= count())
        return dt_fail(DT_ERROR_ACCELERATOR,
                       "cuda:%d does not exist: there are %d CUDA devices", device,
                       count());
    if (device_is_inherited())
        return cuda_fail(cudaErrorInitializationError,
                         "using a GPU in a forked process");
    return 0;
}

int device_use(int device)
{
    if (device_check(device))
        return -1;
    bool first = !__atomic_load_n(&table.used_by, __ATOMIC_RELAXED);
    if (first)
        __atomic_store_n(&table.used_by, 1 + dt_forks(), __ATOMIC_RELAXED);
    /* Asked each time: other libraries (PyTorch, CuPy) set the current device too. */
    int gpu = device_ordinal(device), current = -1;
    CUDA_TRY("setting the device", cudaGetDevice(&current));
    if (gpu == current && !first)
        return 0;
    CUDA_TRY("setting the device", cudaSetDevice(gpu));
    if (foreign < 0 && gpu != current)
        foreign = current;
    return 0;
}

/* Whether a GPU has a context. To make a GPU without one current would create it, at
 * some hundred MB of its memory. */
static bool has_context(int gpu)
{
#ifdef DT_SIMULATED
    auto *state = cuDevicePrimaryCtxGetState;
#else
    static auto *state = (int (*)(int, unsigned *, int *))dlsym(
        dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), "cuDevicePrimaryCtxGetState");
#endif
    unsigned flags = 0;
    int active = 0;
    return state && !state(gpu, &flags, &active) && active;
}

void device_restore(void)
{
    int gpu = foreign;
    foreign = -1;
    if (gpu >= 0 && has_context(gpu))
        cuda_succeeds(cudaSetDevice(gpu));
}

/* --- queries --- */

int dt_cuda_device_properties(int device, dt_device_properties *out)
{
    cudaDeviceProp p;
    if (device_use(device))
        return -1;
    dt_locked guard(DT_LOCK_DEVICE_TABLE);
    dt_device_properties *&kept = table.properties[device];
    if (kept) {
        *out = *kept;
        return 0;
    }
    int gpu = device_ordinal(device);
    CUDA_TRY("reading a device's properties", cudaGetDeviceProperties(&p, gpu));
    memset(out, 0, sizeof *out);
    if (device_sharing() > 1)
        snprintf(out->name, sizeof out->name, "%.200s (virtual GPU %d of %d)", p.name,
                 device + 1, device_sharing());
    else
        snprintf(out->name, sizeof out->name, "%.255s", p.name);
    out->major = p.major;
    out->minor = p.minor;
    out->total_memory = p.totalGlobalMem / (size_t)device_sharing();
    out->multi_processor_count = p.multiProcessorCount;
    out->warp_size = p.warpSize;
    out->max_threads_per_multi_processor = p.maxThreadsPerMultiProcessor;
    out->max_threads_per_block = p.maxThreadsPerBlock;
    out->shared_memory_per_block = p.sharedMemPerBlock;
    out->shared_memory_per_block_optin = p.sharedMemPerBlockOptin;
    out->l2_cache_size = (size_t)p.l2CacheSize;
    out->integrated = p.integrated != 0;
#ifdef DT_SIMULATED
    out->simulated = true;
#endif
    out->physical = gpu;
    const unsigned char *u = (const unsigned char *)p.uuid.bytes;
    snprintf(out->uuid, sizeof out->uuid,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
             u[12], u[13], u[14], u[15]);
    out->pci_domain = p.pciDomainID;
    out->pci_bus = p.pciBusID;
    out->pci_device = p.pciDeviceID;
    kept = new dt_device_properties(*out);
    return 0;
}

bool dt_cuda_can_access_peer(int device, int peer)
{
    int can = 0;
    need_table();
    if (device_ordinal(device) == device_ordinal(peer))
        return true;
    cuda_succeeds(
        cudaDeviceCanAccessPeer(&can, device_ordinal(device), device_ordinal(peer)));
    return can != 0;
}

void device_enable_peer(int device, int peer)
{
    int gpu = device_ordinal(device), other = device_ordinal(peer);
    if (gpu == other)
        return;
    dt_lock(DT_LOCK_DEVICE_TABLE);
    bool tried = table.peers[device][peer];
    table.peers[device][peer] = true;
    dt_unlock(DT_LOCK_DEVICE_TABLE);
    if (tried || !dt_cuda_can_access_peer(device, peer) || device_use(device))
        return;
    /* Without peer access, copies are staged through host memory. */
    cuda_succeeds(cudaDeviceEnablePeerAccess(other, 0));
    heap_share(peer, gpu);
}

int dt_cuda_device_synchronize(int device)
{
    if (device_use(device))
        return -1;
    CUDA_TRY("waiting for a device", cudaDeviceSynchronize());
    return report_take(device);
}
