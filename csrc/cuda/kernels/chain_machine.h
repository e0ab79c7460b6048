/* The machine of chains: an interpreter in a kernel. The kernel's parameter is a program
 * (chain_program.h); each thread runs it on a few groups of elements.
 *
 * For each instruction a thread loads the inputs not loaded before into its slots of shared
 * memory. Then, group by group, it computes the instruction's row of ops/elementwise.def
 * and rounds the result to its type in the chain, so the bits are those of the row's own
 * kernel. All threads take the same branches.
 *
 * There are two machines. One has Values in its slots and computes in float. The other is
 * for wide chains: it has WideWords (chain_memory.h) and computes in float, double and
 * int64_t; results of narrower integers are truncated. */
#ifndef DT_CUDA_KERNELS_CHAIN_MACHINE_H
#define DT_CUDA_KERNELS_CHAIN_MACHINE_H

#include "cuda/kernels/chain_program.h"
#include "cuda/kernels/chain_rows.h"

namespace {

/* --- rows --- */

/* The addresses of an instruction's inputs and of its result. For each group an address
 * advances by from_apart or to_apart, 0 for a number. V is Values or WideWords. */
template <class V>
struct Operands {
    const V *from[3];
    unsigned from_apart[3];
    V *to;
    unsigned to_apart;
    uint64_t last;
    int groups;
    __device__ __forceinline__ void advance()
    {
        UNROLL
        for (int i = 0; i < 3; i++)
            from[i] += from_apart[i];
        to += to_apart;
    }
};

/* Reads and writes an element of a slot. */
template <typename T>
__device__ __forceinline__ T taken(float value)
{
    return value;
}
__device__ __forceinline__ void set(float *value, float number)
{
    *value = number;
}
template <typename T>
__device__ __forceinline__ void set(uint64_t *value, T number)
{
    *value = held(number);
}

/* Computes result(a, b, c) for all elements, EACH at a time. */
template <typename T, class V, typename F>
__device__ __forceinline__ void each(Operands<V> o, F result)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        const V a = *o.from[0], b = *o.from[1], c = *o.from[2];
        V y;
        UNROLL
        for (int k = 0; k < EACH; k++)
            set(&y.v[k], result(taken<T>(a.v[k]), taken<T>(b.v[k]), taken<T>(c.v[k])));
        *o.to = y;
        o.advance();
    }
}

/* Whether the machine with V has a row for T, and has it as a long one (`longs`) or not. */
template <typename T, class V>
__host__ __device__ constexpr bool has_row_of(int op, const dt_class &c, int flags,
                                              bool longs)
{
    return has_row(c, flags, is_float<T> ? DT_KIND_FLOAT : DT_KIND_INTEGER) &&
           is_long(op, c, std::is_same_v<V, WideWords>) == longs;
}

#define HAS_ROW(name, class, flags, longs)                                             \
    has_row_of<T, V>(DT_OP_##name, DT_CLASS_VALUE(flags, DT_CLASS_##class), flags,     \
                     longs)

/* Rows that are not long: a loop for each. */
template <typename T, class V>
__device__ __forceinline__ void apply_row(int op, const Operands<V> &o)
{
    const T d = taken<T>(o.last);
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (HAS_ROW(name, class, flags, false)) {                            \
            each<T>(o, [d](T a, T b, T c) { return row_##name(a, b, c, d); });         \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default: /* DT_CHAIN_CONVERT */
        each<T>(o, [d](T a, T b, T c) { return row_copy(a, b, c, d); });
        break;
    }
}

/* Long rows: expanded once, and called for one element at a time. */
template <typename T, class V>
__device__ __forceinline__ T long_row(int op, T a, T b, T c, T d)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (HAS_ROW(name, class, flags, true)) {                             \
            return row_##name(a, b, c, d);                                             \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default:
        break;
    }
    return a;
}

template <typename T, class V>
__device__ __forceinline__ void apply_long_row(int op, Operands<V> o)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        ROLLED
        for (int k = 0; k < EACH; k++)
            set(&o.to->v[k],
                long_row<T, V>(op, taken<T>(o.from[0]->v[k]), taken<T>(o.from[1]->v[k]),
                               taken<T>(o.from[2]->v[k]), taken<T>(o.last)));
        o.advance();
    }
}

