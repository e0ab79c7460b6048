/* Where the greatest or least element is: reductions of pairs of value and place. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/row_walk.h"

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

/* The type in which elements are compared: one for all integers. */
template <typename T>
using Compared =
    std::conditional_t<dt_kind_of<T> == DT_KIND_FLOAT, Compute<T>, int64_t>;

/* Loads an element of dtype, to be compared as C. */
template <typename C>
static __device__ __forceinline__ C compared(const char *at, dt_dtype dtype)
{
    C value = C();
    with_element_type(dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if constexpr (std::is_same_v<Compared<T>, C>)
            value = (C)(Compute<T>)*(const T *)at;
    });
    return value;
}

/* places: where the elements of a second stage come from, in their order; NULL: an
 * element's own number. */
template <typename C>
__global__ void argreduce_kernel(char *values, int64_t *indices, const char *input,
                                 const int64_t *places, GRID_CONSTANT(ReductionPlan) f,
                                 dt_dtype dtype, bool greatest)
{
    Place p = place_of(f);
    Found<C> best = {C(), -1};
    if (p.live && p.first < p.end) {
        const char *base = input + offset_in(f.kept, p.result);
        auto load = [&](const char *at) { return compared<C>(at, dtype); };
        best = {load(base + offset_in(f.reduced, p.first)), p.first};
        /* A thread meets its elements in their order. */
        auto use = [&](C value, int64_t i) {
            if ((greatest ? value > best.value : value < best.value) ||
                (value != value && best.value == best.value))
                best = {value, i};
        };
        each_element<false>(f.reduced, base, p.first + f.threads, p.end, f.threads,
                            load, use);
    }
    best = reduce_group<false>(best, f.threads, [&](Found<C> a, Found<C> b) {
        return goes_before(b, a, greatest) ? b : a;
    });
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        if (values)
            with_element_type(dtype, [&](auto zero) {
                typedef decltype(zero) T;
                if constexpr (std::is_same_v<Compared<T>, C>)
                    ((T *)values)[at] = (T)(Compute<T>)best.value;
            });
        if (indices)
            indices[at] = places && best.index >= 0
                              ? places[p.result * f.elements + best.index]
                              : best.index;
    }
}

static int start_argreduce(dt_stream stream, void *values, int64_t *indices,
                           const void *input, const int64_t *places,
                           const ReductionPlan &f, dt_dtype dtype, bool greatest)
{
    return with_type(dtype, [&](auto zero) {
        return START_REDUCTION("starting a search for an extreme", stream,
                               (argreduce_kernel<Compared<decltype(zero)>>), f,
                               (char *)values, indices, (const char *)input, places, f,
                               dtype, greatest);
    });
}

int dt_cuda_argreduce(dt_stream stream, bool greatest, const dt_reduction *call)
{
    ReductionPlan f;
    dt_dtype dtype = call->input_dtype;
    if (reduce_plan(call, &f))
        return -1;
    if (f.parts == 1)
        return start_argreduce(stream, call->output, call->index, call->input, nullptr,
                               f, dtype, greatest);
    size_t count = (size_t)(f.results * f.parts), item = dt_dtype_size(dtype);
    Scratch partial(stream, count * item), places(stream, count * sizeof(int64_t));
    if (!partial.data || !places.data ||
        start_argreduce(stream, partial.data, (int64_t *)places.data, call->input,
                        nullptr, f, dtype, greatest))
        return -1;
    return start_argreduce(
        stream, call->output, call->index, partial.data, (const int64_t *)places.data,
        reduce_plan_parts(f.results, f.parts, item), dtype, greatest);
}
