/* Random numbers of a GPU: Philox, an element from its own counter, so that the same
 * seed gives the same numbers on every GPU and on simulated ones. Every element takes
 * one counter, whatever its type: element i of a call is drawn from counter offset + i. */
#include "cuda/kernels/compute.h"
#define DT_FN static __host__ __device__ __forceinline__
#include "device/random.h"
#include "ops/philox.h"

namespace {

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

/* The distributions: floats are drawn in C. */
template <typename C>
struct Uniform {
    C low, high;
    template <typename T>
    __device__ __forceinline__ T of(const dt_philox &p) const
    {
        T value = (T)(Draw<C>::uniform(p) * (high - low) + low);
        /* Rounding may reach the upper bound, which does not belong to the interval. */
        return (C)value >= high && high > low ? (T)low : value;
    }
};
template <typename C>
struct Normal {
    C mean, std;
    template <typename T>
    __device__ __forceinline__ T of(const dt_philox &p) const
    {
        return (T)(Draw<C>::normal(p) * std + mean);
    }
};
struct Integers {
    int64_t low;
    uint64_t range;
    template <typename T>
    __device__ __forceinline__ T of(const dt_philox &p) const
    {
        uint64_t bits = (uint64_t)p.words[0] << 32 | p.words[1];
        return (T)(Compute<T>)(int64_t)((uint64_t)low + bits % range);
    }
};
struct Bernoulli {
    double probability;
    template <typename T>
    __device__ __forceinline__ T of(const dt_philox &p) const
    {
        return (T)(Compute<T>)(to_double(p.words[0], p.words[1]) < probability);
    }
};
template <typename C, class F>
void each_pointer(Uniform<C> &, F)
{
}
template <typename C, class F>
void each_pointer(Normal<C> &, F)
{
}
NO_POINTERS(Integers)
NO_POINTERS(Bernoulli)

template <typename T, class Distribution>
__global__ void random_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset,
                              Distribution distribution)
{
    int64_t i = thread_number();
    if (i < n)
        out[i] =
            distribution.template of<T>(dt_philox_words(seed, offset + (uint64_t)i, 0));
}

/* A call's counters. */
struct Counters {
    uint64_t seed, offset;
};

template <typename T, class Distribution>
int start(dt_stream stream, const dt_random_call *call, Counters counters,
          Distribution distribution)
{
    return START("drawing random numbers", stream, (random_kernel<T, Distribution>),
                 call->numel, (T *)call->out, call->numel, counters.seed,
                 counters.offset, distribution);
}

template <typename T>
int run(dt_stream stream, const dt_random_call *call, Counters counters)
{
    typedef Compute<T> C;
    C low = (C)dt_scalar_as_double(call->low),
      high = (C)dt_scalar_as_double(call->high);
    switch (call->distribution) {
    case DT_RANDOM_INTEGERS:
        return start<T>(stream, call, counters,
                        Integers{call->low.i,
                                 call->high.i == INT64_MIN
                                     ? (uint64_t)1 << (8 * sizeof(T) - 1)
                                     : (uint64_t)call->high.i - (uint64_t)call->low.i});
    case DT_RANDOM_BERNOULLI:
        return start<T>(stream, call, counters,
                        Bernoulli{dt_scalar_as_double(call->low)});
    default:
        if constexpr (dt_kind_of<T> == DT_KIND_FLOAT)
            return call->distribution == DT_RANDOM_UNIFORM
                       ? start<T>(stream, call, counters, Uniform<C>{low, high})
                       : start<T>(stream, call, counters, Normal<C>{low, high});
        return dt_fail(DT_ERROR_RUNTIME,
                       "random numbers of this distribution are floats; the "
                       "type is %s",
                       dt_dtype_name(call->dtype));
    }
}

} // namespace

int dt_cuda_random(dt_stream stream, struct dt_generator *generator,
                   const dt_random_call *call)
{
    Counters counters;
    counters.offset =
        dt_generator_reserve(generator, (uint64_t)call->numel, &counters.seed);
    return with_type(call->dtype, [&](auto zero) {
        return run<decltype(zero)>(stream, call, counters);
    });
}
