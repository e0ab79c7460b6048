// Kernels with one mistake each, as one meets them in a first course. Above each: the kind
// that the checks give it, and its launch. The lines with //! are those that it names.
// x, y: 256 random floats and 256 zeros; e: 256 floats without values; k: 256 zeros of
// int; b: 256 zeros of unsigned char; v: elements 100 to 149 of x; null: none.

// --- races within a block: shared memory

// race <<<1, 128>>> (x, y)
__global__ void reverse_without_barrier(const float *x, float *y)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];          //!
    y[t] = s[127 - t];    //!
}
// race <<<2, 128>>> (x, y)
__global__ void sum_without_barrier_in_loop(const float *x, float *y)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    for (int step = 64; step > 0; step /= 2)
        if (t < step) s[t] += s[t + step];    //!
    if (t == 0) y[blockIdx.x] = s[0];
}
// race <<<1, 128>>> (x, y)
__global__ void sum_without_first_barrier(const float *x, float *y)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];                              //!
    for (int step = 64; step > 0; step /= 2) {
        if (t < step) s[t] += s[t + step];    //!
        __syncthreads();
    }
    if (t == 0) y[0] = s[0];
}
// race <<<(2, 2), (16, 16)>>> (x, x, y)
__global__ void product_without_second_barrier(const float *a, const float *b, float *c)
{
    __shared__ float left[16][16], right[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    float sum = 0;
    for (int t = 0; t < 3; t++) {
        left[i][j] = a[(i * 16 + j + t) % 256];     //!
        right[i][j] = b[(i * 16 + j + t) % 256];    //!
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += left[i][k] * right[k][j];        //!
    }
    if (blockIdx.x + blockIdx.y == 0) c[i * 16 + j] = sum;
}
// race <<<(1, 1), (16, 16)>>> (x, x, y)
__global__ void product_without_first_barrier(const float *a, const float *b, float *c)
{
    __shared__ float left[16][16], right[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    float sum = 0;
    left[i][j] = a[i * 16 + j];             //!
    right[i][j] = b[i * 16 + j];            //!
    for (int k = 0; k < 16; k++)
        sum += left[i][k] * right[k][j];    //!
    c[i * 16 + j] = sum;
}
// race <<<1, 128>>> (x, y)
__global__ void scan_in_place(const float *x, float *y)
{
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    for (int step = 1; step < 128; step *= 2) {
        __syncthreads();
        if (t >= step) s[t] += s[t - step];    //!
    }
    y[t] = s[t];
}
// race <<<1, 128>>> (x, y)
__global__ void stencil_without_barrier(const float *x, float *y)
{
    __shared__ float s[130];
    int t = threadIdx.x;
    s[t + 1] = x[t];                                //!
    if (t == 0) s[0] = s[129] = 0;                  //!
    y[t] = s[t] + s[t + 1] + s[t + 2];              //!
}
// race <<<1, 256>>> (b, k)
__global__ void histogram_without_atomic(const unsigned char *b, int *k)
{
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[b[threadIdx.x] % 16]++;    //!
    __syncthreads();
    if (threadIdx.x < 16) k[threadIdx.x] = bins[threadIdx.x];
}
// race <<<1, 64>>> (x, y)
__global__ void one_total_for_all(const float *x, float *y)
{
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    total += x[threadIdx.x];    //!
    __syncthreads();
    y[threadIdx.x] = total;
}
// race <<<1, 64>>> (x, y)
__global__ void flag_is_read_too_early(const float *x, float *y)
{
    __shared__ int negative;
    if (threadIdx.x == 63) negative = x[0] < 0;    //!
    y[threadIdx.x] = negative ? 0 : x[threadIdx.x];    //!
}
// race <<<1, 32>>> (x, y)
__global__ void warp_without_syncwarp(const float *x, float *y)
{
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    for (int step = 16; step > 0; step /= 2)
        if (t < step) s[t] += s[t + step];    //!
    if (t == 0) y[0] = s[0];
}
// race <<<1, 64>>> (x, y)
__global__ void volatile_instead_of_syncwarp(const float *x, float *y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 32) {
        volatile float *v = s;
        v[t] += v[t + 32];    //!
        v[t] += v[t + 16];    //!
        v[t] += v[t + 8];     //!
    }
    if (t == 0) y[0] = s[0];
}
// race <<<1, 64>>> (x, y)
__global__ void syncwarp_for_two_warps(const float *x, float *y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];           //!
    __syncwarp();
    y[t] = s[63 - t];      //!
}
// race <<<1, 64>>> (x, y) shared 256
__global__ void dynamic_without_barrier(const float *x, float *y)
{
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];          //!
    y[threadIdx.x] = s[threadIdx.x ^ 1];      //!
}
// race <<<1, 64>>> (x, y)
__global__ void shuffle_is_no_barrier(const float *x, float *y)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];                            //!
    float other = __shfl_xor_sync(0xffffffff, x[threadIdx.x], 1);
    y[threadIdx.x] = other + s[threadIdx.x ^ 1];                //!
}
// race <<<1, 128>>> (b, k)
__global__ void bytes_without_barrier(const unsigned char *b, int *k)
{
    __shared__ unsigned char s[128];
    s[threadIdx.x] = b[threadIdx.x];          //!
    k[threadIdx.x] = s[127 - threadIdx.x];    //!
}

