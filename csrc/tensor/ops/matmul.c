#include "tensor/ops/ops.h"

#include <inttypes.h>
#include <math.h>

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/convolution.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

static dt_matmul_precision precision = DT_MATMUL_HIGHEST;

dt_matmul_precision dt_float32_matmul_precision(void)
{
    return precision;
}

void dt_set_float32_matmul_precision(dt_matmul_precision chosen)
{
    precision = chosen;
}

_Thread_local bool dt_products_are_recurrent;

bool dt_recurrent_tf32(void)
{
    return dt_convolution_tf32 || precision != DT_MATMUL_HIGHEST;
}

/* --- checks --- */

static int check_types(const char *op_name, const dt_tensor *a, const dt_tensor *b)
{
    if (a->dtype != b->dtype)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the operands have types %s and %s; a product takes one type, convert "
            "one of them with .to()",
            op_name, dt_dtype_name((dt_dtype)a->dtype),
            dt_dtype_name((dt_dtype)b->dtype));
    if (a->dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: not defined for tensors of type bool; convert them first, e.g. with "
            ".int() or .float()",
            op_name);
    return dt_check_same_device(op_name, "input", a, "other", b);
}

static int check_ndim(const char *op_name, const dt_tensor *a, int andim,
                      const dt_tensor *b, int bndim)
{
    if (a->ndim == andim && b->ndim == bndim)
        return 0;
    char atext[DT_SHAPE_TEXT], btext[DT_SHAPE_TEXT];
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: shapes %s and %s were given; it takes tensors of %d and %d dimension%s, "
        "matmul (@) takes others",
        op_name, dt_shape_text(a->ndim, a->shape, atext, sizeof atext),
        dt_shape_text(b->ndim, b->shape, btext, sizeof btext), andim, bndim,
        bndim == 1 ? "" : "s");
}

static int check_inner(const char *op_name, const dt_tensor *a, int64_t inner_a,
                       const dt_tensor *b, int64_t inner_b)
{
    if (inner_a == inner_b)
        return 0;
    char atext[DT_SHAPE_TEXT], btext[DT_SHAPE_TEXT];
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: shapes %s and %s do not multiply: the last size of the first, %" PRId64
        ", has to equal the size %" PRId64 " of the second that it is summed with; "
        "transpose or reshape one of them",
        op_name, dt_shape_text(a->ndim, a->shape, atext, sizeof atext),
        dt_shape_text(b->ndim, b->shape, btext, sizeof btext), inner_a, inner_b);
}

/* --- one product, or a batch of them --- */

/* Whether BLAS can take the matrix of the last two dimensions without a copy. */
static bool blas_takes(const dt_tensor *t)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    int64_t row = t->strides[t->ndim - 2], column = t->strides[t->ndim - 1];
    return (column == 1 && row >= (columns > 1 ? columns : 1)) ||
           (row == 1 && column >= (rows > 1 ? rows : 1));
}

/* Strides as the backend wants them: a size of 1 may have any stride, so it gets a fit
 * one; so does a matrix without elements. */
static void matrix_strides(const dt_tensor *t, int64_t *row, int64_t *column)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    *row = t->strides[t->ndim - 2];
    *column = t->strides[t->ndim - 1];
    if (!rows || !columns) {
        *row = columns > 1 ? columns : 1;
        *column = 1;
    }
    if (columns == 1 && *row != 1)
        *column = 1;
    if (rows == 1 && *column == 1)
        *row = columns;
    if (rows == 1 && *column != 1 && *row == 1 && *column < 1)
        *column = 1;
}

static int multiply_complex(const char *op_name, dt_tensor *out, const dt_tensor *a,
                            const dt_tensor *b, double alpha, double beta,
                            const dt_tensor *row);

/* a and b have 3 dimensions with equal first sizes (expanded batches have stride 0);
 * out is row-major. out = alpha * a @ b + beta * out; row, if not NULL, stands for each
 * row of out before. */
