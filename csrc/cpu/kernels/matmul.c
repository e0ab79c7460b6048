#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/blas.h"
#include "cpu/kernels/matmul.h"
#include "cpu/runtime/pool.h"

/* Multiplications below which one thread does it all, and that a piece has at least. */
#define SERIAL ((int64_t)1 << 21)
#define TINY   512
#define SMALL  1e6 /* up to which BLAS has kernels that arrange nothing */
#define LONG   5e5 /* multiplications from which on the GIL is released */
/* Multiplications between two checks whether to stop: about 0.1 s. A block's sides are not
 * halved below THICK, where arranging the operands anew would take much of the time. */
#define BLOCK 4e9
#define THICK 512

/* Each row of c is to be g->row, if there is one. */
static void put_row(const dt_gemm *g)
{
    const size_t size = dt_dtype_size(g->dtype);
    for (int64_t i = 0; g->row && i < g->m; i++)
        memcpy((char *)g->c + (size_t)(i * g->c_row) * size, g->row,
               (size_t)g->n * size);
}

/* c = beta * c, without looking at c where beta is 0. */
#define SCALE(ID, name, alias, type)                                                   \
    static void scale_##ID(const dt_gemm *g, type *c)                                  \
    {                                                                                  \
        type beta = (type)g->beta;                                                     \
        for (int64_t i = 0; i < g->m; i++)                                             \
            for (int64_t j = 0; j < g->n; j++) {                                       \
                type *at = c + i * g->c_row + j;                                       \
                *at = g->beta == 0 ? (type)0 : (type)(beta * *at);                     \
            }                                                                          \
    }
#define DT_DTYPE SCALE
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    static void scale_##ID(const dt_gemm *g, type *c)                                  \
    {                                                                                  \
        for (int64_t i = 0; i < g->m; i++)                                             \
            for (int64_t j = 0; j < g->n; j++) {                                       \
                type *at = c + i * g->c_row + j;                                       \
                at->byte = g->beta != 0 && at->byte;                                   \
            }                                                                          \
    }
#define DT_DTYPE_HALF(...)
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"

static void scale(const dt_gemm *g)
{
    if (g->beta == 1)
        return;
    switch (g->dtype) {
#define DT_DTYPE(ID, name, alias, type)                                                \
    case DT_##ID:                                                                      \
        scale_##ID(g, g->c);                                                           \
        break;
#define DT_DTYPE_HALF(ID, name, alias, type)    case DT_##ID: /* widened before */
#define DT_DTYPE_COMPLEX(ID, name, alias, type) case DT_##ID: /* real products */
#include "ops/dtype.def"
    case DT_NDTYPES:
        break;
    }
}

/* A few elements: any preparation would cost more than the product. */
#define STRAIGHT(ID, type)                                                             \
    static void straight_##ID(const dt_gemm *g)                                        \
    {                                                                                  \
        const type *a = g->a, *b = g->b;                                               \
        type *c = g->c, alpha = (type)g->alpha, beta = (type)g->beta;                  \
        for (int64_t i = 0; i < g->m; i++)                                             \
            for (int64_t j = 0; j < g->n; j++) {                                       \
                type sum = 0;                                                          \
                for (int64_t p = 0; p < g->k; p++)                                     \
                    sum += a[i * g->a_row + p * g->a_col] *                            \
                           b[p * g->b_row + j * g->b_col];                             \
                type *at = c + i * g->c_row + j;                                       \
                *at = alpha * sum + (beta == 0 ? 0 : beta * *at);                      \
            }                                                                          \
    }
STRAIGHT(FLOAT32, float)
STRAIGHT(FLOAT64, double)

/* How a product is computed. The whole product says it, not a slice, so that a result
 * does not depend on the number of slices, which is that of threads. */
typedef enum way { STRAIGHT, DIRECT, DOTS, BLAS, OWN } way;

/* Whether the library's integers hold every size. */
static bool fits(const dt_gemm *g)
{
    return g->m < INT_MAX && g->n < INT_MAX && g->k < INT_MAX && g->a_row < INT_MAX &&
           g->a_col < INT_MAX && g->b_row < INT_MAX && g->b_col < INT_MAX &&
           g->c_row < INT_MAX;
}