// --- races in global memory

// race <<<1, 128>>> (y)
__global__ void shift_in_place(float *y)
{
    if (threadIdx.x < 127) y[threadIdx.x] = y[threadIdx.x + 1];    //!
}
// race <<<4, 64>>> (x)
__global__ void smooth_in_place(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < 255) x[i] = (x[i - 1] + x[i + 1]) / 2;    //!
}
// race <<<4, 64>>> (x)
__global__ void barrier_for_the_grid(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float next = x[(i + 1) % 256];    //!
    __syncthreads();
    x[i] = next;                      //!
}
// race <<<4, 64>>> (x, y)
__global__ void sum_without_atomic(const float *x, float *y)
{
    y[0] += x[blockIdx.x * blockDim.x + threadIdx.x];    //!
}
// race <<<4, 64>>> (x, y)
__global__ void one_update_by_each_block(const float *x, float *y)
{
    if (threadIdx.x == 0) y[0] += x[blockIdx.x];    //!
}
// race <<<4, 64>>> (x, y)
__global__ void two_blocks_own_an_element(const float *x, float *y)
{
    int i = blockIdx.x * 63 + threadIdx.x;
    y[i] = x[i] + blockIdx.x;    //!
}
// race <<<4, 64>>> (b, k)
__global__ void histogram_in_global_memory(const unsigned char *b, int *k)
{
    k[b[blockIdx.x * 64 + threadIdx.x]] += 1;    //!
}
// race <<<(2, 2), (8, 8)>>> (x)
__global__ void transpose_in_place(float *x)
{
    int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
    x[j * 16 + i] = x[i * 16 + j];    //!
}
// race <<<4, 64>>> (x, y, k)
__global__ void last_block_without_fence(const float *x, float *y, int *k)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        y[1 + blockIdx.x] = x[blockIdx.x];      //!
        last = atomicAdd(k, 1) == 3;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int i = 0; i < 4; i++)
            y[0] += y[1 + i];                   //!
}
// race <<<4, 64>>> (x, y, k)
__global__ void last_block_without_barrier(const float *x, float *y, int *k)
{
    __shared__ bool last;
    y[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];    //!
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(k, 1) == 3;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int i = 0; i < 256; i++)
            k[1] += y[i] > 0;                             //!
}
// race <<<2, 64>>> (k)
__global__ void atomic_beside_a_plain_read(int *k)
{
    atomicAdd(&k[0], 1);                     //!
    if (k[0] == 64) k[1 + blockIdx.x] = 1;   //!
}
// race <<<4, 64>>> (x, y, k)
__global__ void last_block_with_a_fence_of_the_block(const float *x, float *y, int *k)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        y[1 + blockIdx.x] = x[blockIdx.x];      //!
        __threadfence_block();
        last = atomicAdd(k, 1) == 3;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int i = 0; i < 4; i++)
            y[0] += y[1 + i];                   //!
}
// race <<<4, 64>>> (k)
__global__ void atomic_of_the_block(int *k)
{
    atomicAdd_block(&k[threadIdx.x % 4], 1);    //!
}
// race <<<4, 64>>> (k)
__global__ void lock_of_the_block(int *k)
{
    if (threadIdx.x) return;
    while (atomicCAS_block(&k[0], 0, 1) != 0) {}    //!
    k[1]++;
    __threadfence();
    atomicExch_block(&k[0], 0);                     //!
}
// race <<<1, 64>>> (b, k)
__global__ void bins_are_zeroed_without_barrier(const unsigned char *b, int *k)
{
    __shared__ int bins[8];
    if (threadIdx.x == 0)
        for (int i = 0; i < 8; i++) bins[i] = 0;    //!
    atomicAdd(&bins[b[threadIdx.x] & 7], 1);        //!
    __syncthreads();
    if (threadIdx.x < 8) k[threadIdx.x] = bins[threadIdx.x];
}
// race <<<1, 64>>> (x, y)
__global__ void bitonic_with_a_barrier_in_the_outer_loop(const float *x, float *y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    for (int k = 2; k <= 64; k *= 2) {
        __syncthreads();
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other <= t) continue;
            float a = s[t], b = s[other];                                      //!
            if ((a > b) == ((t & k) == 0)) s[t] = b, s[other] = a;             //!
        }
    }
    __syncthreads();
    y[t] = s[t];
}
struct Fields {
    unsigned a : 4, b : 4;
};
// race <<<1, 64>>> (k)
__global__ void two_fields_of_a_word(Fields *k)
{
    if (threadIdx.x % 2) k[threadIdx.x / 2].a = 3;    //!
    else k[threadIdx.x / 2].b = 5;                    //!
}
__device__ int turns;
// race <<<4, 32>>> (k)
__global__ void counter_without_atomic(int *k)
{
    if (threadIdx.x == 0) turns = turns + 1;    //!
    k[blockIdx.x] = 1;
}
// race <<<1, 64>>> (k)
__global__ void lock_is_only_tested(int *k)
{
    while (k[0] != 0) {}    //!
    k[0] = threadIdx.x + 1;    //!
    k[1]++;
    k[0] = 0;               //!
}

