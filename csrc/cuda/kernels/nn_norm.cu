/* Normalising layers; what they compute is said in ops/nn.def. */
#include "cuda/kernels/nn_kernels.h"

template <class Row>
static __device__ __forceinline__ typename Row::T factor_at(const Row &row, int k,
                                                            int64_t i)
{
    return row.has(k) ? row.template all<>(k)[i] : (typename Row::T)1;
}
template <class Row>
static __device__ __forceinline__ typename Row::T term_at(const Row &row, int k,
                                                          int64_t i)
{
    return row.has(k) ? row.template all<>(k)[i] : (typename Row::T)0;
}

struct LayerNorm {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(3);
        T mean = row.sum([](int64_t, T v) { return v; }, x) / (T)row.n;
        T variance = row.sum([&](int64_t, T v) { return (v - mean) * (v - mean); }, x) /
                     (T)row.n;
        T rstd = 1 / op_sqrt(variance + (T)row.call.parameter);
        row.write(
            0,
            [&](int64_t i, T v) {
                return (v - mean) * rstd * factor_at(row, 4, i) + term_at(row, 5, i);
            },
            x);
        if (row.leads()) {
            *row.one(1) = mean;
            *row.one(2) = rstd;
        }
    }
};

struct LayerNormBackward {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto g = row.read(1), x = row.read(2);
        T mean = *row.one(3), rstd = *row.one(4);
        T plain =
            row.sum([&](int64_t i, T gi) { return gi * factor_at(row, 5, i); }, g) /
            (T)row.n;
        T along = row.sum([&](int64_t i, T gi,
                              T v) { return gi * factor_at(row, 5, i) * (v - mean); },
                          g, x) /
                  (T)row.n * rstd * rstd;
        row.write(
            0,
            [&](int64_t i, T gi, T v) {
                return rstd * (gi * factor_at(row, 5, i) - plain - (v - mean) * along);
            },
            g, x);
    }
};

struct BatchNormTrack {
    static constexpr int reads = 1;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        const T *mean = row.template all<>(1), *variance = row.template all<>(2);
        T *running_mean = row.template all<>(3),
          *running_variance = row.template all<>(4);
        double count = (double)row.call.ignored, step = row.call.factor;
        double unbiased = count > 1 ? count / (count - 1) : 1;
        row.write(0, [&](int64_t i) {
            if (row.has(3))
                running_mean[i] =
                    (T)((1 - step) * (double)running_mean[i] + step * (double)mean[i]);
            if (row.has(4))
                running_variance[i] = (T)((1 - step) * (double)running_variance[i] +
                                          step * unbiased * (double)variance[i]);
            return (T)(1 / sqrt((double)variance[i] + row.call.parameter));
        });
    }
};

ROWWISE_ENTRY(layer_norm, LayerNorm, false)
ROWWISE_ENTRY(layer_norm_backward, LayerNormBackward, false)

/* One row, of the channels. */
template <typename T>
static int track_start(dt_queue queue, const dt_nn_call *given)
{
    RowCall call;
    if (rowwise_call(queue, given, false, &call))
        return -1;
    return rowwise_launch<BatchNormTrack, T, true, 0, 1>(queue, call, BLOCK);
}
ROWWISE_FUNCTIONS(batch_norm_track, track_start<T>(queue, call))

/* --- channels: an element is a thread's --- */

static __device__ __forceinline__ int64_t channel_of(const RowCall &call, int64_t i)
{
    int64_t slab = divide(i, call.by_inner);
    return slab - divide(slab, call.by_n) * call.n;
}

template <typename T>
__global__ void batch_norm_kernel(GRID_CONSTANT(RowCall) call, int64_t numel)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numel)
        return;
    int64_t c = channel_of(call, i);
    const T *w = (const T *)call.operands[4], *b = (const T *)call.operands[5];
    T scale = ((const T *)call.operands[3])[c];
    if (w)
        scale *= w[c];
    T y = (((const T *)call.operands[1])[i] - ((const T *)call.operands[2])[c]) * scale;
    ((T *)call.operands[0])[i] = b ? y + b[c] : y;
}

