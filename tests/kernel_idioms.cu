// Right kernels for each type of elements, as one meets them in a first course. Above each:
// its launch, its arguments and what it leaves in y. x: n small numbers; y: the same numbers
// from the last to the first; N: n; R: the side of the largest square matrix with at most n
// elements. {g} blocks of {b} threads have n threads or more. rows(x) has a row for each
// block, with zeros past the end; square(x) is the matrix.

template <class T>
__device__ T block_sum(T v, T *s)
{
    int t = threadIdx.x;
    s[t] = v;
    __syncthreads();
    for (int left = blockDim.x; left > 1; left = (left + 1) / 2) {
        if (t < left / 2) s[t] += s[t + (left + 1) / 2];
        __syncthreads();
    }
    return s[0];
}

// --- elements

// <<<{g}, {b}>>> (x, y, N) -> x
template <class T> __global__ void copy(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
}
// <<<2, {b}>>> (x, y, N) -> 3 * x + y
template <class T> __global__ void grid_stride(const T *x, T *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = T(3) * x[i] + y[i];
}
// <<<1, {b}>>> (x, y, N) -> x * x
template <class T> __global__ void a_stretch_for_each_thread(const T *x, T *y, int n)
{
    int each = (n + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
    for (int i = first; i < first + each && i < n; i++) y[i] = x[i] * x[i];
}
// <<<{g}, {b}>>> (x, y, N) -> x.flip(0)
template <class T> __global__ void reverse(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[n - 1 - i] = x[i];
}
// <<<{g}, {b}>>> (x, y, N) -> x[(7 * i + 3) % n]
template <class T> __global__ void gather(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[(7 * i + 3) % n];
}
// <<<{g}, {b}>>> (x, y, N) -> 1 + 2 * x + x * x
template <class T> __global__ void polynomial(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T of[3] = {1, 2, 1}, sum = 0;
    if (i < n) {
        for (int k = 2; k >= 0; k--) sum = sum * x[i] + of[k];
        y[i] = sum;
    }
}
// <<<1, {b}>>> (x, y, N) -> x.roll(1)
template <class T> __global__ void roll_within_a_block(const T *x, T *y, int n)
{
    for (int first = 0; first < n; first += blockDim.x) {
        int i = first + threadIdx.x;
        T mine = i < n ? x[i ? i - 1 : n - 1] : T(0);
        __syncthreads();
        if (i < n) y[i] = mine;
    }
}
template <class T> struct Two {
    T v[2];
};
// <<<{g}, {b}>>> (x, y, N) -> torch.where(i < n // 2 * 2, x[(i ^ 1) % n], y)
template <class T> __global__ void pairs(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) {
        Two<T> two = ((const Two<T> *)x)[i];
        ((Two<T> *)y)[i] = {{two.v[1], two.v[0]}};
    }
}

// --- neighbours