static int multiply_matrices(const char *op_name, dt_tensor *out, const dt_tensor *a,
                             const dt_tensor *b, double alpha, double beta,
                             const dt_tensor *row)
{
    DT_LOCAL(acopy);
    DT_LOCAL(bcopy);
    if (!out->numel)
        return 0;
    if (dt_dtype_is_complex((dt_dtype)out->dtype))
        return multiply_complex(op_name, out, a, b, alpha, beta, row);
    if (!blas_takes(a)) {
        if (dt_contiguous(&acopy, a))
            return -1;
        a = &acopy;
    }
    if (!blas_takes(b)) {
        if (dt_contiguous(&bcopy, b))
            return -1;
        b = &bcopy;
    }
    dt_device device = dt_tensor_device(out);
    dt_gemm call = {
        .dtype = (dt_dtype)out->dtype,
        .tf32 = dt_products_are_recurrent ? dt_recurrent_tf32()
                                          : precision != DT_MATMUL_HIGHEST,
        .batch = a->shape[0],
        .m = a->shape[1],
        .n = b->shape[2],
        .k = a->shape[2],
        .a = dt_tensor_data(a),
        .a_batch = a->strides[0],
        .b = dt_tensor_data(b),
        .b_batch = b->strides[0],
        .c = dt_tensor_data(out),
        .c_batch = a->shape[1] * b->shape[2],
        .c_row = b->shape[2],
        .alpha = alpha,
        .beta = beta,
        .row = row ? dt_tensor_data(row) : NULL,
    };
    matrix_strides(a, &call.a_row, &call.a_col);
    matrix_strides(b, &call.b_row, &call.b_col);
    /* One matrix for all of a dense batch is one taller product. */
    if (call.batch > 1 && call.b_batch == 0 && call.a_col == 1 &&
        call.a_batch == call.m * call.a_row) {
        call.m *= call.batch;
        call.batch = 1;
    }
    if (dt_storage_use(a->storage) || dt_storage_use(b->storage) ||
        dt_storage_use(out->storage) || (row && dt_storage_use(row->storage)) ||
        dt_backend_of(device)->gemm(dt_stream_current(device), &call))
        return dt_fail_prefix("%s: ", op_name);
    return 0;
}

/* A part of a complex tensor, row-major. */
static int take_part(dt_tensor *out, const dt_tensor *t, int which)
{
    DT_LOCAL(view);
    dt_complex_part(&view, t, which);
    return dt_contiguous(out, &view);
}

/* The same of complex matrices, by four products of their parts. */
static int multiply_complex(const char *op_name, dt_tensor *out, const dt_tensor *a,
                            const dt_tensor *b, double alpha, double beta,
                            const dt_tensor *row)
{
    dt_tensor left[2], right[2], start[2];
    int status = -1;
    left[0].storage = left[1].storage = right[0].storage = right[1].storage = NULL;
    start[0].storage = start[1].storage = NULL;
    for (int p = 0; p < 2; p++)
        if (take_part(&left[p], a, p) || take_part(&right[p], b, p) ||
            (row && take_part(&start[p], row, p)))
            goto done;
    for (int p = 0; p < 2; p++) {
        DT_LOCAL(part);
        DT_LOCAL(sum);
        dt_complex_part(&part, out, p);
        if (beta == 0 || row
                ? dt_tensor_empty(op_name, &sum, (dt_dtype)part.dtype, out->ndim,
                                  out->shape, dt_tensor_device(out))
                : take_part(&sum, out, p))
            goto done;
        if (multiply_matrices(op_name, &sum, &left[0], &right[p], alpha, beta,
                              row ? &start[p] : NULL) ||
            multiply_matrices(op_name, &sum, &left[1], &right[!p], p ? alpha : -alpha,
                              1, NULL) ||
            dt_copy_part(op_name, &part, &sum))
            goto done;
    }
    status = 0;
done:
    for (int p = 0; p < 2; p++) {
        dt_tensor_clear(&left[p]);
        dt_tensor_clear(&right[p]);
        dt_tensor_clear(&start[p]);
    }
    return status;
}

/* A product of two matrices. */
static int matrix_product(const char *op_name, dt_tensor *out, const dt_tensor *a,
                          const dt_tensor *b)
{
    DT_LOCAL(abatch);
    DT_LOCAL(bbatch);
    int64_t shape[] = {a->shape[0], b->shape[1]};
    return dt_tensor_empty(op_name, out, (dt_dtype)a->dtype, 2, shape,
                           dt_tensor_device(a)) ||
                   dt_view_unsqueeze(&abatch, a, 0) ||
                   dt_view_unsqueeze(&bbatch, b, 0) ||
                   multiply_matrices(op_name, out, &abatch, &bbatch, 1, 0, NULL)
               ? -1
               : 0;
}

