/* The machine of chains: a kernel's parameter is a program (chain_program.h), which each
 * thread runs on some groups of elements.
 *
 * An instruction loads the inputs that are new into slots of shared memory, where each
 * thread has its own; then, for one group after the other, it computes its row of
 * ops/elementwise.def in float, and rounds the result to the type that it has in the chain,
 * so that the bits are those of the rows' own kernels. All threads take the same branches. */
#ifndef DT_CUDA_KERNELS_CHAIN_MACHINE_H
#define DT_CUDA_KERNELS_CHAIN_MACHINE_H

#include "cuda/kernels/chain_program.h"
#include "cuda/kernels/chain_rows.h"

namespace {

/* --- rows --- */

/* An instruction's inputs, and the place of its result. From one group to the next an
 * address moves by `apart`; by 0 for a number. T is float. */
template <typename T>
struct Operands {
    const Vector<T, EACH> *from[3];
    unsigned from_apart[3];
    Vector<T, EACH> *to;
    unsigned to_apart;
    T last;
    int groups;
    __device__ __forceinline__ void advance()
    {
        UNROLL
        for (int i = 0; i < 3; i++)
            from[i] += from_apart[i];
        to += to_apart;
    }
};

/* result(a, b, c) of EACH elements at once, for all of them. */
template <typename T, typename F>
__device__ __forceinline__ void each(Operands<T> o, F result)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        const Vector<T, EACH> a = *o.from[0], b = *o.from[1], c = *o.from[2];
        Vector<T, EACH> y;
        UNROLL
        for (int k = 0; k < EACH; k++)
            y.v[k] = result(a.v[k], b.v[k], c.v[k]);
        *o.to = y;
        o.advance();
    }
}

