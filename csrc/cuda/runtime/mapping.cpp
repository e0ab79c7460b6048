#include "cuda/runtime/mapping.h"

#include <string.h>

#include "base/lock.h"

#ifdef DT_SIMULATED

static const dt_mapping *mapping_get()
{
#define FUNCTION(name, symbol, parameters) symbol,
    static const dt_mapping functions = {DT_MAPPING_FUNCTIONS(FUNCTION)};
#undef FUNCTION
    return &functions;
}

#else

#include <dlfcn.h>

/* NULL where the driver has no such functions. */
static const dt_mapping *mapping_get()
{
    static dt_mapping functions;
    static int state; /* 1: loaded, -1: there are none */
    dt_locked guard(DT_LOCK_DEVICE_TABLE);
    if (!state) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        bool whole = library != nullptr;
#define FUNCTION(name, symbol, parameters)                                             \
    {                                                                                  \
        void *address = whole ? dlsym(library, #symbol) : nullptr;                     \
        whole = address != nullptr;                                                    \
        memcpy(&functions.name, &address, sizeof address);                             \
    }
        DT_MAPPING_FUNCTIONS(FUNCTION)
#undef FUNCTION
        state = whole ? 1 : -1;
    }
    return state > 0 ? &functions : nullptr;
}

#endif

static dt_mapping_address address_of(const char *at)
{
    return (dt_mapping_address)(uintptr_t)at;
}

static dt_mapping_kind memory_of(int gpu)
{
    dt_mapping_kind kind;
    memset(&kind, 0, sizeof kind);
    kind.type = (decltype(kind.type))DT_MAPPING_PINNED;
    kind.location.type = (decltype(kind.location.type))DT_MAPPING_DEVICE;
    kind.location.id = gpu;
    return kind;
}

cudaError_t Mapped::reserve(int of, size_t range, size_t size)
{
    const dt_mapping *driver = mapping_get();
    const dt_mapping_kind kind = memory_of(of);
    size_t unit = 0;
    if (!driver)
        return cudaErrorNotSupported;
    if (int error = driver->granularity(&unit, &kind, 0))
        return (cudaError_t)error;
    page = (size + unit - 1) / unit * unit;
    bytes = (range + page - 1) / page * page;
    dt_mapping_address found = 0;
    if (int error = driver->reserve(&found, bytes, 0, 0, 0))
        return (cudaError_t)error;
    gpu = of;
    base = (char *)(uintptr_t)found;
    pages.assign(bytes / page, 0);
    return cudaSuccess;
}

cudaError_t Mapped::grant(char *at, size_t size, int to)
{
    dt_mapping_access access;
    access.location = memory_of(to).location;
    access.flags = (decltype(access.flags))DT_MAPPING_READ_WRITE;
    return (cudaError_t)mapping_get()->set_access(address_of(at), size, &access, 1);
}

cudaError_t Mapped::map(char *at, size_t size, const std::vector<int> &peers)
{
    const dt_mapping *driver = mapping_get();
    const dt_mapping_kind kind = memory_of(gpu);
    size_t done = 0;
    int error = 0;
    for (; done < size; done += page) {
        dt_mapping_memory memory = 0;
        error = driver->create(&memory, page, &kind, 0);
        if (error)
            break;
        error = driver->map(address_of(at + done), page, 0, memory, 0);
        if (error) {
            driver->release(memory);
            break;
        }
        pages[(size_t)(at + done - base) / page] = memory;
        mapped += page;
    }
    if (!error)
        error = grant(at, size, gpu);
    if (error)
        unmap(at, done);
    for (size_t i = 0; !error && i < peers.size(); i++)
        if (grant(at, size, peers[i])) /* its copies are staged then */
            cudaGetLastError();
    return (cudaError_t)error;
}

cudaError_t Mapped::unmap(char *at, size_t size)
{
    const dt_mapping *driver = mapping_get();
    for (size_t done = 0; done < size; done += page) {
        dt_mapping_memory &memory = pages[(size_t)(at + done - base) / page];
        if (int error = driver->unmap(address_of(at + done), page))
            return (cudaError_t)error;
        driver->release(memory);
        memory = 0;
        mapped -= page;
    }
    return cudaSuccess;
}

cudaError_t Mapped::share(int peer)
{
    for (size_t i = 0, n = 0; i < pages.size(); i += n) {
        const bool there = pages[i] != 0;
        for (n = 1; i + n < pages.size() && (pages[i + n] != 0) == there;)
            n++;
        if (!there)
            continue;
        if (cudaError_t error = grant(base + i * page, n * page, peer))
            return error;
    }
    return cudaSuccess;
}

void Mapped::free()
{
    if (base)
        mapping_get()->free(address_of(base), bytes);
    base = nullptr;
}
