// Counts bytes: each block in shared memory first, then all in global memory.
#include "check.h"
#include <cstring>

const int BINS = 256;

__global__ void histogram(const unsigned char *data, size_t n, unsigned *bins)
{
    __shared__ unsigned mine[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        mine[i] = 0;
    __syncthreads();
    const size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x)
        if (mine[i] > 0)
            atomicAdd(bins + i, mine[i]);
}

int main(void)
{
    const size_t n = 1 << 16;
    unsigned char *data;
    unsigned *d_bins, bins[BINS], expected[BINS];
    unsigned char *d_data;
    CHECK(cudaMallocHost(&data, n));
    memset(expected, 0, sizeof(expected));
    for (size_t i = 0; i < n; i++) {
        data[i] = (unsigned char)(i * i >> 4);
        expected[data[i]]++;
    }
    int device, blocks;
    cudaDeviceProp facts;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&facts, device));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, histogram, 128, 0));
    CHECK(cudaMalloc(&d_data, n));
    CHECK(cudaMalloc(&d_bins, sizeof(bins)));
    CHECK(cudaMemcpyAsync(d_data, data, n, cudaMemcpyHostToDevice));
    CHECK(cudaMemsetAsync(d_bins, 0, sizeof(bins)));
    const unsigned grid = facts.multiProcessorCount * (blocks < 4 ? blocks : 4);
    histogram<<<grid, 128>>>(d_data, n, d_bins);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    printf("histogram: %s\n", memcmp(bins, expected, sizeof(bins)) ? "wrong" : "right");
    CHECK(cudaFree(d_data));
    CHECK(cudaFree(d_bins));
    CHECK(cudaFreeHost(data));
    return memcmp(bins, expected, sizeof(bins)) != 0;
}
