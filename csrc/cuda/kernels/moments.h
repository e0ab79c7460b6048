/* Variances and means as reductions of count, mean and sum of squared deviations: what a
 * thread does, and how threads meet. */
#ifndef DT_CUDA_KERNELS_MOMENTS_H
#define DT_CUDA_KERNELS_MOMENTS_H

#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/load_rounds.h"

#include "ops/moments.h"

/* A launch. Where there is one part the results are finished, else they are written to
 * parts, [result][part]. */
struct Moments {
    void *variances, *means; /* means: or NULL */
    dt_moments *parts;
    const char *input;
    double divisor;
    bool vectors; /* of elements */
    Stored as;
    ReductionPlan f;
};
POINTERS_OF(Moments, f(s.variances); f(s.means); f(s.parts); f(s.input);)

/* Runs a variance of floats, whose first stage `first` starts. with: its own. */
typedef int (*moments_first)(dt_stream stream, const Moments *call, const void *with);
int moments_by(dt_stream stream, void *mean, const dt_reduction *call,
               moments_first first, const void *with);

namespace {

/* A run of elements by their differences from a number near their mean, in their own type;
 * runs are joined in double. That number is the mean of the elements before, or of some
 * first ones: so few bits of the squares are lost in what the mean takes off. Element k of
 * each pack goes into sums of its own. */
enum { MOMENTS_RUN = 32 };
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

/* The moments of a thread's elements, which come in rounds of packs. */
template <typename T, int N>
struct MomentsOfRounds {
    dt_moments all;
    MomentsRun<T, N> run;

    __device__ __forceinline__ MomentsOfRounds() : all{0, 0, 0} { run.start(0); }
    __device__ __forceinline__ void take(const Round &r, int64_t end,
                                         const Vector<T, N> (&values)[AHEAD])
    {
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
        for (int n = 0; n < AHEAD; n++) {
            UNROLL
            for (int k = 0; k < N; k++) {
                T off = values[n].v[k] - run.near;
                if (!whole) {
                    off = r.has(n, k) ? off : 0;
                    run.count += r.has(n, k);
                }
                run.add(k, off);
            }
        }
        if (run.count < MOMENTS_RUN * N && r.first + AHEAD * r.step < end)
            return;
        all = dt_moments_join(all, run.moments());
        run.start(0);
    }
};

/* The moments of the `count` elements of a group of threads, of which each has its own. The
 * mean of all comes first, so that no two threads have to compute one. */
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

/* The moments of the elements of a part, of which each thread has its own. */
static __device__ __forceinline__ dt_moments moments_of_part(const dt_moments &mine,
                                                             const Place &p,
                                                             const ReductionPlan &f)
{
    if (f.threads > 1)
        return moments_of_group(mine, f.threads, (double)(p.end - p.part * f.part));
    return mine;
}

/* Writes those of a part, or of all elements, by the first of the threads. */
template <typename T, class Call>
static __device__ __forceinline__ void
moments_put(const Call &c, const ReductionPlan &f, const Place &p,
            const dt_moments &all)
{
    if (!p.live || threadIdx.x % (unsigned)f.threads)
        return;
    if (c.parts) {
        c.parts[p.result * f.parts + p.part] = all;
        return;
    }
    T none = T(0) / T(0);
    ((T *)c.variances)[p.result] = all.count == 0 ? none : (T)(all.square / c.divisor);
    if (c.means)
        ((T *)c.means)[p.result] = all.count == 0 ? none : (T)all.mean;
}

} // namespace

#endif
