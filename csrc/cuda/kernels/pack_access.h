/* Operands of any layout in packs: the elements that one thread moves, 16 bytes of them
 * or some more.
 *
 * The innermost dimension of a plan is a row, which is cut into packs. Where packs of
 * the result can be written whole, the elements of a pack follow each other, and each
 * operand moves packs whole if it can. Where not, their distance is the number of packs
 * of the row, so that neighbouring threads touch neighbouring elements. Either way the
 * divisions that an index takes are made for a pack and not for an element, and a thread
 * asks for all of its pack before it waits for any of it. */
#ifndef DT_CUDA_KERNELS_PACK_ACCESS_H
#define DT_CUDA_KERNELS_PACK_ACCESS_H

#include "cuda/kernels/layout.h"
#include "cuda/kernels/pack.h"

/* How a thread gets at its pack of an operand. */
enum PackWay {
    PACK_OF_VALUE, /* there is no memory: all elements are a value */
    PACK_OF_ONE,   /* all are one element */
    PACK_WHOLE,    /* in one access, if the row has all of them */
    PACK_APART     /* one by one */
};

/* Up to N operands, cut into packs of a number of elements that the kernel knows. */
template <int N>
struct Packs {
    Layout<N> layout; /* of packs: its innermost dimension has those of a row */
    unsigned numel;   /* packs */
    unsigned length;  /* elements of a row */
    unsigned gap;     /* from an element of a pack to the next, in elements */
    int64_t hops[N];  /* the same in bytes of each operand */
    PackWay ways[N];
};
template <int N, class F>
void each_pointer(Packs<N> &, F)
{
}

/* Whether each pack of so many elements of an operand is one run, aligned for a
 * vector. */
static inline bool has_whole_packs(const dt_plan *plan, int operand, int each)
{
    const dt_operand *o = &plan->operands[operand];
    int row = plan->ndim - 1;
    int64_t item = (int64_t)dt_dtype_size(o->dtype), bytes = each * item;
    bool whole =
        !o->scalar && o->strides[row] == item && is_aligned(o->data, (size_t)bytes);
    for (int d = 0; d < row; d++)
        whole = whole && o->strides[d] % bytes == 0;
    return whole;
}

/* apart: treat the elements of a pack as not contiguous. */
template <int N>
Packs<N> packs_of(const dt_plan *plan, int each, bool apart = false)
{
    Packs<N> p;
    int row = plan->ndim - 1;
    p.length = (unsigned)plan->shape[row];
    unsigned in_row = (p.length + (unsigned)each - 1) / (unsigned)each;
    bool together = in_row == 1 || (!apart && has_whole_packs(plan, 0, each));
    p.numel = (unsigned)(plan->numel / p.length * in_row);
    p.gap = together ? 1 : in_row;
    p.layout = layout_of<N>(plan);
    p.layout.sizes[row] = divider_for(in_row);
    for (int k = 0; k < N; k++) {
        int64_t &stride = p.layout.strides[k][row];
        p.ways[k] = plan->operands[k].scalar                     ? PACK_OF_VALUE
                    : !stride                                    ? PACK_OF_ONE
                    : together && has_whole_packs(plan, k, each) ? PACK_WHOLE
                                                                 : PACK_APART;
        p.hops[k] = stride * p.gap;
        stride *= together ? each : 1;
    }
    return p;
}

/* The first element of a pack: its index in the row, and its byte offset in each
 * operand. */
template <int N>
static __device__ __forceinline__ unsigned
pack_offsets(const Packs<N> &p, unsigned pack, int each, int64_t *offsets)
{
    unsigned in_row = layout_offsets(p.layout, pack, offsets);
    return p.gap == 1 ? in_row * (unsigned)each : in_row;
}

/* The pack of operand K at address `at`, which starts in a column of its row; it is full
 * where the row has all of its elements. Those that the row does not have are 0. */
template <int K, typename T, int N, int OPERANDS>
static __device__ __forceinline__ Pack<T, N>
pack_at(const Packs<OPERANDS> &p, const char *at, unsigned column, bool full)
{
    Pack<T, N> pack = {};
    if (p.ways[K] == PACK_WHOLE && full) {
        pack.words = *(const decltype(pack.words) *)at;
    } else if (p.ways[K] == PACK_OF_ONE) {
        T element = *(const T *)at;
        UNROLL
        for (int k = 0; k < N; k++)
            pack.set(k, element);
    } else {
        int64_t hop = p.hops[K];
        UNROLL
        for (int k = 0; k < N; k++, at += hop, column += p.gap)
            if (column < p.length)
                pack.set(k, *(const T *)at);
    }
    return pack;
}
template <int K, typename T, int N, int OPERANDS>
static __device__ __forceinline__ void put_pack(const Packs<OPERANDS> &p, char *at,
                                                unsigned column, bool full,
                                                const Pack<T, N> &pack)
{
    if (p.ways[K] == PACK_WHOLE && full) {
        *(decltype(pack.words) *)at = pack.words;
        return;
    }
    int64_t hop = p.hops[K];
    UNROLL
    for (int k = 0; k < N; k++, at += hop, column += p.gap)
        if (column < p.length)
            *(T *)at = pack.get(k);
}

#endif
