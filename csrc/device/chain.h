/* A chain of elementwise operations, in the order of the program, and what takes their
 * results at its end: what device/fusion.c collects, and a backend runs in one pass over
 * the memory (cpu/kernels/chain.c, cuda/kernels/chain.cu). */
#ifndef DT_DEVICE_CHAIN_H
#define DT_DEVICE_CHAIN_H

#include "device/extents.h"
#include "device/nn.h"
#include "device/plan.h"
#include "ops/elementwise.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CHAIN_STEPS   16
#define DT_CHAIN_LAYOUTS 12
#define DT_CHAIN_ENDS    4

/* A step that converts its input to the type of its result. */
#define DT_CHAIN_CONVERT ((dt_elementwise_op) - 1)

/* How an input is read whose elements are not all there: strides in bytes, 0 along which it
 * is broadcast. The last one is 0 or the size of an element. */
typedef struct dt_chain_layout {
    int ndim;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
} dt_chain_layout;

/* The value of an earlier step, or a number, or memory. */
typedef struct dt_chain_input {
    int step;         /* -1: not of a step */
    int layout;       /* of memory; -1: one element after the other */
    const char *data; /* memory; NULL: a number */
    dt_dtype dtype;
    dt_element number;
} dt_chain_input;

typedef struct dt_chain_step {
    dt_elementwise_op op; /* or DT_CHAIN_CONVERT */
    int ninputs;
    dt_chain_input inputs[DT_MAX_INPUTS];
    dt_dtype type;   /* of the kernel: dt_plan_type */
    dt_dtype result; /* of the elements of the result */
    void *out;       /* NULL: later steps alone read the result */
    bool wanted;     /* false: nobody reads it */
} dt_chain_step;

/* A reduction, or an operation on rows, of the result of a step. It has no result that a
 * step reads. */
typedef struct dt_chain_end {
    dt_work work; /* DT_WORK_reduce, DT_WORK_moments, DT_WORK_nn */
    int step;
    int line;        /* of the program (dt_activity_line), or -1 */
    bool wanted;     /* false: nobody reads what it writes */
    int operand;     /* the result's number among the operands */
    unsigned writes; /* operands that are written, a bit each */
    dt_reduce_op op; /* reduce */
    void *mean;      /* moments */
    union {
        dt_reduction reduction; /* its operands: input, output, mean */
        dt_nn_call rows;
    };
    void *partials; /* of a reduction: malloc'ed by chain_end, freed by chain */
} dt_chain_end;

/* Element i of each result belongs to element i of each input. A result may be the memory
 * of an input of earlier steps. */
typedef struct dt_chain {
    int64_t numel;
    int nsteps, nlayouts;
    dt_chain_step steps[DT_CHAIN_STEPS];
    dt_chain_layout layouts[DT_CHAIN_LAYOUTS];
    int nends;
    int64_t row; /* elements that an end takes together: those of a row, or all */
    dt_chain_end ends[DT_CHAIN_ENDS];
} dt_chain;

/* Whether an operand is contiguous; below, whether it is a single element. */
static inline bool dt_plan_is_dense(const dt_plan *plan, const dt_operand *o)
{
    int64_t stride = (int64_t)dt_dtype_size(o->dtype);
    for (int d = plan->ndim - 1; d >= 0; stride *= plan->shape[d--])
        if (o->strides[d] != stride)
            return false;
    return true;
}
static inline bool dt_plan_is_one(const dt_plan *plan, const dt_operand *o)
{
    for (int d = 0; d < plan->ndim; d++)
        if (o->strides[d])
            return false;
    return true;
}

/* The last step that takes the result of a step; the step itself: none. */
static inline int dt_chain_last_use(const dt_chain *chain, int step)
{
    int last = step;
    for (int s = step + 1; s < chain->nsteps; s++)
        for (int i = 0; chain->steps[s].wanted && i < chain->steps[s].ninputs; i++)
            if (chain->steps[s].inputs[i].step == step)
                last = s;
    return last;
}

/* The first end whose results are wanted; NULL: none is. */
static inline const dt_chain_end *dt_chain_wanted_end(const dt_chain *chain)
{
    for (int e = 0; e < chain->nends; e++)
        if (chain->ends[e].wanted)
            return &chain->ends[e];
    return NULL;
}

/* "mul"; "copy" of a conversion. */
static inline const char *dt_chain_step_name(const dt_chain_step *step)
{
    return step->op == DT_CHAIN_CONVERT ? "copy" : dt_elementwise_rows[step->op].name;
}

/* "sum", "softmax". */
const char *dt_chain_end_name(const dt_chain_end *end);

/* Calls visit with each operand of a chain in memory: what its steps read, and what they
 * and its ends store. */
void dt_chain_visit(const dt_chain *chain, dt_extent_visitor visit, void *context);
/* Bytes that a chain reads and writes: an input that two steps read is read once. */
int64_t dt_chain_bytes(const dt_chain *chain);
/* Bytes of an end's operands, without the step's result. */
int64_t dt_chain_end_bytes(const dt_chain_end *end);

#ifdef __cplusplus
}
#endif
#endif
