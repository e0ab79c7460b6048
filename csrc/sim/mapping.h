/* The driver's functions that map memory at addresses of a program's choice, by CUDA's names.
 * Their errors have the numbers of the runtime's. */
#ifndef DT_SIM_MAPPING_H
#define DT_SIM_MAPPING_H

#include "cuda_runtime.h"

typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
enum CUmemAllocationType : int { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType : int { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAllocationHandleType : int {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
};
enum CUmemAccess_flags : int {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
};
struct CUmemLocation {
    CUmemLocationType type;
    int id; /* of the device */
};
struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
};

int cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *what,
                                  int option);
int cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                        CUdeviceptr wanted, unsigned long long flags);
int cuMemAddressFree(CUdeviceptr at, size_t bytes);
int cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                const CUmemAllocationProp *what, unsigned long long flags);
int cuMemRelease(CUmemGenericAllocationHandle handle);
int cuMemMap(CUdeviceptr at, size_t bytes, size_t offset,
             CUmemGenericAllocationHandle handle, unsigned long long flags);
int cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access,
                   size_t count);
int cuMemUnmap(CUdeviceptr at, size_t bytes);
int cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                 CUmemAllocationHandleType type,
                                 unsigned long long flags);
int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *descriptor,
                                   CUmemAllocationHandleType type);

namespace sim {
/* Says that memory of another process, which is mapped page by page, is one block. */
void block_opened(void *pointer, size_t bytes);
} /* namespace sim */

#endif
