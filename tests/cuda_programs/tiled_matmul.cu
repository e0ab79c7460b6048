// A product of matrices by tiles in shared memory; sizes need not be multiples of the tile.
#include "check.h"
#include <cmath>

#ifndef TILE
#define TILE 16
#endif

struct Matrix {
    int rows, cols;
    float *elements;
};

__device__ float element(const Matrix m, int row, int col)
{
    return row < m.rows && col < m.cols ? m.elements[row * m.cols + col] : 0.0f;
}

__global__ void __launch_bounds__(TILE *TILE) multiply(const Matrix a, const Matrix b, Matrix c)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < a.cols; first += TILE) {
        left[threadIdx.y][threadIdx.x] = element(a, row, first + threadIdx.x);
        right[threadIdx.y][threadIdx.x] = element(b, first + threadIdx.y, col);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (row < c.rows && col < c.cols)
        c.elements[row * c.cols + col] = sum;
}

static Matrix on_device(int rows, int cols, const float *elements)
{
    Matrix m = {rows, cols, nullptr};
    const size_t bytes = sizeof(float) * rows * cols;
    CHECK(cudaMalloc(&m.elements, bytes));
    if (elements)
        CHECK(cudaMemcpy(m.elements, elements, bytes, cudaMemcpyHostToDevice));
    return m;
}

int main(int argc, char **argv)
{
    const int m = 50, k = 37, n = 41;
    float *a = (float *)malloc(m * k * sizeof(float)), *b = (float *)malloc(k * n * sizeof(float));
    float *c = (float *)malloc(m * n * sizeof(float));
    for (int i = 0; i < m * k; i++)
        a[i] = (i % 7) - 3;
    for (int i = 0; i < k * n; i++)
        b[i] = (i % 5) - 2;
    Matrix d_a = on_device(m, k, a), d_b = on_device(k, n, b), d_c = on_device(m, n, NULL);
    const dim3 block(TILE, TILE), grid((n + block.x - 1) / block.x, (m + block.y - 1) / block.y);
    multiply<<<grid, block>>>(d_a, d_b, d_c);
    CHECK(cudaPeekAtLastError());
    CHECK(cudaMemcpy(c, d_c.elements, m * n * sizeof(float), cudaMemcpyDeviceToHost));
    float worst = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++)
                sum += a[i * k + l] * b[l * n + j];
            worst = fmaxf(worst, fabsf(sum - c[i * n + j]));
        }
    printf("tiled_matmul: the largest error is %g, with tiles of %d\n", worst, TILE);
    CHECK(cudaFree(d_a.elements));
    CHECK(cudaFree(d_b.elements));
    CHECK(cudaFree(d_c.elements));
    free(a);
    free(b);
    free(c);
    return worst > 0;
}