/* Matrix by vector, vector by matrix, vector by vector: as matrices, the added size
 * dropped. */
static int product_with_vectors(const char *op_name, dt_tensor *out, const dt_tensor *a,
                                const dt_tensor *b)
{
    DT_LOCAL(row);
    DT_LOCAL(column);
    DT_LOCAL(product);
    int64_t shape[2];
    int ndim = 0;
    if (a->ndim == 2)
        shape[ndim++] = a->shape[0];
    if (b->ndim == 2)
        shape[ndim++] = b->shape[1];
    if ((a->ndim == 1 && dt_view_unsqueeze(&row, a, 0)) ||
        (b->ndim == 1 && dt_view_unsqueeze(&column, b, 1)))
        return -1;
    return matrix_product(op_name, &product, a->ndim == 1 ? &row : a,
                          b->ndim == 1 ? &column : b)
               ? -1
               : dt_view_shape(out, &product, ndim, shape);
}

/* A batch whose leading dimensions are broadcast to those of shape, as one of 3
 * dimensions. Copies a batch that is expanded in some of them and not in others. */
static int flatten_batch(const char *op_name, dt_tensor *out, const dt_tensor *t,
                         int ndim, const int64_t *shape)
{
    int64_t full[DT_MAX_NDIM];
    int64_t sizes[] = {1, t->shape[t->ndim - 2], t->shape[t->ndim - 1]};
    DT_LOCAL(wide);
    for (int d = 0; d < ndim; d++)
        sizes[0] *= full[d] = shape[d];
    full[ndim] = sizes[1];
    full[ndim + 1] = sizes[2];
    return dt_view_expand(op_name, &wide, t, ndim + 2, full)
               ? -1
               : dt_view_reshape(out, &wide, 3, sizes);
}

/* Batches: leading dimensions broadcast, then count as one where memory allows it. */
static int batched(const char *op_name, dt_tensor *out, const dt_tensor *a,
                   const dt_tensor *b)
{
    DT_LOCAL(aflat);
    DT_LOCAL(bflat);
    int64_t shape[DT_MAX_NDIM];
    int ndim;
    if (dt_shape_broadcast(op_name, a->ndim - 2, a->shape, b->ndim - 2, b->shape, &ndim,
                           shape) ||
        dt_shape_check_ndim(op_name, ndim + 2) ||
        flatten_batch(op_name, &aflat, a, ndim, shape) ||
        flatten_batch(op_name, &bflat, b, ndim, shape))
        return -1;
    shape[ndim] = a->shape[a->ndim - 2];
    shape[ndim + 1] = b->shape[b->ndim - 1];
    return dt_tensor_empty(op_name, out, (dt_dtype)a->dtype, ndim + 2, shape,
                           dt_tensor_device(a))
               ? -1
               : multiply_matrices(op_name, out, &aflat, &bflat, 1, 0, NULL);
}

/* a @ b in any of its forms. */
static int product(const char *op_name, dt_tensor *out, const dt_tensor *a,
                   const dt_tensor *b)
{
    if (check_inner(op_name, a, a->shape[a->ndim - 1], b,
                    b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) ||
        check_types(op_name, a, b))
        return -1;
    if (a->ndim == 2 && b->ndim == 2)
        return matrix_product(op_name, out, a, b);
    if (a->ndim <= 2 && b->ndim <= 2)
        return product_with_vectors(op_name, out, a, b);
    if (a->ndim > 1 && b->ndim > 1)
        return batched(op_name, out, a, b);
    /* A vector and a batch: the vector becomes a matrix, whose added size is dropped. */
    bool first = a->ndim == 1;
    int64_t added = first ? -2 : -1;
    DT_LOCAL(matrix);
    DT_LOCAL(whole);
    return dt_view_unsqueeze(&matrix, first ? a : b, first ? 0 : 1) ||
                   batched(op_name, &whole, first ? &matrix : a, first ? b : &matrix) ||
                   dt_view_squeeze(out, &whole, 1, &added)
               ? -1
               : 0;
}

/* --- the public forms --- */

int dt_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    if (!a->ndim || !b->ndim)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "matmul: the %s operand has no dimension; both need at least one, "
            "multiply by a number with *",
            a->ndim ? "second" : "first");
    return product("matmul", out, a, b);
}

