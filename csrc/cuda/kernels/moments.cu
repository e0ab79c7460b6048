/* Variances and means: reductions of count, mean and sum of squared deviations. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/row_walk.h"

#include "ops/moments.h"

namespace {

/* A run of elements by their differences from a number near their mean, in their own type;
 * runs are joined in double. That number is the mean of the elements before, or one of a
 * first, short run: so few bits of the squares are lost in what the mean takes off. */
enum { FIRST_RUN = 4, RUN = 32 };
template <typename T>
struct MomentsRun {
    T near, sum, square;
    int count;
    __device__ __forceinline__ void add(T x)
    {
        T off = x - near;
        sum += off;
        square += off * off;
        count++;
    }
    __device__ __forceinline__ dt_moments moments() const
    {
        double mean = (double)sum / count;
        double rest = (double)square - (double)sum * mean;
        return {(double)count, near + mean, rest < 0 ? 0 : rest};
    }
};

/* First: the input is elements; else it is moments. Where there is one part the results
 * are finished, else they are written to parts, [result][part]. */
template <typename T, bool First>
__global__ void moments_kernel(T *variances, T *means, dt_moments *parts,
                               const char *input, Half half,
                               GRID_CONSTANT(ReductionPlan) f, double divisor)
{
    Place p = place_of(f);
    dt_moments all = {0, 0, 0};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        int64_t step = f.threads;
        ROLLED
        for (int64_t i = p.first; i < p.end; i += step) {
            const char *at = base + offset_in(f.reduced, i);
            if constexpr (First) {
                step = (all.count == 0 ? FIRST_RUN : RUN) * f.threads;
                int64_t end = i + step < p.end ? i + step : p.end;
                T near = all.count == 0 ? element_at<T>(at, half) : (T)all.mean;
                MomentsRun<T> run = {near, 0, 0, 0};
                each_element<true>(
                    f.reduced, base, i, end, f.threads,
                    [&](const char *x) { return element_at<T>(x, half); },
                    [&](T x, int64_t) { run.add(x); });
                all = dt_moments_join(all, run.moments());
            } else {
                all = dt_moments_join(all, *(const dt_moments *)at);
            }
        }
    }
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
int start_moments(dt_stream stream, T *variances, T *means, dt_moments *parts,
                  const void *input, Half half, const ReductionPlan &f, double divisor)
{
    return START_REDUCTION("starting a variance", stream, (moments_kernel<T, First>), f,
                           variances, means, parts, (const char *)input, half, f,
                           divisor);
}

template <typename T>
int run_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    ReductionPlan f;
    Half half = half_of(call->input_dtype);
    double divisor = (double)call->reduced_numel - call->parameter;
    divisor = divisor > 0 ? divisor : 0;
    if (reduce_plan(call, &f))
        return -1;
    T *variances = (T *)call->output, *means = (T *)mean, *none = nullptr;
    if (f.parts == 1)
        return start_moments<T, true>(stream, variances, means, nullptr, call->input,
                                      half, f, divisor);
    Scratch parts(stream, (size_t)(f.results * f.parts) * sizeof(dt_moments));
    if (!parts.data ||
        start_moments<T, true>(stream, none, none, (dt_moments *)parts.data,
                               call->input, half, f, divisor))
        return -1;
    return start_moments<T, false>(
        stream, variances, means, nullptr, parts.data, WHOLE,
        reduce_plan_parts(f.results, f.parts, sizeof(dt_moments)), divisor);
}

} // namespace

int dt_cuda_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    return call->output_dtype == DT_FLOAT32 ? run_moments<float>(stream, mean, call)
                                            : run_moments<double>(stream, mean, call);
}
