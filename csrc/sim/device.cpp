/* Devices: how many, their properties, peer access. */
#include "cuda/runtime/nvml.h"
#include "internal.h"
#include <stdio.h>
#include <string.h>

using namespace sim;

/* The card that devices are like; nullptr: none. */
static const dt_sim_card *card()
{
    auto &cards = state().options.cards;
    return cards.empty() ? nullptr : cards[0];
}

/* Compute capability: what kernels may use. */
static int major_of()
{
    return card() ? card()->major : 8;
}
static int minor_of()
{
    return card() ? card()->minor : 0;
}

void sim::limits_of(int capability, int *threads, int *shared)
{
    *threads = capability == 75   ? 1024
               : capability == 86 ? 1536
               : capability == 89 ? 1536
                                  : 2048;
    *shared = capability == 75   ? 64
              : capability == 70 ? 96
              : capability == 80 ? 163
              : capability < 90  ? 99
                                 : 227;
}

size_t sim::shared_optin()
{
    int threads, shared;
    limits_of(10 * major_of() + minor_of(), &threads, &shared);
    return (size_t)shared << 10;
}

static bool exists(int device)
{
    return device >= 0 && device < state().options.devices;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    Entry in(Entry::kRuntime);
    if (!count)
        return answer(cudaErrorInvalidValue);
    *count = in.error ? 0 : state().options.devices;
    if (in.error)
        return answer(in.error);
    return *count ? cudaSuccess : answer(cudaErrorNoDevice);
}

/* NVML: knows the devices without the runtime. */
extern const dt_nvml sim_nvml;
const dt_nvml sim_nvml = {
    [] { return 0; },
    [] { return 0; },
    [](int *version) { return *version = CUDART_VERSION, 0; },
    [](unsigned *count) {
        Entry in(Entry::kNothing);
        *count = (unsigned)state().options.devices;
        return (int)in.error;
    },
    [](unsigned, dt_nvml_device *device) { return *device = nullptr, 0; },
    [](dt_nvml_device, int *major, int *minor) {
        Entry in(Entry::kNothing);
        return *major = major_of(), *minor = minor_of(), (int)in.error;
    },
    [](dt_nvml_device, unsigned *, unsigned *) {
        return 3; /* not supported */
    },
};

cudaError_t cudaSetDevice(int device)
{
    SIM_ENTER(Entry::kRuntime);
    cudaError_t error = exists(device) ? open_devices() : cudaErrorInvalidDevice;
    if (error)
        return answer(error);
    thread().device = device;
    device_at(device).context = true;
    return device_at(device).reported ? report_fault(device_at(device)) : cudaSuccess;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    Entry in(Entry::kNothing);
    *flags = 0;
    *active = state().open && exists(device) && device_at(device).context;
    return in.error;
}

cudaError_t cudaGetDevice(int *device)
{
    SIM_ENTER(Entry::kNothing);
    *device = thread().device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    SIM_ENTER(Entry::kRuntime);
    if (!out || !exists(device))
        return answer(out ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    if (card())
        snprintf(out->name, sizeof out->name, "NVIDIA %s (simulated)", card()->name);
    else
        snprintf(out->name, sizeof out->name, "Simulated GPU");
    memcpy(out->uuid.bytes, "simulated-gpu", 13);
    out->uuid.bytes[15] = (char)device;
    out->totalGlobalMem = state().options.memory;
    out->sharedMemPerBlock = kSharedBytes;
    int threads, shared;
    limits_of(10 * major_of() + minor_of(), &threads, &shared);
    out->sharedMemPerBlockOptin = sim::shared_optin();
    out->warpSize = 32;
    out->maxThreadsPerBlock = kMaxThreads;
    out->maxThreadsPerMultiProcessor = threads;
    out->major = major_of();
    out->minor = minor_of();
    out->multiProcessorCount = card() ? card()->sms : 4;
    out->l2CacheSize = (card() ? card()->l2 : 4) << 20;
    out->pciBusID = 0x51;
    out->pciDeviceID = device;
    out->totalConstMem = 64 << 10;
    out->memPitch = 0x7fffffff;
    out->sharedMemPerMultiprocessor =
        out->sharedMemPerBlockOptin + (size_t)kept_shared(10 * out->major);
    for (int i = 0; i < 3; i++) {
        out->maxThreadsDim[i] = i < 2 ? 1024 : 64;
        out->maxGridSize[i] = i ? 65535 : 0x7fffffff;
    }
    out->regsPerBlock = out->regsPerMultiprocessor = 65536;
    const bool is_ada = out->major == 8 && out->minor == 9;
    out->maxBlocksPerMultiProcessor = threads == 2048 ? 32 : is_ada ? 24 : 16;
    out->asyncEngineCount = 2;
    out->deviceOverlap = out->concurrentKernels = 1;
    out->unifiedAddressing = out->managedMemory = out->canMapHostMemory = 1;
    out->concurrentManagedAccess = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp facts;
    if (cudaError_t error = cudaGetDeviceProperties(&facts, device))
        return error;
    switch (attribute) {
#define ATTRIBUTE(name, number, member)                                                \
    case cudaDevAttr##name:                                                            \
        *value = (int)facts.member;                                                    \
        return cudaSuccess;
        SIM_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
    }
    return answer(cudaErrorInvalidValue);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    SIM_ENTER();
    uint64_t before = state().violations;
    int device = thread().device;
    if (cudaError_t error = refuse_of_device(device))
        return answer(error);
    device_at(device).counted.waits++;
    if (clock_runs())
        clock_wait(device);
    if (!drain_device(device))
        return answer(cudaErrorUnknown);
    each_stream([device](Stream &stream) {
        if (stream.device == device)
            race_host_waits(stream);
    });
    return verdict(device, before);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    SIM_ENTER();
    if (!exists(device) || !exists(peer))
        return answer(cudaErrorInvalidDevice);
    *can = state().options.peer && device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    SIM_ENTER();
    int device = thread().device;
    if (flags)
        return answer(cudaErrorInvalidValue);
    if (!exists(peer) || peer == device)
        return answer(cudaErrorInvalidDevice);
    if (!state().options.peer)
        return answer(cudaErrorPeerAccessUnsupported);
    bool &reaches = device_at(device).reaches[peer];
    if (reaches)
        return answer(cudaErrorPeerAccessAlreadyEnabled);
    reaches = true;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    SIM_ENTER();
    if (!exists(peer))
        return answer(cudaErrorInvalidDevice);
    bool &reaches = device_at(thread().device).reaches[peer];
    if (!reaches)
        return answer(cudaErrorPeerAccessNotEnabled);
    drain_all();
    reaches = false;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    SIM_ENTER();
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}