/* The strict forms: matrices; matrix and vector; vectors; batches of equal size. */
static int strict_product(dt_call *c, int andim, int bndim)
{
    const dt_tensor *a = c->args[0].tensor, *b = c->args[1].tensor;
    if (check_ndim(c->name, a, andim, b, bndim))
        return -1;
    if (andim == 3 && a->shape[0] != b->shape[0])
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the batches have %" PRId64 " and %" PRId64
                       " matrices; give as many of each, or use matmul, which "
                       "broadcasts",
                       c->name, a->shape[0], b->shape[0]);
    return product(c->name, c->out[0], a, b);
}

/* A number by which products are multiplied; integers by its whole part. */
static double factor(const dt_call *c, int i)
{
    const double value = dt_scalar_as_double(c->args[i].scalar);
    return dt_dtype_is_inexact((dt_dtype)c->args[0].tensor->dtype) ? value
                                                                   : trunc(value);
}

/* The same where one of the numbers is complex. */
static int addmm_complex(dt_call *c, const dt_tensor *input, const dt_tensor *a,
                         const dt_tensor *b)
{
    const dt_dtype dtype = (dt_dtype)a->dtype;
    const dt_value *scale = &c->args[3];
    DT_LOCAL(first);
    DT_LOCAL(second);
    DT_LOCAL(whole);
    DT_LOCAL(scaled);
    DT_LOCAL(added);
    dt_arg beta, alpha;
    if (dt_call_number(c, 3, dtype, &first, &beta) ||
        dt_call_number(c, 4, dtype, &second, &alpha) ||
        matrix_product(c->name, &whole, a, b) ||
        dt_elementwise(DT_OP_mul, &scaled, DT_ARGS(dt_arg_tensor(&whole), alpha)))
        return -1;
    if (dt_scalar_as_double(scale->scalar) == 0 &&
        (scale->scalar.kind != DT_KIND_COMPLEX || scale->imag == 0)) {
        dt_tensor_move(c->out[0], &scaled);
        return 0;
    }
    return dt_elementwise(DT_OP_mul, &added, DT_ARGS(dt_arg_tensor(input), beta)) ||
                   dt_elementwise(
                       DT_OP_add, c->out[0],
                       DT_ARGS(dt_arg_tensor(&added), dt_arg_tensor(&scaled)))
               ? -1
               : 0;
}

/* beta * input + alpha * (a @ b); input broadcasts to the product's shape. */
static int addmm(dt_call *c)
{
    const dt_tensor *input = c->args[0].tensor, *a = c->args[1].tensor,
                    *b = c->args[2].tensor;
    double scale = factor(c, 3), alpha = factor(c, 4);
    dt_tensor *out = c->out[0];
    DT_LOCAL(wide);
    DT_LOCAL(abatch);
    DT_LOCAL(bbatch);
    if (check_ndim(c->name, a, 2, b, 2) ||
        check_inner(c->name, a, a->shape[1], b, b->shape[0]) ||
        check_types(c->name, a, b) || check_types(c->name, input, a))
        return -1;
    int64_t shape[] = {a->shape[0], b->shape[1]};
    if (dt_view_expand(c->name, &wide, input, 2, shape))
        return -1;
    if (c->args[3].scalar.kind == DT_KIND_COMPLEX ||
        c->args[4].scalar.kind == DT_KIND_COMPLEX)
        return addmm_complex(c, &wide, a, b);
    if (dt_tensor_empty(c->name, out, (dt_dtype)a->dtype, 2, shape,
                        dt_tensor_device(a)))
        return -1;
    bool is_row = scale == 1 && (shape[0] == 1 || wide.strides[0] == 0) &&
                  (shape[1] == 1 || wide.strides[1] == 1);
    /* With beta 0 the input is ignored, whatever it holds. */
    if ((scale != 0 && !is_row && dt_copy_into(c->name, out, &wide)) ||
        dt_view_unsqueeze(&abatch, a, 0) || dt_view_unsqueeze(&bbatch, b, 0))
        return -1;
    return multiply_matrices(c->name, out, &abatch, &bbatch, alpha, scale,
                             is_row ? &wide : NULL);
}

#include "tensor/ops/define.h"
#include "ops/functions/matmul.def"
