/* Chains (device/chain.h) in one kernel: a machine whose program is the kernel's parameter.
 *
 * A thread has a few elements that follow one another and runs the program on them. An
 * instruction takes its inputs, computes its row of ops/elementwise.def in float, and rounds
 * the result to the type that it has in the chain, so that the bits are those of the rows'
 * own kernels. Values that later instructions take are in shared memory, where each thread
 * has its own. All threads take the same branches. */
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/pack.h"
#include "cuda/runtime/backend.h"
#include "device/chain.h"
#include "ops/elementwise_ops.h"

namespace {

/* Elements of a thread, and threads of a block. */
enum { EACH = 4, THREADS = 128 };
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

/* An input: a number, the value in a slot of shared memory, or memory. */
enum From : uint8_t { NUMBER, SLOT, MEMORY };
struct Source {
    From from;
    uint8_t at;
    float number;
};

enum { NONE = 255 };
struct Instruction {
    int16_t op;
    bool is_long;
    uint8_t nsources;
    Type type;    /* of the result */
    uint8_t slot; /* NONE: no later instruction takes it */
    uint8_t out;  /* NONE: it is not stored */
    Source sources[DT_MAX_INPUTS];
};

/* The elements of a thread lie together, are one, or are apart. */
enum Way : uint8_t { TOGETHER, SINGLE, APART };
struct Memory {
    const char *data;
    Type type;
    Way way;
    uint8_t layout; /* NONE: one element after the other */
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
    int ninstructions, nmemories, noutputs;
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
__host__ __device__ constexpr bool is_long_row(const dt_class &c)
{
    return c.cost > 1 || c.rule == DT_RULE_EXPONENT;
}

__host__ __device__ constexpr bool is_choice(const dt_class &c)
{
    return c.choice;
}
template <bool CHOICE, typename T>
using FirstOf = std::conditional_t<CHOICE, bool, T>;

/* Row `op` of N elements: of the long rows, or of the others. T is float. */
template <bool LONGS, int N, typename T>
__device__ __forceinline__ void
apply_row(int op, const Vector<T, EACH> &a, const Vector<T, EACH> &b,
          const Vector<T, EACH> &c, T d, Vector<T, EACH> &out)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (has_row(DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) &&       \
                      is_long_row(DT_CLASS_VALUE(flags, DT_CLASS_##class)) == LONGS) { \
            typedef FirstOf<is_choice(DT_CLASS_VALUE(flags, DT_CLASS_##class)), T>     \
                First;                                                                 \
            UNROLL                                                                     \
            for (int k = 0; k < N; k++) {                                              \
                operands(First, (First)a.v[k], b.v[k], c.v[k], d) out.v[k] =           \
                    (T)(value);                                                        \
            }                                                                          \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default: /* DT_CHAIN_CONVERT */
        break;
    }
}

__device__ __forceinline__ void rotate(Values &x, float last)
{
    UNROLL
    for (int k = 0; k + 1 < EACH; k++)
        x.v[k] = x.v[k + 1];
    x.v[EACH - 1] = last;
}

__device__ __forceinline__ Values computed(int op, bool is_long, Values a, Values b,
                                           Values c, float d)
{
    Values out = a;
    if (!is_long) {
        apply_row<false, EACH>(op, a, b, c, d, out);
        return out;
    }
    /* The kernel has each long row once: elements come by, one after the other. */
    ROLLED
    for (int k = 0; k < EACH; k++) {
        Values one = {};
        apply_row<true, 1>(op, a, b, c, d, one);
        rotate(a, a.v[0]);
        rotate(b, b.v[0]);
        rotate(c, c.v[0]);
        rotate(out, one.v[0]);
    }
    return out;
}

__global__ void __launch_bounds__(THREADS, 8) chain_kernel(GRID_CONSTANT(Program) p)
{
    DYNAMIC_SHARED(Values, slots);
    const unsigned first = (unsigned)thread_number() * EACH;
    if (first >= p.numel)
        return;
    const int count = p.numel - first < EACH ? (int)(p.numel - first) : EACH;
    ROLLED
    for (int s = 0; s < p.ninstructions; s++) {
        const Instruction &now = p.instructions[s];
        Values a = {}, b = {}, c = {}, x = {};
        float d = 0;
        ROLLED
        for (int k = 0; k < now.nsources; k++) {
            const Source &source = now.sources[k];
            const float number = source.number;
            if (source.from == MEMORY)
                x = values_at(p, p.memories[source.at], first, count);
            else if (source.from == SLOT)
                x = slots[source.at * THREADS + threadIdx.x];
            else
                x = {{number, number, number, number}};
            if (k == 0)
                a = x;
            else if (k == 1)
                b = x;
            else if (k == 2)
                c = x;
            else
                d = number;
        }
        x = computed(now.op, now.is_long, a, b, c, d);
        Words words;
        UNROLL
        for (int k = 0; k < EACH; k++) {
            words.v[k] = word_of(x.v[k], now.type);
            x.v[k] = number_of(words.v[k], now.type);
        }
        if (now.slot != NONE)
            slots[now.slot * THREADS + threadIdx.x] = x;
        if (now.out == NONE)
            continue;
        const Output &out = p.outputs[now.out];
        if (now.type == FLOATS)
            put_words<uint32_t>(out, first, count, words);
        else if (now.type == BOOLS)
            put_words<uint8_t>(out, first, count, words);
        else
            put_words<uint16_t>(out, first, count, words);
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

/* Writes the program, and returns how many slots it has. */
int translate(const dt_chain *chain, Program *p)
{
    int slots = 0, slot_of[DT_CHAIN_STEPS], until[DT_CHAIN_STEPS];
    p->numel = (unsigned)chain->numel;
    for (int k = 0; k < chain->nlayouts; k++)
        p->layouts[k] = strides_of(chain->layouts[k]);
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step &step = chain->steps[s];
        if (!step.wanted)
            continue;
        Instruction &to = p->instructions[p->ninstructions++];
        const bool converts = step.op == DT_CHAIN_CONVERT;
        to.op = (int16_t)(step.type == DT_BOOL ? row_of_bools(step.op) : step.op);
        to.is_long = !converts && is_long_row(dt_elementwise_rows[to.op].class_);
        to.nsources = (uint8_t)step.ninputs;
        to.type = type_of(step.result);
        to.slot = to.out = NONE;
        for (int i = 0; i < step.ninputs; i++) {
            const dt_chain_input &input = step.inputs[i];
            Source &source = to.sources[i];
            source = {NUMBER, 0, 0};
            if (input.step >= 0) {
                source = {SLOT, (uint8_t)slot_of[input.step], 0};
            } else if (input.data) {
                source = {MEMORY, (uint8_t)p->nmemories, 0};
                p->memories[p->nmemories++] = memory_of(chain, input);
            } else {
                source.number = number_of(input);
            }
        }
        if (step.out) {
            to.out = (uint8_t)p->noutputs;
            p->outputs[p->noutputs++] = {
                (char *)step.out,
                is_aligned(step.out, EACH * dt_dtype_size(step.result))};
        }
        const int last = dt_chain_last_use(chain, s);
        if (last == s)
            continue;
        int slot = 0;
        while (slot < slots && until[slot] > s)
            slot++;
        slots += slot == slots;
        until[slot] = last;
        slot_of[s] = slot;
        to.slot = (uint8_t)slot;
    }
    return slots;
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
    Program program = {};
    const int slots = translate(chain, &program);
    if (!program.ninstructions)
        return 0;
    const unsigned threads = (program.numel + EACH - 1) / EACH;
    return start_result(
        "starting a fused kernel",
        (Relaxed(), LAUNCH(chain_kernel, (threads + THREADS - 1) / THREADS, THREADS,
                           slots * THREADS * sizeof(Values),
                           (cudaStream_t)stream.handle, program)));
}
