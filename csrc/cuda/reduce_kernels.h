/* The kernels of the rows of ops/reduce.def, for any input type. A thread adds up runs
 * of elements, then the threads of a result meet in a tree of shuffles and shared
 * memory, so the error of a sum grows with the logarithm of its length; no float is
 * added atomically, so the result is the same each time. */
#ifndef DT_CUDA_REDUCE_KERNELS_H
#define DT_CUDA_REDUCE_KERNELS_H

#include "cuda/allocator.h"
#include "cuda/compute.h"
#include "cuda/device.h"
#include "cuda/folding.h"
#include "cuda/math.h"

/* What a row gives for an input type, in which it also computes. */
template <typename In>
struct total_of {
    typedef int64_t type;
};
template <>
struct total_of<float> {
    typedef float type;
};
template <>
struct total_of<double> {
    typedef double type;
};
#define ACC_TOTAL(In)     typename total_of<In>::type
#define ACC_FLOAT(In)     In
#define ACC_NORM(In)      In
#define ACC_ORDER(In)     In
#define ACC_TRUTH(In)     bool
#define TAKES_TOTAL(kind) true
#define TAKES_FLOAT(kind) ((kind) == DT_KIND_FLOAT)
#define TAKES_NORM(kind)  ((kind) == DT_KIND_FLOAT)
#define TAKES_ORDER(kind) true
#define TAKES_TRUTH(kind) true
/* TRUTH maps the input itself, the others the input in the type of the result. */
#define MAPPED_TOTAL(In, Acc) Acc
#define MAPPED_FLOAT(In, Acc) Acc
#define MAPPED_NORM(In, Acc)  Acc
#define MAPPED_ORDER(In, Acc) Acc
#define MAPPED_TRUTH(In, Acc) In
/* A row without identity starts from an element, which changes nothing a second time.
 */
#define STARTS_TOTAL false
#define STARTS_FLOAT false
#define STARTS_NORM  false
#define STARTS_ORDER true
#define STARTS_TRUTH false

#define REDUCE(name, class, identity, map_, combine_, finish_, doc)                    \
    template <typename In>                                                             \
    struct reduce_##name {                                                             \
        typedef ACC_##class(In) Acc;                                                   \
        static constexpr bool starts = STARTS_##class;                                 \
        static __device__ __forceinline__ Acc zero()                                   \
        {                                                                              \
            typedef Acc T;                                                             \
            return (T)(identity);                                                      \
        }                                                                              \
        static __device__ __forceinline__ Acc map(In element, double parameter)        \
        {                                                                              \
            typedef MAPPED_##class(In, Acc) T;                                         \
            T X = (T)element, P = (T)parameter;                                        \
            (void)P;                                                                   \
            return (Acc)(map_);                                                        \
        }                                                                              \
        static __device__ __forceinline__ Acc combine(Acc A, Acc B)                    \
        {                                                                              \
            return (Acc)(combine_);                                                    \
        }                                                                              \
        static __device__ __forceinline__ Acc finish(Acc A, int64_t count,             \
                                                     double parameter)                 \
        {                                                                              \
            typedef Acc T;                                                             \
            T COUNT = (T)count, P = (T)parameter;                                      \
            (void)COUNT;                                                               \
            (void)P;                                                                   \
            return (Acc)(finish_);                                                     \
        }                                                                              \
    };
#include "ops/reduce.def"
#undef REDUCE

/* Shuffles move words of 4 and 8 bytes. */
template <typename T>
static __device__ __forceinline__ T from_lane(T value, int delta)
{
    if constexpr (sizeof(T) < 4)
        return (T)__shfl_down_sync(0xffffffffu, (int)value, (unsigned)delta);
    else
        return __shfl_down_sync(0xffffffffu, value, (unsigned)delta);
}
static __device__ __forceinline__ int64_t from_lane(int64_t value, int delta)
{
    return (int64_t)__shfl_down_sync(0xffffffffu, (long long)value, (unsigned)delta);
}

/* Folds what the threads of a result have: the answer is the first one's. */
template <class Row, typename Acc>
static __device__ __forceinline__ Acc meet(Acc acc, int threads)
{
    if (threads == 1)
        return acc;
    for (int delta = 16; delta; delta /= 2)
        acc = Row::combine(acc, from_lane(acc, delta));
    if (threads == 32)
        return acc;
    __shared__ Acc warps[BLOCK / 32];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = acc;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < BLOCK / 32; w++)
            acc = Row::combine(acc, warps[w]);
    return acc;
}

/* Loads that a thread has on their way at once, and elements of a chain that are added
 * one to the other. */
enum { CHAINS = 4, RUN = 32 };

/* First: the input is mapped; else it holds partial results. Results are finished where
 * there is one part, and partial ones lie [result][part]. `half` says in which type of
 * 16 bits the input lies and the finished results are wanted; else it is WHOLE. */
