/* The tables of inner loops that each instruction set exports, and the choice among
 * them. */
#ifndef DT_CPU_KERNELS_KERNELS_H
#define DT_CPU_KERNELS_KERNELS_H

#include "base/dtype.h"
#include "cpu/kernels/convolution.h"
#include "cpu/kernels/winograd.h"
#include "cpu/runtime/isa.h"
#include "device/nn.h"
#include "device/plan.h"
#include "device/rnn.h"
#include "device/pooling.h"
#include "device/resample.h"
#include "ops/ops.h"

#define DT_FN_LONG static inline
#include "ops/moments.h"
#undef DT_FN_LONG

/* n elements along one dimension: data[0] is the result, the inputs follow; strides in
 * bytes. The result may be the memory of an input, with the same strides. */
typedef void dt_kernel(int64_t n, char *const *data, const int64_t *strides);

/* [dtype][op], by the type of the inputs; NULL where the row's class does not take it.
 * The kernels of a type of 16 bits are float32's (dt_loop_run converts). */
typedef dt_kernel *const *dt_elementwise_kernels[DT_NDTYPES];

typedef struct dt_copy_kernels {
    dt_kernel *const *convert[DT_NDTYPES]; /* [target dtype][source dtype] */
    /* rows x columns of elements, the source's rows becoming the target's columns:
     * target[j][i] = source[i][j]; row strides in bytes, elements next to each other.
     * By log2 of the size. */
    void (*transpose[4])(int64_t rows, int64_t columns, char *target,
                         int64_t target_row, const char *source, int64_t source_row);
    /* Copies past the caches; bytes and target are multiples of 64. */
    void (*stream)(char *target, const char *source, int64_t bytes);
    void (*stream_end)(void);
} dt_copy_kernels;

/* One row of ops/reduce.def for one type of elements. Partial results have the element
 * type, or bool for TRUTH. Elements are contiguous. */
typedef struct dt_reduce_kernel {
    /* n (1 or more) elements to one partial result. */
    void (*run)(int64_t n, const void *x, double p, void *out);
    /* The same of `many` times n elements, `stride` bytes apart, to as many results. */
    void (*runs)(int64_t many, int64_t stride, int64_t n, const void *x, double p,
                 void *out);
    /* The first row sets the partial results of `columns` columns before anything is
     * reduced. */
    void (*start)(int64_t columns, const void *x, void *partial);
    /* Reduces rows into the partial results of their columns; row_stride in bytes. */
    void (*rows)(int64_t rows, int64_t row_stride, int64_t columns, const void *x,
                 double p, void *partial);
    void (*join)(int64_t n, void *partial, const void *other);
    void (*finish)(int64_t n, void *partial, int64_t count, double p);
    bool needs_element; /* ORDER: there is no identity */
    bool gives_bool;    /* TRUTH */
    size_t partial;     /* bytes of a partial result */
} dt_reduce_kernel;

/* Extremes and where they are. */
typedef struct dt_arg_kernel {
    /* The first of n elements equal to *value (a NaN equals a NaN); -1 when there is
     * none. */
    int64_t (*find)(int64_t n, const void *x, const void *value);
    /* Whether a beats b: greater (or less), or a NaN where b is a number. */
    bool (*beats)(const void *a, const void *b, bool greatest);
    /* The best of each of `many` times n elements, `stride` bytes apart, and where. */
    void (*runs)(int64_t many, int64_t stride, int64_t n, const void *x, bool greatest,
                 void *best, int64_t *where);
    /* Row number `index` against the best of each column so far. */
    void (*row)(int64_t columns, const void *x, bool greatest, int64_t index,
                void *best, int64_t *where);
} dt_arg_kernel;

typedef struct dt_reduce_kernels {
    /* [dtype][op]; run is NULL: not taken. Those of a type of 16 bits are float32's. */
    const dt_reduce_kernel *rows[DT_NDTYPES];
    const dt_arg_kernel *arg[DT_NDTYPES];
    /* Partial results are dt_moments; finish is NULL. */
    dt_reduce_kernel moments_float32, moments_float64;
} dt_reduce_kernels;
#define DT_MOMENTS_COLUMNS 256 /* columns that one call reduces best */

/* The own matrix product: c[m][n] += alpha * a[m][k] @ b[k][n], single threaded.
 * Strides in elements. */
typedef struct dt_gemm_args {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    void *c;
    int64_t c_row;
    double alpha;
    int64_t packed_n, packed_k; /* of a packed b, of which n and k may be the first */
    bool fresh;                 /* c holds nothing yet: it is written, not added to */
    void *scratch;              /* dt_gemm_kernels.scratch() bytes, aligned to 64 */
} dt_gemm_args;

