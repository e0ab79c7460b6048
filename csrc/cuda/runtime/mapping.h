/* Addresses and memory apart: ranges of addresses that a device's memory is mapped in, page
 * by page, by the driver's functions of virtual memory. They are declared here because
 * machines with a GPU often lack the headers; mapping_check.cpp compares them with NVIDIA's
 * where they exist. */
#ifndef DT_CUDA_RUNTIME_MAPPING_H
#define DT_CUDA_RUNTIME_MAPPING_H

#include <cuda_runtime.h>
#include <vector>

#ifdef SIM_CUDA
#include "sim/mapping.h"
#endif

enum { DT_MAPPING_PINNED = 1, DT_MAPPING_DEVICE = 1, DT_MAPPING_READ_WRITE = 3 };

typedef unsigned long long dt_mapping_address, dt_mapping_memory;
#ifdef SIM_CUDA
typedef CUmemAllocationProp dt_mapping_kind;
typedef CUmemAccessDesc dt_mapping_access;
#else
struct dt_mapping_location {
    int type, id;
};
struct dt_mapping_kind {
    int type, handle_types;
    dt_mapping_location location;
    void *unused;
    unsigned char flags[8];
};
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
    FUNCTION(unmap, cuMemUnmap, (dt_mapping_address at, size_t bytes))

typedef struct dt_mapping {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_MAPPING_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_mapping;

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

  private:
    int gpu = 0;
    std::vector<dt_mapping_memory> pages; /* 0: not mapped */
    cudaError_t grant(char *at, size_t size, int to);
};

/* Lets another GPU, by its ordinal, access what a device maps (allocator.cpp). */
void heap_share(int device, int gpu);

/* Whether the address is in a segment that grows (allocator.cpp). */
bool heap_grows(int device, const void *address);

#endif
