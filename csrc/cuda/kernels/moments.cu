/* Variances and means: reductions of count, mean and sum of squared deviations. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/rounds.h"
#include "cuda/kernels/row_walk.h"

#include "ops/moments.h"

namespace {

/* A run of elements by their differences from a number near their mean, in their own type;
 * runs are joined in double. That number is the mean of the elements before, or of some
 * first ones: so few bits of the squares are lost in what the mean takes off. Element k of
 * each pack goes into sums of its own. */
enum { FIRST_RUN = 4, RUN = 32 };
template <typename T, int N>
struct MomentsRun {
    T near, sum[N], square[N];
    int count;

    __device__ __forceinline__ void start(T number)
    {
        near = number;
        count = 0;
        UNROLL
        for (int k = 0; k < N; k++)
            sum[k] = square[k] = 0;
    }
    __device__ __forceinline__ void add(int k, T off)
    {
        sum[k] += off;
        square[k] += off * off;
    }
    __device__ __forceinline__ dt_moments moments() const
    {
        double off = 0, rest = 0;
        UNROLL
        for (int k = 0; k < N; k++) {
            off += (double)sum[k];
            rest += (double)square[k];
        }
        double mean = off / count;
        rest -= off * mean;
        return {(double)count, near + mean, rest < 0 ? 0 : rest};
    }
};

/* The moments of a thread's elements: of one dimension in rounds of packs, of others one by
 * one. */
template <typename T>
static __device__ __forceinline__ dt_moments moments_of_line(const ReductionPlan &f,
                                                             const char *base,
                                                             bool vectors,
                                                             int64_t first, int64_t end,
                                                             const Stored &as)
{
    constexpr int N = pack_of<T>;
    dt_moments all = {0, 0, 0};
    MomentsRun<T, N> run;
    run.start(0);
    auto use = [&](const Round &r, const Asked<T, N>(&packs)[AHEAD]) {
        Vector<T, N> values[AHEAD];
        UNROLL
        for (int n = 0; n < AHEAD; n++)
            values[n] = elements_of<T, N>(packs[n], as);
        if (run.count == 0) {
            T sum = 0;
            UNROLL
            for (T value : values[0].v)
                sum += value / N;
            run.near = all.count ? (T)all.mean : r.has(0, N - 1) ? sum : values[0].v[0];
        }
        const bool whole = r.template is_whole<N>();
        run.count += whole ? AHEAD * N : 0;
        UNROLL
        for (int n = 0; n < AHEAD; n++)
            UNROLL
        for (int k = 0; k < N; k++) {
            T off = values[n].v[k] - run.near;
            if (!whole) {
                off = r.has(n, k) ? off : 0;
                run.count += r.has(n, k);
            }
            run.add(k, off);
        }
        if (run.count < RUN * N && r.first + AHEAD * r.step < end)
            return;
        all = dt_moments_join(all, run.moments());
        run.start(0);
    };
    each_round<T, N>(f, base, vectors, first, end, as, use);
    return all;
}
template <typename T>
static __device__ __forceinline__ dt_moments moments_apart(const ReductionPlan &f,
                                                           const char *base,
                                                           int64_t first, int64_t last,
                                                           Half half)
{
    dt_moments all = {0, 0, 0};
    int64_t step;
    ROLLED
    for (int64_t i = first; i < last; i += step) {
        step = (all.count == 0 ? FIRST_RUN : RUN) * f.threads;
        int64_t end = i + step < last ? i + step : last;
        MomentsRun<T, 1> run;
        run.start(all.count == 0 ? element_at<T>(base + offset_in(f.reduced, i), half)
                                 : (T)all.mean);
        each_element(
            f.reduced, base, i, end, f.threads,
            [&](const char *x) { return element_at<T>(x, half); },
            [&](T x) {
                run.add(0, x - run.near);
                run.count++;
            });
        all = dt_moments_join(all, run.moments());
    }
    return all;
}

/* Those of the `count` elements of a group of threads from what each has: their mean
 * first, so that no pair of threads has one of its own. */
static __device__ __forceinline__ dt_moments moments_of_group(const dt_moments &mine,
                                                              int threads, double count)
{
    auto plus = [](double a, double b) { return a + b; };
    double mean = reduce_group<true>(mine.count * mine.mean, threads, plus) / count;
    double off = mine.mean - mean;
    double square =
        reduce_group<true>(mine.square + mine.count * off * off, threads, plus);
    return {count, mean, square};
}

/* First: the input is elements; else it is moments. Where there is one part the results
 * are finished, else they are written to parts, [result][part]. */
template <typename T, bool First>
__global__ void __launch_bounds__(BLOCK, 4)
    moments_kernel(T *variances, T *means, dt_moments *parts, const char *input,
                   GRID_CONSTANT(Stored) as, GRID_CONSTANT(ReductionPlan) f,
                   double divisor, bool vectors)
{
    Place p = place_of(f);
    dt_moments all = {0, 0, 0};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        if constexpr (!First) {
            ROLLED
            for (int64_t i = p.first; i < p.end; i += f.threads)
                all = dt_moments_join(
                    all, *(const dt_moments *)(base + offset_in(f.reduced, i)));
        } else if (f.reduced.ndim == 1) {
            all = moments_of_line<T>(f, base, vectors, p.part * f.part, p.end, as);
        } else {
            all = moments_apart<T>(f, base, p.first, p.end, as.half);
        }
    }
    if (First && f.threads > 1)
        all = moments_of_group(all, f.threads, (double)(p.end - p.part * f.part));
    else
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
                  const void *input, const Stored &as, const ReductionPlan &f,
                  double divisor)
{
    const bool vectors = First && has_vectors(f, input, as.size, pack_of<T>);
    return START_REDUCTION("starting a variance", stream, (moments_kernel<T, First>), f,
                           variances, means, parts, (const char *)input, as, f, divisor,
                           vectors);
}

template <typename T>
int run_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    ReductionPlan f;
    const Stored as = stored_as(call->input_dtype);
    double divisor = (double)call->reduced_numel - call->parameter;
    divisor = divisor > 0 ? divisor : 0;
    if (reduce_plan(call, &f))
        return -1;
    T *variances = (T *)call->output, *means = (T *)mean, *none = nullptr;
    if (f.parts == 1)
        return start_moments<T, true>(stream, variances, means, nullptr, call->input,
                                      as, f, divisor);
    Scratch parts(stream, (size_t)(f.results * f.parts) * sizeof(dt_moments));
    if (!parts.data ||
        start_moments<T, true>(stream, none, none, (dt_moments *)parts.data,
                               call->input, as, f, divisor))
        return -1;
    return start_moments<T, false>(
        stream, variances, means, nullptr, parts.data, as,
        reduce_plan_parts(f.results, f.parts, sizeof(dt_moments)), divisor);
}

} // namespace

int dt_cuda_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    return call->output_dtype == DT_FLOAT32 ? run_moments<float>(stream, mean, call)
                                            : run_moments<double>(stream, mean, call);
}
