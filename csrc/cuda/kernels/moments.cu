#include "cuda/kernels/compute.h"
#include "cuda/kernels/moments.h"
#include "cuda/kernels/row_offsets.h"

namespace {

/* The moments of a thread's elements of several dimensions, one by one. */
enum { FIRST_RUN = 4 };
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
        step = (all.count == 0 ? (int)FIRST_RUN : (int)MOMENTS_RUN) * f.threads;
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

/* First: the input is elements; else it is moments. */
template <typename T, bool First>
__global__ void __launch_bounds__(BLOCK, 4) moments_kernel(GRID_CONSTANT(Moments) c)
{
    constexpr int N = pack_of<T>;
    const ReductionPlan &f = c.f;
    Place p = place_of(f);
    dt_moments all = {0, 0, 0};
    if (p.live) {
        const char *base = c.input + offset_in(f.kept, p.result);
        if constexpr (!First) {
            ROLLED
            for (int64_t i = p.first; i < p.end; i += f.threads)
                all = dt_moments_join(
                    all, *(const dt_moments *)(base + offset_in(f.reduced, i)));
        } else if (f.reduced.ndim == 1) {
            MomentsOfRounds<T, N> mine;
            each_round_of_memory<T, N>(
                f, base, c.vectors, p.part * f.part, p.end, c.as,
                [&](const Round &r, const Vector<T, N>(&values)[AHEAD]) {
                    mine.take(r, p.end, values);
                });
            all = mine.all;
        } else {
            all = moments_apart<T>(f, base, p.first, p.end, c.as.half);
        }
    }
    if constexpr (First)
        all = moments_of_part(all, p, f);
    else
        all = reduce_group<false>(all, f.threads, [](dt_moments a, dt_moments b) {
            return dt_moments_join(a, b);
        });
    moments_put<T>(c, f, p, all);
}

template <typename T, bool First>
int start_moments(dt_stream stream, const Moments *given, const void *)
{
    Moments c = *given;
    c.vectors = First && has_vectors(c.f, c.input, c.as.size, pack_of<T>);
    return START_REDUCTION("starting a variance", stream, (moments_kernel<T, First>),
                           c.f, c);
}

template <typename T>
int run_moments(dt_stream stream, void *mean, const dt_reduction *call,
                moments_first first, const void *with)
{
    Moments c = {};
    const double divisor = (double)call->reduced_numel - call->parameter;
    c.as = stored_as(call->input_dtype);
    c.divisor = divisor > 0 ? divisor : 0;
    c.input = (const char *)call->input;
    if (reduce_plan(call, &c.f))
        return -1;
    const int64_t results = c.f.results, parts = c.f.parts;
    if (parts == 1) {
        c.variances = call->output;
        c.means = mean;
        return first(stream, &c, with);
    }
    Scratch memory(stream, (size_t)(results * parts) * sizeof(dt_moments));
    c.parts = (dt_moments *)memory.data;
    if (!memory.data || first(stream, &c, with))
        return -1;
    c.input = (const char *)memory.data;
    c.parts = nullptr;
    c.variances = call->output;
    c.means = mean;
    c.f = reduce_plan_parts(results, parts, sizeof(dt_moments));
    return start_moments<T, false>(stream, &c, nullptr);
}

} // namespace

int moments_by(dt_stream stream, void *mean, const dt_reduction *call,
               moments_first first, const void *with)
{
    return run_moments<float>(stream, mean, call, first, with);
}

int dt_cuda_moments(dt_stream stream, void *mean, const dt_reduction *call)
{
    return call->output_dtype == DT_FLOAT32
               ? run_moments<float>(stream, mean, call, start_moments<float, true>,
                                    nullptr)
               : run_moments<double>(stream, mean, call, start_moments<double, true>,
                                     nullptr);
}