// --- out of bounds

// out_of_bounds <<<2, 256>>> (x, y)
__global__ void no_check_of_the_index(const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];    //!
}
// out_of_bounds <<<1, 257>>> (y)
__global__ void off_by_one(float *y)
{
    if (threadIdx.x <= 256)
        y[threadIdx.x] = 1;    //!
}
// out_of_bounds <<<1, 64>>> (x, y)
__global__ void left_neighbour(const float *x, float *y)
{
    y[threadIdx.x] = x[(int)threadIdx.x - 1];    //!
}
// out_of_bounds <<<1, 64>>> (x, y)
__global__ void left_neighbour_by_unsigned(const float *x, float *y)
{
    y[threadIdx.x] = x[threadIdx.x - 1];    //!
}
// out_of_bounds <<<1, 16>>> (v, y, 50)
__global__ void vectors_of_the_tail(const float *v, float *y, int n)
{
    int i = threadIdx.x;
    if (4 * i < n) ((float4 *)y)[i] = ((const float4 *)v)[i];    //!
}
// out_of_bounds <<<1, 64>>> (v, y)
__global__ void past_the_view(const float *v, float *y)
{
    y[threadIdx.x] = v[threadIdx.x];    //!
}
// out_of_bounds <<<(2, 2), (16, 16)>>> (x, y)
__global__ void rows_and_columns_exchanged(const float *x, float *y)
{
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row < 8 && col < 32) y[row * 32 + col] = x[col * 32 + row];    //!
}
// out_of_bounds <<<1, 128>>> (x, y)
__global__ void shared_array_is_too_small(const float *x, float *y)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];    //!
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
// out_of_bounds <<<1, 64>>> (x, y)
__global__ void halo_is_missing(const float *x, float *y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    y[t] = s[t] + s[t + 1];    //!
}
// out_of_bounds <<<1, (16, 16)>>> (x, y)
__global__ void column_of_a_tile(const float *x, float *y)
{
    __shared__ float tile[16][16];
    tile[threadIdx.y][threadIdx.x + 1] = x[threadIdx.x];    //!
    __syncthreads();
    y[threadIdx.x] = tile[0][threadIdx.x];
}
// out_of_bounds <<<1, 64>>> (x, y) shared 64
__global__ void shared_mem_in_elements(const float *x, float *y)
{
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];    //!
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
// out_of_bounds <<<1, 4>>> (y)
__global__ void array_of_a_thread(float *y)
{
    float own[4];
    for (int i = 0; i <= 4; i++) own[i] = i;    //!
    y[threadIdx.x] = own[threadIdx.x];
}
struct Corner {
    int number;
    float of[3];
};
// out_of_bounds <<<1, 4>>> (y)
__global__ void array_that_ends_a_struct(float *y)
{
    Corner own = {1, {1, 2, 3}};
    float sum = 0;
    for (int i = 0; i <= 3; i++) sum += own.of[i];    //!
    y[threadIdx.x] = sum * own.number;
}
// out_of_bounds <<<1, 32>>> (k)
__global__ void atomic_past_the_end(int *k)
{
    atomicAdd(&k[threadIdx.x * 16], 1);    //!
}
__device__ float table[8];
// out_of_bounds <<<1, 16>>> (y)
__global__ void device_table(float *y)
{
    float *p = table;
    y[threadIdx.x] = p[threadIdx.x * 1024];    //!
}

// --- pointers

// null_pointer <<<1, 32>>> (null, y)
__global__ void none_is_passed(const float *x, float *y)
{
    y[threadIdx.x] = x[threadIdx.x];    //!
}
// null_pointer <<<1, 32>>> (x, y)
__global__ void shared_mem_is_forgotten(const float *x, float *y)
{
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];    //!
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
// wrong_memory <<<1, 32>>> (host, y)
__global__ void address_of_the_host(long long address, float *y)
{
    y[threadIdx.x] = ((float *)address)[threadIdx.x];    //!
}
// misaligned <<<1, 32>>> (x, y)
__global__ void vector_at_an_odd_place(const float *x, float *y)
{
    float4 v = *(const float4 *)(x + threadIdx.x);    //!
    y[threadIdx.x] = v.x + v.w;
}
// misaligned <<<1, 8>>> (b, k)
__global__ void int_among_bytes(const unsigned char *b, int *k)
{
    k[threadIdx.x] = *(const int *)(b + 3 * threadIdx.x);    //!
}

