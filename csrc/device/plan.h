/* Arguments of the backend functions: operands are checked, promoted, broadcast and
 * on one device. Nothing here is owned. */
#ifndef DT_DEVICE_PLAN_H
#define DT_DEVICE_PLAN_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"
#include "ops/ops.h"

#define DT_MAX_OPERANDS 5

struct dt_storage;

/* --- elementwise, fill, copy --- */

/* An operand of an elementwise plan. A scalar operand is a single element by value
 * (a Python number, a 0-dim CPU tensor); its data is NULL. In a half-precision plan
 * scalar operands may be float32. */
typedef struct dt_operand {
    void *data;                   /* address of element 0 on the plan's device */
    int64_t strides[DT_MAX_NDIM]; /* in bytes, per dimension; 0: broadcast */
    dt_element value;             /* of a scalar operand */
    dt_dtype dtype;
    bool scalar;
    struct dt_storage *storage; /* of data, in plans of the core; not of a scalar */
} dt_operand;

/* An elementwise iteration. Dimensions are in the order of the result's memory,
 * innermost last, and merged where all operands allow; none has size 1. So operands
 * without gaps give ndim 1, as does numel 1. Only the first ndim entries are set. */
typedef struct dt_plan {
    int ndim; /* at least 1 */
    int noperands;
    int64_t numel; /* at least 1: the core handles empty calls */
    int64_t shape[DT_MAX_NDIM];
    dt_operand operands[DT_MAX_OPERANDS]; /* 0: the result, then the inputs */
    bool contiguous; /* ndim is 1 and every operand is a scalar or has stride =
                        element size */
} dt_plan;

/* The element type of an elementwise plan's kernel: that of the inputs, or of one that has
 * floats where others are of another type. A choice, whose first input is of bool, moves
 * elements as integers of their size, or as complex128. */
static inline dt_dtype dt_plan_type(const dt_plan *plan, bool choice)
{
    if (choice)
        switch (dt_dtype_size(plan->operands[0].dtype)) {
        case 1:
            return DT_UINT8;
        case 2:
            return DT_INT16;
        case 4:
            return DT_INT32;
        case 8:
            return DT_INT64;
        default:
            return DT_COMPLEX128;
        }
    int found = 0;
    for (int i = 1; i < plan->noperands; i++) {
        dt_dtype dtype = plan->operands[i].dtype;
        if (plan->operands[i].scalar && !dt_dtype_is_half(dtype))
            continue;
        if (dt_dtype_is_inexact(dtype))
            return dtype;
        found = found ? found : i;
    }
    for (int i = 1; i < plan->noperands; i++)
        if (!found || dt_dtype_is_inexact(plan->operands[i].dtype))
            return plan->operands[i].dtype;
    return plan->operands[found].dtype;
}

/* --- reductions --- */

/* A reduction of one input over `reduced` dimensions; the `kept` ones index the
 * results. Both are ordered and merged as in a plan, and either may be empty (ndim
 * 0: one result, or one element per result). Strides are in bytes. */
typedef struct dt_reduction {
    const void *input;
    dt_dtype input_dtype;
    dt_dtype output_dtype;
    void *output;   /* contiguous, in the order of the kept dimensions; NULL for
                     argreduce without values */
    int64_t *index; /* argreduce: row-major index in the reduced dimensions; or NULL */
    int kept_ndim, reduced_ndim;
    int64_t kept_numel;    /* at least 1 */
    int64_t reduced_numel; /* 0 only for reductions with an identity */
    int64_t kept_shape[DT_MAX_NDIM], kept_strides[DT_MAX_NDIM];
    int64_t reduced_shape[DT_MAX_NDIM], reduced_strides[DT_MAX_NDIM];
    double parameter; /* P of the op tables */
    struct dt_storage
        *storages[3]; /* in calls of the core: of the input, the output and
                                       the mean of moments, or NULL */
} dt_reduction;

/* Partial norms of many contiguous tensors, each cut into
 * chunks of DT_FOREACH_NORM_CHUNK elements, with an op of class NORM of
 * ops/reduce.def. */
#define DT_FOREACH_NORM_CHUNK 16384
typedef struct dt_foreach_norm_entry {
    const void *data;
    int64_t numel; /* at least 1 */
    int64_t first; /* chunks of the entries before it */
} dt_foreach_norm_entry;

typedef struct dt_foreach_norm_call {
    dt_dtype dtype;  /* float32 or float64: of the results */
    dt_dtype stored; /* of the elements: see dt_optim_call */
    int64_t count;   /* at least 1 */
    const dt_foreach_norm_entry *entries;
    double parameter; /* P of the op tables */
    void *partials;   /* written: one partial result per chunk, of the type */
} dt_foreach_norm_call;

