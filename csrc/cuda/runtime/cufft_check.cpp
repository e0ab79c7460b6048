/* Compares the declarations in cufft.h with NVIDIA's header, where installed. */
#include "cuda/runtime/cufft.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cufft.h>)
#include <cufft.h>

#include "cuda/runtime/signature.h"

#define SAME(name, theirs)                                                             \
    static_assert((int)DT_CUFFT_##name == (int)CUFFT_##theirs, "cufft.h differs")
SAME(ALLOC_FAILED, ALLOC_FAILED);
SAME(R2C, R2C);
SAME(C2R, C2R);
SAME(C2C, C2C);
SAME(D2Z, D2Z);
SAME(Z2D, Z2D);
SAME(Z2Z, Z2Z);
SAME(FORWARD, FORWARD);
SAME(INVERSE, INVERSE);
static_assert(CUFFT_VER_MAJOR == DT_CUDA_MAJOR - 1, "cufft.cpp differs");

DT_CUFFT_FUNCTIONS(DT_SAME_FUNCTION)
#endif
#endif