/* Products of floats that do not arrange b each time. */
typedef struct dt_gemm_floats {
    /* b is read where it is: b_col is 1, or a_col and b_row are. */
    void (*direct)(const dt_gemm_args *args);
    void (*dots)(const dt_gemm_args *args);
    /* The product of two vectors of n elements. */
    double (*dot)(int64_t n, const void *a, const void *b);
    /* The same b again and again, packed once in panels of `columns` columns. */
    int64_t columns;
    /* b to out, which is aligned to 64 and has k * columns elements a panel. */
    void (*pack)(const dt_gemm_args *args, void *out);
    /* The columns of panels begin to end - 1. args: their b is packed. An a whose rows or
     * columns are DT_GEMM_PITCH apart, and the others 1, is read where it is. */
    void (*product)(const dt_gemm_args *args, int64_t begin, int64_t end);
} dt_gemm_floats;
#define DT_GEMM_PITCH 272 /* not a power of two: rows share no set of the first cache */

typedef struct dt_gemm_kernels {
    void (*product[DT_NDTYPES])(const dt_gemm_args *args); /* NULL: of 16 bits */
    size_t (*scratch[DT_NDTYPES])(int64_t m, int64_t n, int64_t k);
    dt_gemm_floats float32, float64;
} dt_gemm_kernels;

/* How far a scan has come: what is before the part at hand, and what is in it. */
typedef struct dt_scan_state {
    int64_t words[4];
} dt_scan_state;

typedef struct dt_scan_kernel {
    /* n elements, `step` apart, on from state. out and index may be NULL. The first is
     * element number `place`, the next place + way. */
    void (*row)(int64_t n, int64_t step, const void *x, void *out, int64_t *index,
                int64_t place, int64_t way, dt_scan_state *state);
    /* Up to DT_SCAN_COLUMNS columns side by side, rows `step` elements apart. states: of
     * each column, to go on from and to keep; NULL: these are all rows. */
    void (*columns)(int64_t n, int64_t step, int64_t columns, const void *x, void *out,
                    int64_t *index, int64_t place, int64_t way, dt_scan_state *states);
    void (*start)(dt_scan_state *state);
    /* `before` is what a part starts from: makes it what the next one does. */
    void (*join)(dt_scan_state *before, const dt_scan_state *part);
} dt_scan_kernel;
#define DT_SCAN_COLUMNS 256

typedef struct dt_scan_kernels {
    const dt_scan_kernel *int64, *float32, *float64; /* [op] */
} dt_scan_kernels;

typedef struct dt_random_kernels {
    /* Blocks of 16 uniforms to blocks of 16 normals, in place; n is a multiple of 16.
     */
    void (*normal_float32)(int64_t n, void *x, double mean, double deviation);
    void (*normal_float64)(int64_t n, void *x, double mean, double deviation);
    /* 624 raw words of the twister to tempered output, in place is allowed. */
    void (*temper)(int64_t n, uint32_t *out, const uint32_t *words);
} dt_random_kernels;

/* n elements of one tensor by a row of ops/optim.def: the parameter, the gradient, the
 * states. scale: an element by which gradients are taken, or NULL. found: the
 * call's flag, or NULL. */
typedef void dt_optim_kernel(int64_t n, void *parameter, const void *gradient,
                             void *const *states, const double *numbers,
                             const double *own, const void *scale, float *found);

typedef struct dt_optim_kernels {
    dt_optim_kernel *const *float32, *const *float64; /* [op] */
} dt_optim_kernels;

/* One row: the addresses of its elements, which are next to each other, or of the one
 * that an operand has for it. */
typedef struct dt_nn_row {
    int64_t n;
    const dt_nn_params *params;
    void *at[DT_NN_OPERANDS];
} dt_nn_row;

/* Some rows of some columns, or one run of one column, that COLUMNS adds to its
 * sums. */
typedef struct dt_nn_columns {
    int64_t rows, columns;
    int64_t row; /* elements from a row to the next */
    void *at[DT_NN_OPERANDS];
    double *sums[2]; /* of each column, or one; the second NULL: not wanted */
} dt_nn_columns;

/* NULL where an operation has no such form. */
typedef struct dt_nn_kernel {
    void (*row)(const dt_nn_row *row);
    void (*channel)(const dt_nn_row *row); /* CHANNELS: a run of one channel */
    void (*columns)(const dt_nn_columns *columns);
    void (*run)(const dt_nn_columns *columns);
} dt_nn_kernel;

typedef struct dt_nn_kernels {
    const dt_nn_kernel *float32, *float64; /* [op] */
} dt_nn_kernels;

/* Added to the scores of a row, or selects those that count. */
typedef struct dt_attention_mask {
    const void *data; /* NULL: none */
    int64_t step;     /* elements */
    bool is_bool;
} dt_attention_mask;

