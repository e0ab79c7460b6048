/* Compares the declarations in nvrtc.h with NVIDIA's headers, where installed. */
#include "cuda/runtime/nvrtc.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#include "cuda/runtime/signature.h"

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

static_assert((int)DT_NVRTC_SUCCESS == NVRTC_SUCCESS &&
                  (int)DT_NVRTC_COMPILATION == NVRTC_ERROR_COMPILATION,
              "nvrtc.h differs");
DT_NVRTC_FUNCTIONS(DT_SAME_FUNCTION)
#endif

#if __has_include(<cuda.h>)
#include <cuda.h>

static_assert((int)DT_DRIVER_MAX_THREADS == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
                  (int)DT_DRIVER_SHARED_BYTES == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES &&
                  (int)DT_DRIVER_CONST_BYTES == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES &&
                  (int)DT_DRIVER_LOCAL_BYTES == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES &&
                  (int)DT_DRIVER_REGISTERS == CU_FUNC_ATTRIBUTE_NUM_REGS &&
                  (int)DT_DRIVER_DYNAMIC_BYTES ==
                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              "cuda.h differs");
DT_DRIVER_FUNCTIONS(DT_SAME_FUNCTION)
#endif
#endif
