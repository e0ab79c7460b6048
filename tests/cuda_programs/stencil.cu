// Heat on a plate, by steps: rows with a pitch, a halo in shared memory, two buffers.
#include "check.h"
#include <cmath>
#include <utility>

#define W 70
#define H 45
#define SIDE 16

__global__ void step(float *to, const float *from, size_t pitch)
{
    __shared__ float tile[SIDE + 2][SIDE + 2];
    const int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [=](int row, int col) {
        row = min(max(row, 0), H - 1);
        col = min(max(col, 0), W - 1);
        return *(const float *)((const char *)from + row * pitch + col * sizeof(float));
    };
    tile[ty][tx] = at(y, x);
    if (threadIdx.x == 0)
        tile[ty][0] = at(y, x - 1);
    if (threadIdx.x == SIDE - 1)
        tile[ty][SIDE + 1] = at(y, x + 1);
    if (threadIdx.y == 0)
        tile[0][tx] = at(y - 1, x);
    if (threadIdx.y == SIDE - 1)
        tile[SIDE + 1][tx] = at(y + 1, x);
    __syncthreads();
    if (x >= W || y >= H)
        return;
    const float sum = tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1];
    *((float *)((char *)to + y * pitch) + x) = 0.5f * tile[ty][tx] + 0.125f * sum;
}

static float plate[H][W], expected[H][W], next_one[H][W];

int main()
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            plate[y][x] = expected[y][x] = (x - 30) * (x - 30) + y * y < 200 ? 100.0f : 0.0f;
    float *from, *to;
    size_t pitch;
    CHECK(cudaMallocPitch((void **)&from, &pitch, W * sizeof(float), H));
    CHECK(cudaMallocPitch((void **)&to, &pitch, W * sizeof(float), H));
    CHECK(cudaMemcpy2D(from, pitch, plate, sizeof(plate[0]), W * sizeof(float), H,
                       cudaMemcpyHostToDevice));
    const dim3 block(SIDE, SIDE, 1), grid((W + SIDE - 1) / SIDE, (H + SIDE - 1) / SIDE, 1);
    for (int i = 0; i < 10; i++) {
        step<<<grid, block>>>(to, from, pitch);
        std::swap(to, from);
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                next_one[y][x] = 0.5f * expected[y][x] +
                                 0.125f * (expected[y ? y - 1 : 0][x] +
                                           expected[y < H - 1 ? y + 1 : y][x] +
                                           expected[y][x ? x - 1 : 0] +
                                           expected[y][x < W - 1 ? x + 1 : x]);
        std::swap(next_one, expected);
    }
    CHECK(cudaMemcpy2D(plate, sizeof(plate[0]), from, pitch, W * sizeof(float), H,
                       cudaMemcpyDeviceToHost));
    float worst = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            worst = std::fmax(worst, std::fabs(plate[y][x] - expected[y][x]));
    printf("stencil: the largest error is below 1e-4: %s\n", worst < 1e-4f ? "yes" : "no");
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
    return worst >= 1e-4f;
}