/* --- scans --- */

typedef enum dt_scan_op {
    DT_SCAN_SUM, /* integers wrap */
    DT_SCAN_PRODUCT,
    DT_SCAN_LOGSUMEXP, /* floats only */
    DT_SCAN_MAX,       /* ties give the last index; NaN wins */
    DT_SCAN_MIN,
    DT_NSCAN
} dt_scan_op;

/* A scan (cumulative op) along one dimension of a row-major tensor: element i of row
 * (o, k) is at (o * n + i) * inner + k. dtype is int64, float32 or float64; the core
 * converts other types. */
typedef struct dt_scan {
    dt_dtype dtype;
    bool backward;           /* from the last element to the first */
    int64_t outer, n, inner; /* at least 1 */
    const void *x;
    void *out;      /* same layout as x */
    int64_t *index; /* MAX and MIN only, else NULL */
} dt_scan;

/* --- sorting and searching --- */

/* Sorts contiguous rows of n elements: the first k of each row as values and as
 * indices. Stable; NaN sorts last and equal to other NaNs, -0 equals 0. */
typedef struct dt_sorting {
    dt_dtype dtype;
    bool descending;
    int64_t rows, n, k; /* at least 1; k at most n */
    const void *x;
    void *values;   /* rows of k elements, or NULL */
    int64_t *index; /* rows of k elements, or NULL */
} dt_sorting;

/* searchsorted: in each of `rows` sorted sequences of n elements, the positions of
 * its m values; a single sequence may serve all values. dtype is int64, float32 or
 * float64. All contiguous. */
typedef struct dt_search {
    const char *op_name; /* operation name for messages; a literal */
    dt_dtype dtype;
    bool right; /* insert after equal elements, else before */
    int64_t rows, n, m;
    const void *sequence, *values;
    const int64_t *sorter; /* indices that sort the sequence, or NULL. Out of range:
                              as in a dt_index_call */
    int64_t *out;
} dt_search;

/* --- indexing --- */

typedef enum dt_index_op {
    DT_INDEX_READ,  /* values = table[...] */
    DT_INDEX_WRITE, /* table[...] = values; for a repeated index, the last, or on a GPU
                       any of them where the call is not `ordered` */
    DT_INDEX_ADD,   /* table[...] += values, bools: or. GPUs add in no fixed order
                       where the call is not `ordered` */
    DT_INDEX_MULTIPLY
} dt_index_op;

/* One index tensor: positions along a dimension of the table. */
typedef struct dt_index_dims {
    const int64_t *data;
    int64_t strides[DT_MAX_NDIM]; /* in bytes, one per dimension of the call */
    int64_t size;   /* of the table's dimension; valid: 0 to size-1, and -size to -1
                       if `wraps` */
    int64_t stride; /* of the table's dimension, in bytes */
    int dim;        /* dimension number for messages */
} dt_index_dims;

/* Reads or writes elements of a table by index tensors. Element i of `values`
 * belongs to the element of `table` at sum(i[d] * table_strides[d]) + sum(index_k[i]
 * * index_k.stride). READ serves index_select, gather, take and advanced indexing;
 * the others serve their gradients and the writing functions. Index out of range:
 * the CPU fails before anything is written; a GPU reads element 0 or skips the
 * write, and the next synchronization fails. Strides are in bytes. */
typedef struct dt_index_call {
    const char *op_name; /* operation name for messages; a literal */
    dt_error_code code;  /* of the CPU's error for an index out of range */
    dt_dtype dtype;
    bool wraps, ordered; /* ordered: the same result in every run */
    int ndim;            /* at least 1 */
    int64_t numel;       /* at least 1; indexed dimensions are not empty */
    int64_t shape[DT_MAX_NDIM];
    void *table, *values; /* READ writes values; the others write table */
    int64_t table_strides[DT_MAX_NDIM], value_strides[DT_MAX_NDIM];
    int nindices;
    dt_index_dims indices[DT_MAX_NDIM];
} dt_index_call;

/* How the elements of a dt_nonzero_call are counted: in tiles, and tiles in groups,
 * about as many groups as tiles per group. The workspace holds a count per tile, one
 * per group, and the total. */
#define DT_NONZERO_TILE 4096
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

/* Bools, row-major, and the positions of the true ones. */
typedef struct dt_nonzero_call {
    const dt_bool *holds;
    int64_t numel; /* at least 1 */
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    int64_t *workspace; /* tiles + groups + 1 numbers */
    int64_t *out;       /* [ndim, count], written in the second step */
} dt_nonzero_call;

/* --- matrix products --- */

