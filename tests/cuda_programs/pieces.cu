// Templates, lambdas, function pointers and a second file, pieces_more.cu.
#include "check.h"
#include "pieces.h"
#include <cassert>

namespace maps {

template <typename T, typename F>
__global__ void apply(T *x, int n, F f)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        x[i] = f(x[i]);
}

template <typename T>
struct Scale {
    T by;
    __host__ __device__ T operator()(T value) const { return by * value; }
};

} // namespace maps

template <int add, class T>
__global__ void shift(T *x, int n)
{
    assert(n >= 0);
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        x[i] += add;
}

template <class T>
void twice(T *x, int n)
{
    shift<1><<<dim3((n + 63) / 64), 64>>>(x, n);
    shift<2, T><<<(n + 63) / 64, dim3(64, 1, 1), 0, 0>>>(x, n);
}

int main()
{
    const int n = 500;
    float x[n];
    double y[n];
    Buffers buffers;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&buffers.x, sizeof(x)));
    CHECK(cudaMalloc(&buffers.y, sizeof(y)));
    fill<<<2, 256>>>(buffers, n, 1);
    twice(buffers.x, n);
    twice(buffers.y, n);
    maps::apply<<<3, 64>>>(buffers.y, n, maps::Scale<double>{0.5});
    void (*kernel)(float *, int) = shift<10, float>;
    kernel<<<8, 64>>>(buffers.x, n);
    CHECK(cudaDeviceSynchronize());
    double_it(buffers.x, n, stream);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(x, buffers.x, sizeof(x), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(y, buffers.y, sizeof(y), cudaMemcpyDefault));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += x[i] != 2.0f * (i + 1 + 13) || y[i] != 0.5 * (2 * i + 3);
    printf("pieces: %d wrong\n", wrong);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(buffers.x));
    CHECK(cudaFree(buffers.y));
    return wrong != 0;
}
