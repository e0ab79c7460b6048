/* The translation of chains (device/chain.h) to programs (chain_program.h). */
#ifndef DT_CUDA_KERNELS_CHAIN_TRANSLATE_H
#define DT_CUDA_KERNELS_CHAIN_TRANSLATE_H

#include "cuda/kernels/chain_program.h"

namespace {

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
    case DT_FLOAT64:
        return DOUBLES;
    case DT_INT8:
        return CHARS;
    case DT_INT16:
        return SHORTS;
    case DT_INT32:
        return INTS;
    case DT_INT64:
        return LONGS;
    default:
        return NO_TYPE;
    }
}

/* The row that computes a bitwise operation on bools, which the machine stores as 0 and 1;
 * any other row itself. */
int row_of_bools(int op)
{
    return op == DT_OP_bitwise_and   ? DT_OP_minimum
           : op == DT_OP_bitwise_or  ? DT_OP_maximum
           : op == DT_OP_bitwise_xor ? DT_OP_ne
           : op == DT_OP_bitwise_not ? DT_OP_logical_not
                                     : op;
}

uint64_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The bits of a number in its step's domain. */
uint64_t number_of(const dt_chain_input &input, Domain domain)
{
    if (input.dtype == DT_BOOL) {
        const bool is_true = (bool)input.number.as_bool;
        return domain == IN_FLOAT    ? bits_of((float)is_true)
               : domain == IN_DOUBLE ? bits_of((double)is_true)
                                     : is_true;
    }
    const dt_scalar number = dt_element_to_scalar(input.dtype, input.number.bytes);
    return domain == IN_FLOAT    ? bits_of((float)number.f)
           : domain == IN_DOUBLE ? bits_of(number.f)
                                 : (uint64_t)number.i;
}

/* The type that a step of a wide chain computes in. */
Domain domain_of(const dt_chain_step &step)
{
    const bool copies = step.op == DT_CHAIN_CONVERT,
               chooses = !copies && dt_elementwise_rows[step.op].class_.choice;
    const Type type = type_of(copies    ? step.inputs[0].dtype
                              : chooses ? step.result
                                        : step.type);
    return is_whole(type) ? IN_WHOLE : type == DOUBLES ? IN_DOUBLE : IN_FLOAT;
}

/* Whether a step needs a wide chain. */
bool is_wide(const dt_chain_step &step)
{
    const bool moves =
        step.op == DT_CHAIN_CONVERT || dt_elementwise_rows[step.op].class_.choice;
    if (type_of(step.result) >= DOUBLES || (!moves && type_of(step.type) >= BYTES))
        return true;
    for (int i = 0; i < step.ninputs; i++)
        if ((step.inputs[i].data || step.op == DT_CHAIN_CONVERT) &&
            type_of(step.inputs[i].dtype) >= DOUBLES)
            return true;
    return false;
}
bool is_wide(const dt_chain *chain)
{
    for (int s = 0; s < chain->nsteps; s++)
        if (chain->steps[s].wanted && is_wide(chain->steps[s]))
            return true;
    return false;
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

/* The slots in use, each with the last step that reads it. */
struct Slots {
    int n, until[DT_CHAIN_STEPS * 4];
};

/* Takes a slot that no step from `from` on reads, until step `until` has read it. */
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

/* The slot of an input of step s; the instruction loads it if none before has. */
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

/* Sets an instruction's inputs. slot_of_step: the slots of earlier results. */
void set_inputs(const dt_chain *chain, int s, const uint8_t *slot_of_step, Program *p,
                Instruction *to, Slots *slots)
{
    const dt_chain_step &step = chain->steps[s];
    to->inputs[0] = to->inputs[1] = to->inputs[2] = NONE;
    to->floats[0] = to->floats[1] = to->floats[2] = NONE;
    to->types[0] = to->types[1] = to->types[2] = NO_TYPE;
    for (int i = 0; i < step.ninputs; i++) {
        const dt_chain_input &input = step.inputs[i];
        if (input.step >= 0)
            to->inputs[i] = slot_of_step[input.step];
        else if (input.data)
            to->inputs[i] = slot_of(chain, s, input, p, to, slots);
        else
            to->numbers[i] = number_of(input, to->domain);
        if (i < 3 && to->inputs[i] != NONE)
            to->types[i] = type_of(input.dtype);
    }
    for (int i = 0; i < 3; i++)
        if (p->wide && to->domain != IN_WHOLE && to->inputs[i] != NONE &&
            is_whole(to->types[i]))
            to->floats[i] = take(slots, s, s);
}

/* Writes the program. Returns its number of slots. */
int translate(const dt_chain *chain, Program *p)
{
    const dt_chain_end *end = dt_chain_wanted_end(chain);
    Slots slots = {};
    uint8_t slot_of_step[DT_CHAIN_STEPS];
    p->numel = (unsigned)chain->numel;
    p->wide = is_wide(chain);
    for (int k = 0; k < chain->nlayouts; k++)
        p->layouts[k] = strides_of(chain->layouts[k]);
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step &step = chain->steps[s];
        if (!step.wanted)
            continue;
        Instruction &to = p->instructions[p->ninstructions++];
        to.op = (int16_t)(step.type == DT_BOOL ? row_of_bools(step.op) : step.op);
        to.is_long = step.op != DT_CHAIN_CONVERT &&
                     is_long(to.op, dt_elementwise_rows[to.op].class_, p->wide);
        to.type = type_of(step.result);
        to.out = NONE;
        to.domain = p->wide ? domain_of(step) : IN_FLOAT;
        set_inputs(chain, s, slot_of_step, p, &to, &slots);
        if (step.out) {
            to.out = (uint8_t)p->noutputs;
            p->outputs[p->noutputs++] = {
                (char *)step.out,
                is_aligned(step.out, EACH * dt_dtype_size(step.result))};
        }
        /* It may be the slot of an input: elements are read before they are written. */
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
