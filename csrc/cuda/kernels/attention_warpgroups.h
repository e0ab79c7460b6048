/* Shared by the kernels of attention by warpgroups, attention_warpgroups.cu and
 * attention_warpgroups_backward.cu: tiles, and rows of products in registers. */
#ifndef DT_CUDA_KERNELS_ATTENTION_WARPGROUPS_H
#define DT_CUDA_KERNELS_ATTENTION_WARPGROUPS_H

#include "cuda/kernels/attention_tensor_cores.h"
#include "cuda/kernels/warpgroup.h"

#define GROUP      128 /* threads of a warpgroup */
#define GROUP_ROWS 64

namespace {

/* Rows of a matrix of one batch and head, from `first` on. */
struct Rows {
    uint16_t *data;
    int64_t row;
    int count, size;
    __device__ __forceinline__ Rows(const dt_attention_matrices &m, int batch, int head,
                                    int first, int64_t rows, int64_t columns)
        : data((uint16_t *)m.data + batch * m.batch + head * m.head + first * m.row),
          row(m.row), count((int)rows - first), size((int)columns)
    {
    }
};

/* N rows of D elements in shared memory, as products read them. */
template <int N, int D>
struct alignas(1024) Tile {
    uint16_t data[N * D];
    static constexpr int panel = N * PANEL_COLUMNS;

    /* The threads of one warpgroup, or more, start to copy it. Elements past the matrix are
     * zeros. */
    template <int THREADS = GROUP>
    __device__ __forceinline__ void fill(AsyncCopies &copies, const Rows &from)
    {
        const int row = (int)threadIdx.x % THREADS / 8, chunk = (int)threadIdx.x % 8;
        uint16_t *to = data + panel_place(row, chunk);
        UNROLL
        for (int p = 0; p < D / PANEL_COLUMNS; p++) {
            int column = p * PANEL_COLUMNS + chunk * 8;
            const uint16_t *source = from.data + row * from.row + column;
            int count = column < from.size ? from.count - row : 0;
            UNROLL
            for (int i = 0; i < N; i += THREADS / 8) {
                copies.start(to + p * panel + i * PANEL_COLUMNS, source, i < count);
                source += THREADS / 8 * from.row;
            }
        }
    }
    /* 16 columns of all rows, from 16 * k on. */
    __device__ __forceinline__ uint64_t across(int k) const
    {
        return matrix_at(data + k / 4 * panel + k % 4 * 16, 0);
    }
    /* All columns of 16 rows. */
    __device__ __forceinline__ uint64_t down(int k) const
    {
        return matrix_at(data + k * 16 * PANEL_COLUMNS, panel * 2);
    }
};

/* The first row of this warp, and the upper row of this lane, whose other row is 8 below.
 * `first` is the warpgroup's first row. */
static __device__ __forceinline__ int warp_row(int first)
{
    return first + (int)threadIdx.x % GROUP / 32 * 16;
}
static __device__ __forceinline__ int lane_row(int first)
{
    return warp_row(first) + (int)threadIdx.x % 32 / 4;
}

/* Sets M times eight columns of sums to 0. */
template <int M>
static __device__ __forceinline__ void clear(float (&sums)[M][4])
{
    UNROLL
    for (int i = 0; i < M; i++) {
        UNROLL
        for (int e = 0; e < 4; e++)
            sums[i][e] = 0;
    }
}
/* Rounds sums to T, for a factor of the next product. */
template <typename T, int M>
static __device__ __forceinline__ void round_pairs(unsigned (&to)[M][4],
                                                   const float (&from)[2 * M][4])
{
    UNROLL
    for (int k = 0; k < M; k++) {
        UNROLL
        for (int r = 0; r < 4; r++) {
            const float (&pair)[4] = from[2 * k + r / 2];
            to[k][r] = half_pair<T>(pair[r % 2 * 2], pair[r % 2 * 2 + 1]);
        }
    }
}

/* Transposes four chunks of 8 elements among four lanes. Before, a lane has two elements of
 * each chunk; afterwards it has the chunk of its own number. */
static __device__ __forceinline__ void gather_chunk(unsigned (&chunk)[4])
{
    UNROLL
    for (unsigned step = 1; step < 4; step *= 2) {
        const bool upper = threadIdx.x & step;
        UNROLL
        for (unsigned i = 0; i < 4; i++) {
            if (i & step)
                continue;
            unsigned &low = chunk[i], &high = chunk[i + step];
            unsigned other = __shfl_xor_sync(0xffffffffu, upper ? low : high, step);
            (upper ? low : high) = other;
        }
    }
}

/* Stores row i times a factor. This lane has its elements 2 * h and 2 * h + 1. */
template <typename T, int M>
static __device__ __forceinline__ void
store_row(const Rows &to, int i, const float (&sums)[M][4], int h, float factor)
{
    UNROLL
    for (int n = 0; n < M; n += 4) {
        unsigned chunk[4];
        UNROLL
        for (int u = 0; u < 4; u++)
            chunk[u] = half_pair<T>(sums[n + u][2 * h] * factor,
                                    sums[n + u][2 * h + 1] * factor);
        gather_chunk(chunk);
        const int column = (n + (int)threadIdx.x % 4) * 8;
        if (i < to.count && column < to.size)
            *(Vector<unsigned, 4> *)(to.data + i * to.row + column) = {
                {chunk[0], chunk[1], chunk[2], chunk[3]}};
    }
}
} // namespace

#endif