/* c = alpha * a @ b + beta * c, `batch` times. Strides are in elements. For each
 * input either the row or the column stride is 1 and the other is at least the
 * length that it steps over, as BLAS requires; c is row-major with c_row >= n. With
 * beta 0, c is not read. A batch stride of 0 reuses one matrix. tf32 lets a GPU round
 * the elements of float32 operands to TF32, which has 10 bits of fraction. If row is not
 * NULL, its n elements stand for each row of c before; then batch and beta are 1.
 * packed: NULL, or b as gemm_pack of the backend has arranged it; then batch is 1 and row
 * NULL. */
typedef struct dt_gemm {
    dt_dtype dtype;
    bool tf32;
    int64_t batch, m, n, k; /* m, n, batch at least 1; k may be 0 */
    const void *a;
    int64_t a_batch, a_row, a_col;
    const void *b;
    int64_t b_batch, b_row, b_col;
    void *c;
    int64_t c_batch, c_row;
    double alpha, beta;
    const void *row, *packed;
} dt_gemm;

/* --- products with sparse matrices --- */

/* A matrix of `rows` rows and `inner` columns has `count` entries: values[e] in column
 * columns[e], those of row i from starts[i] to starts[i + 1]. y, (rows, n), becomes its
 * product with x, (inner, n). Or, if row_of is not NULL: values[e] becomes the sum of
 * y[row_of[e]] * x[columns[e]] over n. Matrices are row-major. The entries of a row are
 * added one after the other. An index out of range: the CPU fails with DT_ERROR_INDEX; a
 * GPU leaves the entry out, and the next synchronization fails. */
typedef struct dt_sparse_call {
    dt_dtype dtype;                /* int64, float32, float64 */
    int64_t rows, inner, n, count; /* n at least 1, and rows; or with row_of, count */
    const int64_t *starts, *row_of, *columns;
    void *values, *y;
    const void *x;
} dt_sparse_call;

/* --- creation and random numbers --- */

/* out[i] = start + i * step; floats are computed in double. */
typedef struct dt_arange_call {
    dt_dtype dtype;
    void *out; /* contiguous */
    int64_t numel;
    dt_scalar start, step;
} dt_arange_call;

typedef enum dt_distribution {
    DT_RANDOM_UNIFORM,   /* floats in [low, high) */
    DT_RANDOM_NORMAL,    /* floats with mean low and standard deviation high */
    DT_RANDOM_INTEGERS,  /* any type: integers in [low, high). low 0 with high
                           INT64_MIN: all non-negative values of a signed type */
    DT_RANDOM_BERNOULLI, /* any type: 1 with probability low, else 0 */
    DT_RANDOM_DROPOUT,   /* floats, on a GPU: x * mask / low, and the mask, which is a
                            Bernoulli draw of bools */
    DT_NDISTRIBUTIONS
} dt_distribution;

typedef struct dt_random_call {
    dt_distribution distribution;
    dt_dtype dtype;
    void *out; /* contiguous */
    int64_t numel;
    dt_scalar low, high;
    bool singly; /* the CPU draws one normal number at a time, whatever numel */
    /* For dropout alone, else NULL: numel each, contiguous. */
    const void *x;
    dt_bool *mask;
} dt_random_call;

/* --- optimizers --- */

/* One tensor of an optimizer step. Parameter, gradient and states are dense with the
 * same strides; nothing overlaps, except that the gradient may be the parameter. */
typedef struct dt_optim_entry {
    void *parameter;
    const void *gradient;
    void *states[DT_OPTIM_STATES];
    int64_t numel;            /* at least 1 */
    int64_t first;            /* elements of the entries before it */
    double own[DT_OPTIM_OWN]; /* computed by the op's `prepare` */
    const double *own_there;  /* those that count, on the device; NULL: own */
} dt_optim_entry;

/* One rule of ops/optim.def for many tensors. */
typedef struct dt_optim_call {
    dt_optim_op op;
    dt_dtype dtype;  /* float32 or float64: scale's, and of the arithmetic */
    dt_dtype stored; /* parameters, gradients and states: dtype or, where the backend
                        takes them (halves), a float of 16 bits */
    int64_t count;   /* at least 1 */
    const dt_optim_entry *entries;
    double numbers[DT_OPTIM_NUMBERS];
    const void *scale; /* grad_scale: one element on the device that multiplies
                          gradients; or NULL */
    float *found;      /* on the device: becomes 1 where the rule says FOUND; or NULL */
    /* The rule's rate, lr, if it is on the device: one element, float64 or float32. Then
     * numbers and own are those of a rate of 1. NULL: numbers and own have the rate. */
    const void *rate;
    bool rate_is_wide;
    unsigned rates; /* bit k: own number k is to be multiplied by it */
    int rate_at;    /* the number of lr */
    int shrink_at;  /* that of shrink, which is 1 - rate * decay, or -1 */
    double decay;
} dt_optim_call;

#endif
