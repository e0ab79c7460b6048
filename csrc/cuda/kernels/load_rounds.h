/* Loads a thread's elements of a reduction in rounds of several packs: the loads of a round
 * are all started before the first pack is used. */
#ifndef DT_CUDA_KERNELS_LOAD_ROUNDS_H
#define DT_CUDA_KERNELS_LOAD_ROUNDS_H

#include "cuda/kernels/stored_pack.h"
#include "cuda/kernels/reduce_plan.h"

/* How elements are stored that a kernel takes as a T: floats as a Half says; integers and
 * bools, which are all taken as int64, as their dtype. */
struct Stored {
    dt_dtype dtype;
    Half half;
    int size; /* bytes */
};
NO_POINTERS(Stored)
static inline Stored stored_as(dt_dtype dtype)
{
    return {dtype, half_of(dtype), (int)dt_dtype_size(dtype)};
}
/* The T of elements. */
template <typename T>
using Taken = std::conditional_t<dt_kind_of<T> == DT_KIND_FLOAT, Compute<T>, int64_t>;

/* Elements of a pack, a vector where memory allows it, and packs of a round. */
template <typename T>
constexpr int pack_of = std::is_same_v<T, double> ? 2 : 4;
enum { AHEAD = 4 };

/* A pack that is being loaded; integers are as stored, in the first words. */
template <int N>
struct Integers {
    uint64_t words[N];
};
template <typename T, int N>
using Asked = std::conditional_t<std::is_integral_v<T>, Integers<N>, StoredPack<T, N>>;

/* The pack at the addresses at(0), at(1), ..., or the vector at the first of them. */
template <typename T, int N, class At>
static __device__ __forceinline__ Asked<T, N> ask(bool vector, At at, const Stored &as)
{
    Asked<T, N> pack = {};
    if constexpr (std::is_integral_v<T>) {
        with_element_word(as.size, [&](auto zero) {
            typedef decltype(zero) Word;
            Pack<Word, N> part = {};
            if (vector)
                part.words = *(const decltype(part.words) *)at(0);
            else {
                UNROLL
                for (int k = 0; k < N; k++)
                    part.set(k, *(const Word *)at(k));
            }
            __builtin_memcpy(pack.words, &part.words, sizeof part.words);
        });
    } else if (vector) {
        pack.read(at(0), as.half);
    } else {
        const char *each[N];
        UNROLL
        for (int k = 0; k < N; k++)
            each[k] = at(k);
        pack.read_each(each, as.half);
    }
    return pack;
}
template <typename T, int N>
static __device__ __forceinline__ Vector<T, N> elements_of(const Asked<T, N> &pack,
                                                           const Stored &as)
{
    if constexpr (std::is_integral_v<T>) {
        Vector<T, N> values = {};
        with_element_type(as.dtype, [&](auto zero) {
            typedef decltype(zero) Element;
            if constexpr (dt_kind_of<Element> != DT_KIND_FLOAT) {
                Pack<Element, N> part;
                __builtin_memcpy(&part.words, pack.words, sizeof part.words);
                UNROLL
                for (int k = 0; k < N; k++)
                    values.v[k] = (T)(Compute<Element>)part.get(k);
            }
        });
        return values;
    } else {
        return pack.elements(as.half);
    }
}
template <typename T>
static __device__ __forceinline__ T first_of(const char *at, const Stored &as)
{
    return elements_of<T, 1>(ask<T, 1>(true, [=](int) { return at; }, as), as).v[0];
}
template <typename T>
static __device__ __forceinline__ void put_result(char *at, T value, const Stored &as)
{
    if constexpr (std::is_same_v<T, int64_t>)
        with_element_word(
            as.size, [&](auto zero) { *(decltype(zero) *)at = (decltype(zero))value; });
    else
        put_element(at, value, as.half);
}

/* Whether the elements of each pack are contiguous and aligned as a vector. */
static inline bool has_vectors(const ReductionPlan &f, const void *input, int64_t item,
                               int each)
{
    const Layout<1> &reduced = f.reduced;
    const int last = reduced.ndim - 1;
    const int64_t bytes = each * item;
    bool vectors = reduced.strides[0][last] == item &&
                   is_aligned(input, (size_t)bytes) &&
                   (last == 0 || reduced.sizes[last].divisor % (unsigned)each == 0);
    for (int d = 0; d < last; d++)
        vectors = vectors && reduced.strides[0][d] % bytes == 0;
    for (int d = 0; d < f.kept.ndim; d++)
        vectors = vectors && f.kept.strides[0][d] % bytes == 0;
    return vectors;
}

/* The elements of a round: those of a pack follow each other where they are read as
 * vectors, else neighbouring threads read neighbouring ones. */
struct Round {
    int64_t first;        /* the number of the first one */
    int left;             /* how many elements there are from it on, of all threads */
    int packs, step, gap; /* from a pack to the next; from an element to the next */

    __device__ __forceinline__ int place(int pack, int k) const
    {
        return pack * step + k * gap;
    }
    __device__ __forceinline__ bool has(int pack, int k) const
    {
        return pack < packs && place(pack, k) < left;
    }
    template <int N>
    __device__ __forceinline__ bool is_whole() const
    {
        return has(AHEAD - 1, N - 1);
    }
};

/* use(round, packs) for the rounds of a thread in the elements from `first` to `end` of
 * what starts at `base`; what is not in a round may be any element. */
template <typename T, int N, class Use>
static __device__ __forceinline__ void
each_round(const ReductionPlan &f, const char *base, bool vectors, int64_t first,
           int64_t end, const Stored &as, Use use)
{
    /* A round of several dimensions has one pack, whose addresses are divisions. */
    const bool line = f.reduced.ndim == 1;
    const int threads = f.threads, gap = vectors ? 1 : threads;
    const int64_t stride = f.reduced.strides[0][0];
    Round r = {first + threadIdx.x % (unsigned)threads * (vectors ? N : 1), 0,
               line ? AHEAD : 1, threads * N, gap};
    ROLLED
    for (; r.first < end; r.first += r.packs * r.step) {
        Asked<T, N> asked[AHEAD] = {};
        r.left = (int)(end - r.first < INT32_MAX ? end - r.first : INT32_MAX);
        asked[0] = ask<T, N>(
            vectors && N <= r.left,
            [&](int k) {
                return base +
                       (r.has(0, k) ? offset_in(f.reduced, r.first + k * gap) : 0);
            },
            as);
        UNROLL
        for (int n = 1; n < AHEAD; n++)
            if (r.has(n, 0))
                asked[n] = ask<T, N>(
                    vectors && n * r.step + N <= r.left,
                    [&](int k) {
                        return base +
                               (r.has(n, k) ? (r.first + r.place(n, k)) * stride : 0);
                    },
                    as);
        use(r, asked);
    }
}

/* The same with use(round, values). */
template <typename T, int N, class Use>
static __device__ __forceinline__ void
each_round_of_memory(const ReductionPlan &f, const char *base, bool vectors,
                     int64_t first, int64_t end, const Stored &as, Use use)
{
    each_round<T, N>(f, base, vectors, first, end, as,
                     [&](const Round &r, const Asked<T, N>(&packs)[AHEAD]) {
                         Vector<T, N> values[AHEAD];
                         UNROLL
                         for (int n = 0; n < AHEAD; n++)
                             values[n] = elements_of<T, N>(packs[n], as);
                         use(r, values);
                     });
}

#endif