template <typename T, class V>
__device__ __forceinline__ void apply(const Instruction &now, const Operands<V> &o)
{
    if (now.is_long)
        apply_long_row<T>(now.op, o);
    else
        apply_row<T>(now.op, o);
}
__device__ __forceinline__ void apply_domain(const Instruction &now,
                                             const Operands<Values> &o)
{
    apply<float>(now, o);
}
__device__ __forceinline__ void apply_domain(const Instruction &now,
                                             const Operands<WideWords> &o)
{
    if (now.domain == IN_FLOAT)
        apply<float>(now, o);
    else if (now.domain == IN_DOUBLE)
        apply<double>(now, o);
    else
        apply<int64_t>(now, o);
}

/* --- groups of a thread --- */

/* A thread's memory and elements. It has a value for each of three numbers, and slots, in
 * which group g is at slot[g * blockDim.x]. Elements of a group are `gap` apart, and groups
 * `hop`. */
template <class V>
struct Piece {
    V *numbers, *slots;
    unsigned first, hop, gap, end; /* end: of the thread's elements */
    int apart, groups;             /* values from slot to slot; groups not empty */
    bool stores;                   /* whether to store results */

    __device__ __forceinline__ Piece(const Program &p, V *shared, unsigned each_hop,
                                     unsigned each_gap)
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
    __device__ __forceinline__ V *slot(int slot) const { return slots + slot * apart; }
};

/* Converts a stored word to an element of a slot. */
__device__ __forceinline__ void load_word(float *value, uint32_t word, Type type)
{
    *value = number_of(word, type);
}
__device__ __forceinline__ void load_word(uint64_t *value, uint64_t word, Type type)
{
    *value = wide_of(word, type);
}
__device__ __forceinline__ void load_group(Values *values, const Program &p,
                                           const Memory &m, unsigned first, int count,
                                           unsigned gap)
{
    *values = values_at(p.layouts, m, first, count, gap);
}
__device__ __forceinline__ void load_group(WideWords *values, const Program &p,
                                           const Memory &m, unsigned first, int count,
                                           unsigned gap)
{
    *values = wide_at(p.layouts, m, first, count, gap);
}

/* Loads all groups of a contiguous input, with all loads in flight at once. */
template <typename Word, class V>
__device__ __forceinline__ void load_packs(const Program &p, const Memory &m,
                                           const Piece<V> &piece)
{
    Pack<Word, EACH> packs[GROUPS];
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        if (g < p.groups)
            packs[g].words = *(const decltype(packs[g].words) *)((const Word *)m.data +
                                                                 piece.group(g));
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        V values;
        UNROLL
        for (int k = 0; k < EACH; k++)
            load_word(&values.v[k], packs[g].get(k), m.type);
        if (g < p.groups)
            piece.slot(m.slot)[(unsigned)g * blockDim.x] = values;
    }
}

template <class V>
__device__ __forceinline__ void load(const Program &p, const Memory &m,
                                     const Piece<V> &piece)
{
    const bool whole = piece.gap == 1 && piece.groups == p.groups &&
                       piece.group(p.groups - 1) + EACH <= piece.end;
    if (whole && m.way == TOGETHER && m.layout == NONE) {
        const int bytes = bytes_of(m.type);
        if (bytes == 4)
            load_packs<uint32_t>(p, m, piece);
        else if (bytes == 1)
            load_packs<uint8_t>(p, m, piece);
        else if (bytes == 2)
            load_packs<uint16_t>(p, m, piece);
        else if constexpr (std::is_same_v<V, WideWords>)
            load_packs<uint64_t>(p, m, piece);
        return;
    }
    ROLLED
    for (int g = 0; g < piece.groups; g++)
        load_group(&piece.slot(m.slot)[(unsigned)g * blockDim.x], p, m, piece.group(g),
                   piece.count(g), piece.gap);
}

/* Rounds an instruction's results to their type. Returns the words to store. */
__device__ __forceinline__ Words round_to_type(Values *values, const Instruction &now)
{
    return rounded(values, now.type);
}
__device__ __forceinline__ WideWords round_to_type(WideWords *values,
                                                   const Instruction &now)
{
    return now.domain == IN_FLOAT    ? wide_rounded<float>(values, now.type)
           : now.domain == IN_DOUBLE ? wide_rounded<double>(values, now.type)
                                     : wide_rounded<int64_t>(values, now.type);
}
/* Whether rounding would change nothing. */
__device__ __forceinline__ bool is_round(const Values *, const Instruction &now)
{
    return now.type == FLOATS;
}
__device__ __forceinline__ bool is_round(const WideWords *, const Instruction &now)
{
    return now.domain == IN_FLOAT    ? now.type == FLOATS
           : now.domain == IN_DOUBLE ? now.type == DOUBLES
                                     : now.type == LONGS;
}

