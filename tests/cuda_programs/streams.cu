// The same work on one stream and on four, whose copies and kernels overlap.
#include "check.h"

__global__ void work(float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = 2.0f * x[i] + 1.0f;
}

int main()
{
    const int n = 1 << 18, parts = 4, part = n / parts;
    float *x, *d_x, milliseconds[2];
    CHECK(cudaHostAlloc(&x, n * sizeof(float), cudaHostAllocDefault));
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    for (int i = 0; i < n; i++)
        x[i] = i;
    cudaStream_t streams[parts];
    for (auto &stream : streams)
        CHECK(cudaStreamCreate(&stream));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));

    CHECK(cudaEventRecord(start));
    CHECK(cudaMemcpyAsync(d_x, x, n * sizeof(float), cudaMemcpyHostToDevice));
    work<<<n / 256, 256>>>(d_x, n);
    CHECK(cudaMemcpyAsync(x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&milliseconds[0], start, stop));

    CHECK(cudaEventRecord(start, 0));
    for (int i = 0; i < parts; i++) {
        float *mine = x + i * part, *there = d_x + i * part;
        const size_t bytes = part * sizeof(float);
        CHECK(cudaMemcpyAsync(there, mine, bytes, cudaMemcpyHostToDevice, streams[i]));
        work<<<part / 256, 256, 0, streams[i]>>>(there, part);
        CHECK(cudaMemcpyAsync(mine, there, bytes, cudaMemcpyDeviceToHost, streams[i]));
    }
    // The default stream waits for the others.
    CHECK(cudaEventRecord(stop, 0));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&milliseconds[1], start, stop));

    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += x[i] != 4.0f * i + 3.0f;
    printf("streams: %d wrong, four streams are faster: %s\n", wrong,
           milliseconds[1] < milliseconds[0] ? "yes" : "no");
    for (auto stream : streams)
        CHECK(cudaStreamDestroy(stream));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaFreeHost(x));
    CHECK(cudaFree(d_x));
    return wrong != 0;
}
