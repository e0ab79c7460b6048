// The second file of the program "pieces".
#include <cuda_runtime.h>
#include "pieces.h"

__global__ void fill(Buffers buffers, int n, float from)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        buffers.x[i] = from + i;
        buffers.y[i] = 2.0 * i;
    }
}

namespace {
__global__ void add_to_itself(float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += x[i];
}
} // namespace

#define LAUNCH(kernel, n, stream) kernel<<<((n) + 31) / 32, 32, 0, stream>>>

void double_it(float *x, int n, cudaStream_t stream)
{
    LAUNCH(add_to_itself, n, stream)(x, n);
}
