/* Programs of the machine in chain_machine.h. */
#ifndef DT_CUDA_KERNELS_CHAIN_PROGRAM_H
#define DT_CUDA_KERNELS_CHAIN_PROGRAM_H

#include "cuda/kernels/chain_memory.h"
#include "cuda/kernels/layout.h"
#include "device/chain.h"
#include "ops/elementwise_ops.h"

namespace {

/* Groups of elements for a thread, and threads in a block. Chains with many slots get
 * fewer. */
enum { GROUPS = 4, THREADS = 128 };
/* The shared memory of a block, in bytes; and enough blocks to fill any GPU. */
enum { SHARED = 48 << 10, BLOCKS_WANTED = 1024 };

/* The type that an instruction computes in: float, double or int64_t. Chains that are not
 * wide compute in float, with 0 and 1 for bools. */
enum Domain : uint8_t { IN_FLOAT, IN_DOUBLE, IN_WHOLE };

struct Instruction {
    int16_t op;
    bool is_long;
    Domain domain;
    Type type;         /* of the result */
    Type types[3];     /* of the inputs in slots */
    uint8_t loads;     /* how many of the program's next memories to load first */
    uint8_t inputs[3]; /* slots; NONE: a number */
    uint8_t floats
        [3];      /* slots for integer inputs converted to float; NONE: no conversion */
    uint8_t slot; /* of the result */
    uint8_t out;  /* NONE: not stored */
    uint64_t numbers[DT_MAX_INPUTS]; /* as words of wide chains */
};

struct Program {
    unsigned numel;
    bool wide;
    int groups, ninstructions, nmemories, noutputs;
    int end; /* the slot of the chain's end's input */
    Instruction instructions[DT_CHAIN_STEPS];
    Memory memories[DT_CHAIN_STEPS * 3]; /* a fourth input is always a number */
    Output outputs[DT_CHAIN_STEPS];
    Strides layouts[DT_CHAIN_LAYOUTS];
};
POINTERS_OF(Program, for (int i = 0; i < s.nmemories; i++) f(s.memories[i].data);
            for (int i = 0; i < s.noutputs; i++) f(s.outputs[i].data);)
static_assert(sizeof(Program) < 4000, "a kernel's parameters have 4 KB");

/* --- rows of the machine --- */

/* Whether the machine can run a row: it takes the kind of number, or selects one. */
__host__ __device__ constexpr bool has_row(const dt_class &c, int flags,
                                           dt_kind kind = DT_KIND_FLOAT)
{
    return (c.choice || c.takes[kind]) && !(flags & DT_RARE);
}

/* Whether a row is expanded once in the kernel, not in a loop of its own: to keep the
 * kernel small. These are rows of many machine instructions, except the frequent ones. A
 * wide chain has each row three times, so there it is all but the most frequent. */
__host__ __device__ constexpr bool is_long(int op, const dt_class &c, bool wide)
{
    if (wide)
        return op != DT_OP_add && op != DT_OP_sub && op != DT_OP_mul &&
               op != DT_OP_where && op != DT_OP_eq && op != DT_OP_ne &&
               op != DT_OP_lt && op != DT_OP_le && op != DT_OP_gt && op != DT_OP_ge &&
               op != DT_OP_minimum && op != DT_OP_maximum && op != DT_OP_bitwise_and &&
               op != DT_OP_logical_not;
    return (c.cost > 1 || c.rule == DT_RULE_EXPONENT) && op != DT_OP_div &&
           op != DT_OP_sqrt && op != DT_OP_rsqrt && op != DT_OP_reciprocal &&
           op != DT_OP_exp && op != DT_OP_log && op != DT_OP_tanh &&
           op != DT_OP_sigmoid;
}

} // namespace

#endif