// <<<{g}, {b}>>> (x, y, N) -> at(x, i - 1) + at(x, i) + at(x, i + 1)
template <class T> __global__ void stencil(const T *x, T *y, int n)
{
    __shared__ T s[130];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t + 1] = i < n ? x[i] : T(0);
    if (t == 0) s[0] = i > 0 && i <= n ? x[i - 1] : T(0);
    if (t == blockDim.x - 1) s[t + 2] = i + 1 < n ? x[i + 1] : T(0);
    __syncthreads();
    if (i < n) y[i] = s[t] + s[t + 1] + s[t + 2];
}
__constant__ int weights[5] = {1, 2, 3, 2, 1};
// <<<{g}, {b}>>> (x, y, N) -> sum(w * at(x, i + d) for w, d in zip((1, 2, 3, 2, 1), range(-2, 3)))
template <class T> __global__ void convolution(const T *x, T *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = 0;
    for (int d = -2; d <= 2; d++)
        if (i + d >= 0 && i + d < n) sum += T(weights[d + 2]) * x[i + d];
    if (i < n) y[i] = sum;
}
// <<<1, {b}>>> (x, y, N) -> at(x, i) + at(x, i - 1) + at(x, i - 2)
template <class T> __global__ void a_window_in_registers(const T *x, T *y, int n)
{
    int each = (n + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
    T last[3] = {};
    for (int i = first - 2; i < first + each && i < n; i++) {
        last[(i + 3) % 3] = i >= 0 ? x[i] : T(0);
        if (i >= first) y[i] = last[0] + last[1] + last[2];
    }
}
// <<<{g}, {b}>>> (x, y, N) -> rows(x).flip(1).flatten()[:n] if n % b == 0 else y
template <class T> __global__ void reverse_each_block(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (n % blockDim.x) return; // all threads of all blocks
    s[t] = x[i];
    __syncthreads();
    y[i] = s[blockDim.x - 1 - t];
}

// --- sums

// <<<{g}, {b}>>> (x, y, N) -> put(y, rows(x).sum(1))
template <class T> __global__ void sums_of_blocks(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = block_sum(i < n ? x[i] : T(0), s);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
// <<<{g}, {b}>>> (x, y, N) -> put(y, rows(x).sum(1))
template <class T> __global__ void sums_interleaved(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : T(0);
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        int at = 2 * step * t;
        if (at + step < blockDim.x) s[at] += s[at + step];
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
// <<<{g}, {b}>>> (x, y, N) -> put(y, rows(x).sum(1))
template <class T> __global__ void sums_by_shuffles(const T *x, T *y, int n)
{
    __shared__ T parts[4];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int lanes = min(32, (int)blockDim.x - t / 32 * 32);
    unsigned mask = lanes == 32 ? 0xffffffff : (1u << lanes) - 1;
    T v = i < n ? x[i] : T(0);
    for (int step = 16; step; step /= 2) {
        T other = __shfl_down_sync(mask, v, step);
        if (t % 32 + step < lanes) v += other;
    }
    if (t % 32 == 0) parts[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < (blockDim.x + 31) / 32; w++) v += parts[w];
        y[blockIdx.x] = v;
    }
}
// <<<1, {b}>>> (x, y, N) -> put(y, x.sum()[None])
template <class T> __global__ void sum_of_all_by_a_block(const T *x, T *y, int n)
{
    __shared__ T s[128];
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    sum = block_sum(sum, s);
    if (threadIdx.x == 0) y[0] = sum;
}
// <<<1, {b}>>> (x, y, N) -> 0 * x + (x * y).sum()
template <class T> __global__ void product_of_vectors(const T *x, T *y, int n)
{
    __shared__ T s[128];
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * y[i];
    sum = block_sum(sum, s);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = sum;
}
// <<<{g}, {b}>>> (x, y, N) -> put(y, rows(x).amax(1))
template <class T> __global__ void greatest_of_blocks(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : T(0);
    __syncthreads();
    if (t == 0) {
        T most = s[0];
        for (int j = 1; j < blockDim.x; j++)
            if (s[j] > most) most = s[j];
        y[blockIdx.x] = most;
    }
}
__device__ int finished;
// <<<{g}, {b}>>> (x, y, N) -> put(y, torch.cat([x.sum()[None], rows(x).sum(1)[1:]]))
template <class T> __global__ void sum_by_the_last_block(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = block_sum(i < n ? x[i] : T(0), s);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sum;
        __threadfence();
        if (atomicAdd(&finished, 1) == gridDim.x - 1) {
            sum = 0;
            for (int j = 0; j < gridDim.x; j++) sum += y[j];
            y[0] = sum;
            finished = 0;
        }
    }
}

// --- scans

// <<<{g}, {b}>>> (x, y, N) -> rows(x).cumsum(1).flatten()[:n]
template <class T> __global__ void scan_in_two_arrays(const T *x, T *y, int n)
{
    __shared__ T s[2][128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, from = 0;
    s[0][t] = i < n ? x[i] : T(0);
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        s[1 - from][t] = s[from][t] + (t >= step ? s[from][t - step] : T(0));
        from = 1 - from;
    }
    if (i < n) y[i] = s[from][t];
}
// <<<{g}, {b}>>> (x, y, N) -> (rows(x).cumsum(1) - rows(x)).flatten()[:n]
template <class T> __global__ void scan_without_the_own_element(const T *x, T *y, int n)
{
    __shared__ T s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n && t ? x[i - 1] : T(0);
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        T before = t >= step ? s[t - step] : T(0);
        __syncthreads();
        s[t] += before;
        __syncthreads();
    }
    if (i < n) y[i] = s[t];
}
// <<<(n + 63) // 64, 64>>> (x, y, N) -> (rows(x, 64).cumsum(1) - rows(x, 64)).flatten()[:n]
template <class T> __global__ void scan_up_and_down_a_tree(const T *x, T *y, int n)
{
    __shared__ T s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] : T(0);
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();
        int at = 2 * step * (t + 1) - 1;
        if (at < 64) s[at] += s[at - step];
    }
    if (t == 0) s[63] = 0;
    for (int step = 32; step; step /= 2) {
        __syncthreads();
        int at = 2 * step * (t + 1) - 1;
        if (at < 64) {
            T left = s[at - step];
            s[at - step] = s[at];
            s[at] += left;
        }
    }
    __syncthreads();
    if (i < n) y[i] = s[t];
}
// <<<1, 32>>> (x, y, N) -> put(y, x[:32].cumsum(0))
template <class T> __global__ void scan_of_a_warp(const T *x, T *y, int n)
{
    int lane = threadIdx.x;
    T v = lane < n ? x[lane] : T(0);
    for (int step = 1; step < 32; step *= 2) {
        T below = __shfl_up_sync(0xffffffff, v, step);
        if (lane >= step) v += below;
    }
    if (lane < n) y[lane] = v;
}

