/* Compares the declarations in mapping.h with NVIDIA's header, where installed. */
#include "cuda/runtime/mapping.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cuda.h>)
#include <cuda.h>
#include <stddef.h>

#include "cuda/runtime/signature.h"

static_assert((int)DT_MAPPING_PINNED == CU_MEM_ALLOCATION_TYPE_PINNED &&
                  (int)DT_MAPPING_DEVICE == CU_MEM_LOCATION_TYPE_DEVICE &&
                  (int)DT_MAPPING_READ_WRITE == CU_MEM_ACCESS_FLAGS_PROT_READWRITE &&
                  (int)DT_MAPPING_DESCRIPTOR ==
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                  CU_MEM_ALLOC_GRANULARITY_MINIMUM == 0,
              "cuda.h differs");
static_assert(sizeof(dt_mapping_kind) == sizeof(CUmemAllocationProp) &&
                  offsetof(dt_mapping_kind, requestedHandleTypes) ==
                      offsetof(CUmemAllocationProp, requestedHandleTypes) &&
                  offsetof(dt_mapping_kind, location) ==
                      offsetof(CUmemAllocationProp, location) &&
                  offsetof(dt_mapping_kind, flags) ==
                      offsetof(CUmemAllocationProp, allocFlags) &&
                  offsetof(dt_mapping_location, id) == offsetof(CUmemLocation, id) &&
                  sizeof(dt_mapping_access) == sizeof(CUmemAccessDesc) &&
                  offsetof(dt_mapping_access, flags) ==
                      offsetof(CUmemAccessDesc, flags),
              "cuda.h differs");
#define SAME_DESCRIPTION(ours, theirs)                                                 \
    template <>                                                                        \
    struct plain<const ours *> : plain<const void *> {};                               \
    template <>                                                                        \
    struct plain<const theirs *> : plain<const void *> {}
SAME_DESCRIPTION(dt_mapping_kind, CUmemAllocationProp);
SAME_DESCRIPTION(dt_mapping_access, CUmemAccessDesc);
DT_MAPPING_FUNCTIONS(DT_SAME_FUNCTION)
#endif
#endif
