/* Chains (device/chain.h) in one kernel: a machine whose program is the kernel's parameter.
 *
 * A thread has some groups of elements that follow one another. An instruction loads the
 * inputs that are new into slots of shared memory, where each thread has its own; then, for
 * one group after the other, it computes its row of ops/elementwise.def in float, and rounds
 * the result to the type that it has in the chain, so that the bits are those of the rows'
 * own kernels. All threads take the same branches. */
#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/chain_program.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/runtime/backend.h"

namespace {

/* --- memory --- */

/* The address of element `index`. */
__device__ __forceinline__ const char *place_of(const Program &p, const Memory &m,
                                                int size, unsigned index)
{
    if (m.layout == NONE)
        return m.data + (int64_t)index * size;
    const Strides &l = p.layouts[m.layout];
    const char *at = m.data;
    ROLLED
    for (int d = l.ndim - 1; d > 0; d--) {
        const unsigned outer = divide(index, l.sizes[d]);
        at += (index - outer * l.sizes[d].divisor) * l.strides[d];
        index = outer;
    }
    return at + index * l.strides[0];
}

/* `count` elements from `first` on, as they are stored. */
template <typename Word>
__device__ __forceinline__ Words words_at(const Program &p, const Memory &m,
                                          unsigned first, int count)
{
    Words words = {};
    if (m.way == TOGETHER && count == EACH) {
        Pack<Word, EACH> pack;
        pack.words = *(const decltype(pack.words) *)place_of(p, m, sizeof(Word), first);
        UNROLL
        for (int k = 0; k < EACH; k++)
            words.v[k] = pack.get(k);
        return words;
    }
    ROLLED
    for (int k = 0; k < count; k++) {
        const uint32_t word =
            *(const Word *)place_of(p, m, sizeof(Word), first + (unsigned)k);
        UNROLL
        for (int j = 0; j < EACH; j++)
            if (j == k || m.way == SINGLE)
                words.v[j] = word;
        if (m.way == SINGLE)
            break;
    }
    return words;
}

__device__ __forceinline__ float number_of(uint32_t word, Type type)
{
    float number;
    dt_float16 half;
    dt_bfloat16 brain;
    __builtin_memcpy(&number, &word, sizeof number);
    half.bits = brain.bits = (uint16_t)word;
    return type == FLOATS   ? number
           : type == HALVES ? (float)half
           : type == BRAINS ? (float)brain
           : type == BOOLS  ? (float)(word != 0)
                            : (float)word;
}

__device__ __forceinline__ uint32_t word_of(float number, Type type)
{
    uint32_t word;
    __builtin_memcpy(&word, &number, sizeof word);
    return type == FLOATS   ? word
           : type == HALVES ? dt_float16(number).bits
           : type == BRAINS ? dt_bfloat16(number).bits
                            : (uint32_t)(number != 0);
}

__device__ __forceinline__ Values values_at(const Program &p, const Memory &m,
                                            unsigned first, int count)
{
    const Words words = m.type == FLOATS  ? words_at<uint32_t>(p, m, first, count)
                        : m.type >= BOOLS ? words_at<uint8_t>(p, m, first, count)
                                          : words_at<uint16_t>(p, m, first, count);
    Values values;
    UNROLL
    for (int k = 0; k < EACH; k++)
        values.v[k] = number_of(words.v[k], m.type);
    return values;
}

template <typename Word>
__device__ __forceinline__ void put_words(const Output &out, unsigned first, int count,
                                          const Words &words)
{
    Word *at = (Word *)out.data + first;
    if (out.together && count == EACH) {
        Pack<Word, EACH> pack = {};
        UNROLL
        for (int k = 0; k < EACH; k++)
            pack.set(k, (Word)words.v[k]);
        *(decltype(pack.words) *)at = pack.words;
        return;
    }
    UNROLL
    for (int k = 0; k < EACH; k++)
        if (k < count)
            at[k] = (Word)words.v[k];
}

/* --- rows --- */

__host__ __device__ constexpr bool is_choice(const dt_class &c)
{
    return c.choice;
}
template <bool CHOICE, typename T>
using FirstOf = std::conditional_t<CHOICE, bool, T>;

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
            typedef FirstOf<is_choice(DT_CLASS_VALUE(flags, DT_CLASS_##class)), T>     \
                First;                                                                 \
            each(o, [d](T a, T b, T c) {                                               \
                operands(First, (First)a, b, c, d) return (T)(value);                  \
            });                                                                        \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default: /* DT_CHAIN_CONVERT */
        each(o, [](T a, T, T) { return a; });
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
            operands(T, a, b, c, d) return (T)(value);                                 \
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

/* --- the kernel --- */

/* A thread has three places for numbers, slots of slot[group * blockDim.x], and in memory
 * the EACH elements from group(g) on. */
struct Place {
    Values *numbers, *slots;
    unsigned first;
    int apart, groups; /* of slots; of its elements that there are */
    __device__ unsigned group(int g) const
    {
        return first + (unsigned)g * blockDim.x * EACH;
    }
    __device__ Values *slot(int slot) const { return slots + slot * apart; }
};

/* All groups of a memory whose elements lie together. Their loads are in flight at once. */
template <typename Word>
__device__ __forceinline__ void load_packs(const Program &p, const Memory &m,
                                           const Place &place)
{
    Pack<Word, EACH> packs[GROUPS];
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        if (g < p.groups)
            packs[g].words = *(const decltype(packs[g].words) *)((const Word *)m.data +
                                                                 place.group(g));
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        Values values;
        UNROLL
        for (int k = 0; k < EACH; k++)
            values.v[k] = number_of(packs[g].get(k), m.type);
        if (g < p.groups)
            place.slot(m.slot)[(unsigned)g * blockDim.x] = values;
    }
}

__device__ __forceinline__ int count_from(const Program &p, unsigned first)
{
    return p.numel - first < EACH ? (int)(p.numel - first) : EACH;
}

__device__ __forceinline__ void load(const Program &p, const Memory &m,
                                     const Place &place)
{
    const bool whole =
        place.groups == p.groups && place.group(p.groups - 1) + EACH <= p.numel;
    if (whole && m.way == TOGETHER && m.layout == NONE) {
        if (m.type == FLOATS)
            load_packs<uint32_t>(p, m, place);
        else if (m.type >= BOOLS)
            load_packs<uint8_t>(p, m, place);
        else
            load_packs<uint16_t>(p, m, place);
        return;
    }
    ROLLED
    for (int g = 0; g < place.groups; g++)
        place.slot(m.slot)[(unsigned)g * blockDim.x] =
            values_at(p, m, place.group(g), count_from(p, place.group(g)));
}

__device__ __forceinline__ void store(const Program &p, const Instruction &now,
                                      unsigned first, const Words &words)
{
    const Output &out = p.outputs[now.out];
    const int count = count_from(p, first);
    if (now.type == FLOATS)
        put_words<uint32_t>(out, first, count, words);
    else if (now.type == BOOLS)
        put_words<uint8_t>(out, first, count, words);
    else
        put_words<uint16_t>(out, first, count, words);
}

/* Rounds the results of an instruction to their type, and stores those that are wanted. */
__device__ __forceinline__ void finish(const Program &p, const Instruction &now,
                                       const Place &place)
{
    Values *slot = place.slot(now.slot);
    ROLLED
    for (int g = 0; g < place.groups; g++) {
        Values x = slot[(unsigned)g * blockDim.x];
        Words words;
        UNROLL
        for (int k = 0; k < EACH; k++) {
            words.v[k] = word_of(x.v[k], now.type);
            x.v[k] = number_of(words.v[k], now.type);
        }
        if (now.type != FLOATS)
            slot[(unsigned)g * blockDim.x] = x;
        if (now.out != NONE)
            store(p, now, place.group(g), words);
    }
}

__global__ void __launch_bounds__(THREADS, 8) chain_kernel(GRID_CONSTANT(Program) p)
{
    DYNAMIC_SHARED(Values, shared);
    const unsigned of_group = blockDim.x * EACH;
    Place place = {shared + threadIdx.x, shared + 3 * blockDim.x + threadIdx.x,
                   blockIdx.x * (unsigned)p.groups * of_group + threadIdx.x * EACH,
                   p.groups * (int)blockDim.x, 0};
    while (place.groups < p.groups && place.group(place.groups) < p.numel)
        place.groups++;
    const Memory *next = p.memories;
    ROLLED
    for (int s = 0; s < p.ninstructions; s++) {
        const Instruction &now = p.instructions[s];
        ROLLED
        for (int k = 0; k < now.loads; k++)
            load(p, *next++, place);
        Operands<float> o;
        UNROLL
        for (int i = 0; i < 3; i++) {
            const bool is_number = now.inputs[i] == NONE;
            const float number = now.numbers[i];
            Values *from = is_number ? place.numbers + (unsigned)i * blockDim.x
                                     : place.slot(now.inputs[i]);
            if (is_number)
                *from = {{number, number, number, number}};
            o.from[i] = from;
            o.from_apart[i] = is_number ? 0 : blockDim.x;
        }
        o.to = place.slot(now.slot);
        o.to_apart = blockDim.x;
        o.last = now.numbers[3];
        o.groups = place.groups;
        if (now.is_long)
            apply_long_row(now.op, o);
        else
            apply_row(now.op, o);
        if (now.type != FLOATS || now.out != NONE)
            finish(p, now, place);
    }
}

} // namespace

bool dt_cuda_chain_step(int op, const dt_plan *plan)
{
    const dt_operand &out = plan->operands[0];
    if (plan->numel >= MAX_LAYOUT_NUMEL || type_of(out.dtype) >= BYTES)
        return false;
    for (int k = 1; k < plan->noperands; k++)
        if (!is_known(plan, plan->operands[k]))
            return false;
    return op == (int)DT_CHAIN_CONVERT || computes(op, plan);
}

int dt_cuda_chain(dt_stream stream, const dt_chain *chain)
{
    Program p = {};
    const unsigned slots = (unsigned)translate(chain, &p);
    if (!p.ninstructions)
        return 0;
    unsigned threads = THREADS, groups = GROUPS;
    while (groups > 1 && p.numel / (threads * groups * EACH) < BLOCKS_WANTED)
        groups /= 2;
    while ((3 + slots * groups) * threads * sizeof(Values) > SHARED) {
        if (threads > 32)
            threads /= 2;
        else
            groups /= 2;
    }
    p.groups = (int)groups;
    const unsigned elements = threads * groups * EACH;
    return start_result(
        "starting a fused kernel",
        (Relaxed(), LAUNCH(chain_kernel, (p.numel + elements - 1) / elements, threads,
                           (3 + slots * groups) * threads * sizeof(Values),
                           (cudaStream_t)stream.handle, p)));
}
