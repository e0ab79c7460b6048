/* Programs of the machine in chain_machine.h, and the translation of chains to them. */
#ifndef DT_CUDA_KERNELS_CHAIN_PROGRAM_H
#define DT_CUDA_KERNELS_CHAIN_PROGRAM_H

#include "cuda/kernels/chain_memory.h"
#include "cuda/kernels/layout.h"
#include "device/chain.h"
#include "ops/elementwise_ops.h"

namespace {

/* Groups of elements of a thread, and threads of a block; there are fewer where a chain has
 * many slots. */
enum { GROUPS = 4, THREADS = 128 };
/* Bytes of shared memory that a block may have; blocks that keep any GPU busy. */
enum { SHARED = 48 << 10, BLOCKS_WANTED = 1024 };

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

struct Program {
    unsigned numel;
    int groups, ninstructions, nmemories, noutputs;
    int end; /* the slot of what the chain's end takes */
    Instruction instructions[DT_CHAIN_STEPS];
    Memory memories[DT_CHAIN_STEPS * 3]; /* a fourth input is a number */
    Output outputs[DT_CHAIN_STEPS];
    Strides layouts[DT_CHAIN_LAYOUTS];
};
POINTERS_OF(Program, for (int i = 0; i < s.nmemories; i++) f(s.memories[i].data);
            for (int i = 0; i < s.noutputs; i++) f(s.outputs[i].data);)
static_assert(sizeof(Program) < 4000, "a kernel's parameters have 4 KB");

/* --- what the machine has --- */

/* Whether the machine has a row: one that computes in float, or chooses among what can be
 * one. */
__host__ __device__ constexpr bool has_row(const dt_class &c, int flags)
{
    return (c.choice || c.takes[DT_KIND_FLOAT]) && !(flags & DT_RARE);
}

/* Rows of many instructions, but for some that programs write out often. */
__host__ __device__ constexpr bool is_long(int op, const dt_class &c)
{
    return (c.cost > 1 || c.rule == DT_RULE_EXPONENT) && op != DT_OP_div &&
           op != DT_OP_sqrt && op != DT_OP_rsqrt && op != DT_OP_reciprocal &&
           op != DT_OP_exp && op != DT_OP_log && op != DT_OP_tanh &&
           op != DT_OP_sigmoid;
}

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
    Memory m = {input.data, type_of(input.dtype), APART, NONE, 0};
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
    const dt_chain_end *end = dt_chain_wanted_end(chain);
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
        const bool ends = end && end->step == s;
        const int until = ends ? chain->nsteps : dt_chain_last_use(chain, s);
        to.slot = slot_of_step[s] = take(&slots, s + 1, until);
        if (ends)
            p->end = to.slot;
    }
    return slots.n;
}

} // namespace

#endif
