// A filter of constant memory, launched by cudaLaunchKernel too.
#include "check.h"

#define RADIUS 3
#define WIDTH (2 * RADIUS + 1)

__constant__ float weights[WIDTH];
__constant__ const int first_weight = -RADIUS;
static __device__ int reads = 0;

extern "C" __global__ void filter(const float *in, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int k = 0; k < WIDTH; k++) {
        const int j = i + first_weight + k;
        if (j >= 0 && j < n) {
            sum += weights[k] * in[j];
            atomicAdd(&reads, 1);
        }
    }
    out[i] = sum;
}

int main()
{
    const int n = 1000;
    float in[n], out[n], again[n];
    const float h_weights[WIDTH] = {1, 2, 3, 4, 3, 2, 1};
    for (int i = 0; i < n; i++)
        in[i] = i % 13;
    CHECK(cudaMemcpyToSymbol(weights, h_weights, sizeof(h_weights)));
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, sizeof(in)));
    CHECK(cudaMalloc(&d_out, sizeof(out)));
    CHECK(cudaMemcpy(d_in, in, sizeof(in), cudaMemcpyHostToDevice));
    filter<<<(n + 127) / 128, 128>>>(d_in, d_out, n);
    CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
    int h_reads, size = n, wrong = 0;
    CHECK(cudaMemcpyFromSymbol(&h_reads, reads, sizeof(int), 0, cudaMemcpyDeviceToHost));

    void *arguments[] = {&d_in, &d_out, &size};
    CHECK(cudaMemset(d_out, 0, sizeof(out)));
    CHECK(cudaLaunchKernel((void *)filter, dim3(8), dim3(128), arguments, 0, 0));
    CHECK(cudaMemcpy(again, d_out, sizeof(again), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < WIDTH; k++)
            if (i + k - RADIUS >= 0 && i + k - RADIUS < n)
                sum += h_weights[k] * in[i + k - RADIUS];
        wrong += sum != out[i] || sum != again[i];
    }
    printf("constant_filter: %d wrong, %d reads\n", wrong, h_reads);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return wrong != 0;
}
