/* The index of the maximum or minimum: reductions of pairs of value and index. */
#include "cuda/kernels/load_rounds.h"

template <typename T>
struct Found {
    T value;
    int64_t index; /* -1: nothing found yet */
};

/* Whether a goes before b: a NaN before all, then by value, then by index. */
template <typename T>
static __device__ __forceinline__ bool goes_before(const Found<T> &a, const Found<T> &b)
{
    if (a.index < 0 || b.index < 0)
        return b.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan;
    if (!a_nan && a.value != b.value)
        return a.value > b.value;
    return a.index < b.index;
}

/* The least elements are found as the greatest of these. */
template <typename C>
static __device__ __forceinline__ C mirrored(C value)
{
    if constexpr (std::is_integral_v<C>)
        return ~value;
    else
        return -value;
}

/* indices of the elements of a second stage, in order; NULL: an element's own number. */
template <typename C>
__global__ void __launch_bounds__(BLOCK,
                                  std::is_integral_v<C> || MANY_BLOCKS < 5 ? 4 : 5)
    argreduce_kernel(char *values, int64_t *indices, const char *input,
                     const int64_t *places, GRID_CONSTANT(ReductionPlan) f,
                     GRID_CONSTANT(Stored) as, bool greatest, bool vectors)
{
    constexpr int N = pack_of<C>;
    Place p = place_of(f);
    Found<C> best = {C(), -1};
    if (p.live) {
        /* A thread meets its elements in their order. */
        auto use = [&](const Round &r, const Asked<C, N>(&packs)[AHEAD]) {
            Vector<C, N> elements[AHEAD];
            UNROLL
            for (int n = 0; n < AHEAD; n++)
                elements[n] = elements_of<C, N>(packs[n], as);
            int place = -1;
            UNROLL
            for (int n = 0; n < AHEAD; n++) {
                UNROLL
                for (int k = 0; k < N; k++) {
                    const C plain = elements[n].v[k],
                            value = greatest ? plain : mirrored(plain);
                    bool better = !(value <= best.value) && best.value == best.value;
                    if (n == 0 && k == 0)
                        better = better || best.index < 0;
                    if (better && r.has(n, k)) {
                        best.value = value;
                        place = r.place(n, k);
                    }
                }
            }
            best.index = place < 0 ? best.index : r.first + place;
        };
        each_round<C, N>(f, input + offset_in(f.kept, p.result), vectors,
                         p.part * f.part, p.end, as, use);
    }
    best = reduce_group<false>(best, f.threads, [&](Found<C> a, Found<C> b) {
        return goes_before(b, a) ? b : a;
    });
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        best.value = greatest ? best.value : mirrored(best.value);
        if (values)
            put_result(values + at * as.size, best.value, as);
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
        typedef Taken<decltype(zero)> C;
        const Stored as = stored_as(dtype);
        const bool vectors = has_vectors(f, input, as.size, pack_of<C>);
        return START_REDUCTION("starting a search for an extreme", stream,
                               (argreduce_kernel<C>), f, (char *)values, indices,
                               (const char *)input, places, f, as, greatest, vectors);
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
