/* The kernel of the rows of ops/reduce.def, for any input type. A thread adds up runs
 * of elements, then the threads of a result meet in a tree of shuffles and shared
 * memory, so the error of a sum grows with the logarithm of its length; no float is
 * added atomically, so the result is the same each time. All rows that give one type
 * are in one kernel, which chooses the row for each vector of elements: see
 * elementwise_kernels.h. */
#ifndef DT_CUDA_KERNELS_REDUCE_KERNELS_H
#define DT_CUDA_KERNELS_REDUCE_KERNELS_H

#include "cuda/kernels/load_rounds.h"
#include "cuda/kernels/device_functions.h"
#include "ops/reduce.h"
#include "ops/reduce_ops.h"

/* A launch. Partial results are stored as [result][part]. */
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
    bool vectors;  /* the kernel's: elements are contiguous, and aligned as vectors */
    bool bytes;    /* the kernel's: a sum of contiguous bytes */
    Stored from, to; /* input and results */
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

/* Packs of a thread that go into its chains one after the other: each of their elements
 * into a chain of its own. */
enum { RUN = 32 };

/* A thread's part of a result. Rounds are added in chains, the packs of a round by pairs. */
template <typename T, typename Acc, int N>
struct Runs {
    /* In runs, so that a long sum is not one long chain of roundings. */
    Acc start, runs[N], chains[N];
    int length;

    __device__ __forceinline__ void begin(Acc from)
    {
        start = from;
        length = 0;
        UNROLL
        for (int k = 0; k < N; k++)
            runs[k] = chains[k] = from;
    }
    /* A round of elements; it is the last one where it has those before `end`. */
    __device__ __forceinline__ void take(const Reduction &c, const Round &r,
                                         int64_t end,
                                         const Vector<T, N> (&values)[AHEAD])
    {
        const bool whole = r.template is_whole<N>();
        length += AHEAD;
        const bool ends = length == RUN || r.first + r.packs * r.step >= end;
        length = ends ? 0 : length;
        with_row<T, Acc>(c.op, [&](auto row) {
            Acc terms[AHEAD][N];
            UNROLL
            for (int n = 0; n < AHEAD; n++) {
                UNROLL
                for (int k = 0; k < N; k++) {
                    const T value = values[n].v[k];
                    terms[n][k] = row.map(value, c.parameter);
                    if constexpr (std::is_same_v<T, Acc>)
                        terms[n][k] = c.mapped ? terms[n][k] : value;
                }
            }
            if (!whole) {
                UNROLL
                for (int n = 0; n < AHEAD; n++) {
                    UNROLL
                    for (int k = 0; k < N; k++)
                        terms[n][k] = r.has(n, k) ? terms[n][k] : start;
                }
            }
            UNROLL
            for (int k = 0; k < N; k++) {
                Acc &run = runs[k];
                run = row.combine(run,
                                  row.combine(row.combine(terms[0][k], terms[1][k]),
                                              row.combine(terms[2][k], terms[3][k])));
                if (ends) {
                    chains[k] = row.combine(chains[k], run);
                    run = start;
                }
            }
        });
    }
};
static_assert(AHEAD == 4 && RUN % AHEAD == 0, "rounds of two pairs");

/* Reduces a thread's elements from `first` to `end` of what starts at `base`. */
template <typename T, typename Acc, int N>
static __device__ __forceinline__ void
reduce_elements(const Reduction &c, const char *base, bool vectors, int64_t first,
                int64_t end, Acc start, Runs<T, Acc, N> &mine)
{
    mine.begin(start);
    each_round_of_memory<T, N>(c.f, base, vectors, first, end, c.from,
                               [&](const Round &r, const Vector<T, N>(&values)[AHEAD]) {
                                   mine.take(c, r, end, values);
                               });
}

/* Four bytes that add up as those of a word do: 1 for each bool that is true; signed ones
 * are raised by 128. */
static __device__ __forceinline__ uint32_t addends(uint32_t word, dt_dtype dtype)
{
    if (dtype == DT_BOOL)
        return (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) >> 7 & 0x01010101u;
    return dtype == DT_INT8 ? word ^ 0x80808080u : word;
}

/* A thread's part of the sum of the elements from `first` to `end`, bytes or bools: it
 * takes sixteen at once, but for those at the ends. */
