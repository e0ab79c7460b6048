/* What this build was compiled for: only nvcc itself knows, and only in a .cu file. */
#include "device.h"

#ifdef __CUDA_ARCH_LIST__
static const int architectures[] = {__CUDA_ARCH_LIST__};

int dt_cuda_architectures(const int **out)
{
    *out = architectures; /* in CUDA's hundreds: 900 for compute capability 9.0 */
    return (int)(sizeof architectures / sizeof *architectures);
}
#else
int dt_cuda_architectures(const int **out)
{
    *out = NULL;
    return 0;
}
#endif
