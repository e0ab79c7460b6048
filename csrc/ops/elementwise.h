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
    unsigned char arity;
    unsigned short flags;
    unsigned char reads[DT_MAX_INPUTS]; /* for the gradient of each input */
    double low, high;
    dt_class class_;
} dt_elementwise_row;

extern const dt_elementwise_row dt_elementwise_rows[]; /* by dt_elementwise_op */

#ifdef __cplusplus
}
#endif
#endif
