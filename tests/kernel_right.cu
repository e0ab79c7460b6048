// Right kernels in the style of a first course. Above each: its launches, one or more
// blocks of threads (sizes that fill blocks and warps and sizes that do not), and its
// arguments: x, y, z floats, k ints, b bytes of N elements; e: floats without values; N.
// {n}, {b}, {g}: elements, threads of a block, and blocks for all elements.

// <<<{g}, {b}>>> (x, e, N)
__global__ void scale(const float *x, float *e, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) e[i] = 2 * x[i];
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void in_place(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += x[i] * y[i];
}
// <<<2, {b}>>> (x, y, N)
__global__ void every_thread_reads_all(const float *x, float *y, int n)
{
    float sum = 0;
    for (int i = 0; i < n && i < 40; i++) sum += x[i];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sum;
}
// <<<{g}, {b}>>> (x, e, N)
__global__ void stencil(const float *x, float *e, int n)
{
    __shared__ float s[130];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t + 1] = i < n ? x[i] : 0;
    if (t == 0) s[0] = i > 0 && i - 1 < n ? x[i - 1] : 0;
    if (t == blockDim.x - 1) s[t + 2] = i + 1 < n ? x[i + 1] : 0;
    __syncthreads();
    if (i < n) e[i] = s[t] + s[t + 1] + s[t + 2];
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void reverse_in_blocks(const float *x, float *y, int n)
{
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    int j = blockIdx.x * blockDim.x + blockDim.x - 1 - t;
    if (j < n) y[j] = s[t];
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void sum_interleaved(const float *x, float *y, int n)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (t % (2 * step) == 0 && t + step < blockDim.x) s[t] += s[t + step];
        __syncthreads();
    }
    if (t == 0) atomicAdd(y, s[0]);
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void sum_sequential(const float *x, float *y, int n)
{
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    int left = blockDim.x;
    while (left > 1) {
        int half = (left + 1) / 2;
        __syncthreads();
        if (t < left - half) s[t] += s[t + half];
        left = half;
    }
    if (t == 0) y[blockIdx.x] = s[0];
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void sum_of_warps(const float *x, float *y, int n)
{
    __shared__ float parts[32];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float v = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
    if (t % 32 == 0) parts[t / 32] = v;
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int w = 0; w < (blockDim.x + 31) / 32; w++) sum += parts[w];
        atomicAdd(y, sum);
    }
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void sum_with_syncwarp(const float *x, float *y, int n)
{
    __shared__ float s[160];
    int t = threadIdx.x, lane = t % 32, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    __syncwarp();
    for (int step = 16; step; step /= 2) {
        float other = lane < step && t + step < blockDim.x ? s[t + step] : 0;
        __syncwarp();
        s[t] += other;
        __syncwarp();
    }
    if (lane == 0) atomicAdd(y, s[t]);
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void sum_by_atomics(const float *x, float *y, int n)
{
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&total, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(y, total);
}
__device__ unsigned finished;
// <<<{g}, {b}>>> (x, y, z, N)
__global__ void sum_by_the_last_block(const float *x, float *y, float *z, int n)
{
    __shared__ float s[128];
    __shared__ bool last;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int j = 0; j < blockDim.x; j++) sum += s[j];
        z[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0;
        for (int j = 0; j < gridDim.x; j++) sum += z[j];
        *y = sum;
    }
}
// <<<{g}, {b}>>> (x, y, z, N)
__global__ void last_block_of_all_threads(const float *x, float *y, float *z, int n)
{
    __shared__ bool last;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i < n) z[i] = 2 * x[i];
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last)
        for (int j = t; j < n; j += blockDim.x) y[j] = z[n - 1 - j];
}
// <<<{g}, {b}>>> (b, k, N)
__global__ void histogram(const unsigned char *b, int *k, int n)
{
    __shared__ int bins[16];
    for (int j = threadIdx.x; j < 16; j += blockDim.x) bins[j] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[b[i] % 16], 1);
    __syncthreads();
    for (int j = threadIdx.x; j < 16; j += blockDim.x) atomicAdd(&k[j], bins[j]);
}
// <<<1, {b}>>> (x, y, N)
__global__ void scan_with_two_buffers(const float *x, float *y, int n)
{
    __shared__ float s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = t < n ? x[t] : 0;
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        s[1 - from][t] = s[from][t] + (t >= step ? s[from][t - step] : 0);
        from = 1 - from;
    }
    if (t < n) y[t] = s[from][t];
}
// <<<1, {b}>>> (x, y, N)
__global__ void scan_in_place(const float *x, float *y, int n)
{
    extern __shared__ float s[];
    int t = threadIdx.x;
    s[t] = t < n ? x[t] : 0;
    for (int step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        float before = t >= step ? s[t - step] : 0;
        __syncthreads();
        s[t] += before;
    }
    if (t < n) y[t] = s[t];
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void rolling_tiles(const float *x, float *y, int n)
{
    __shared__ float s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float sum = 0;
    for (int tile = 0; tile < 3; tile++) {
        s[t] = x[(i + tile) % n];
        __syncthreads();
        for (int j = 0; j < blockDim.x; j += 7) sum += s[j];
        __syncthreads();
    }
    if (i < n) y[i] = sum;
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void double_buffering(const float *x, float *y, int n)
{
    __shared__ float s[2][128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float sum = 0;
    s[0][t] = x[i % n];
    __syncthreads();
    for (int tile = 0; tile < 4; tile++) {
        s[(tile + 1) % 2][t] = x[(i + tile) % n];
        sum += s[tile % 2][(t + 1) % blockDim.x];
        __syncthreads();
    }
    if (i < n) y[i] = sum;
}
// <<<{g}, {b}>>> (k, N)
__global__ void a_flag_that_several_set(int *k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 3 == 0) k[0] = 1;
}
// <<<{g}, {b}>>> (x, k, N)
__global__ void maximum_by_compare_and_swap(const float *x, int *k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int seen = k[0], before;
    do {
        before = seen;
        seen = atomicCAS(k, before, __float_as_int(fmaxf(x[i], __int_as_float(before))));
    } while (seen != before);
}
// <<<{g}, {b}>>> (k, N)
__global__ void a_lock(int *k, int n)
{
    if (threadIdx.x % 32) return;
    while (atomicCAS(&k[0], 0, 1) != 0) {}
    __threadfence();
    ((volatile int *)k)[1] = ((volatile int *)k)[1] + 1;
    __threadfence();
    atomicExch(&k[0], 0);
}
// <<<1, {b}>>> (x, y, N)
__global__ void a_flag_within_a_block(const float *x, float *y, int n)
{
    __shared__ volatile int ready;
    __shared__ float value;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
        value = x[0];
        __threadfence_block();
        ready = 1;
    } else if (threadIdx.x == 0) {
        while (!ready) {}
        __threadfence_block();
        y[0] = value;
    }
}
// <<<{g}, {b}>>> (x, y, N)
__global__ void votes(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool mine = i < n && x[i] > 0.5f;
    unsigned lanes = __ballot_sync(0xffffffff, mine);
    int any = __syncthreads_or(mine), count = __syncthreads_count(mine);
    if (i < n) y[i] = __popc(lanes) + any + count;
}
// <<<{g}, {b}>>> (b, k, N)
__global__ void bytes_of_neighbours(unsigned char *b, int *k, int n)
{
    __shared__ unsigned char s[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? b[i] : 0;
    __syncthreads();
    if (i < n) b[i] = s[(t + 1) % blockDim.x] + 1;
    if (i < n) k[i] = s[blockDim.x - 1 - t];
}
struct Pair {
    float a;
    int b;
};
// <<<{g}, {b}>>> (x, y, N)
__global__ void structs_and_own_arrays(const float *x, float *y, int n)
{
    __shared__ Pair pairs[128];
    float own[5];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    pairs[t].a = i < n ? x[i] : 0;
    pairs[t].b = t;
    __syncthreads();
    Pair other = pairs[blockDim.x - 1 - t];
    for (int j = 0; j < 5; j++) own[j] = other.a + j;
    if (i < n) y[i] = own[(other.b + i) % 5];
}
__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
// <<<{g}, {b}>>> (x, e, N)
__global__ void weights_of_all(const float *x, float *e, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < 3; j++) sum += weights[j] * x[min(max(i + j - 1, 0), n - 1)];
    e[i] = sum;
}
