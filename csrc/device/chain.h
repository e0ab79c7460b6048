/* A chain of elementwise operations, in the order of the program: what device/fusion.c
 * collects, and a backend runs in one pass over the memory. */
#ifndef DT_DEVICE_CHAIN_H
#define DT_DEVICE_CHAIN_H

#include "device/plan.h"
#include "ops/elementwise.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CHAIN_STEPS   16
#define DT_CHAIN_LAYOUTS 8

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

/* Element i of each result belongs to element i of each input; a result may lie exactly over
 * memory that earlier steps read. */
typedef struct dt_chain {
    int64_t numel;
    int nsteps, nlayouts;
    dt_chain_step steps[DT_CHAIN_STEPS];
    dt_chain_layout layouts[DT_CHAIN_LAYOUTS];
} dt_chain;

#ifdef __cplusplus
}
#endif
#endif
