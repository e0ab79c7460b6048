/* The kernel of the rows of ops/reduce.def, for any input type. A thread adds up runs
 * of elements, then the threads of a result meet in a tree of shuffles and shared
 * memory, so the error of a sum grows with the logarithm of its length; no float is
 * added atomically, so the result is the same each time. All rows that give one type
 * are in one kernel, which chooses the row for each vector of elements: see
 * elementwise_kernels.h. */
#ifndef DT_CUDA_KERNELS_REDUCE_KERNELS_H
#define DT_CUDA_KERNELS_REDUCE_KERNELS_H

#include "cuda/kernels/pack.h"
#include "cuda/kernels/reduce_plan.h"
#include "cuda/kernels/device_functions.h"
#include "ops/reduce.h"
#include "ops/reduce_ops.h"

/* A launch. Partial results lie [result][part]. */
typedef struct Reduction {
    const char *input;
    void *out;
    double parameter;
    int64_t count; /* of the elements of a result */
    dt_reduce_op op;
    bool mapped;   /* the input is to be mapped; else it is partial results */
    bool finished; /* results are wanted; else partial ones */
    bool starts;   /* the row has no identity: from an element, which changes nothing a
                      second time */
    bool vectors;  /* the kernel's: vectors of elements are in memory, and aligned */
    Half from, to; /* stored types of input and results: partial ones are WHOLE */
    ReductionPlan f;
} Reduction;
POINTERS_OF(Reduction, f(s.input); f(s.out);)

/* --- rows --- */

/* The result type of a row for an input type; it also computes in it. */
template <typename T>
using Total = std::conditional_t<dt_kind_of<T> == DT_KIND_FLOAT, T, int64_t>;
template <typename In, Accumulates accumulates>
using Accumulated =
    std::conditional_t<accumulates == AS_TOTAL, Total<In>,
                       std::conditional_t<accumulates == AS_TRUTH, bool, In>>;

