/* What the core asks of a backend: calls that are ready to run. Operands are checked,
 * promoted, broadcast and on one device; nothing here is owned. */
#ifndef DT_DEVICE_PLAN_H
#define DT_DEVICE_PLAN_H

#include "base/dtype.h"
#include "base/shape.h"
#include "ops/ops.h"

#define DT_MAX_OPERANDS 4

/* One operand of an elementwise plan. An immediate operand is one element by value,
 * wherever it came from (a Python number, a CPU tensor without dimensions); its data is
 * NULL. */
typedef struct dt_operand {
    void *data;                   /* address of element 0 on the plan's device */
    int64_t strides[DT_MAX_NDIM]; /* in bytes, one per dimension of the plan; 0:
                                     broadcast */
    dt_element value;             /* of an immediate operand */
    dt_dtype dtype;
    bool immediate;
} dt_operand;

/* An elementwise iteration. Dimensions are ordered so that the last one is the
 * innermost of the result's memory, and merged where all operands allow it; sizes of 1
 * are gone. So numel elements that follow one another in every operand have ndim 1
 * (also numel 1). Only the first ndim entries of shape and strides are set. */
typedef struct dt_plan {
    int ndim; /* at least 1 */
    int noperands;
    int64_t numel; /* at least 1: the core answers empty calls itself */
    int64_t shape[DT_MAX_NDIM];
    dt_operand operands[DT_MAX_OPERANDS]; /* 0: the result; then the inputs in order */
    bool contiguous; /* ndim is 1 and every operand is immediate or has stride = element
                        size */
} dt_plan;

/* A reduction of one input: `kept` dimensions number the results, `folded` ones run
 * over the elements that a result is folded from. Both are ordered and merged as in a
 * plan; either may be empty (ndim 0: one result, or one element a result). Strides are
 * in bytes. */
typedef struct dt_reduction {
    const void *input;
    dt_dtype input_dtype;
    dt_dtype output_dtype;
    void *output; /* contiguous, in the order of the kept dimensions; NULL: not wanted
                     (arg) */
    int64_t
        *index; /* for dt_backend.argreduce: where in the folded dimension; or NULL */
    int kept_ndim, folded_ndim;
    int64_t kept_numel;   /* at least 1 */
    int64_t folded_numel; /* 0 only for rows with an identity */
    int64_t kept_shape[DT_MAX_NDIM], kept_strides[DT_MAX_NDIM];
    int64_t folded_shape[DT_MAX_NDIM], folded_strides[DT_MAX_NDIM];
    double parameter; /* P of the op tables */
} dt_reduction;

/* c = alpha * a @ b + beta * c, `batch` times. Strides are in elements. Of each input
 * one of row and column stride is 1 and the other at least the length it steps over (so
 * BLAS takes it as it is, transposed or not); c is row-major with c_row >= n. beta 0
 * ignores what c holds. A batch stride of 0 uses one matrix for every product. */
typedef struct dt_gemm {
    dt_dtype dtype;
    int64_t batch, m, n, k; /* m, n, batch at least 1; k may be 0 */
    const void *a;
    int64_t a_batch, a_row, a_col;
    const void *b;
    int64_t b_batch, b_row, b_col;
    void *c;
    int64_t c_batch, c_row;
    double alpha, beta;
} dt_gemm;

/* An arithmetic progression: out[i] = start + i * step, floats computed in double. */
typedef struct dt_progression {
    dt_dtype dtype;
    void *out; /* contiguous */
    int64_t numel;
    dt_scalar start, step;
} dt_progression;

typedef enum dt_distribution {
    DT_RANDOM_UNIFORM,  /* floats in [low, high) */
    DT_RANDOM_NORMAL,   /* floats of mean low and standard deviation high */
    DT_RANDOM_INTEGERS, /* every type: integers in [low, high). low 0 and high INT64_MIN
                           stand for all numbers from 0 of a signed type */
    DT_RANDOM_BERNOULLI, /* every type: 1 with probability low, else 0 */
    DT_NDISTRIBUTIONS
} dt_distribution;

typedef struct dt_random_call {
    dt_distribution distribution;
    dt_dtype dtype;
    void *out; /* contiguous */
    int64_t numel;
    dt_scalar low, high;
    bool singly; /* the CPU draws normal numbers one by one, however many they are */
} dt_random_call;

#endif
