/* What the core asks of a backend: calls that are ready to run. Operands are checked,
 * promoted, broadcast and on one device; nothing here is owned. */
#ifndef DT_DEVICE_PLAN_H
#define DT_DEVICE_PLAN_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"
#include "ops/ops.h"

#define DT_MAX_OPERANDS 4

/* One operand of an elementwise plan. An immediate operand is one element by value,
 * wherever it came from (a Python number, a CPU tensor without dimensions); its data is
 * NULL. Among elements of 16 bits, one of two inputs may be a float32 by value. */
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

typedef enum dt_scan_op {
    DT_SCAN_SUM, /* integers wrap round */
    DT_SCAN_PRODUCT,
    DT_SCAN_LOGSUMEXP, /* floats only */
    DT_SCAN_MAX,       /* the latest of the greatest so far, and where; a NaN wins */
    DT_SCAN_MIN,
    DT_NSCAN
} dt_scan_op;

/* Running results along one dimension of a row-major tensor: element i of row (o, k)
 * lies at (o * n + i) * inner + k. The types are DT_INT64, DT_FLOAT32 and DT_FLOAT64:
 * the core brings others to these. */
typedef struct dt_scan {
    dt_dtype dtype;
    bool backward;           /* from the last element to the first */
    int64_t outer, n, inner; /* at least 1 */
    const void *x;
    void *out;      /* of the same layout as x */
    int64_t *index; /* of MAX and MIN, else NULL */
} dt_scan;

/* Rows of n elements that follow one another, in order: the first k of each as values
 * and as places in the row. Equal elements stay in order; a NaN is greater than all
 * others and equal to other NaNs, -0 equal to 0. */
typedef struct dt_sorting {
    dt_dtype dtype;
    bool descending;
    int64_t rows, n, k; /* at least 1; k at most n */
    const void *x;
    void *values;   /* rows of k elements; NULL: not wanted */
    int64_t *index; /* the same */
} dt_sorting;

/* Where values go in sequences of n elements in order: in each of `rows` sequences
 * those of its m values, or, of one sequence, any number. The types are DT_INT64,
 * DT_FLOAT32 and DT_FLOAT64. All follow one another. */
typedef struct dt_search {
    const char *what; /* the operation, in messages; a literal */
    dt_dtype dtype;
    bool right; /* behind elements equal to the value, else before them */
    int64_t rows, n, m;
    const void *sequence, *values;
    const int64_t *sorter; /* where the elements in order are; NULL: they are. One out
                              of range: as in a dt_index_call */
    int64_t *out;
} dt_search;

typedef enum dt_index_op {
    DT_INDEX_READ,  /* values = table[...] */
    DT_INDEX_WRITE, /* table[...] = values; on a GPU any of several for one place */
    DT_INDEX_ADD,   /* table[...] += values; bools: or. On a GPU in no certain order */
    DT_INDEX_MULTIPLY,
    DT_NINDEX
} dt_index_op;

/* One index tensor of a selection: where along a dimension of the table. */
typedef struct dt_index_dims {
    const int64_t *data;
    int64_t strides[DT_MAX_NDIM]; /* in bytes, one per dimension of the selection */
    int64_t size;   /* of the table's dimension: legal are 0 to size-1 and, where the
                       selection wraps, -size to -1 */
    int64_t stride; /* of the table's dimension, in bytes */
    int dim;        /* its number, for messages */
} dt_index_dims;

/* Elements of a table chosen by index tensors. Element i of `values` meets the element
 * of `table` at sum(i[d] * table_strides[d]) + sum(index_k[i] * index_k.stride). That
 * is index_select, gather, take and reading by index tensors, and in the other
 * direction what they are the gradients of. An index out of range: the CPU fails before
 * anything is written; a GPU takes element 0 when reading, skips it when writing, and
 * the next wait for the device fails. Strides are in bytes. */
typedef struct dt_index_call {
    const char *what;   /* the operation, in messages; a literal */
    dt_error_code code; /* of an index out of range, where it is noticed at once */
    dt_dtype dtype;
    bool wraps;
    int ndim;      /* at least 1 */
    int64_t numel; /* at least 1; every indexed dimension has elements */
    int64_t shape[DT_MAX_NDIM];
    void *table, *values; /* of READ, values is written, else table */
    int64_t table_strides[DT_MAX_NDIM], value_strides[DT_MAX_NDIM];
    int nindices;
    dt_index_dims indices[DT_MAX_NDIM];
} dt_index_call;

/* One tensor of an update. Elements of all that belongs to it lie next to each other
 * and in the same order; nothing overlaps, but the gradient may be the parameter. */
typedef struct dt_optim_entry {
    void *parameter;
    const void *gradient;
    void *states[DT_OPTIM_STATES];
    int64_t numel;            /* at least 1 */
    int64_t first;            /* elements of the entries before it */
    double own[DT_OPTIM_OWN]; /* as the row's `prepare` says */
} dt_optim_entry;

/* One rule of ops/optim.def for many tensors of one floating type. */
typedef struct dt_optim_call {
    dt_optim_op op;
    dt_dtype dtype;
    int64_t count; /* at least 1 */
    const dt_optim_entry *entries;
    double numbers[DT_OPTIM_NUMBERS];
    const void *scale; /* an element of the type, on the device: gradients are taken
                          times it; NULL: as they are */
} dt_optim_call;

/* How the elements of a dt_nonzero_call are counted: by tiles, and tiles by groups, of
 * which there are about as many as a group has tiles. The workspace holds a number a
 * tile, one a group, and the total. */
#define DT_NONZERO_TILE 128
typedef struct dt_tiles {
    int64_t numel, tiles, group, groups;
} dt_tiles;

static inline dt_tiles dt_tiles_of(int64_t numel)
{
    dt_tiles t = {numel, (numel + DT_NONZERO_TILE - 1) / DT_NONZERO_TILE, 1, 1};
    while (t.group * t.group < t.tiles)
        t.group++;
    t.groups = (t.tiles + t.group - 1) / t.group;
    return t;
}

/* Bools in row-major order of shape, and the positions of those that are true. */
typedef struct dt_nonzero_call {
    const bool *holds;
    int64_t numel; /* at least 1 */
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    int64_t *workspace; /* tiles + groups + 1 numbers */
    int64_t *out;       /* [ndim, count], for the second step */
} dt_nonzero_call;

/* Many tensors of one floating type, each cut into chunks of DT_FOREACH_NORM_CHUNK elements,
 * for a row of class NORM of ops/reduce.def. Elements of a tensor lie next to each
 * other. */
#define DT_FOREACH_NORM_CHUNK 16384
typedef struct dt_foreach_norm_entry {
    const void *data;
    int64_t numel; /* at least 1 */
    int64_t first; /* chunks of the entries before it */
} dt_foreach_norm_entry;

typedef struct dt_foreach_norm_call {
    dt_dtype dtype;
    int64_t count; /* at least 1 */
    const dt_foreach_norm_entry *entries;
    double parameter; /* P of the op tables */
    void *partials;   /* written: for each chunk a partial result, of the type */
} dt_foreach_norm_call;

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
typedef struct dt_arange_call {
    dt_dtype dtype;
    void *out; /* contiguous */
    int64_t numel;
    dt_scalar start, step;
} dt_arange_call;

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