/* Calls f(row) for the row `op`, of the rows that make an Acc of Ts. */
template <typename T, typename Acc, class F>
static __device__ __forceinline__ void with_row(dt_reduce_op op, F f)
{
    switch (op) {
#define REDUCE(name, class, ...)                                                       \
    case DT_REDUCE_##name:                                                             \
        if constexpr ((!CLASS_##class.floats || dt_kind_of<T> == DT_KIND_FLOAT) &&     \
                      std::is_same_v<Accumulated<T, CLASS_##class.accumulates>, Acc>)  \
            f(reduce_##name<T, Acc>());                                                \
        break;
#include "ops/reduce.def"
#undef REDUCE
    default:
        break;
    }
}

template <typename T, typename Acc>
LONG Acc zero_of(dt_reduce_op op)
{
    Acc zero = Acc();
    with_row<T, Acc>(op, [&](auto row) { zero = row.identity(); });
    return zero;
}
template <typename T, typename Acc>
LONG Acc finished(dt_reduce_op op, Acc acc, int64_t count, double parameter)
{
    Acc result = acc;
    with_row<T, Acc>(op, [&](auto row) { result = row.finish(acc, count, parameter); });
    return result;
}

/* Reduces packs, each element into its chain: the first `count` elements of one pack, or
 * all of several. Without `mapped` they are partial results. */
template <int COUNT, typename T, typename Acc, int N>
static __device__ __forceinline__ void
reduce_packs(const Reduction &c, const StoredPack<T, N> *packs, int count, Acc *chains)
{
    with_row<T, Acc>(c.op, [&](auto row) {
        UNROLL
        for (int f = 0; f < COUNT; f++) {
            Vector<T, N> vector = packs[f].elements(c.from);
            UNROLL
            for (int k = 0; k < N; k++) {
                Acc value = row.map(vector.v[k], c.parameter);
                if constexpr (std::is_same_v<T, Acc>)
                    value = c.mapped ? value : vector.v[k];
                if (COUNT > 1 || k < count)
                    chains[k] = row.combine(chains[k], value);
            }
        }
    });
}

/* --- threads --- */

/* Reduces the chains of a thread, and what the threads of a result have: the answer is
 * the first one's. */
template <typename T, typename Acc, int N>
static __device__ __forceinline__ Acc meet(dt_reduce_op op, const Acc (&chains)[N],
                                           int threads)
{
    Acc acc = chains[0];
    with_row<T, Acc>(op, [&](auto row) {
        auto combine = [&](Acc a, Acc b) { return row.combine(a, b); };
        UNROLL
        for (int k = 1; k < N; k++)
            acc = combine(acc, chains[k]);
        acc = reduce_group<false>(acc, threads, combine);
    });
    return acc;
}

/* Elements of a vector, each of which goes into a chain of its own; and elements of a
 * chain that are added one to the other. */
template <typename T>
constexpr int chains_of = sizeof(T) == 8 ? 2 : 4;
enum { RUN = 32 };
/* Vectors that a thread asks for before it reduces the first of them. */
enum { AHEAD = 4 };

/* The pack of elements i, i + gap, ...; what lies beyond the end is any element. */
template <typename T, int N>
static __device__ __forceinline__ StoredPack<T, N>
elements_from(const Reduction &c, const char *base, bool vectors, int64_t i,
              int64_t gap, int64_t end)
{
    StoredPack<T, N> pack;
    if (vectors && i + N <= end) {
        pack.read(base + offset_in(c.f.reduced, i), c.from);
        return pack;
    }
    const char *at[N];
    UNROLL
    for (int k = 0; k < N; k++, i += gap)
        at[k] = base + (i < end ? offset_in(c.f.reduced, i) : 0);
    pack.read_each(at, c.from);
    return pack;
}

/* Reduces a thread's packs of the elements from `first` to `end` of what starts at `base`
 * into chains. The elements of a pack follow each other where they are read as vectors;
 * else neighbouring threads read neighbouring ones. */
template <typename T, typename Acc, int N>
static __device__ __forceinline__ void
reduce_elements(const Reduction &c, const char *base, bool vectors, int64_t first,
                int64_t end, Acc start, Acc (&chains)[N])
{
    const int threads = c.f.threads, gap = vectors ? 1 : threads, step = threads * N;
    /* In runs, so that a long sum is not one long chain of roundings. */
    Acc runs[N];
    UNROLL
    for (int k = 0; k < N; k++)
        runs[k] = chains[k] = start;
    int length = 0;
    int64_t i = first + threadIdx.x % (unsigned)threads * (vectors ? N : 1);
    ROLLED
    while (i < end) {
        int packs = 1;
        if (c.f.reduced.ndim == 1 && i + (AHEAD - 1) * step + (N - 1) * gap < end) {
            packs = AHEAD;
            StoredPack<T, N> ahead[AHEAD];
            UNROLL
            for (int f = 0; f < AHEAD; f++)
                ahead[f] =
                    elements_from<T, N>(c, base, vectors, i + f * step, gap, end);
            reduce_packs<AHEAD>(c, ahead, N, runs);
        } else {
            const auto pack = elements_from<T, N>(c, base, vectors, i, gap, end);
            int count = 0;
            UNROLL
            for (int k = 0; k < N; k++)
                count += i + k * gap < end;
            reduce_packs<1>(c, &pack, count, runs);
        }
        i += packs * step;
        length += packs;
        if (length < RUN && i < end)
            continue;
        with_row<T, Acc>(c.op, [&](auto row) {
            UNROLL
            for (int k = 0; k < N; k++) {
                chains[k] = row.combine(chains[k], runs[k]);
                runs[k] = start;
            }
        });
        length = 0;
    }
}

template <typename T, typename Acc>
__global__ void __launch_bounds__(BLOCK, 4) reduce_kernel(GRID_CONSTANT(Reduction) c)
{
    const ReductionPlan &f = c.f;
    Place p = place_of(f);
    Acc start = zero_of<T, Acc>(c.op), chains[chains_of<T>] = {};
    if (p.live) {
        const char *base = c.input + offset_in(f.kept, p.result);
        if constexpr (std::is_same_v<T, Acc>)
            if (c.starts)
                start = element_at<T>(base, c.from);
        reduce_elements<T>(c, base, c.vectors, p.part * f.part, p.end, start, chains);
    }
    Acc acc = meet<T>(c.op, chains, f.threads);
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        if (c.finished)
            acc = finished<T>(c.op, acc, c.count, c.parameter);
        put_element((char *)c.out + at * stored_size<Acc>(c.to), acc, c.to);
    }
}

/* --- launches --- */

template <typename T, typename Acc>
int reduce_start(dt_stream stream, const Reduction *given)
{
    const size_t item = stored_size<T>(given->from), bytes = chains_of<T> * item;
    Reduction c = *given;
    /* A run, or rows of whole vectors. */
    const Layout<1> &reduced = c.f.reduced;
    const int last = reduced.ndim - 1;
    c.vectors = reduced.strides[0][last] == (int64_t)item &&
                is_aligned(c.input, bytes) &&
                (last == 0 || reduced.sizes[last].divisor % chains_of<T> == 0);
    for (int d = 0; d < last; d++)
        c.vectors = c.vectors && reduced.strides[0][d] % (int64_t)bytes == 0;
    for (int d = 0; d < c.f.kept.ndim; d++)
        c.vectors = c.vectors && c.f.kept.strides[0][d] % (int64_t)bytes == 0;
    return START_REDUCTION("starting a reduction", stream, (reduce_kernel<T, Acc>), c.f,
                           c);
}

#endif