/* Rows of a tile of attention: see ops/attention.h. */
typedef struct dt_attention_kernel {
    /* n scaled products of query and key, of which the first `count` count, become
     * shares relative to the row's maximum, *top, which they may raise, and are added
     * to *sum. Returns the correction of what came before. */
    double (*shares)(int64_t n, int64_t count, void *scores,
                     const dt_attention_mask *mask, double *top, double *sum);
    /* Sets the row's log_sum and returns what its result is multiplied by. */
    double (*finish)(double top, double sum, void *log_sum);
    void (*multiply)(int64_t n, void *row, double factor);
    void (*shares_again)(int64_t n, int64_t count, void *scores,
                         const dt_attention_mask *mask, const void *log_sum);
    double (*dot)(int64_t n, const void *a, const void *b);
    /* Gradients of shares become those of products. */
    void (*product_gradients)(int64_t n, const void *shares, void *gradients,
                              double out_dot, double scale);
} dt_attention_kernel;

typedef struct dt_attention_kernels {
    dt_attention_kernel float32, float64;
} dt_attention_kernels;

/* dt_cpu_gemm where b is packed; beta is 0 or 1. */
int dt_cpu_gemm_with_packed(const dt_gemm *gemm);

/* The n elements of one row by a row of ops/rnn.def. */
typedef void dt_rnn_kernel(void *const *row, int64_t n);

typedef struct dt_rnn_kernels {
    dt_rnn_kernel *const *float32, *const *float64; /* [op] */
} dt_rnn_kernels;
typedef struct dt_pooling_kernels {
    /* Rows of windows, or in a backward pass planes, begin to end-1. */
    void (*run)(const dt_pooling_call *call, int64_t begin, int64_t end);
} dt_pooling_kernels;

typedef struct dt_resample_kernels {
    /* Elements along the dimension, of all outer ones, begin to end-1; where the
     * dimension is the last one, rows. */
    void (*run)(const dt_resample_call *call, int64_t begin, int64_t end);
} dt_resample_kernels;

typedef struct dt_sparse_kernels {
    /* Rows, or with row_of entries, begin to end-1. The number of an entry whose index is
     * out of range, which is left out; or -1. */
    int64_t (*run)(const dt_sparse_call *call, int64_t begin, int64_t end);
} dt_sparse_kernels;

/* FAMILY(name, isa): every instruction set exports a dt_NAME_kernels, dt_NAME_ISA. */
#define DT_KERNEL_FAMILIES(FAMILY, isa)                                                \
    FAMILY(elementwise, isa)                                                           \
    FAMILY(copy, isa)                                                                  \
    FAMILY(reduce, isa)                                                                \
    FAMILY(gemm, isa)                                                                  \
    FAMILY(random, isa)                                                                \
    FAMILY(optim, isa)                                                                 \
    FAMILY(scan, isa)                                                                  \
    FAMILY(nn, isa)                                                                    \
    FAMILY(attention, isa)                                                             \
    FAMILY(rnn, isa)                                                                   \
    FAMILY(convolution, isa)                                                           \
    FAMILY(winograd, isa)                                                              \
    FAMILY(pooling, isa)                                                               \
    FAMILY(sparse, isa)                                                                \
    FAMILY(resample, isa)

#define FAMILY(name, isa) extern const dt_##name##_kernels dt_##name##_##isa;
#define ISA(name, test)   DT_KERNEL_FAMILIES(FAMILY, name)
DT_ISAS(ISA)
#undef ISA
#undef FAMILY

/* The kernels of the instruction set that was chosen, before anything can call the backend. */
typedef struct dt_kernels {
#define FAMILY(name, isa) const dt_##name##_kernels *name;
    DT_KERNEL_FAMILIES(FAMILY, )
#undef FAMILY
} dt_kernels;
extern dt_kernels dt_cpu_kernels;

/* n elements of one type to another; strides in bytes. */
static inline void dt_convert(dt_dtype to, dt_dtype from, int64_t n, void *out,
                              int64_t out_stride, const void *x, int64_t x_stride)
{
    char *data[2] = {(char *)out, (char *)(uintptr_t)x};
    const int64_t strides[2] = {out_stride, x_stride};
    dt_cpu_kernels.copy->convert[to][from](n, data, strides);
}

/* For contiguous elements. */
static inline void dt_convert_dense(dt_dtype to, dt_dtype from, int64_t n, void *out,
                                    const void *x)
{
    dt_convert(to, from, n, out, (int64_t)dt_dtype_size(to), x,
               (int64_t)dt_dtype_size(from));
}

#define DT_INLINE inline __attribute__((always_inline))

/* Promises the compiler that iterations are independent: a result is exactly an input's
 * memory or does not overlap it. */
#if defined(__clang__)
/* A loop that calls functions without a vector form is not vectorized: do not warn. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define DT_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define DT_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

#endif
