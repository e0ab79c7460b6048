/* Where the greatest or least element is: reductions of pairs of value and place. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/reduce_plan.h"

template <typename T>
struct Found {
    T value;
    int64_t index; /* -1: nothing found yet */
};

/* Whether a goes before b: a NaN before all, then by size, then the earlier place. */
template <typename T>
static __device__ __forceinline__ bool goes_before(const Found<T> &a, const Found<T> &b,
                                                   bool greatest)
{
    if (a.index < 0 || b.index < 0)
        return b.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan;
    if (!a_nan && a.value != b.value)
        return greatest ? a.value > b.value : a.value < b.value;
    return a.index < b.index;
}

/* places: where the elements of a second stage come from; NULL: an element's own
 * number. */
template <typename T>
__global__ void argreduce_kernel(T *values, int64_t *indices, const char *input,
                                 const int64_t *places, GRID_CONSTANT(ReductionPlan) f,
                                 bool greatest)
{
    typedef Found<Compute<T>> State;
    Place p = place_of(f);
    State best = {};
    best.index = -1;
    auto first = [&](State a, State b) { return goes_before(b, a, greatest) ? b : a; };
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        auto load = [&](int64_t i) {
            return *(const T *)(base + offset_in(f.reduced, i));
        };
        each_ahead<4>(p.first, p.end, f.threads, load, [&](T value, int64_t i) {
            int64_t place = places ? places[p.result * f.elements + i] : i;
            best = first(best, {(Compute<T>)value, place});
        });
    }
    best = reduce_group<false>(best, f.threads, first);
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        if (values)
            values[at] = (T)best.value;
        if (indices)
            indices[at] = best.index;
    }
}

template <typename T>
static int start(dt_stream stream, T *values, int64_t *indices, const void *input,
                 const int64_t *places, const ReductionPlan &f, bool greatest)
{
    return START_REDUCTION("starting a search for an extreme", stream,
                           (argreduce_kernel<T>), f, values, indices,
                           (const char *)input, places, f, greatest);
}

int dt_cuda_argreduce(dt_stream stream, bool greatest, const dt_reduction *call)
{
    ReductionPlan f;
    if (reduce_plan(call, &f))
        return -1;
    return with_type(call->input_dtype, [&](auto zero) {
        typedef decltype(zero) T;
        T *values = (T *)call->output;
        if (f.parts == 1)
            return start(stream, values, call->index, call->input, nullptr, f,
                         greatest);
        size_t count = (size_t)(f.results * f.parts);
        Scratch partial(stream, count * sizeof(T)),
            places(stream, count * sizeof(int64_t));
        if (!partial.data || !places.data ||
            start(stream, (T *)partial.data, (int64_t *)places.data, call->input,
                  nullptr, f, greatest))
            return -1;
        return start(stream, values, call->index, partial.data,
                     (const int64_t *)places.data,
                     reduce_plan_parts(f.results, f.parts, sizeof(T)), greatest);
    });
}