/* A row that is not long has a loop of its own. */
template <typename T>
__device__ __forceinline__ void apply_row(int op, const Operands<T> &o)
{
    const T d = o.last;
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (has_row(DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) &&       \
                      !is_long(DT_OP_##name,                                           \
                               DT_CLASS_VALUE(flags, DT_CLASS_##class))) {             \
            each(o, [d](T a, T b, T c) { return row_##name(a, b, c, d); });            \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default: /* DT_CHAIN_CONVERT */
        each(o, [d](T a, T b, T c) { return row_copy(a, b, c, d); });
        break;
    }
}

/* Long rows are in the kernel once: elements come by, one after the other. */
template <typename T>
__device__ __forceinline__ T long_row(int op, T a, T b, T c, T d)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (has_row(DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) &&       \
                      is_long(DT_OP_##name,                                            \
                              DT_CLASS_VALUE(flags, DT_CLASS_##class))) {              \
            return row_##name(a, b, c, d);                                             \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default:
        break;
    }
    return a;
}

__device__ __forceinline__ void apply_long_row(int op, Operands<float> o)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        ROLLED
        for (int k = 0; k < EACH; k++)
            o.to->v[k] =
                long_row(op, o.from[0]->v[k], o.from[1]->v[k], o.from[2]->v[k], o.last);
        o.advance();
    }
}

/* --- groups of a thread --- */

/* A thread has three places for numbers, slots of slot[group * blockDim.x], and groups of
 * elements: `gap` apart, as in chain_memory.h, and those of a group `hop` from the ones
 * before. */
struct Piece {
    Values *numbers, *slots;
    unsigned first, hop, gap, end; /* end: of the elements that the thread may take */
    int apart, groups;             /* of slots; that have elements */
    bool stores;                   /* results that are wanted */

    __device__ __forceinline__ Piece(const Program &p, Values *shared,
                                     unsigned each_hop, unsigned each_gap)
        : numbers(shared + threadIdx.x), slots(shared + 3 * blockDim.x + threadIdx.x),
          first(0), hop(each_hop), gap(each_gap), end(0),
          apart(p.groups * (int)blockDim.x), groups(0), stores(true)
    {
    }
    __device__ __forceinline__ void begin(const Program &p, unsigned at, unsigned stop)
    {
        first = at;
        end = stop;
        groups = 0;
        while (groups < p.groups && group(groups) < end)
            groups++;
    }
    __device__ __forceinline__ unsigned group(int g) const
    {
        return first + (unsigned)g * hop;
    }
    __device__ __forceinline__ int count(int g) const
    {
        return count_from(end, group(g), gap);
    }
    __device__ __forceinline__ Values *slot(int slot) const
    {
        return slots + slot * apart;
    }
};

/* All groups of a memory whose elements lie together. Their loads are in flight at once. */
template <typename Word>
__device__ __forceinline__ void load_packs(const Program &p, const Memory &m,
                                           const Piece &piece)
{
    Pack<Word, EACH> packs[GROUPS];
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        if (g < p.groups)
            packs[g].words = *(const decltype(packs[g].words) *)((const Word *)m.data +
                                                                 piece.group(g));
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        Values values;
        UNROLL
        for (int k = 0; k < EACH; k++)
            values.v[k] = number_of(packs[g].get(k), m.type);
        if (g < p.groups)
            piece.slot(m.slot)[(unsigned)g * blockDim.x] = values;
    }
}

__device__ __forceinline__ void load(const Program &p, const Memory &m,
                                     const Piece &piece)
{
    const bool whole = piece.gap == 1 && piece.groups == p.groups &&
                       piece.group(p.groups - 1) + EACH <= piece.end;
    if (whole && m.way == TOGETHER && m.layout == NONE) {
        if (m.type == FLOATS)
            load_packs<uint32_t>(p, m, piece);
        else if (m.type >= BOOLS)
            load_packs<uint8_t>(p, m, piece);
        else
            load_packs<uint16_t>(p, m, piece);
        return;
    }
    ROLLED
    for (int g = 0; g < piece.groups; g++)
        piece.slot(m.slot)[(unsigned)g * blockDim.x] =
            values_at(p.layouts, m, piece.group(g), piece.count(g), piece.gap);
}

/* Rounds the results of an instruction to their type, and stores those that are wanted. */
__device__ __forceinline__ void finish(const Program &p, const Instruction &now,
                                       const Piece &piece)
{
    Values *slot = piece.slot(now.slot);
    ROLLED
    for (int g = 0; g < piece.groups; g++) {
        Values x = slot[(unsigned)g * blockDim.x];
        const Words words = rounded(&x, now.type);
        if (now.type != FLOATS)
            slot[(unsigned)g * blockDim.x] = x;
        if (now.out != NONE && piece.stores)
            put(p.outputs[now.out], now.type, piece.group(g), piece.count(g), words,
                piece.gap);
    }
}

/* Runs the program on the groups that begin() found. */
__device__ __forceinline__ void run_program(const Program &p, const Piece &piece)
{
    const Memory *next = p.memories;
    ROLLED
    for (int s = 0; s < p.ninstructions; s++) {
        const Instruction &now = p.instructions[s];
        ROLLED
        for (int k = 0; k < now.loads; k++)
            load(p, *next++, piece);
        Operands<float> o;
        UNROLL
        for (int i = 0; i < 3; i++) {
            const bool is_number = now.inputs[i] == NONE;
            const float number = now.numbers[i];
            Values *from = is_number ? piece.numbers + (unsigned)i * blockDim.x
                                     : piece.slot(now.inputs[i]);
            if (is_number)
                *from = {{number, number, number, number}};
            o.from[i] = from;
            o.from_apart[i] = is_number ? 0 : blockDim.x;
        }
        o.to = piece.slot(now.slot);
        o.to_apart = blockDim.x;
        o.last = now.numbers[3];
        o.groups = piece.groups;
        if (now.is_long)
            apply_long_row(now.op, o);
        else
            apply_row(now.op, o);
        if (now.type != FLOATS || now.out != NONE)
            finish(p, now, piece);
    }
}

/* Bytes of shared memory of a block with so many slots. */
inline size_t shared_of_program(unsigned threads, unsigned slots, unsigned groups)
{
    return (3 + slots * groups) * threads * sizeof(Values);
}

} // namespace

#endif
