// An inclusive scan: in each block, of the blocks' sums, and both together.
#include "check.h"
#include <vector>

constexpr int THREADS = 128;

__global__ void scan_blocks(const int *in, int *out, int *sums, int n)
{
    __shared__ int buffer[2][THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    int from = 0;
    buffer[0][threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const int to = 1 - from;
        int value = buffer[from][threadIdx.x];
        if (threadIdx.x >= offset)
            value += buffer[from][threadIdx.x - offset];
        buffer[to][threadIdx.x] = value;
        from = to;
        __syncthreads();
    }
    if (i < n)
        out[i] = buffer[from][threadIdx.x];
    if (sums && threadIdx.x == THREADS - 1)
        sums[blockIdx.x] = buffer[from][threadIdx.x];
}

__global__ void add_sums(int *out, const int *sums, int n)
{
    const int i = (blockIdx.x + 1) * THREADS + threadIdx.x;
    if (i < n)
        out[i] += sums[blockIdx.x];
}

void scan(const int *in, int *out, int n)
{
    const int blocks = (n + THREADS - 1) / THREADS;
    if (blocks == 1) {
        scan_blocks<<<1, THREADS>>>(in, out, nullptr, n);
        return;
    }
    int *sums;
    CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
    scan_blocks<<<blocks, THREADS>>>(in, out, sums, n);
    scan(sums, sums, blocks);
    add_sums<<<blocks - 1, THREADS>>>(out, sums, n);
    CHECK(cudaFree(sums));
}

int main()
{
    const int n = 40000;
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; i++)
        in[i] = i % 9 - 3;
    int *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, n * sizeof(int)));
    CHECK(cudaMalloc(&d_out, n * sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    scan(d_in, d_out, n);
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    int sum = 0, wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += out[i] != (sum += in[i]);
    printf("scan: %d wrong, the last is %d\n", wrong, out[n - 1]);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return wrong != 0;
}
