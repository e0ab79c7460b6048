// Each of two GPUs adds up a half; the second's sum is copied to the first, and read
// there by a kernel directly.
#include "check.h"

__constant__ int scale;
__device__ int calls;

__global__ void sum(const int *in, int *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(out, scale * in[i]);
    if (i == 0)
        calls++;
}

__global__ void join(int *mine, const int *copied, const int *there)
{
    *mine += *there;
    if (*copied != *there)
        *mine = -1;
}

int main()
{
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2) {
        printf("two_gpus: there is only %d\n", gpus);
        return 0;
    }
    const int n = 1000;
    int in[2 * n], *d_in[2], *d_out[2], *copied, can;
    for (int i = 0; i < 2 * n; i++)
        in[i] = i;
    for (int gpu = 0; gpu < 2; gpu++) {
        const int factor = gpu + 1;
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMemcpyToSymbol(scale, &factor, sizeof(factor)));
        CHECK(cudaMalloc(&d_in[gpu], n * sizeof(int)));
        CHECK(cudaMalloc(&d_out[gpu], sizeof(int)));
        CHECK(cudaMemset(d_out[gpu], 0, sizeof(int)));
        CHECK(cudaMemcpy(d_in[gpu], in + gpu * n, n * sizeof(int), cudaMemcpyHostToDevice));
        sum<<<(n + 255) / 256, 256>>>(d_in[gpu], d_out[gpu], n);
        CHECK(cudaGetLastError());
    }
    int called[2];
    for (int gpu = 0; gpu < 2; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpyFromSymbol(&called[gpu], calls, sizeof(int)));
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (!can) {
        printf("two_gpus: no peer access\n");
        return 0;
    }
    CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK(cudaMalloc(&copied, sizeof(int)));
    CHECK(cudaMemcpyPeer(copied, 0, d_out[1], 1, sizeof(int)));
    join<<<1, 1>>>(d_out[0], copied, d_out[1]);
    int total, expected = 0;
    CHECK(cudaMemcpy(&total, d_out[0], sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2 * n; i++)
        expected += (1 + i / n) * i;
    printf("two_gpus: %d, expected %d; %d and %d calls\n", total, expected, called[0], called[1]);
    return total != expected || called[0] != 1 || called[1] != 1;
}
