#include "tensor/ops/matmul.h"

#include <inttypes.h>

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* --- checks --- */

static int check_types(const char *what, const dt_tensor *a, const dt_tensor *b)
{
    if (a->dtype != b->dtype)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the operands have types %s and %s; a product takes one type, convert "
            "one of them with .to()",
            what, dt_dtype_name((dt_dtype)a->dtype), dt_dtype_name((dt_dtype)b->dtype));
    if (a->dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: not defined for tensors of type bool; convert them first, e.g. with "
            ".int() or .float()",
            what);
    return dt_check_same_device(what, "input", a, "other", b);
}

static int check_ndim(const char *what, const dt_tensor *a, int andim,
                      const dt_tensor *b, int bndim)
{
    if (a->ndim == andim && b->ndim == bndim)
        return 0;
    char atext[DT_SHAPE_TEXT], btext[DT_SHAPE_TEXT];
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: shapes %s and %s were given; it takes tensors of %d and %d dimension%s, "
        "matmul (@) takes others",
        what, dt_shape_text(a->ndim, a->shape, atext, sizeof atext),
        dt_shape_text(b->ndim, b->shape, btext, sizeof btext), andim, bndim,
        bndim == 1 ? "" : "s");
}

static int check_inner(const char *what, const dt_tensor *a, int64_t inner_a,
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
        what, dt_shape_text(a->ndim, a->shape, atext, sizeof atext),
        dt_shape_text(b->ndim, b->shape, btext, sizeof btext), inner_a, inner_b);
}

/* --- one product, or a batch of them --- */

/* Whether BLAS can take the matrix in the last two dimensions as it lies. */
static bool blas_takes(const dt_tensor *t)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    int64_t row = t->strides[t->ndim - 2], column = t->strides[t->ndim - 1];
    return (column == 1 && row >= (columns > 1 ? columns : 1)) ||
           (row == 1 && column >= (rows > 1 ? rows : 1));
}

/* Strides as the backend wants them: a size of 1 may have any stride, so it gets a fit
 * one. */
static void matrix_strides(const dt_tensor *t, int64_t *row, int64_t *column)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    *row = t->strides[t->ndim - 2];
    *column = t->strides[t->ndim - 1];
    if (columns == 1 && *row != 1)
        *column = 1;
    if (rows == 1 && *column == 1)
        *row = columns;
    if (rows == 1 && *column != 1 && *row == 1 && *column < 1)
        *column = 1;
}

/* a and b have 3 dimensions with equal first sizes (expanded batches have stride 0);
 * out is row-major. out = alpha * a @ b + beta * out. */
static int multiply(const char *what, dt_tensor *out, const dt_tensor *a,
                    const dt_tensor *b, double alpha, double beta)
{
    dt_tensor acopy, bcopy; /* not cleared: it is large */
    acopy.storage = bcopy.storage = NULL;
    int status = -1;
    if (!out->numel)
        return 0;
    if (!blas_takes(a)) {
        if (dt_contiguous(&acopy, a))
            goto done;
        a = &acopy;
    }
    if (!blas_takes(b)) {
        if (dt_contiguous(&bcopy, b))
            goto done;
        b = &bcopy;
    }
    dt_device device = dt_tensor_device(out);
    dt_gemm call = {
        .dtype = (dt_dtype)out->dtype,
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
        dt_storage_use(out->storage) ||
        dt_backend_of(device)->gemm(dt_stream_current(device), &call)) {
        dt_fail_prefix("%s: ", what);
        goto done;
    }
    status = 0;
done:
    dt_tensor_clear(&bcopy);
    dt_tensor_clear(&acopy);
    return status;
}

static void as_batch(dt_tensor *view, const dt_tensor *t)
{
    dt_view_unsqueeze(view, t, 0); /* cannot fail: t has two dimensions */
}

/* A product of two matrices into a made result. */
static int matrix_product(const char *what, dt_tensor *out, const dt_tensor *a,
                          const dt_tensor *b)
{
    dt_tensor abatch, bbatch;
    int64_t shape[] = {a->shape[0], b->shape[1]};
    if (dt_tensor_empty(what, out, (dt_dtype)a->dtype, 2, shape, dt_tensor_device(a)))
        return -1;
    as_batch(&abatch, a);
    as_batch(&bbatch, b);
    int status = multiply(what, out, &abatch, &bbatch, 1, 0);
    dt_tensor_clear(&bbatch);
    dt_tensor_clear(&abatch);
    if (status)
        dt_tensor_clear(out);
    return status;
}