static __device__ __forceinline__ int64_t sum_of_bytes(const char *first,
                                                       const char *end, int thread,
                                                       int threads, dt_dtype dtype)
{
    typedef Vector<uint32_t, 4> Sixteen;
    const int raised = dtype == DT_INT8 ? 128 : 0;
    const int64_t count = end - first, before = -(int64_t)(uintptr_t)first & 15;
    const int64_t head = before < count ? before : count;
    const auto *vectors = (const Sixteen *)(first + head);
    const int64_t nvectors = (count - head) / 16, tail = head + nvectors * 16;
    int64_t sum = 0;
    auto one = [&](int64_t i) {
        sum += (int64_t)addends((uint8_t)first[i], dtype) % 256 - raised;
    };
    for (int64_t i = thread; i < head; i += threads)
        one(i);
    for (int64_t i = tail + thread; i < count; i += threads)
        one(i);
    ROLLED
    for (int64_t v = thread; v < nvectors; v += (int64_t)AHEAD * threads) {
        Sixteen asked[AHEAD];
        uint32_t pairs = 0;
        UNROLL
        for (int n = 0; n < AHEAD; n++) {
            const bool there = v + n * threads < nvectors;
            asked[n] = there ? vectors[v + n * threads] : Sixteen{};
        }
        UNROLL
        for (int n = 0; n < AHEAD; n++) {
            UNROLL
            for (int k = 0; k < 4; k++) {
                const uint32_t four = addends(asked[n].v[k], dtype);
                pairs += (four & 0x00ff00ffu) + (four >> 8 & 0x00ff00ffu);
            }
        }
        /* The zeros in place of vectors past the end were raised, too. */
        sum += (int64_t)(pairs & 0xffff) + (pairs >> 16) - AHEAD * 16 * raised;
    }
    return sum;
}

/* Writes what the threads of a result have, by the first of them. */
template <typename T, typename Acc>
static __device__ __forceinline__ void finish_result(const Reduction &c, const Place &p,
                                                     Acc acc)
{
    if (!p.live || threadIdx.x % (unsigned)c.f.threads)
        return;
    int64_t at = p.result * c.f.parts + p.part;
    if (c.finished)
        acc = finished<T>(c.op, acc, c.count, c.parameter);
    put_result((char *)c.out + at * c.to.size, acc, c.to);
}

template <typename T, typename Acc>
__global__ void __launch_bounds__(BLOCK, 4) reduce_kernel(GRID_CONSTANT(Reduction) c)
{
    const ReductionPlan &f = c.f;
    Place p = place_of(f);
    Acc start = zero_of<T, Acc>(c.op);
    Runs<T, Acc, pack_of<T>> mine = {};
    if (p.live) {
        const char *base = c.input + offset_in(f.kept, p.result);
        if constexpr (std::is_same_v<T, Acc>)
            if (c.starts)
                start = first_of<T>(base, c.from);
        if constexpr (std::is_same_v<T, int64_t> && std::is_same_v<Acc, int64_t>) {
            if (c.bytes)
                mine.chains[0] = sum_of_bytes(base + p.part * f.part, base + p.end,
                                              (int)(threadIdx.x % (unsigned)f.threads),
                                              f.threads, c.from.dtype);
            else
                reduce_elements(c, base, c.vectors, p.part * f.part, p.end, start,
                                mine);
        } else {
            reduce_elements(c, base, c.vectors, p.part * f.part, p.end, start, mine);
        }
    }
    finish_result<T>(c, p, meet<T>(c.op, mine.chains, f.threads));
}

/* --- launches --- */

/* Runs a reduction, whose first stage `first` starts. with: its own. */
typedef int (*reduce_first)(dt_stream stream, const Reduction *call, const void *with);
int reduce_by(dt_stream stream, dt_reduce_op op, const dt_reduction *call,
              reduce_first first, const void *with);
/* The type that a row accumulates its elements in. */
reduce_class reduce_class_of(dt_reduce_op op);

template <typename T, typename Acc>
int reduce_start(dt_stream stream, const Reduction *given)
{
    Reduction c = *given;
    c.vectors = has_vectors(c.f, c.input, c.from.size, pack_of<T>);
    c.bytes = c.op == DT_REDUCE_sum && c.from.size == 1 && c.f.reduced.ndim == 1 &&
              c.f.reduced.strides[0][0] == 1;
    return START_REDUCTION("starting a reduction", stream, (reduce_kernel<T, Acc>), c.f,
                           c);
}

#endif