template <typename T>
__global__ void batch_norm_backward_kernel(GRID_CONSTANT(RowCall) call, int64_t numel)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= numel)
        return;
    int64_t c = channel_of(call, i);
    const T *w = (const T *)call.operands[5], *along = (const T *)call.operands[6];
    T rstd = ((const T *)call.operands[4])[c], rest = ((const T *)call.operands[1])[i];
    if (along) {
        T normal =
            (((const T *)call.operands[2])[i] - ((const T *)call.operands[3])[c]) *
            rstd;
        rest -= (T)call.factor * (((const T *)call.operands[7])[c] + normal * along[c]);
    }
    ((T *)call.operands[0])[i] = rest * rstd * (w ? w[c] : (T)1);
}

#define CHANNELS_ENTRY(name, type, T)                                                  \
    int rowwise_##name##_##type(dt_queue queue, const dt_nn_call *given)               \
    {                                                                                  \
        RowCall call;                                                                  \
        int64_t numel = given->outer * given->n * given->inner;                        \
        if (rowwise_call(queue, given, false, &call))                                  \
            return -1;                                                                 \
        CUDA_TRY("starting a normalisation",                                           \
                 LAUNCH((name##_kernel<T>), blocks_for(numel), BLOCK, 0,               \
                        (cudaStream_t)queue.stream, call, numel));                     \
        return 0;                                                                      \
    }
CHANNELS_ENTRY(batch_norm, float32, float)
CHANNELS_ENTRY(batch_norm, float64, double)
CHANNELS_ENTRY(batch_norm_backward, float32, float)
CHANNELS_ENTRY(batch_norm_backward, float64, double)

template <typename T, int N>
__global__ void dropout_kernel(T *out, const T *x, const unsigned char *mask, T scale,
                               int64_t numel)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (i >= numel)
        return;
    Pack<T, N> made = *(const Pack<T, N> *)(x + i);
    Pack<unsigned char, N> holds = *(const Pack<unsigned char, N> *)(mask + i);
    UNROLL
    for (int k = 0; k < N; k++)
        made.v[k] *= holds.v[k] ? scale : (T)0;
    *(Pack<T, N> *)(out + i) = made;
}

template <typename T>
static int dropout_start(dt_queue queue, const dt_nn_call *call)
{
    constexpr int N = pack_size<T>;
    T *out = (T *)call->operands[0];
    const T *x = (const T *)call->operands[1];
    const unsigned char *mask = (const unsigned char *)call->operands[2];
    T scale = 1 / (T)call->factor;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    if (call->n % N == 0 && is_aligned(out, 16) && is_aligned(x, 16) &&
        is_aligned(mask, N))
        CUDA_TRY("starting dropout",
                 LAUNCH((dropout_kernel<T, N>), blocks_for(call->n / N), BLOCK, 0,
                        stream, out, x, mask, scale, call->n));
    else
        CUDA_TRY("starting dropout",
                 LAUNCH((dropout_kernel<T, 1>), blocks_for(call->n), BLOCK, 0, stream,
                        out, x, mask, scale, call->n));
    return 0;
}
ROWWISE_FUNCTIONS(dropout, dropout_start<T>(queue, call))

/* --- sums over rows --- */

/* The two terms of an element: number i, in row r (of outer and inner), of column c. */
template <typename T>
struct Terms {
    T first, second;
};
struct LayerNormParameters {
    template <typename T>
    static __device__ __forceinline__ Terms<T> of(const RowCall &call, int64_t i,
                                                  int64_t r, int64_t)
    {
        T g = ((const T *)call.operands[2])[i], x = ((const T *)call.operands[3])[i];
        T mean = ((const T *)call.operands[4])[r],
          rstd = ((const T *)call.operands[5])[r];
        return {g, g * ((x - mean) * rstd)};
    }
};
struct BatchNormParameters {
    template <typename T>
    static __device__ __forceinline__ Terms<T> of(const RowCall &call, int64_t i,
                                                  int64_t, int64_t c)
    {
        T g = ((const T *)call.operands[2])[i], x = ((const T *)call.operands[3])[i];
        T mean = ((const T *)call.operands[4])[c],
          rstd = ((const T *)call.operands[5])[c];
        return {g, g * ((x - mean) * rstd)};
    }
};
struct BatchNormMeans {
    template <typename T>
    static __device__ __forceinline__ Terms<T> of(const RowCall &call, int64_t i,
                                                  int64_t, int64_t)
    {
        return {((const T *)call.operands[2])[i], 0};
    }
};
struct BatchNormVariances {
    template <typename T>
    static __device__ __forceinline__ Terms<T> of(const RowCall &call, int64_t i,
                                                  int64_t, int64_t c)
    {
        T off = ((const T *)call.operands[2])[i] - ((const T *)call.operands[3])[c];
        return {off * off, 0};
    }
};

