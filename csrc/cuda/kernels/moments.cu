/* Variances and means: reductions of count, mean and sum of squared deviations. */
#include "cuda/kernels/reduce_plan.h"
#include "cuda/kernels/math.h"

#include "ops/moments.h"

namespace {

/* A run of elements one by one, in their own type (Welford, 1962); runs are joined in
 * double. */
template <typename T>
struct MomentsRun {
    T count, mean, square;
    __device__ __forceinline__ void add(T x)
    {
        T off = x - mean;
        count += T(1);
        mean += off / count;
        square += off * (x - mean);
    }
    __device__ __forceinline__ dt_moments take()
    {
        dt_moments run = {(double)count, (double)mean, (double)square};
        count = mean = square = 0;
        return run;
    }
};

/* First: the input is elements; else it is moments. Where there is one part the results
 * are finished, else they are written to parts, [result][part]. */
template <typename T, bool First>
__global__ void moments_kernel(T *variances, T *means, dt_moments *parts,
                               const char *input, GRID_CONSTANT(ReductionPlan) f,
                               double divisor)
{
    Place p = place_of(f);
    dt_moments all = {0, 0, 0};
    MomentsRun<T> run = {0, 0, 0};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        typedef std::conditional_t<First, T, dt_moments> Element;
        auto load = [&](int64_t i) {
            return *(const Element *)(base + offset_in(f.reduced, i));
        };
        each_ahead<First ? 4 : 1>(p.first, p.end, f.threads, load,
                                  [&](const Element &x, int64_t) {
                                      if constexpr (First) {
                                          run.add(x);
                                          if (run.count == T(32))
                                              all = dt_moments_join(all, run.take());
                                      } else {
                                          all = dt_moments_join(all, x);
                                      }
                                  });
    }
    if (First)
        all = dt_moments_join(all, run.take());
    all = reduce_group<false>(all, f.threads, [](dt_moments a, dt_moments b) {
        return dt_moments_join(a, b);
    });
    if (!p.live || threadIdx.x % (unsigned)f.threads)
        return;
    if (parts) {
        parts[p.result * f.parts + p.part] = all;
        return;
    }
    T none = T(0) / T(0);
    variances[p.result] = all.count == 0 ? none : (T)(all.square / divisor);
    if (means)
        means[p.result] = all.count == 0 ? none : (T)all.mean;
}

template <typename T, bool First>
int start(dt_stream stream, T *variances, T *means, dt_moments *parts,
          const void *input, const ReductionPlan &f, double divisor)
{
    return START_REDUCTION("starting a variance", stream, (moments_kernel<T, First>), f,
                           variances, means, parts, (const char *)input, f, divisor);
}

template <typename T>
int run(dt_stream stream, void *mean, const dt_reduction *call)
{
    ReductionPlan f;
    double divisor = (double)call->reduced_numel - call->parameter;
    divisor = divisor > 0 ? divisor : 0;
    if (reduce_plan(call, &f))
        return -1;
    T *variances = (T *)call->output, *means = (T *)mean, *none = nullptr;
    if (f.parts == 1)
        return start<T, true>(stream, variances, means, nullptr, call->input, f,
                              divisor);
    Scratch parts(stream, (size_t)(f.results * f.parts) * sizeof(dt_moments));
    if (!parts.data || start<T, true>(stream, none, none, (dt_moments *)parts.data,
                                      call->input, f, divisor))
        return -1;
    return start<T, false>(stream, variances, means, nullptr, parts.data,
                           reduce_plan_parts(f.results, f.parts, sizeof(dt_moments)),
                           divisor);
}

} // namespace

int dt_cuda_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    return call->input_dtype == DT_FLOAT32 ? run<float>(stream, mean, call)
                                           : run<double>(stream, mean, call);
}