/* Rounds the results of all groups, and stores them if they are wanted. */
template <class V>
__device__ __forceinline__ void finish(const Program &p, const Instruction &now,
                                       const Piece<V> &piece)
{
    V *slot = piece.slot(now.slot);
    if (is_round(slot, now) && now.out == NONE)
        return;
    ROLLED
    for (int g = 0; g < piece.groups; g++) {
        V x = slot[(unsigned)g * blockDim.x];
        const auto words = round_to_type(&x, now);
        if (!is_round(slot, now))
            slot[(unsigned)g * blockDim.x] = x;
        if (now.out != NONE && piece.stores)
            put(p.outputs[now.out], now.type, piece.group(g), piece.count(g), words,
                piece.gap);
    }
}

__device__ __forceinline__ void set_number(Values *to, uint64_t value)
{
    const float number = taken<float>(value);
    *to = {{number, number, number, number}};
}
__device__ __forceinline__ void set_number(WideWords *to, uint64_t value)
{
    *to = {{value, value, value, value}};
}

/* Input i, converted to float or double if the row computes in those and it holds integers. */
__device__ __forceinline__ Values *as_floats(const Instruction &, int,
                                             const Piece<Values> &, Values *from)
{
    return from;
}
__device__ __forceinline__ WideWords *
as_floats(const Instruction &now, int i, const Piece<WideWords> &piece, WideWords *from)
{
    if (now.floats[i] == NONE)
        return from;
    WideWords *const to = piece.slot(now.floats[i]);
    ROLLED
    for (int g = 0; g < piece.groups; g++) {
        const WideWords whole = from[(unsigned)g * blockDim.x];
        WideWords floats;
        UNROLL
        for (int k = 0; k < EACH; k++)
            floats.v[k] = now.domain == IN_FLOAT
                              ? held(taken_as<float>(whole.v[k], LONGS))
                              : held(taken_as<double>(whole.v[k], LONGS));
        to[(unsigned)g * blockDim.x] = floats;
    }
    return to;
}

/* Runs the program on the groups that begin() has set. */
template <class V>
__device__ __forceinline__ void run_program(const Program &p, const Piece<V> &piece)
{
    const Memory *next = p.memories;
    ROLLED
    for (int s = 0; s < p.ninstructions; s++) {
        const Instruction &now = p.instructions[s];
        ROLLED
        for (int k = 0; k < now.loads; k++)
            load(p, *next++, piece);
        Operands<V> o;
        UNROLL
        for (int i = 0; i < 3; i++) {
            const bool is_number = now.inputs[i] == NONE;
            V *from = is_number ? piece.numbers + (unsigned)i * blockDim.x
                                : piece.slot(now.inputs[i]);
            if (is_number)
                set_number(from, now.numbers[i]);
            else
                from = as_floats(now, i, piece, from);
            o.from[i] = from;
            o.from_apart[i] = is_number ? 0 : blockDim.x;
        }
        o.to = piece.slot(now.slot);
        o.to_apart = blockDim.x;
        o.last = now.numbers[3];
        o.groups = piece.groups;
        apply_domain(now, o);
        finish(p, now, piece);
    }
}

/* Runs the program on a thread's share of the elements, which a grid covers in order. */
template <class V>
__device__ __forceinline__ void run_in_grid(const Program &p, V *shared)
{
    const unsigned of_group = blockDim.x * EACH;
    Piece<V> piece(p, shared, of_group, 1);
    piece.begin(p, blockIdx.x * (unsigned)p.groups * of_group + threadIdx.x * EACH,
                p.numel);
    run_program(p, piece);
}

/* The shared memory of a block, in bytes. */
inline size_t shared_of_program(const Program &p, unsigned threads, unsigned slots,
                                unsigned groups)
{
    return (3 + slots * groups) * threads *
           (p.wide ? sizeof(WideWords) : sizeof(Values));
}

} // namespace

#endif