/* Neighbouring columns to a block, a power of two of them, whose threads share the rows
 * of each: those of part blockIdx.y. Partial sums lie [part][sum][column]. */
template <class Op, typename T>
__global__ void columns_kernel(GRID_CONSTANT(RowCall) call, double *sums, int64_t part,
                               unsigned columns)
{
    __shared__ double one[BLOCK], two[BLOCK];
    unsigned at = threadIdx.x & (columns - 1), step = BLOCK / columns;
    int64_t c = (int64_t)blockIdx.x * columns + at;
    int64_t first = blockIdx.y * part;
    int64_t end = first + part < call.rows ? first + part : call.rows;
    RowSum<T> a, b;
    if (c < call.n) {
        ROLLED
        for (int64_t r = first + threadIdx.x / columns; r < end; r += step) {
            int64_t i =
                call.inner > 1 ? row_start(call, r) + c * call.inner : r * call.n + c;
            Terms<T> terms = Op::template of<T>(call, i, r, c);
            a.add(terms.first);
            b.add(terms.second);
        }
    }
    one[threadIdx.x] = (double)a.value();
    two[threadIdx.x] = (double)b.value();
    ROLLED
    for (unsigned half = BLOCK / 2; half >= columns; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            one[threadIdx.x] += one[threadIdx.x + half];
            two[threadIdx.x] += two[threadIdx.x + half];
        }
    }
    if (threadIdx.x < columns && c < call.n) {
        sums[(blockIdx.y * 2) * call.n + c] = one[threadIdx.x];
        sums[(blockIdx.y * 2 + 1) * call.n + c] = two[threadIdx.x];
    }
}

template <typename T>
__global__ void columns_finish(T *first, T *second, const double *sums, int64_t n,
                               int64_t parts, double factor)
{
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n)
        return;
    double one = 0, two = 0;
    ROLLED
    for (int64_t p = 0; p < parts; p++) {
        one += sums[(p * 2) * n + c];
        two += sums[(p * 2 + 1) * n + c];
    }
    if (first)
        first[c] = (T)(one * factor);
    if (second)
        second[c] = (T)(two * factor);
}

/* Blocks that keep a large card busy, and elements of a column that are worth a part.
 */
#define COLUMN_BLOCKS 1024
#define COLUMN_PART   1024

template <class Op, typename T>
static int columns_start(dt_queue queue, const dt_nn_call *given, bool has_second)
{
    RowCall call;
    void *sums = nullptr;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    if (rowwise_call(queue, given, false, &call))
        return -1;
    unsigned columns = given->inner < 32 ? 32 : 1;
    int64_t tiles = (call.n + columns - 1) / columns;
    int64_t parts = COLUMN_BLOCKS / tiles, most = call.rows / COLUMN_PART;
    parts = parts > most ? most : parts;
    parts = parts < 1 ? 1 : parts;
    int64_t part = (call.rows + parts - 1) / parts;
    parts = (call.rows + part - 1) / part;
    size_t bytes = (size_t)(parts * 2 * call.n) * sizeof(double);
    if (allocator_allocate(queue, bytes, &sums))
        return -1;
    dim3 grid((unsigned)tiles, (unsigned)parts);
    cudaError_t error = LAUNCH_BARRIERS((columns_kernel<Op, T>), grid, BLOCK, 0, stream,
                                        call, (double *)sums, part, columns);
    if (error == cudaSuccess)
        error = LAUNCH((columns_finish<T>), blocks_for(call.n), BLOCK, 0, stream,
                       (T *)given->operands[0],
                       (T *)(has_second ? given->operands[1] : nullptr),
                       (const double *)sums, call.n, parts, given->factor);
    /* Given back at once: who takes it next on this stream comes after these kernels.
     */
    allocator_release(queue.device, sums, bytes);
    CUDA_TRY("starting sums over rows", error);
    return 0;
}

#define COLUMNS_ENTRY(name, Op, has_second)                                            \
    ROWWISE_FUNCTIONS(name, columns_start<Op, T>(queue, call, has_second))
COLUMNS_ENTRY(layer_norm_parameters, LayerNormParameters, true)
COLUMNS_ENTRY(batch_norm_parameters, BatchNormParameters, true)
COLUMNS_ENTRY(batch_norm_means, BatchNormMeans, false)
COLUMNS_ENTRY(batch_norm_variances, BatchNormVariances, false)
