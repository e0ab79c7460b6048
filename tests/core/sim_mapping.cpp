/* Memory that a program maps itself: addresses, memory, access, and what is refused. */
#include "sim/mapping.h"
#include "sim_check.h"

__global__ void put(float *x, long n, float value)
{
    for (long i = 0; i < n; i++)
        x[i] = value;
}
__global__ void put_at(char *x, long where)
{
    x[where] = 1;
}

static const size_t kPage = (size_t)2 << 20;
static const int kInvalid = cudaErrorInvalidValue;

static CUmemAllocationProp memory_of(int device)
{
    CUmemAllocationProp what = {};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    what.location.id = device;
    return what;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr at = 0;
    GOOD(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    return at;
}

static CUmemGenericAllocationHandle create(size_t bytes)
{
    const CUmemAllocationProp what = memory_of(0);
    CUmemGenericAllocationHandle handle = 0;
    GOOD(cuMemCreate(&handle, bytes, &what, 0));
    return handle;
}

/* Maps new memory, which goes when it is unmapped. */
static void map_new(CUdeviceptr at, size_t bytes)
{
    CUmemGenericAllocationHandle handle = create(bytes);
    GOOD(cuMemMap(at, bytes, 0, handle, 0));
    GOOD(cuMemRelease(handle));
}

static int give_access(CUdeviceptr at, size_t bytes, int device)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(at, bytes, &access, 1);
}

static char *pointer(CUdeviceptr at)
{
    return (char *)(uintptr_t)at;
}

static size_t left()
{
    size_t bytes, total;
    GOOD(cudaMemGetInfo(&bytes, &total));
    return bytes;
}

static void sync_tells(const char *words)
{
    EQUAL((int)cudaDeviceSynchronize(), (int)cudaErrorIllegalAddress);
    CHECK(said(words));
    cudaGetLastError();
}

/* Memory counts from when it is made until nothing maps it and its handle is released. */
static void counts()
{
    const size_t before = left();
    size_t unit = 0;
    const CUmemAllocationProp what = memory_of(0);
    GOOD(cuMemGetAllocationGranularity(&unit, &what, 0));
    EQUAL(unit, kPage);
    CUdeviceptr at = reserve(64 * kPage); /* twice what the device has */
    EQUAL(left(), before);
    CUmemGenericAllocationHandle handle = create(3 * kPage), other = 0;
    EQUAL(left(), before - 3 * kPage);
    GOOD(cuMemMap(at, 3 * kPage, 0, handle, 0));
    GOOD(cuMemRelease(handle));
    EQUAL(left(), before - 3 * kPage);
    EQUAL(cuMemCreate(&other, before, &what, 0), (int)cudaErrorMemoryAllocation);
    EQUAL(cuMemAddressFree(at, 64 * kPage), kInvalid); /* something is mapped */
    GOOD(cuMemUnmap(at, 3 * kPage));
    EQUAL(left(), before);
    GOOD(cuMemAddressFree(at, 64 * kPage));
    EQUAL(cuMemAddressFree(at, 64 * kPage), kInvalid);
    EQUAL(cuMemRelease(handle), kInvalid);
    cudaGetLastError();
}

static void wrong_arguments()
{
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp what = memory_of(7);
    EQUAL(cuMemAddressReserve(&at, kPage + 1, 0, 0, 0), kInvalid);
    EQUAL(cuMemCreate(&handle, kPage, &what, 0), kInvalid);
    what = memory_of(0);
    EQUAL(cuMemCreate(&handle, kPage / 2, &what, 0), kInvalid);
    at = reserve(4 * kPage);
    handle = create(2 * kPage);
    EQUAL(cuMemMap(at, kPage, 0, handle, 0), kInvalid);
    EQUAL(cuMemMap(at + 512, 2 * kPage, 0, handle, 0), kInvalid);
    EQUAL(cuMemMap(at + 3 * kPage, 2 * kPage, 0, handle, 0), kInvalid);
    EQUAL(cuMemMap(at, 2 * kPage, 0, handle + 9, 0), kInvalid);
    EQUAL(give_access(at, 2 * kPage, 0), kInvalid); /* nothing is mapped */
    GOOD(cuMemMap(at + kPage, 2 * kPage, 0, handle, 0));
    EQUAL(cuMemMap(at, 2 * kPage, 0, create(2 * kPage), 0), kInvalid);
    EQUAL(cuMemUnmap(at + kPage, kPage), kInvalid);
    EQUAL((int)cudaFree(pointer(at + kPage)), kInvalid);
    cudaIpcMemHandle_t shared;
    EQUAL((int)cudaIpcGetMemHandle(&shared, pointer(at + kPage)), kInvalid);
    GOOD(cuMemUnmap(at + kPage, 2 * kPage));
    GOOD(cuMemRelease(handle));
    GOOD(cuMemRelease(handle + 1));
    GOOD(cuMemAddressFree(at, 4 * kPage));
    cudaGetLastError();
}

