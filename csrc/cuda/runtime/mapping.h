/* Addresses and memory apart: ranges of addresses that a device's memory is mapped in, page
 * by page, by the driver's functions of virtual memory. They are declared here because
 * machines with a GPU often lack the headers; mapping_check.cpp compares them with NVIDIA's
 * where they exist. */
#ifndef DT_CUDA_RUNTIME_MAPPING_H
#define DT_CUDA_RUNTIME_MAPPING_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <vector>

#include "base/shared_file.h"

#ifdef SIM_CUDA
#include "sim/mapping.h"
#endif

enum {
    DT_MAPPING_PINNED = 1,
    DT_MAPPING_DEVICE = 1,
    DT_MAPPING_READ_WRITE = 3,
    DT_MAPPING_DESCRIPTOR = 1 /* memory is exported as a file descriptor */
};

typedef unsigned long long dt_mapping_address, dt_mapping_memory;
#ifdef SIM_CUDA
typedef CUmemAllocationProp dt_mapping_kind;
typedef CUmemAccessDesc dt_mapping_access;
typedef CUmemAllocationHandleType dt_mapping_handle;
#else
struct dt_mapping_location {
    int type, id;
};
struct dt_mapping_kind {
    int type, requestedHandleTypes;
    dt_mapping_location location;
    void *unused;
    unsigned char flags[8];
};
typedef int dt_mapping_handle;
struct dt_mapping_access {
    dt_mapping_location location;
    int flags;
};
#endif

/* They return what cudaError_t has the same numbers for. */
#define DT_MAPPING_FUNCTIONS(FUNCTION)                                                 \
    FUNCTION(granularity, cuMemGetAllocationGranularity,                               \
             (size_t *bytes, const dt_mapping_kind *kind, int option))                 \
    FUNCTION(reserve, cuMemAddressReserve,                                             \
             (dt_mapping_address * out, size_t bytes, size_t alignment,                \
              dt_mapping_address wanted, unsigned long long flags))                    \
    FUNCTION(free, cuMemAddressFree, (dt_mapping_address at, size_t bytes))            \
    FUNCTION(create, cuMemCreate,                                                      \
             (dt_mapping_memory * out, size_t bytes, const dt_mapping_kind *kind,      \
              unsigned long long flags))                                               \
    FUNCTION(release, cuMemRelease, (dt_mapping_memory memory))                        \
    FUNCTION(map, cuMemMap,                                                            \
             (dt_mapping_address at, size_t bytes, size_t offset,                      \
              dt_mapping_memory memory, unsigned long long flags))                     \
    FUNCTION(set_access, cuMemSetAccess,                                               \
             (dt_mapping_address at, size_t bytes, const dt_mapping_access *access,    \
              size_t count))                                                           \
    FUNCTION(unmap, cuMemUnmap, (dt_mapping_address at, size_t bytes))                 \
    FUNCTION(give, cuMemExportToShareableHandle,                                       \
             (void *out, dt_mapping_memory memory, dt_mapping_handle as,               \
              unsigned long long flags))                                               \
    FUNCTION(take, cuMemImportFromShareableHandle,                                     \
             (dt_mapping_memory * out, void *descriptor, dt_mapping_handle as))

typedef struct dt_mapping {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_MAPPING_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_mapping;

/* Pages of another process's range: the numbers of their descriptors are in a file. */
struct SharedPages {
    char table[DT_SHARED_FILE];
    uint32_t first, count;
    uint64_t page; /* bytes of each */
};

/* A range of addresses of a GPU. Its memory comes in pages of one size. */
class Mapped {
  public:
    char *base = nullptr;
    size_t bytes = 0, page = 0;
    size_t mapped = 0; /* bytes */

    /* Reserves the range; `size`, and then the range, are rounded up to what the driver
     * wants. cudaErrorNotSupported where the driver has no such functions. */
    cudaError_t reserve(int gpu, size_t range, size_t size);
    /* Whole pages that are not mapped: all of them, or none. The current device is the
     * GPU. */
    cudaError_t map(char *at, size_t size, const std::vector<int> &peers);
    /* Whole pages that are mapped and that no work uses any more. */
    cudaError_t unmap(char *at, size_t size);
    /* Lets another GPU access what is mapped. */
    cudaError_t share(int peer);
    /* Gives the range back, in which nothing is mapped. */
    void free();

    /* Sets *out to what another process needs to map the pages with these bytes. The file
     * descriptor of a page is open until the page is unmapped. false: the driver does not
     * export memory. */
    bool give(const char *at, size_t size, SharedPages *out);
    /* Reserves the range of such pages of another process and maps them, by descriptors of
     * this one. */
    cudaError_t take(int gpu, size_t page, const std::vector<int> &descriptors);

  private:
    struct Page {
        dt_mapping_memory memory = 0; /* 0: not mapped */
        int descriptor = -1;
    };
    int gpu = 0;
    std::vector<Page> pages;
    int table = -1; /* the file of the numbers of the pages' descriptors */
    char table_name[DT_SHARED_FILE] = "";
    cudaError_t grant(char *at, size_t size, int to);
    int put(char *at, dt_mapping_memory memory);
};

/* Lets another GPU, by its ordinal, access what a device maps (allocator.cpp). */
void heap_share(int device, int gpu);

/* Whether the address is in a segment that grows (allocator.cpp). */
bool heap_grows(int device, const void *address);

/* Where another process finds the pages of a taken block in such a segment, and how far the
 * block is from the first (allocator.cpp). false: the driver exports no memory. */
bool heap_give_pages(int device, void *data, SharedPages *out, size_t *offset);

#endif