/* Where each element of an operand is used a few times only, BLAS takes longer to arrange
 * the operands than for the product. Its own kernels for small products do not. */
static bool suits_dots(const dt_gemm *g)
{
    const int64_t least = g->m < g->n ? g->m : g->n;
    return g->a_col == 1 && g->b_row == 1 && least > 1 && least <= 64 && g->k >= 128;
}
static bool suits_direct(const dt_gemm *g)
{
    return g->b_col == 1 && g->b_row != 1 && g->n >= 64 && g->m > 1 &&
           (g->m < g->k ? g->m : g->k) <= 256;
}

static way way_of(const dt_gemm *g)
{
    const double work = (double)g->m * (double)g->n * (double)(g->k ? g->k : 1);
    if (g->dtype == DT_FLOAT32 || g->dtype == DT_FLOAT64) {
        if (work <= TINY)
            return STRAIGHT;
        if (work >= SMALL && suits_dots(g))
            return DOTS;
        if (work >= SMALL && suits_direct(g))
            return DIRECT;
    }
    return work > TINY && dt_blas_has(g->dtype) && fits(g) ? BLAS : OWN;
}

typedef void kernel(const dt_gemm_args *args);

static kernel *kernel_of(const dt_gemm *g, way how)
{
    return how == DIRECT ? dt_gemm_floats_of(g->dtype)->direct
           : how == DOTS ? dt_gemm_floats_of(g->dtype)->dots
                         : dt_cpu_kernels.gemm->product[g->dtype];
}

static int multiply_by_kernel(const dt_gemm *g, way how)
{
    void *scratch = NULL;
    size_t bytes = dt_cpu_kernels.gemm->scratch[g->dtype](g->m, g->n, g->k);
    if (how != DOTS && posix_memalign(&scratch, 64, bytes))
        return -1;
    if (g->beta != 0)
        scale(g);
    dt_gemm_args args = dt_gemm_args_of(g, scratch);
    kernel_of(g, how)(&args);
    free(scratch);
    return 0;
}

/* One slice on this thread; batch is 1. For BLAS the caller has called dt_blas_begin. */
static int multiply_block(const dt_gemm *g, way how)
{
    put_row(g);
    if (g->k == 0 || g->alpha == 0) {
        scale(g);
        return 0;
    }
    if (how == STRAIGHT && g->dtype == DT_FLOAT32)
        straight_FLOAT32(g);
    else if (how == STRAIGHT)
        straight_FLOAT64(g);
    else if (how == BLAS)
        dt_blas_gemm(g);
    else
        return multiply_by_kernel(g, how);
    return 0;
}

/* A whole product on this thread. */
static int multiply_alone(const dt_gemm *g, way how)
{
    int before = how == BLAS ? dt_blas_begin(1) : DT_BLAS_UNCHANGED;
    int status = multiply_block(g, how);
    dt_blas_end(before);
    return status;
}

typedef struct product {
    const dt_gemm *g;
    way how;
    int64_t row_parts, column_parts; /* slices of one product */
    int failed;
} product;

/* Slice i of `parts` of n, in whole multiples of 32 but for the last. */
static int64_t cut(int64_t n, int64_t parts, int64_t i)
{
    int64_t at = (n * i / parts + 31) & ~(int64_t)31;
    return i == parts || at > n ? n : at;
}

/* Rows i to i_end and columns j to j_end of the product number `batch`. */
static dt_gemm part_of(const dt_gemm *whole, int64_t batch, int64_t i, int64_t i_end,
                       int64_t j, int64_t j_end)
{
    int64_t size = (int64_t)dt_dtype_size(whole->dtype);
    dt_gemm g = *whole;
    g.batch = 1;
    g.m = i_end - i;
    g.n = j_end - j;
    g.a = (const char *)g.a + (batch * g.a_batch + i * g.a_row) * size;
    g.b = (const char *)g.b + (batch * g.b_batch + j * g.b_col) * size;
    g.c = (char *)g.c + (batch * g.c_batch + i * g.c_row + j) * size;
    g.row = g.row ? (const char *)g.row + j * size : NULL;
    return g;
}

