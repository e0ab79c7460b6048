/* Random numbers of a GPU: Philox, elements from their own counters, so that the same
 * seed gives the same numbers on every GPU and on simulated ones. A counter gives
 * `count` elements, 4 of 32 random bits or 2 of 64: element i of a call is number
 * i % count of counter offset + i / count. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/device_functions.h"
#undef DT_FN
#define DT_FN static __host__ __device__ __forceinline__
#include "cuda/runtime/graph.h"
#include "ops/philox.h"

namespace {

static __device__ __forceinline__ double to_double(uint32_t high, uint32_t low)
{
    uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0); /* 2^-53 */
}

/* Uniform in [0, 1). */
static __device__ __forceinline__ float to_float(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f); /* 2^-24 */
}
static __device__ __forceinline__ void sine_and_cosine(float x, float *sine,
                                                       float *cosine)
{
    sincosf(x, sine, cosine);
}
static __device__ __forceinline__ void sine_and_cosine(double x, double *sine,
                                                       double *cosine)
{
    sincos(x, sine, cosine);
}

template <typename T>
struct Draw;
template <>
struct Draw<float> {
    static constexpr int count = 4;
    static __device__ __forceinline__ float uniform(const dt_philox &p, int i)
    {
        return to_float(p.words[i]);
    }
};
template <>
struct Draw<double> {
    static constexpr int count = 2;
    static __device__ __forceinline__ double uniform(const dt_philox &p, int i)
    {
        return to_double(p.words[2 * i], p.words[2 * i + 1]);
    }
};