/* --- the public forms --- */

int dt_mm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    out->storage = NULL;
    if (check_ndim("mm", a, 2, b, 2) ||
        check_inner("mm", a, a->shape[1], b, b->shape[0]) || check_types("mm", a, b))
        return -1;
    return matrix_product("mm", out, a, b);
}

/* Matrix by vector, vector by matrix, vector by vector: as matrices, the added size
 * dropped. */
static int product_with_vectors(const char *what, dt_tensor *out, const dt_tensor *a,
                                const dt_tensor *b)
{
    dt_tensor arow, bcolumn, product = {.storage = NULL};
    int64_t shape[2];
    int ndim = 0, status;
    if (a->ndim == 1)
        dt_view_unsqueeze(&arow, a, 0);
    else
        dt_tensor_alias(&arow, a);
    if (b->ndim == 1)
        dt_view_unsqueeze(&bcolumn, b, 1);
    else
        dt_tensor_alias(&bcolumn, b);
    status = matrix_product(what, &product, &arow, &bcolumn);
    if (!status) {
        if (a->ndim == 2)
            shape[ndim++] = a->shape[0];
        if (b->ndim == 2)
            shape[ndim++] = b->shape[1];
        status = dt_view_shape(out, &product, ndim, shape);
    }
    dt_tensor_clear(&product);
    dt_tensor_clear(&bcolumn);
    dt_tensor_clear(&arow);
    return status;
}

int dt_mv(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    out->storage = NULL;
    if (check_ndim("mv", a, 2, b, 1) ||
        check_inner("mv", a, a->shape[1], b, b->shape[0]) || check_types("mv", a, b))
        return -1;
    return product_with_vectors("mv", out, a, b);
}

int dt_dot(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    out->storage = NULL;
    if (check_ndim("dot", a, 1, b, 1) ||
        check_inner("dot", a, a->shape[0], b, b->shape[0]) || check_types("dot", a, b))
        return -1;
    return product_with_vectors("dot", out, a, b);
}

/* Batches: leading dimensions broadcast, then count as one where memory allows it. */
static int batched(const char *what, dt_tensor *out, const dt_tensor *a,
                   const dt_tensor *b)
{
    dt_tensor aflat, bflat, wide; /* not cleared: it is large */
    aflat.storage = bflat.storage = wide.storage = NULL;
    int64_t shape[DT_MAX_NDIM], full[DT_MAX_NDIM];
    int ndim, status = -1;
    if (dt_shape_broadcast(what, a->ndim - 2, a->shape, b->ndim - 2, b->shape, &ndim,
                           shape))
        return -1;
    if (ndim + 2 > DT_MAX_NDIM)
        return dt_fail(DT_ERROR_RUNTIME, "%s: at most %d dimensions are possible", what,
                       DT_MAX_NDIM);
    const dt_tensor *operands[] = {a, b};
    dt_tensor *flats[] = {&aflat, &bflat};
    for (int i = 0; i < 2; i++) {
        const dt_tensor *t = operands[i];
        for (int d = 0; d < ndim; d++)
            full[d] = shape[d];
        full[ndim] = t->shape[t->ndim - 2];
        full[ndim + 1] = t->shape[t->ndim - 1];
        if (dt_view_expand(what, &wide, t, ndim + 2, full))
            goto done;
        int64_t sizes[] = {1, full[ndim], full[ndim + 1]};
        for (int d = 0; d < ndim; d++)
            sizes[0] *= full[d];
        /* Copies a batch that is expanded in some dimensions and not in others. */
        status = dt_view_reshape(flats[i], &wide, 3, sizes);
        dt_tensor_clear(&wide);
        if (status)
            goto done;
    }
    status = -1;
    shape[ndim] = a->shape[a->ndim - 2];
    shape[ndim + 1] = b->shape[b->ndim - 1];
    if (dt_tensor_empty(what, out, (dt_dtype)a->dtype, ndim + 2, shape,
                        dt_tensor_device(a)))
        goto done;
    status = multiply(what, out, &aflat, &bflat, 1, 0);
    if (status)
        dt_tensor_clear(out);
done:
    dt_tensor_clear(&bflat);
    dt_tensor_clear(&aflat);
    return status;
}