/* One slice in blocks, if it takes long: neither BLAS nor the kernels look whether to
 * stop. k is not divided, so each element is summed in the same order as without blocks. */
static int multiply_blocks(const dt_gemm *g, way how)
{
    int64_t rows = g->m, columns = g->n;
    while ((double)rows * (double)columns * (double)g->k > BLOCK &&
           (rows >= 2 * THICK || columns >= 2 * THICK)) {
        int64_t *longer = rows >= columns ? &rows : &columns;
        *longer = (*longer / 2 + 15) & ~(int64_t)15;
    }
    for (int64_t i = 0; i < g->m; i += rows)
        for (int64_t j = 0; j < g->n; j += columns) {
            int64_t i_end = g->m - i > rows ? i + rows : g->m;
            int64_t j_end = g->n - j > columns ? j + columns : g->n;
            dt_gemm block = part_of(g, 0, i, i_end, j, j_end);
            if ((i || j) && dt_pool_is_stopping())
                return 0;
            if (multiply_block(&block, how))
                return -1;
        }
    return 0;
}

static void run_slices(void *context, int64_t begin, int64_t end)
{
    product *p = context;
    int before = p->how == BLAS ? dt_blas_begin(1) : DT_BLAS_UNCHANGED;
    for (int64_t item = begin; item < end; item++) {
        int64_t m = p->g->m, n = p->g->n;
        int64_t column = item % p->column_parts,
                row = item / p->column_parts % p->row_parts;
        int64_t batch = item / p->column_parts / p->row_parts;
        dt_gemm g = part_of(
            p->g, batch, cut(m, p->row_parts, row), cut(m, p->row_parts, row + 1),
            cut(n, p->column_parts, column), cut(n, p->column_parts, column + 1));
        if (g.m <= 0 || g.n <= 0)
            continue;
        if (multiply_blocks(&g, p->how))
            __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
    }
    dt_blas_end(before);
}

/* --- elements of 16 bits --- */

/* Room for widened matrices: of a batch, so many at a time as fit. */
#define WIDE_BYTES ((int64_t)32 << 20)

/* Matrices to copy between a tensor, with its strides, and `wide`, where they are
 * contiguous with contiguous rows or columns. */
typedef struct matrices {
    dt_dtype dtype;
    int64_t batch, rows, columns;
    int64_t batch_stride, row, column;
    void *data;
    float *wide;
} matrices;

static bool by_rows(const matrices *x)
{
    return x->column == 1 || x->row != 1;
}

static int convert(dt_stream stream, const matrices *x, bool widens)
{
    dt_plan plan;
    bool rows = by_rows(x);
    int64_t inner = rows ? x->columns : x->rows, outer = rows ? x->rows : x->columns;
    int64_t inner_stride = rows ? x->column : x->row;
    int64_t outer_stride = rows ? x->row : x->column;
    const int64_t shape[] = {x->batch, outer, inner};
    const int64_t near[] = {outer * inner * 4, inner * 4, 4};
    const int64_t far[] = {x->batch_stride * 2, outer_stride * 2, inner_stride * 2};
    dt_operand *place = &plan.operands[widens ? 1 : 0];
    dt_operand *wide = &plan.operands[widens ? 0 : 1];
    plan.ndim = 3;
    plan.noperands = 2;
    plan.numel = x->batch * outer * inner;
    plan.contiguous = inner_stride == 1 && (outer == 1 || outer_stride == inner) &&
                      (x->batch == 1 || x->batch_stride == outer * inner);
    memcpy(plan.shape, shape, sizeof shape);
    memcpy(place->strides, far, sizeof far);
    memcpy(wide->strides, near, sizeof near);
    place->data = x->data;
    place->dtype = x->dtype;
    wide->data = (char *)x->wide;
    wide->dtype = DT_FLOAT32;
    place->scalar = wide->scalar = false;
    if (plan.contiguous) {
        plan.ndim = 1;
        plan.shape[0] = plan.numel;
        place->strides[0] = 2;
        wide->strides[0] = 4;
    }
    return plan.numel ? dt_cpu_copy(stream, &plan) : 0;
}