// --- without a value

// uninitialized <<<1, 64>>> (e, y)
__global__ void input_is_empty(const float *e, float *y)
{
    y[threadIdx.x] = e[threadIdx.x];    //!
}
// uninitialized <<<1, 64>>> (x, e)
__global__ void sum_into_empty(const float *x, float *e)
{
    e[threadIdx.x] += x[threadIdx.x];    //!
}
// uninitialized <<<1, 64>>> (b, k)
__global__ void bins_are_not_zeroed(const unsigned char *b, int *k)
{
    __shared__ int bins[16];
    atomicAdd(&bins[b[threadIdx.x] % 16], 1);    //!
    __syncthreads();
    if (threadIdx.x < 16) k[threadIdx.x] = bins[threadIdx.x];
}
// uninitialized <<<1, 64>>> (x, y)
__global__ void tail_is_not_filled(const float *x, float *y)
{
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t < 50) s[t] = x[t];
    __syncthreads();
    for (int step = 32; step > 0; step /= 2) {
        if (t < step) s[t] += s[t + step];    //!
        __syncthreads();
    }
    if (t == 0) y[0] = s[0];
}
// uninitialized <<<1, 64>>> (x, y)
__global__ void corners_of_a_tile(const float *x, float *y)
{
    __shared__ float s[66];
    int t = threadIdx.x;
    s[t + 1] = x[t];
    __syncthreads();
    y[t] = s[t] + s[t + 1] + s[t + 2];    //!
}

// --- barriers, warps, waiting

// barrier <<<1, 64>>> (x, y)
__global__ void barrier_in_a_condition(const float *x, float *y)
{
    __shared__ float s[64];
    if (threadIdx.x < 40) {
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();    //!
        y[threadIdx.x] = s[39 - threadIdx.x];
    }
}
// barrier <<<1, 64>>> (x, y, 50)
__global__ void return_before_a_barrier(const float *x, float *y, int n)
{
    __shared__ float s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();    //!
    y[threadIdx.x] = s[n - 1 - threadIdx.x];
}
// barrier <<<1, 64>>> (y)
__global__ void barriers_of_two_branches(float *y)
{
    if (threadIdx.x % 2)
        __syncthreads();    //!
    else
        __syncthreads();    //!
    y[threadIdx.x] = 1;
}
// barrier <<<1, 64>>> (y)
__global__ void barrier_in_a_loop_of_each(float *y)
{
    for (int i = 0; i < threadIdx.x; i++)
        __syncthreads();    //!
    y[threadIdx.x] = 1;
}
// warp <<<1, 32>>> (x, y)
__global__ void shuffle_in_a_condition(const float *x, float *y)
{
    float v = x[threadIdx.x];
    if (threadIdx.x < 16)
        v += __shfl_down_sync(0xffffffff, v, 8);    //!
    y[threadIdx.x] = v;
}
// warp <<<1, 32>>> (x, y)
__global__ void mask_without_the_caller(const float *x, float *y)
{
    y[threadIdx.x] = __shfl_sync(0xffff, x[threadIdx.x], 0);    //!
}
// warp <<<1, 32>>> (y)
__global__ void syncwarp_in_a_condition(float *y)
{
    if (threadIdx.x < 20) __syncwarp();    //!
    y[threadIdx.x] = 1;
}
// warp <<<1, 32>>> (k)
__global__ void vote_of_a_part(int *k)
{
    if (threadIdx.x & 1) k[threadIdx.x] = __any_sync(0xffffffff, threadIdx.x > 5);    //!
}
// wait <<<4, 32>>> (k)
__global__ void barrier_of_all_blocks(int *k)
{
    if (threadIdx.x == 0) {
        atomicAdd(&k[0], 1);
        while (*(volatile int *)&k[0] < 4) {}    //!
    }
    __syncthreads();
    k[1 + blockIdx.x] = 1;
}
// wait <<<2, 32>>> (k)
__global__ void blocks_wait_for_one_another(int *k)
{
    if (threadIdx.x) return;
    atomicExch(&k[blockIdx.x], 1);
    while (atomicAdd(&k[1 - blockIdx.x], 0) == 0) {}    //!
}
// wait <<<1, 32>>> (k)
__global__ void lock_is_not_given_back(int *k)
{
    while (atomicCAS(&k[0], 0, 1) != 0) {}    //!
    k[1]++;
}
