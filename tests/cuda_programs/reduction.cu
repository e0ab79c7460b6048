// Three sums: a tree in dynamic shared memory, shuffles, and the last block done.
#include "check.h"
#include <numeric>
#include <vector>

template <unsigned threads>
__global__ void sum_tree(const int *in, int *out, int n)
{
    extern __shared__ int part[];
    int mine = 0;
    for (int i = blockIdx.x * threads + threadIdx.x; i < n; i += gridDim.x * threads)
        mine += in[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = threads / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = part[0];
}

__inline__ __device__ int sum_of_warp(int value)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void sum_shuffle(const int *in, int *out, int n)
{
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        mine += in[i];
    mine = sum_of_warp(mine);
    if ((threadIdx.x & (warpSize - 1)) == 0)
        atomicAdd(out, mine);
}

__device__ unsigned int blocks_done = 0;

__global__ void sum_last_block(const int *in, volatile int *parts, int *out, int n)
{
    __shared__ int part[256];
    __shared__ bool is_last;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part[0];
        __threadfence();
        is_last = atomicInc(&blocks_done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int sum = 0;
        for (int block = 0; block < gridDim.x; block++)
            sum += parts[block];
        *out = sum;
        blocks_done = 0;
    }
}

int main()
{
    const int n = 30001, blocks = 16, threads = 256;
    std::vector<int> in(n);
    for (int i = 0; i < n; i++)
        in[i] = i % 11 - 4;
    const int expected = std::accumulate(in.begin(), in.end(), 0);
    int *d_in, *d_parts, *d_out, wrong = 0;
    const int all = (n + threads - 1) / threads;
    CHECK(cudaMalloc(&d_in, n * sizeof(int)));
    CHECK(cudaMalloc(&d_parts, all * sizeof(int)));
    CHECK(cudaMalloc(&d_out, sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    sum_tree<threads><<<blocks, threads, threads * sizeof(int)>>>(d_in, d_parts, n);
    sum_tree<blocks><<<1, blocks, blocks * sizeof(int)>>>(d_parts, d_out, blocks);
    int sum;
    CHECK(cudaMemcpy(&sum, d_out, sizeof sum, cudaMemcpyDeviceToHost));
    wrong += sum != expected;
    printf("reduction: tree %d, ", sum);

    CHECK(cudaMemset(d_out, 0, sizeof(int)));
    sum_shuffle<<<blocks, threads>>>(d_in, d_out, n);
    CHECK(cudaMemcpy(&sum, d_out, sizeof sum, cudaMemcpyDeviceToHost));
    wrong += sum != expected;
    printf("shuffles %d, ", sum);

    for (int again = 0; again < 2; again++) {
        sum_last_block<<<all, threads>>>(d_in, d_parts, d_out, n);
        CHECK(cudaMemcpy(&sum, d_out, sizeof sum, cudaMemcpyDeviceToHost));
        wrong += sum != expected;
    }
    printf("last block %d, expected %d\n", sum, expected);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_parts));
    CHECK(cudaFree(d_out));
    return wrong;
}