/* Products in float32 between conversions. */
static int half_gemm(dt_stream stream, const dt_gemm *g)
{
    put_row(g);
    int64_t sizes[] = {g->m * g->k, g->k * g->n, g->m * g->n};
    int64_t each = (sizes[0] + sizes[1] + sizes[2]) * (int64_t)sizeof(float);
    int64_t most = each ? WIDE_BYTES / each : 1, status = 0;
    most = most < 1 ? 1 : most > g->batch ? g->batch : most;
    float *room = malloc((size_t)(most * each) + 1);
    if (!room)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "matmul: no memory to widen the operands in; delete some "
                       "tensors first");
    for (int64_t first = 0; first < g->batch && !status; first += most) {
        int64_t some = g->batch - first < most ? g->batch - first : most;
        float *wide[] = {room, room + most * sizes[0],
                         room + most * (sizes[0] + sizes[1])};
        matrices a = {g->dtype,   some,
                      g->m,       g->k,
                      g->a_batch, g->a_row,
                      g->a_col,   (char *)(uintptr_t)g->a + 2 * first * g->a_batch,
                      wide[0]};
        matrices b = {g->dtype,   some,
                      g->k,       g->n,
                      g->b_batch, g->b_row,
                      g->b_col,   (char *)(uintptr_t)g->b + 2 * first * g->b_batch,
                      wide[1]};
        matrices c = {g->dtype,   some,     g->m, g->n,
                      g->c_batch, g->c_row, 1,    (char *)g->c + 2 * first * g->c_batch,
                      wide[2]};
        dt_gemm w = *g;
        w.dtype = DT_FLOAT32;
        w.row = NULL;
        w.batch = some;
        w.a = wide[0];
        w.b = wide[1];
        w.c = wide[2];
        w.a_batch = sizes[0];
        w.b_batch = sizes[1];
        w.c_batch = sizes[2];
        w.a_row = by_rows(&a) ? g->k : 1;
        w.a_col = by_rows(&a) ? 1 : g->m;
        w.b_row = by_rows(&b) ? g->n : 1;
        w.b_col = by_rows(&b) ? 1 : g->k;
        w.c_row = g->n;
        status = convert(stream, &a, true) || convert(stream, &b, true) ||
                 (g->beta != 0 && convert(stream, &c, true)) ||
                 dt_cpu_gemm(stream, &w) || convert(stream, &c, false);
    }
    free(room);
    return status ? -1 : 0;
}

int dt_cpu_gemm(dt_stream stream, const dt_gemm *g)
{
    if (dt_dtype_is_half(g->dtype))
        return half_gemm(stream, g);
    if (g->packed)
        return dt_cpu_gemm_with_packed(g);
    if (dt_cpu_gemm_is_dot(g))
        return dt_cpu_gemm_dot(g);
    product p = {.g = g, .how = way_of(g), .row_parts = 1, .column_parts = 1};
    double work = (double)g->m * (double)g->n * (double)(g->k ? g->k : 1);
    DT_WITHOUT_GIL(work * (double)g->batch > LONG);
    if (g->batch == 1 && work < (double)SERIAL) {
        if (multiply_alone(g, p.how))
            goto fail;
        return 0;
    }
    int64_t grain = 1;
    if (work < (double)SERIAL) {
        grain = (int64_t)((double)SERIAL / work);
    } else if (g->batch < 2 * dt_pool_threads()) {
        /* Slices along the longer side, some per thread where they stay thick enough
         * for the library to be at its best. */
        int64_t parts = dt_pool_threads();
        if (g->m >= g->n)
            p.row_parts = g->m / parts >= 16 ? parts : g->m / 16 + 1;
        else
            p.column_parts = g->n / parts >= 16 ? parts : g->n / 16 + 1;
    }
    if (dt_pool_try(run_slices, &p, g->batch * p.row_parts * p.column_parts, grain) < 0)
        return -1;
    if (!p.failed)
        return 0;
fail:
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "matmul: no memory to arrange the operands in; delete "
                   "some tensors first");
}