enum Half { WHOLE, HALF16, BRAIN16 };
template <class Row, typename In, bool First>
__global__ void reduce_kernel(typename Row::Acc *out, const char *input,
                              GRID_CONSTANT(Folding) f, double parameter, int64_t count,
                              bool last, Half half)
{
    typedef typename Row::Acc Acc;
    Place p = place_of(f);
    Acc acc = Row::zero();
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        auto element = [&](int64_t i) -> Acc {
            const In *at = (const In *)(base + offset_in(f.folded, i));
            if constexpr (First)
                return Row::map(loaded(at, half == BRAIN16), parameter);
            else
                return *at;
        };
        /* In runs, so that a long sum is not one long chain of roundings; in chains,
         * so that several loads are on their way at once. */
        const Acc start = Row::starts ? element(0) : Row::zero();
        Acc runs[CHAINS], chains[CHAINS];
        UNROLL
        for (int k = 0; k < CHAINS; k++)
            runs[k] = chains[k] = start;
        int64_t step = f.threads, i = p.first;
        int length = 0;
        ROLLED
        for (; i + (CHAINS - 1) * step < p.end; i += CHAINS * step) {
            Acc next[CHAINS];
            UNROLL
            for (int k = 0; k < CHAINS; k++)
                next[k] = element(i + k * step);
            UNROLL
            for (int k = 0; k < CHAINS; k++)
                runs[k] = Row::combine(runs[k], next[k]);
            if (++length == RUN) {
                UNROLL
                for (int k = 0; k < CHAINS; k++) {
                    chains[k] = Row::combine(chains[k], runs[k]);
                    runs[k] = start;
                }
                length = 0;
            }
        }
        ROLLED
        for (; i < p.end; i += step)
            runs[0] = Row::combine(runs[0], element(i));
        acc = start;
        UNROLL
        for (int k = 0; k < CHAINS; k++)
            acc = Row::combine(acc, Row::combine(chains[k], runs[k]));
    }
    acc = meet<Row>(acc, f.threads);
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        if (last)
            acc = Row::finish(acc, count, parameter);
        if constexpr (std::is_same_v<Acc, float> &&
                      (!First || sizeof(In) == sizeof(Bits16)))
            if (half && last) {
                store((Bits16 *)out + at, acc, half == BRAIN16);
                return;
            }
        out[at] = acc;
    }
}

template <class Row, typename In, bool First>
static int launch(dt_queue queue, typename Row::Acc *out, const void *input, Folding *f,
                  double parameter, int64_t count, bool last, Half half)
{
    cudaStream_t stream = (cudaStream_t)queue.stream;
    int64_t blocks = reduce_blocks(f);
    /* A result that one thread folds needs no barrier. */
    cudaError_t error =
        f->threads == 1
            ? LAUNCH((reduce_kernel<Row, In, First>), blocks, BLOCK, 0, stream, out,
                     (const char *)input, *f, parameter, count, last, half)
            : LAUNCH_BARRIERS((reduce_kernel<Row, In, First>), blocks, BLOCK, 0, stream,
                              out, (const char *)input, *f, parameter, count, last,
                              half);
    CUDA_TRY("starting a reduction", error);
    return 0;
}

template <class Row, typename In>
static int run_row(dt_queue queue, const dt_reduction *call)
{
    typedef typename Row::Acc Acc;
    Folding f;
    Acc *out = (Acc *)call->output;
    if (reduce_plan(call, &f))
        return -1;
    Half half = call->input_dtype == DT_FLOAT16    ? HALF16
                : call->input_dtype == DT_BFLOAT16 ? BRAIN16
                                                   : WHOLE;
    if (f.parts == 1)
        return launch<Row, In, true>(queue, out, call->input, &f, call->parameter,
                                     call->folded_numel, true, half);
    void *partial = nullptr;
    size_t bytes = (size_t)(f.results * f.parts) * sizeof(Acc);
    if (allocator_allocate(queue, bytes, &partial))
        return -1;
    Folding second = reduce_plan_parts(f.results, f.parts, sizeof(Acc));
    int status =
        launch<Row, In, true>(queue, (Acc *)partial, call->input, &f, call->parameter,
                              call->folded_numel, false, half);
    if (!status)
        status = launch<Row, Acc, false>(queue, out, partial, &second, call->parameter,
                                         call->folded_numel, true, half);
    /* Given back at once: who takes it next on this stream comes after these kernels.
     */
    allocator_release(queue.device, partial, bytes);
    return status;
}

/* A kernel where the class takes the type, else none, so that nothing is made in vain.
 */
template <template <typename> class Row, typename In, bool takes>
struct reduce_entry {
    static constexpr reduce_fn fn = run_row<Row<Compute<In>>, In>;
};
template <template <typename> class Row, typename In>
struct reduce_entry<Row, In, false> {
    static constexpr reduce_fn fn = nullptr;
};

template <typename In>
struct reduce_rows {
    static constexpr reduce_table table = {{
#define REDUCE(name, class, identity, map, combine, finish, doc)                       \
    reduce_entry<reduce_##name, In, TAKES_##class(kind_of<In>)>::fn,
#include "ops/reduce.def"
#undef REDUCE
    }};
};

/* What cuda/reduce.h says of an input type. */
#define REDUCTIONS(name, type)                                                         \
    const reduce_table reduce_##name = reduce_rows<type>::table;

#endif
