/* Devices: how many, their properties, peer access. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

using namespace sim;

/* What kernels may use is compute capability 8.0; the other properties are small. */
enum {
    kMajor = 8,
    kMinor = 0,
    kMultiprocessors = 4,
    kMaxThreads = 1024,
    kMaxThreadsPerMultiprocessor = 2048,
    kShared = 48 << 10,
    kSharedOptin = 163 << 10,
    kL2 = 4 << 20,
    kBus = 0x51
};

static bool exists(int device)
{
    return device >= 0 && device < state().options.devices;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    Entry in(Entry::kNothing);
    if (!count)
        return answer(cudaErrorInvalidValue);
    *count = in.error ? 0 : state().options.devices;
    if (in.error)
        return answer(in.error);
    return *count ? cudaSuccess : answer(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    if (!exists(device))
        return answer(cudaErrorInvalidDevice);
    thread().device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return answer(in.error);
    *device = thread().device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return answer(in.error);
    if (!out || !exists(device))
        return answer(out ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "Simulated GPU");
    memcpy(out->uuid.bytes, "simulated-gpu", 13);
    out->uuid.bytes[15] = (char)device;
    out->totalGlobalMem = state().options.memory;
    out->sharedMemPerBlock = kShared;
    out->sharedMemPerBlockOptin = kSharedOptin;
    out->sharedMemPerMultiprocessor = kSharedOptin + 1024;
    out->reservedSharedMemPerBlock = 1024;
    out->regsPerBlock = out->regsPerMultiprocessor = 65536;
    out->warpSize = 32;
    out->maxThreadsPerBlock = kMaxThreads;
    out->maxThreadsPerMultiProcessor = kMaxThreadsPerMultiprocessor;
    out->maxBlocksPerMultiProcessor = 32;
    out->maxThreadsDim[0] = out->maxThreadsDim[1] = kMaxThreads;
    out->maxThreadsDim[2] = 64;
    out->maxGridSize[0] = 0x7fffffff;
    out->maxGridSize[1] = out->maxGridSize[2] = 65535;
    out->totalConstMem = 64 << 10;
    out->major = kMajor;
    out->minor = kMinor;
    out->multiProcessorCount = kMultiprocessors;
    out->concurrentKernels = 1;
    out->canMapHostMemory = 1;
    out->unifiedAddressing = 1;
    out->streamPrioritiesSupported = 1;
    out->asyncEngineCount = 2;
    out->l2CacheSize = kL2;
    out->memoryBusWidth = 64;
    out->pciBusID = kBus;
    out->pciDeviceID = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp p;
    if (!value)
        return answer(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error)
        return error;
    switch (attribute) {
#define ATTRIBUTE(name, expression)                                                    \
    case cudaDevAttr##name:                                                            \
        *value = (int)(expression);                                                    \
        return cudaSuccess;
        ATTRIBUTE(MaxThreadsPerBlock, p.maxThreadsPerBlock)
        ATTRIBUTE(MaxBlockDimX, p.maxThreadsDim[0])
        ATTRIBUTE(MaxBlockDimY, p.maxThreadsDim[1])
        ATTRIBUTE(MaxBlockDimZ, p.maxThreadsDim[2])
        ATTRIBUTE(MaxGridDimX, p.maxGridSize[0])
        ATTRIBUTE(MaxGridDimY, p.maxGridSize[1])
        ATTRIBUTE(MaxGridDimZ, p.maxGridSize[2])
        ATTRIBUTE(MaxSharedMemoryPerBlock, p.sharedMemPerBlock)
        ATTRIBUTE(MaxSharedMemoryPerBlockOptin, p.sharedMemPerBlockOptin)
        ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, p.sharedMemPerMultiprocessor)
        ATTRIBUTE(TotalConstantMemory, p.totalConstMem)
        ATTRIBUTE(WarpSize, p.warpSize)
        ATTRIBUTE(MaxRegistersPerBlock, p.regsPerBlock)
        ATTRIBUTE(ClockRate, 0)
        ATTRIBUTE(MemoryClockRate, 0)
        ATTRIBUTE(MultiProcessorCount, p.multiProcessorCount)
        ATTRIBUTE(Integrated, p.integrated)
        ATTRIBUTE(ComputeMode, cudaComputeModeDefault)
        ATTRIBUTE(ConcurrentKernels, p.concurrentKernels)
        ATTRIBUTE(PciBusId, p.pciBusID)
        ATTRIBUTE(PciDeviceId, p.pciDeviceID)
        ATTRIBUTE(PciDomainId, p.pciDomainID)
        ATTRIBUTE(GlobalMemoryBusWidth, p.memoryBusWidth)
        ATTRIBUTE(L2CacheSize, p.l2CacheSize)
        ATTRIBUTE(MaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor)
        ATTRIBUTE(MaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor)
        ATTRIBUTE(AsyncEngineCount, p.asyncEngineCount)
        ATTRIBUTE(UnifiedAddressing, p.unifiedAddressing)
        ATTRIBUTE(ComputeCapabilityMajor, p.major)
        ATTRIBUTE(ComputeCapabilityMinor, p.minor)
#undef ATTRIBUTE
    }
    return answer(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int length, int device)
{
    cudaDeviceProp p;
    if (!out || length < 13)
        return answer(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error)
        return error;
    snprintf(out, (size_t)length, "%04x:%02x:%02x.0", (unsigned)p.pciDomainID,
             (unsigned)p.pciBusID, (unsigned)p.pciDeviceID);
    return cudaSuccess;
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
    Entry in;
    if (in.error)
        return answer(in.error);
    uint64_t before = state().violations;
    int device = thread().device;
    state().devices[(size_t)device]->counted.waits++;
    drain_device(device);
    return verdict(device, before);
}

/* The simulator keeps no state that a reset would have to clear. */
cudaError_t cudaDeviceReset(void)
{
    return cudaDeviceSynchronize();
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    if (!exists(device) || !exists(peer))
        return answer(cudaErrorInvalidDevice);
    *can = state().options.peer && device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    int device = thread().device;
    if (flags)
        return answer(cudaErrorInvalidValue);
    if (!exists(peer) || peer == device)
        return answer(cudaErrorInvalidDevice);
    if (!state().options.peer)
        return answer(cudaErrorPeerAccessUnsupported);
    bool &reaches = state().devices[(size_t)device]->reaches[peer];
    if (reaches)
        return answer(cudaErrorPeerAccessAlreadyEnabled);
    reaches = true;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    if (!exists(peer))
        return answer(cudaErrorInvalidDevice);
    bool &reaches = state().devices[(size_t)thread().device]->reaches[peer];
    if (!reaches)
        return answer(cudaErrorPeerAccessNotEnabled);
    reaches = false;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}

int dt_sim_is_device_address(const void *pointer)
{
    Entry in(Entry::kNothing);
    return !in.error && device_of(pointer) != nullptr;
}