/* Work may use what is mapped and that access was given to, and nothing else. */
static void access()
{
    CUdeviceptr at = reserve(8 * kPage);
    map_new(at + kPage, kPage);
    char *x = pointer(at + kPage);
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, (float *)x, 4, 7.0f));
    sync_tells("to which cuMemSetAccess gives cuda:0 no access");
    GOOD(give_access(at + kPage, kPage, 0));
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, (float *)x, 4, 7.0f));
    EQUAL(fetch((float *)x, 4)[3], 7);
    CHECK(fetch((float *)x, 5)[4] != fetch((float *)x, 5)[4]); /* poison */
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, pointer(at), 0));
    sync_tells("not allocated");
    if (!sanitized) {
        GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, (long)kPage));
        sync_tells("touched");
    }
    GOOD(cuMemUnmap(at + kPage, kPage));
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, 0));
    sync_tells("not allocated");
    map_new(at + kPage, kPage);
    GOOD(give_access(at + kPage, kPage, 0));
    CHECK(fetch((float *)x, 4)[3] != 7); /* other memory */
    GOOD(cuMemUnmap(at + kPage, kPage));
    GOOD(cuMemAddressFree(at, 8 * kPage));
}

/* Another device needs access of its own, and not cudaDeviceEnablePeerAccess. */
static void peers()
{
    CUdeviceptr at = reserve(kPage);
    map_new(at, kPage);
    GOOD(give_access(at, kPage, 0));
    float *x = (float *)pointer(at);
    GOOD(cudaSetDevice(1));
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, x, 4, 1.0f));
    sync_tells("gives cuda:1 no access");
    GOOD(give_access(at, kPage, 1));
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, x, 4, 1.0f));
    GOOD(cudaDeviceSynchronize());
    EQUAL(dt_sim_set("peer", "0"), 0);
    EQUAL(give_access(at, kPage, 1), (int)cudaErrorPeerAccessUnsupported);
    EQUAL(dt_sim_set("peer", "1"), 0);
    cudaGetLastError();
    GOOD(cudaSetDevice(0));
    EQUAL(fetch(x, 4)[3], 1);
    GOOD(cuMemUnmap(at, kPage));
    GOOD(cuMemAddressFree(at, kPage));
}

/* An allocator's block may take several mappings, but leaves none that is there. */
static void blocks()
{
    CUdeviceptr at = reserve(4 * kPage);
    map_new(at, kPage);
    map_new(at + kPage, kPage);
    GOOD(give_access(at, 2 * kPage, 0));
    char *x = pointer(at) + kPage / 2;
    SIM_BLOCK_TAKEN(x, kPage, kPage + 512, nullptr);
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, (float *)x, (long)(kPage / 4), 3.0f));
    EQUAL(fetch((float *)x, kPage / 4)[kPage / 4 - 1], 3);
    if (!sanitized) {
        GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, (long)kPage));
        sync_tells("wrote past the end of a block");
    }
    SIM_BLOCK_GIVEN_BACK(x, kPage + 512);
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, 0));
    sync_tells("was released to the allocator");
    SIM_BLOCK_TAKEN(x, 2 * kPage, 2 * kPage, nullptr);
    sync_tells("leaves its segment");
    GOOD(cuMemUnmap(at, 2 * kPage));
    GOOD(cuMemAddressFree(at, 4 * kPage));
}

/* Memory that queued work uses has to stay mapped. */
static void unmapped_too_early()
{
    CUdeviceptr at = reserve(kPage);
    map_new(at, kPage);
    GOOD(give_access(at, kPage, 0));
    GOOD(cudaDeviceSynchronize());
    schedule("lazy");
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, pointer(at), 0));
    GOOD(cuMemUnmap(at, kPage));
    sync_tells("was unmapped that queued work uses");
    schedule("eager");
    GOOD(cuMemAddressFree(at, kPage));
}

/* Reservations and memory of other kinds keep out of one another's way. */
static void side_by_side()
{
    CUdeviceptr at[3];
    for (CUdeviceptr &each : at)
        each = reserve(4 * kPage);
    GOOD(cuMemAddressFree(at[1], 4 * kPage));
    CUdeviceptr again = reserve(4 * kPage), more = reserve(8 * kPage);
    EQUAL(again, at[1]);
    for (CUdeviceptr each : {at[0], again, at[2]})
        CHECK(more + 8 * kPage <= each || each + 4 * kPage <= more);
    map_new(more, 8 * kPage);
    char *x = on_device<char>(16 * kPage);
    void *none = nullptr;
    EQUAL((int)cudaMalloc(&none, 24 * kPage), (int)cudaErrorMemoryAllocation);
    GOOD(cudaFree(x));
    GOOD(cuMemUnmap(more, 8 * kPage));
    for (CUdeviceptr each : {at[0], again, at[2]})
        GOOD(cuMemAddressFree(each, 4 * kPage));
    GOOD(cuMemAddressFree(more, 8 * kPage));
    cudaGetLastError();
}

static void failures()
{
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp what = memory_of(0);
    EQUAL(dt_sim_set("failures", "malloc:1"), 0);
    EQUAL(cuMemCreate(&handle, kPage, &what, 0), (int)cudaErrorMemoryAllocation);
    EQUAL((int)cudaGetLastError(), (int)cudaErrorMemoryAllocation);
    GOOD(cuMemRelease(create(kPage)));
}

int main()
{
    EQUAL(dt_sim_set("devices", "2"), 0);
    EQUAL(dt_sim_set("memory", "64M"), 0);
    counts();
    wrong_arguments();
    for (const char *when : {"eager", "lazy", "random:3"}) {
        schedule(when);
        access();
        peers();
        blocks();
        schedule("eager");
    }
    unmapped_too_early();
    side_by_side();
    failures();
    return finish();
}
