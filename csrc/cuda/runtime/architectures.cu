/* The architectures this library was built for, which only nvcc knows. */
#include "cuda/runtime/backend.h"

/* nvcc lists 750,800,...; a 0 terminates the table. */
#ifdef __CUDA_ARCH_LIST__
static const int listed[] = {__CUDA_ARCH_LIST__};
#define LISTED(i) ((i) < (int)(sizeof listed / sizeof *listed) ? listed[(i)] / 10 : 0)
const int device_architectures[] = {LISTED(0), LISTED(1), LISTED(2),
                                    LISTED(3), LISTED(4), LISTED(5),
                                    LISTED(6), LISTED(7), 0};
#else
const int device_architectures[] = {0};
#endif