int dt_bmm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    out->storage = NULL;
    if (check_ndim("bmm", a, 3, b, 3))
        return -1;
    if (a->shape[0] != b->shape[0])
        return dt_fail(DT_ERROR_RUNTIME,
                       "bmm: the batches have %" PRId64 " and %" PRId64
                       " matrices; give as many "
                       "of each, or use matmul, which broadcasts",
                       a->shape[0], b->shape[0]);
    if (check_inner("bmm", a, a->shape[2], b, b->shape[1]) || check_types("bmm", a, b))
        return -1;
    return batched("bmm", out, a, b);
}

int dt_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b)
{
    const char *what = "matmul";
    out->storage = NULL;
    if (!a->ndim || !b->ndim)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "matmul: the %s operand has no dimension; both need at least one, "
            "multiply by a number with *",
            a->ndim ? "second" : "first");
    if (check_inner(what, a, a->shape[a->ndim - 1], b,
                    b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) ||
        check_types(what, a, b))
        return -1;
    if (a->ndim == 2 && b->ndim == 2)
        return matrix_product(what, out, a, b);
    if (a->ndim <= 2 && b->ndim <= 2)
        return product_with_vectors(what, out, a, b);
    if (a->ndim > 1 && b->ndim > 1)
        return batched(what, out, a, b);
    /* A vector and a batch: the vector becomes a matrix, whose added size goes again.
     */
    dt_tensor matrix, product = {.storage = NULL};
    int64_t added = a->ndim == 1 ? -2 : -1;
    int status;
    dt_view_unsqueeze(&matrix, a->ndim == 1 ? a : b, a->ndim == 1 ? 0 : 1);
    status = a->ndim == 1 ? batched(what, &product, &matrix, b)
                          : batched(what, &product, a, &matrix);
    if (!status)
        status = dt_view_squeeze(out, &product, 1, &added);
    dt_tensor_clear(&product);
    dt_tensor_clear(&matrix);
    return status;
}

int dt_addmm(dt_tensor *out, const dt_tensor *input, const dt_tensor *a,
             const dt_tensor *b, dt_scalar beta, dt_scalar alpha)
{
    dt_tensor wide, abatch, bbatch; /* not cleared: it is large */
    wide.storage = abatch.storage = bbatch.storage = NULL;
    int status = -1;
    out->storage = NULL;
    if (check_ndim("addmm", a, 2, b, 2) ||
        check_inner("addmm", a, a->shape[1], b, b->shape[0]) ||
        check_types("addmm", a, b) || check_types("addmm", input, a))
        return -1;
    if (!dt_dtype_is_float((dt_dtype)a->dtype) &&
        (alpha.kind == DT_KIND_FLOAT || beta.kind == DT_KIND_FLOAT))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "addmm: alpha and beta have to be integers for tensors of type %s",
            dt_dtype_name((dt_dtype)a->dtype));
    int64_t shape[] = {a->shape[0], b->shape[1]};
    if (dt_view_expand("addmm", &wide, input, 2, shape) ||
        dt_tensor_empty("addmm", out, (dt_dtype)a->dtype, 2, shape,
                        dt_tensor_device(a)))
        goto done;
    double scale = dt_scalar_as_double(beta);
    /* With beta 0 the input is ignored, whatever it holds. */
    if (scale != 0 && dt_copy_into("addmm", out, &wide))
        goto done;
    as_batch(&abatch, a);
    as_batch(&bbatch, b);
    status =
        multiply("addmm", out, &abatch, &bbatch, dt_scalar_as_double(alpha), scale);
done:
    if (status)
        dt_tensor_clear(out);
    dt_tensor_clear(&bbatch);
    dt_tensor_clear(&abatch);
    dt_tensor_clear(&wide);
    return status;
}

/* --- the rows of ops/functions/matmul.def --- */

int dt_mm_forward(dt_call *c)
{
    return dt_mm(c->out[0], c->args[0].tensor, c->args[1].tensor);
}

int dt_mv_forward(dt_call *c)
{
    return dt_mv(c->out[0], c->args[0].tensor, c->args[1].tensor);
}

int dt_dot_forward(dt_call *c)
{
    return dt_dot(c->out[0], c->args[0].tensor, c->args[1].tensor);
}

int dt_bmm_forward(dt_call *c)
{
    return dt_bmm(c->out[0], c->args[0].tensor, c->args[1].tensor);
}

int dt_addmm_forward(dt_call *c)
{
    return dt_addmm(c->out[0], c->args[0].tensor, c->args[1].tensor, c->args[2].tensor,
                    c->args[3].scalar, c->args[4].scalar);
}