// --- matrices

// <<<((R + 7) // 8, (R + 7) // 8), (8, 8)>>> (x, y, R) -> put(y, square(x).T.flatten())
template <class T> __global__ void transposition(const T *x, T *y, int r)
{
    __shared__ T s[8][9];
    int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
    if (i < r && j < r) s[threadIdx.y][threadIdx.x] = x[i * r + j];
    __syncthreads();
    i = blockIdx.x * 8 + threadIdx.y, j = blockIdx.y * 8 + threadIdx.x;
    if (i < r && j < r) y[i * r + j] = s[threadIdx.x][threadIdx.y];
}
// <<<((R + 7) // 8, (R + 3) // 4), (8, 4)>>> (x, y, R) -> put(y, product(square(x), square(x)).flatten())
template <class T> __global__ void product(const T *x, T *y, int r)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= r || j >= r) return;
    T sum = 0;
    for (int k = 0; k < r; k++) sum += x[i * r + k] * x[k * r + j];
    y[i * r + j] = sum;
}
// <<<((R + 3) // 4, (R + 3) // 4), (4, 4)>>> (x, y, R) -> put(y, product(square(x), square(x)).flatten())
template <class T> __global__ void product_by_tiles(const T *x, T *y, int r)
{
    __shared__ T left[4][4], right[4][4];
    int a = threadIdx.y, b = threadIdx.x, i = blockIdx.y * 4 + a, j = blockIdx.x * 4 + b;
    T sum = 0;
    for (int k = 0; k < r; k += 4) {
        left[a][b] = i < r && k + b < r ? x[i * r + k + b] : T(0);
        right[a][b] = k + a < r && j < r ? x[(k + a) * r + j] : T(0);
        __syncthreads();
        for (int l = 0; l < 4; l++) sum += left[a][l] * right[l][b];
        __syncthreads();
    }
    if (i < r && j < r) y[i * r + j] = sum;
}
// <<<R, {b}>>> (x, y, R) -> put(y, square(x).sum(1))
template <class T> __global__ void a_block_for_each_row(const T *x, T *y, int r)
{
    __shared__ T s[128];
    T sum = 0;
    for (int j = threadIdx.x; j < r; j += blockDim.x) sum += x[blockIdx.x * r + j];
    sum = block_sum(sum, s);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
// <<<(R + b - 1) // b, {b}>>> (x, y, R) -> put(y, square(x).sum(0))
template <class T> __global__ void a_thread_for_each_column(const T *x, T *y, int r)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= r) return;
    T sum = 0;
    for (int i = 0; i < r; i++) sum += x[i * r + j];
    y[j] = sum;
}

// --- order

// <<<1, 64>>> (x, y, N) -> put(y, x[:64].sort()[0])
template <class T> __global__ void sort_by_neighbours(const T *x, T *y, int n)
{
    __shared__ T s[64];
    int t = threadIdx.x, count = min(n, 64);
    if (t < count) s[t] = x[t];
    for (int turn = 0; turn < count; turn++) {
        __syncthreads();
        int i = 2 * t + turn % 2;
        if (i + 1 < count && s[i + 1] < s[i]) {
            T low = s[i + 1];
            s[i + 1] = s[i];
            s[i] = low;
        }
    }
    __syncthreads();
    if (t < count) y[t] = s[t];
}
// <<<1, 32>>> (x, y, N) -> put(y, x[:32][x[:32] > 1])
template <class T> __global__ void keep_some_of_a_warp(const T *x, T *y, int n)
{
    int lane = threadIdx.x;
    bool keep = lane < n && x[lane] > T(1);
    unsigned kept = __ballot_sync(0xffffffff, keep);
    if (keep) y[__popc(kept & ((1u << lane) - 1))] = x[lane];
}
