/* The rows of ops/elementwise.def at run time. */
#ifndef DT_OPS_ELEMENTWISE_H
#define DT_OPS_ELEMENTWISE_H

#include "ops/class.h"
#include "ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most inputs: a derivative has one more than its row. */
#define DT_MAX_INPUTS 4

/* Flags of a row. */
enum {
    /* Among elements of 16 bits a number stays float32; else it is rounded to them. */
    DT_WIDE_NUMBERS = 1,
    DT_ONE_TYPE = 2,          /* tensors of two types are a RuntimeError */
    DT_IN_PLACE_FUNCTION = 4, /* name_ is also a function of the module */
    DT_TENSOR_NEEDED = 8,     /* numbers alone are a TypeError */
    DT_FLOAT_ON_GPU = 16,     /* under autocast it takes float32 there */
    DT_FLAT = 32, /* derivatives record their input, with a second derivative of 0 */
};

/* The operands that a derivative's expression reads (bits of
 * dt_elementwise_row.reads). */
enum {
    DT_READS_A = 1,
    DT_READS_B = 2,
    DT_READS_C = 4,
    DT_READS_Y = 8,
    DT_READS = 15,
    DT_READS_NOTHING = 16, /* NOT_DIFFERENTIABLE */
    DT_READS_UNKNOWN = 32  /* NOT_IMPLEMENTED */
};

typedef struct dt_elementwise_row {
    const char *name, *class_name;
    unsigned char arity, flags;
    unsigned char reads[DT_MAX_INPUTS]; /* for the gradient of each input */
    double low, high;
    dt_class class_;
} dt_elementwise_row;

extern const dt_elementwise_row dt_elementwise_rows[]; /* by dt_elementwise_op */

#ifdef __cplusplus
}
#endif
#endif
