#include "cuda/runtime/mapping.h"

#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "cuda/runtime/library.h"

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
        const dt_symbol symbols[] = {DT_MAPPING_FUNCTIONS(LIBRARY_FUNCTION)};
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        state = driver && !library_lacks(driver, symbols) ? 1 : -1;
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
    pages.assign(bytes / page, Page());
    return cudaSuccess;
}

cudaError_t Mapped::grant(char *at, size_t size, int to)
{
    dt_mapping_access access;
    access.location = memory_of(to).location;
    access.flags = (decltype(access.flags))DT_MAPPING_READ_WRITE;
    return (cudaError_t)mapping_get()->set_access(address_of(at), size, &access, 1);
}

/* Memory that other processes may map, where the driver has such. */
static int create(dt_mapping_memory *out, size_t bytes, int gpu)
{
    static bool exports = true;
    dt_mapping_kind kind = memory_of(gpu);
    if (__atomic_load_n(&exports, __ATOMIC_RELAXED)) {
        kind.requestedHandleTypes = (dt_mapping_handle)DT_MAPPING_DESCRIPTOR;
        const int error = mapping_get()->create(out, bytes, &kind, 0);
        if (error != cudaErrorNotSupported && error != cudaErrorInvalidValue)
            return error;
        __atomic_store_n(&exports, false, __ATOMIC_RELAXED);
        kind.requestedHandleTypes = (dt_mapping_handle)0;
    }
    return mapping_get()->create(out, bytes, &kind, 0);
}

/* Maps memory, or releases it if that fails. */
int Mapped::put(char *at, dt_mapping_memory memory)
{
    if (int error = mapping_get()->map(address_of(at), page, 0, memory, 0)) {
        mapping_get()->release(memory);
        return error;
    }
    pages[(size_t)(at - base) / page].memory = memory;
    mapped += page;
    return 0;
}

cudaError_t Mapped::map(char *at, size_t size, const std::vector<int> &peers)
{
    size_t done = 0;
    int error = 0;
    for (; done < size; done += page) {
        dt_mapping_memory memory = 0;
        error = create(&memory, page, gpu);
        if (!error)
            error = put(at + done, memory);
        if (error)
            break;
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
        Page &its = pages[(size_t)(at + done - base) / page];
        if (int error = driver->unmap(address_of(at + done), page))
            return (cudaError_t)error;
        driver->release(its.memory);
        if (its.descriptor >= 0)
            close(its.descriptor);
        its = Page();
        mapped -= page;
    }
    return cudaSuccess;
}

cudaError_t Mapped::share(int peer)
{
    for (size_t i = 0, n = 0; i < pages.size(); i += n) {
        const bool there = pages[i].memory != 0;
        for (n = 1; i + n < pages.size() && (pages[i + n].memory != 0) == there;)
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
    if (table >= 0)
        close(table);
    base = nullptr;
    table = -1;
}

bool Mapped::give(const char *at, size_t size, SharedPages *out)
{
    const size_t from = (size_t)(at - base) / page,
                 to = ((size_t)(at - base) + size + page - 1) / page;
    if (table < 0)
        table = dt_shared_file_new("pydevtensor-pages", pages.size() * sizeof(int),
                                   table_name);
    for (size_t number = from; number < to; number++) {
        Page &its = pages[number];
        int made = -1;
        if (its.descriptor < 0 &&
            mapping_get()->give(&made, its.memory,
                                (dt_mapping_handle)DT_MAPPING_DESCRIPTOR, 0))
            return false;
        if (its.descriptor < 0)
            its.descriptor = made;
        if (pwrite(table, &its.descriptor, sizeof(int),
                   (off_t)(number * sizeof(int))) != sizeof(int))
            return false;
    }
    memcpy(out->table, table_name, sizeof table_name);
    out->first = (uint32_t)from;
    out->count = (uint32_t)(to - from);
    out->page = page;
    return true;
}

cudaError_t Mapped::take(int to, size_t each, const std::vector<int> &descriptors)
{
    if (cudaError_t failed = reserve(to, each * descriptors.size(), each))
        return failed;
    int error = page == each ? 0 : cudaErrorInvalidValue;
    for (size_t i = 0; !error && i < descriptors.size(); i++) {
        dt_mapping_memory memory = 0;
        error = mapping_get()->take(&memory, (void *)(intptr_t)descriptors[i],
                                    (dt_mapping_handle)DT_MAPPING_DESCRIPTOR);
        if (!error)
            error = put(base + i * page, memory);
    }
    if (!error)
        error = grant(base, mapped, gpu);
    if (error) {
        unmap(base, mapped);
        free();
    }
    return (cudaError_t)error;
}
