/* Chains (device/chain.h) in one kernel: a machine whose program is the kernel's parameter.
 *
 * A thread has some groups of elements that follow one another. An instruction loads the
 * inputs that are new into slots of shared memory, where each thread has its own; then, for
 * one group after the other, it computes its row of ops/elementwise.def in float, and rounds
 * the result to the type that it has in the chain, so that the bits are those of the rows'
 * own kernels. All threads take the same branches. */
#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/pack.h"
#include "cuda/runtime/backend.h"
#include "device/chain.h"
#include "ops/elementwise_ops.h"

namespace {

/* Elements of a group, groups of a thread and threads of a block; of the latter two there
 * are fewer where a chain has many slots. */
enum { EACH = 4, GROUPS = 4, THREADS = 128 };
/* Bytes of shared memory that a block may have; blocks that keep any GPU busy. */
enum { SHARED = 48 << 10, BLOCKS_WANTED = 1024 };
typedef Vector<float, EACH> Values;
typedef Vector<uint32_t, EACH> Words;

/* --- programs --- */

/* How memory has a number. */
enum Type : uint8_t { FLOATS, HALVES, BRAINS, BOOLS, BYTES, NO_TYPE };

Type type_of(dt_dtype dtype)
{
    switch (dtype) {
    case DT_FLOAT32:
        return FLOATS;
    case DT_FLOAT16:
        return HALVES;
    case DT_BFLOAT16:
        return BRAINS;
    case DT_BOOL:
        return BOOLS;
    case DT_UINT8:
        return BYTES;
    default:
        return NO_TYPE;
    }
}

enum { NONE = 255 };
struct Instruction {
    int16_t op;
    bool is_long;
    Type type;         /* of the result */
    uint8_t loads;     /* how many memories it is the first to take */
    uint8_t inputs[3]; /* slots; NONE: a number */
    uint8_t slot;      /* of the result */
    uint8_t out;       /* NONE: it is not stored */
    float numbers[DT_MAX_INPUTS];
};

/* The elements of a group lie together, are one, or are apart. */
enum Way : uint8_t { TOGETHER, SINGLE, APART };
struct Memory {
    const char *data;
    Type type;
    Way way;
    uint8_t layout; /* NONE: one element after the other */
    uint8_t slot;
};
struct Output {
    char *data;
    bool together;
};
enum { DIMS = 5 };
struct Strides {
    int ndim;
    Divider sizes[DIMS];
    int64_t strides[DIMS]; /* in bytes */
};

struct Program {
    unsigned numel;
    int groups, ninstructions, nmemories, noutputs;
    Instruction instructions[DT_CHAIN_STEPS];
    Memory memories[DT_CHAIN_STEPS * 3]; /* a fourth input is a number */
    Output outputs[DT_CHAIN_STEPS];
    Strides layouts[DT_CHAIN_LAYOUTS];
};
POINTERS_OF(Program, for (int i = 0; i < s.nmemories; i++) f(s.memories[i].data);
            for (int i = 0; i < s.noutputs; i++) f(s.outputs[i].data);)
static_assert(sizeof(Program) < 4000, "a kernel's parameters have 4 KB");

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

/* Whether the machine has a row: one that computes in float, or chooses among what can be
 * one. */
__host__ __device__ constexpr bool has_row(const dt_class &c, int flags)
{
    return (c.choice || c.takes[DT_KIND_FLOAT]) && !(flags & DT_RARE);
}

__host__ __device__ constexpr bool is_choice(const dt_class &c)
{
    return c.choice;
}
template <bool CHOICE, typename T>
using FirstOf = std::conditional_t<CHOICE, bool, T>;

/* What an instruction takes, and where its result is put. From one group to the next it
 * is `apart` on; 0 for a number. T is float. */
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

/* Rows of many instructions, but for some that programs write out often. */
__host__ __device__ constexpr bool is_long(int op, const dt_class &c)
{
    return (c.cost > 1 || c.rule == DT_RULE_EXPONENT) && op != DT_OP_div &&
           op != DT_OP_sqrt && op != DT_OP_rsqrt && op != DT_OP_reciprocal &&
           op != DT_OP_exp && op != DT_OP_log && op != DT_OP_tanh &&
           op != DT_OP_sigmoid;
}

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

/* What a thread has: three numbers' places, slots of slot[group * blockDim.x], and in memory
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

/* --- what a chain may have --- */

/* Rows of bools that the machine has under another name, as it has bools as 0 and 1; else
 * the row itself. */
int row_of_bools(int op)
{
    return op == DT_OP_bitwise_and   ? DT_OP_minimum
           : op == DT_OP_bitwise_or  ? DT_OP_maximum
           : op == DT_OP_bitwise_xor ? DT_OP_ne
           : op == DT_OP_bitwise_not ? DT_OP_logical_not
                                     : op;
}

bool is_known(const dt_plan *plan, const dt_operand &o)
{
    if (o.scalar)
        return o.dtype == DT_BOOL || dt_dtype_kind(o.dtype) == DT_KIND_FLOAT;
    return type_of(o.dtype) != NO_TYPE &&
           (plan->ndim <= DIMS || dt_plan_is_dense(plan, &o));
}

/* Whether the machine computes the row as its own kernel does. */
bool computes(int op, const dt_plan *plan)
{
    const dt_elementwise_row &row = dt_elementwise_rows[op];
    const dt_class &c = row.class_;
    const dt_dtype type = dt_plan_type(plan, c.choice);
    if (plan->noperands > 4 && !plan->operands[4].scalar)
        return false;
    if (c.choice) /* a copy, of which a number is rounded */
        return plan->operands[2].dtype == plan->operands[0].dtype &&
               plan->operands[3].dtype == plan->operands[0].dtype;
    if (type == DT_BOOL)
        return c.takes[DT_KIND_BOOL] && (c.truth || row_of_bools(op) != op);
    return has_row(c, row.flags) && type_of(type) < BOOLS;
}

/* --- from chains to programs --- */

float number_of(const dt_chain_input &input)
{
    return input.dtype == DT_BOOL
               ? (float)(bool)input.number.as_bool
               : (float)dt_element_to_scalar(input.dtype, input.number.bytes).f;
}

/* How a thread reads an input that has a layout. */
Way way_of(const dt_chain_layout &layout, const dt_chain_input &input)
{
    const int last = layout.ndim - 1;
    const int64_t size = (int64_t)dt_dtype_size(input.dtype), bytes = size * EACH;
    if (layout.shape[last] % EACH)
        return APART;
    if (!layout.strides[last])
        return SINGLE;
    bool together =
        layout.strides[last] == size && is_aligned(input.data, (size_t)bytes);
    for (int d = 0; d < last; d++)
        together = together && layout.strides[d] % bytes == 0;
    return together ? TOGETHER : APART;
}

Memory memory_of(const dt_chain *chain, const dt_chain_input &input)
{
    Memory m = {input.data, type_of(input.dtype), APART, NONE};
    const size_t bytes = dt_dtype_size(input.dtype) * EACH;
    if (input.layout < 0) {
        m.way = is_aligned(input.data, bytes) ? TOGETHER : APART;
    } else {
        m.way = way_of(chain->layouts[input.layout], input);
        m.layout = (uint8_t)input.layout;
    }
    return m;
}

Strides strides_of(const dt_chain_layout &layout)
{
    Strides strides = {};
    strides.ndim = layout.ndim;
    for (int d = 0; d < layout.ndim; d++) {
        strides.sizes[d] = divider_for((unsigned)layout.shape[d]);
        strides.strides[d] = layout.strides[d];
    }
    return strides;
}

/* Which slots hold values, and until which step they are read. */
struct Slots {
    int n, until[DT_CHAIN_STEPS * 4];
};

/* A slot that no step from `from` on reads, for what is read until a step. */
uint8_t take(Slots *slots, int from, int until)
{
    int slot = 0;
    while (slot < slots->n && slots->until[slot] >= from)
        slot++;
    slots->n += slot == slots->n;
    slots->until[slot] = until;
    return (uint8_t)slot;
}

bool is_same(const dt_chain_input &a, const dt_chain_input &b)
{
    return a.data == b.data && a.layout == b.layout && a.dtype == b.dtype;
}

int last_use(const dt_chain *chain, const dt_chain_input &memory)
{
    int last = -1;
    for (int s = 0; s < chain->nsteps; s++)
        for (int i = 0; chain->steps[s].wanted && i < chain->steps[s].ninputs; i++)
            if (chain->steps[s].inputs[i].step < 0 &&
                is_same(chain->steps[s].inputs[i], memory))
                last = s;
    return last;
}

/* The slot of a memory that step s reads, which its instruction loads if none did. */
uint8_t slot_of(const dt_chain *chain, int s, const dt_chain_input &input, Program *p,
                Instruction *to, Slots *slots)
{
    const Memory memory = memory_of(chain, input);
    for (int m = 0; m < p->nmemories; m++) {
        const Memory &had = p->memories[m];
        if (had.data == memory.data && had.layout == memory.layout &&
            had.type == memory.type)
            return had.slot;
    }
    to->loads++;
    p->memories[p->nmemories] = memory;
    return p->memories[p->nmemories++].slot = take(slots, s, last_use(chain, input));
}

/* Writes the program, and returns how many slots it has. */
int translate(const dt_chain *chain, Program *p)
{
    Slots slots = {};
    uint8_t slot_of_step[DT_CHAIN_STEPS];
    p->numel = (unsigned)chain->numel;
    for (int k = 0; k < chain->nlayouts; k++)
        p->layouts[k] = strides_of(chain->layouts[k]);
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step &step = chain->steps[s];
        if (!step.wanted)
            continue;
        Instruction &to = p->instructions[p->ninstructions++];
        to.op = (int16_t)(step.type == DT_BOOL ? row_of_bools(step.op) : step.op);
        to.is_long = step.op != DT_CHAIN_CONVERT &&
                     is_long(to.op, dt_elementwise_rows[to.op].class_);
        to.type = type_of(step.result);
        to.out = to.inputs[0] = to.inputs[1] = to.inputs[2] = NONE;
        for (int i = 0; i < step.ninputs; i++) {
            const dt_chain_input &input = step.inputs[i];
            if (input.step >= 0)
                to.inputs[i] = slot_of_step[input.step];
            else if (input.data)
                to.inputs[i] = slot_of(chain, s, input, p, &to, &slots);
            else
                to.numbers[i] = number_of(input);
        }
        if (step.out) {
            to.out = (uint8_t)p->noutputs;
            p->outputs[p->noutputs++] = {
                (char *)step.out,
                is_aligned(step.out, EACH * dt_dtype_size(step.result))};
        }
        /* It may be a slot of the inputs, whose elements are read before. */
        to.slot = slot_of_step[s] = take(&slots, s + 1, dt_chain_last_use(chain, s));
    }
    return slots.n;
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