/* The distributions: floats are drawn in C. */
template <typename C>
struct Uniform {
    static constexpr int count = Draw<C>::count;
    C low, high;
    template <typename T>
    __device__ __forceinline__ void draw(const dt_philox &p, T *out) const
    {
        UNROLL
        for (int i = 0; i < count; i++) {
            T value = (T)(Draw<C>::uniform(p, i) * (high - low) + low);
            /* Rounding may reach the upper bound, which does not belong to the
             * interval. */
            out[i] = (C)value >= high && high > low ? (T)low : value;
        }
    }
};
template <typename C>
struct Normal {
    static constexpr int count = Draw<C>::count;
    C mean, std;
    template <typename T>
    __device__ __forceinline__ void draw(const dt_philox &p, T *out) const
    {
        /* Box and Muller (1958), two numbers a pair; 1 - u keeps the logarithm finite. */
        UNROLL
        for (int i = 0; i < count; i += 2) {
            C sine, cosine;
            C length = op_sqrt((C)-2 * op_log((C)1 - Draw<C>::uniform(p, i)));
            sine_and_cosine((C)6.28318530717958648 * Draw<C>::uniform(p, i + 1), &sine,
                            &cosine);
            out[i] = (T)(length * cosine * std + mean);
            out[i + 1] = (T)(length * sine * std + mean);
        }
    }
};
struct Integers {
    static constexpr int count = 2; /* 64 bits each, or large ranges would be uneven */
    int64_t low;
    uint64_t range;
    template <typename T>
    __device__ __forceinline__ void draw(const dt_philox &p, T *out) const
    {
        UNROLL
        for (int i = 0; i < count; i++) {
            uint64_t bits = (uint64_t)p.words[2 * i] << 32 | p.words[2 * i + 1];
            out[i] = (T)(Compute<T>)(int64_t)((uint64_t)low + bits % range);
        }
    }
};
/* Words below so many are 1: a probability is a part of 2^32. */
static uint64_t words_for(double probability)
{
    return (uint64_t)ceil(probability * 4294967296.0);
}
struct Bernoulli {
    static constexpr int count = 4;
    uint64_t words;
    template <typename T>
    __device__ __forceinline__ void draw(const dt_philox &p, T *out) const
    {
        UNROLL
        for (int i = 0; i < count; i++)
            out[i] = (T)(Compute<T>)(p.words[i] < words);
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

/* A thread for each counter. */
template <typename T, class Distribution>
__global__ void random_kernel(T *out, int64_t n, uint64_t seed, uint64_t offset,
                              const uint64_t *state, bool aligned,
                              Distribution distribution)
{
    constexpr int N = Distribution::count;
    int64_t counter = thread_number(), at = counter * N;
    if (at >= n)
        return;
    if (state) {
        seed = state[0];
        offset += state[1];
    }
    Vector<T, N> drawn;
    distribution.template draw<T>(dt_philox_words(seed, offset + (uint64_t)counter, 0),
                                  drawn.v);
    if (aligned && at + N <= n) {
        *(Vector<T, N> *)(out + at) = drawn;
        return;
    }
    UNROLL
    for (int i = 0; i < N; i++)
        if (at + i < n)
            out[at + i] = drawn.v[i];
}

template <typename T, class Distribution>
int start_random(dt_stream stream, const dt_random_call *call,
                 struct dt_generator *generator, Distribution distribution)
{
    constexpr int N = Distribution::count;
    const int64_t counters = (call->numel + N - 1) / N;
    DrawStart at;
    if (graph_draw(stream, generator, (uint64_t)counters, &at))
        return -1;
    return START("drawing random numbers", stream, (random_kernel<T, Distribution>),
                 counters, (T *)call->out, call->numel, at.seed, at.offset, at.state,
                 is_aligned(call->out, sizeof(Vector<T, N>)), distribution);
}

/* A thread for each counter draws the mask as random_kernel does. */
template <typename T>
__global__ void dropout_kernel(T *out, dt_bool *mask, const T *x, int64_t n,
                               uint64_t seed, uint64_t offset, const uint64_t *state,
                               bool aligned, Bernoulli distribution, Compute<T> scale)
{
    constexpr int N = Bernoulli::count;
    const int64_t counter = thread_number(), at = counter * N;
    if (at >= n)
        return;
    const bool whole = aligned && at + N <= n;
    Vector<T, N> values = {};
    Vector<dt_bool, N> keeps;
    if (whole)
        values = *(const Vector<T, N> *)(x + at);
    else {
        UNROLL
        for (int i = 0; i < N; i++)
            if (at + i < n)
                values.v[i] = x[at + i];
    }
    if (state) {
        seed = state[0];
        offset += state[1];
    }
    distribution.draw<dt_bool>(dt_philox_words(seed, offset + (uint64_t)counter, 0),
                               keeps.v);
    UNROLL
    for (int i = 0; i < N; i++)
        values.v[i] = (T)((Compute<T>)values.v[i] * (keeps.v[i] ? scale : 0));
    if (whole) {
        *(Vector<T, N> *)(out + at) = values;
        *(Vector<dt_bool, N> *)(mask + at) = keeps;
        return;
    }
    UNROLL
    for (int i = 0; i < N; i++)
        if (at + i < n) {
            out[at + i] = values.v[i];
            mask[at + i] = keeps.v[i];
        }
}

template <typename T>
int run_dropout(dt_stream stream, const dt_random_call *call,
                struct dt_generator *generator)
{
    constexpr int N = Bernoulli::count;
    const int64_t counters = (call->numel + N - 1) / N;
    const double kept = dt_scalar_as_double(call->low);
    const bool aligned = is_aligned(call->out, sizeof(Vector<T, N>)) &&
                         is_aligned(call->x, sizeof(Vector<T, N>)) &&
                         is_aligned(call->mask, N);
    DrawStart at;
    if (graph_draw(stream, generator, (uint64_t)counters, &at))
        return -1;
    return START("dropping out", stream, dropout_kernel<T>, counters, (T *)call->out,
                 call->mask, (const T *)call->x, call->numel, at.seed, at.offset,
                 at.state, aligned, Bernoulli{words_for(kept)}, 1 / (Compute<T>)kept);
}

template <typename T>
int run_random(dt_stream stream, const dt_random_call *call,
               struct dt_generator *generator)
{
    typedef Compute<T> C;
    C low = (C)dt_scalar_as_double(call->low),
      high = (C)dt_scalar_as_double(call->high);
    switch (call->distribution) {
    case DT_RANDOM_INTEGERS:
        return start_random<T>(
            stream, call, generator,
            Integers{call->low.i,
                     call->high.i == INT64_MIN
                         ? (uint64_t)1 << (8 * sizeof(T) - 1)
                         : (uint64_t)call->high.i - (uint64_t)call->low.i});
    case DT_RANDOM_BERNOULLI:
        return start_random<T>(stream, call, generator,
                               Bernoulli{words_for(dt_scalar_as_double(call->low))});
    default:
        if constexpr (dt_kind_of<T> == DT_KIND_FLOAT)
            return call->distribution == DT_RANDOM_DROPOUT
                       ? run_dropout<T>(stream, call, generator)
                   : call->distribution == DT_RANDOM_UNIFORM
                       ? start_random<T>(stream, call, generator, Uniform<C>{low, high})
                       : start_random<T>(stream, call, generator, Normal<C>{low, high});
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
    return with_type(call->dtype, [&](auto zero) {
        return run_random<decltype(zero)>(stream, call, generator);
    });
}
