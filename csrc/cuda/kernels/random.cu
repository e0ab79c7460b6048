#include "cuda/kernels/random.h"

#include "cuda/kernels/compute.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/layout.h"
#define DT_FN static __host__ __device__ __forceinline__
#include "device/random.h"
#include "ops/philox.h"

namespace {

/* Every element takes one counter, whatever its type, so element i of a call is always
 * drawn from counter offset + i. */

static __device__ __forceinline__ double to_double(uint32_t high, uint32_t low)
{
    uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0); /* 2^-53 */
}

template <typename T>
struct Draw;
template <>
struct Draw<float> {
    static __device__ __forceinline__ float uniform(const dt_philox &p)
    {
        return (float)(p.words[0] >> 8) * (1.0f / 16777216.0f); /* 2^-24 */
    }
    static __device__ __forceinline__ float normal(const dt_philox &p)
    {
        /* Box and Muller (1958); 1 - u keeps the logarithm finite. */
        float u = 1.0f - (float)(p.words[0] >> 8) * (1.0f / 16777216.0f);
        float v = (float)(p.words[1] >> 8) * (1.0f / 16777216.0f);
        return sqrtf(-2.0f * logf(u)) * cosf(6.28318530717958648f * v);
    }
};
template <>
struct Draw<double> {
    static __device__ __forceinline__ double uniform(const dt_philox &p)
    {
        return to_double(p.words[0], p.words[1]);
    }
    static __device__ __forceinline__ double normal(const dt_philox &p)
    {
        double u = 1.0 - to_double(p.words[0], p.words[1]);
        double v = to_double(p.words[2], p.words[3]);
        return sqrt(-2.0 * log(u)) * cos(6.28318530717958648 * v);
    }
};

/* Numbers are drawn in Compute<T>. */
template <typename T, typename C>
__global__ void uniform_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset, C low,
                               C high, bool brain)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    C value = Draw<C>::uniform(dt_philox_words(seed, offset + (uint64_t)i, 0)) *
                  (high - low) +
              low;
    /* Rounding may reach the upper bound, which does not belong to the interval. */
    store(out + i, value, brain);
    if (loaded(out + i, brain) >= high && high > low)
        store(out + i, low, brain);
}

template <typename T, typename C>
__global__ void normal_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset, C mean,
                              C std, bool brain)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        store(out + i,
              Draw<C>::normal(dt_philox_words(seed, offset + (uint64_t)i, 0)) * std +
                  mean,
              brain);
}

template <typename T>
__global__ void integers_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset,
                                int64_t low, uint64_t range, bool brain)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    dt_philox p = dt_philox_words(seed, offset + (uint64_t)i, 0);
    uint64_t bits = (uint64_t)p.words[0] << 32 | p.words[1];
    store(out + i, (Compute<T>)(int64_t)((uint64_t)low + bits % range), brain);
}

template <typename T>
__global__ void bernoulli_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset,
                                 double p, bool brain)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    dt_philox drawn = dt_philox_words(seed, offset + (uint64_t)i, 0);
    store(out + i, (Compute<T>)(to_double(drawn.words[0], drawn.words[1]) < p), brain);
}

template <typename T>
static int run_float(dt_stream stream, const dt_random_call *call, uint64_t seed,
                     uint64_t offset)
{
    typedef Compute<T> C;
    cudaStream_t handle = (cudaStream_t)stream.handle;
    bool brain = call->dtype == DT_BFLOAT16;
    C low = (C)dt_scalar_as_double(call->low),
      high = (C)dt_scalar_as_double(call->high);
    cudaError_t error =
        call->distribution == DT_RANDOM_UNIFORM
            ? LAUNCH((uniform_kernel<T, C>), blocks_for(call->numel), BLOCK, 0, handle,
                     (T *)call->out, call->numel, seed, offset, low, high, brain)
            : LAUNCH((normal_kernel<T, C>), blocks_for(call->numel), BLOCK, 0, handle,
                     (T *)call->out, call->numel, seed, offset, low, high, brain);
    CUDA_TRY("drawing random numbers", error);
    return 0;
}

template <typename T>
static int run_any(dt_stream stream, const dt_random_call *call, uint64_t seed,
                   uint64_t offset)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    bool brain = call->dtype == DT_BFLOAT16;
    cudaError_t error =
        call->distribution == DT_RANDOM_INTEGERS
            ? LAUNCH((integers_kernel<T>), blocks_for(call->numel), BLOCK, 0, handle,
                     (T *)call->out, call->numel, seed, offset, call->low.i,
                     call->high.i == INT64_MIN
                         ? (uint64_t)1 << (8 * sizeof(T) - 1)
                         : (uint64_t)call->high.i - (uint64_t)call->low.i,
                     brain)
            : LAUNCH((bernoulli_kernel<T>), blocks_for(call->numel), BLOCK, 0, handle,
                     (T *)call->out, call->numel, seed, offset,
                     dt_scalar_as_double(call->low), brain);
    CUDA_TRY("drawing random numbers", error);
    return 0;
}

} // namespace

int random_run(dt_stream stream, struct dt_generator *generator,
               const dt_random_call *call)
{
    uint64_t seed = 0;
    if (device_use(stream.device))
        return -1;
    uint64_t offset = dt_generator_reserve(generator, (uint64_t)call->numel, &seed);
    if (call->distribution == DT_RANDOM_UNIFORM ||
        call->distribution == DT_RANDOM_NORMAL) {
        if (dt_dtype_is_half(call->dtype))
            return run_float<Bits16>(stream, call, seed, offset);
        if (call->dtype == DT_FLOAT32)
            return run_float<float>(stream, call, seed, offset);
        if (call->dtype == DT_FLOAT64)
            return run_float<double>(stream, call, seed, offset);
        return dt_fail(DT_ERROR_RUNTIME,
                       "random numbers of this distribution are floats; the "
                       "type is %s",
                       dt_dtype_name(call->dtype));
    }
    switch (call->dtype) {
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    case DT_##ID:                                                                      \
        return run_any<type>(stream, call, seed, offset);
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        return run_any<Bits16>(stream, call, seed, offset);
#include "ops/dtype.def"
    default:
        return dt_fail(DT_ERROR_RUNTIME, "no random numbers of this type");
    }
}
