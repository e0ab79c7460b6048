/* Elements in another order, or several times. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/movement.h"
#include "tensor/ops/reduce.h"

/* --- other orders --- */

/* Whole numbers that a node keeps. */
typedef struct numbers {
    int na, nb;
    int64_t a[DT_MAX_NDIM], b[DT_MAX_NDIM];
} numbers;

static dt_node *keep(const dt_node_type *type, const char *name, const dt_tensor *x,
                     int na, const int64_t *a, int nb, const int64_t *b)
{
    dt_node *node = dt_record_node(type, name, 1, &x, 0, 1, sizeof(numbers));
    if (!node)
        return NULL;
    numbers *data = node->data;
    data->na = na;
    data->nb = nb;
    for (int i = 0; i < na; i++)
        data->a[i] = a[i];
    for (int i = 0; i < nb; i++)
        data->b[i] = b[i];
    return node;
}

/* The place of the gradient for a node with one input; NULL where none is wanted. */
#define GRADIENT_SLOT()                                                                \
    if (!gradients[0] || !dt_node_wants(node, 0))                                      \
        return 0;                                                                      \
    if (!(into[0] = dt_scope_slot(scope)))                                             \
    return -1

static int flip_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const numbers *data = node->data;
    GRADIENT_SLOT();
    return dt_recorded_flip(into[0], gradients[0], data->na, data->a);
}
static const dt_node_type flip_type = {flip_apply, NULL};

int dt_recorded_flip(dt_tensor *out, const dt_tensor *x, int count, const int64_t *dims)
{
    if (dt_flip(out, x, count, dims) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(out,
                           keep(&flip_type, "FlipBackward0", x, count, dims, 0, NULL));
}

static int roll_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const numbers *data = node->data;
    int64_t back[DT_MAX_NDIM];
    GRADIENT_SLOT();
    for (int i = 0; i < data->na; i++) {
        int64_t size =
            data->nb
                ? gradients[0]->shape[data->b[i] < 0 ? data->b[i] + gradients[0]->ndim
                                                     : data->b[i]]
                : gradients[0]->numel;
        back[i] = size ? -(data->a[i] % size) : 0;
    }
    return dt_recorded_roll(into[0], gradients[0], data->na, back, data->nb, data->b);
}
static const dt_node_type roll_type = {roll_apply, NULL};

int dt_recorded_roll(dt_tensor *out, const dt_tensor *x, int nshifts,
                     const int64_t *shifts, int ndims, const int64_t *dims)
{
    if (dt_roll(out, x, nshifts, shifts, ndims, dims) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(
        out, keep(&roll_type, "RollBackward0", x, nshifts, shifts, ndims, dims));
}

static int rot90_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const numbers *data = node->data;
    GRADIENT_SLOT();
    return dt_recorded_rot90(into[0], gradients[0], -data->b[0], data->a);
}
static const dt_node_type rot90_type = {rot90_apply, NULL};

static int rotate(dt_tensor *out, const dt_tensor *x, int64_t turns,
                  const int64_t *dims)
{
    dt_tensor flipped;
    if (turns == 0)
        return x->contiguous ? dt_flip(out, x, 0, NULL) : dt_contiguous(out, x);
    if (turns == 2)
        return dt_flip(out, x, 2, dims);
    if (dt_flip(&flipped, x, 1, &dims[turns == 1]) < 0)
        return -1;
    int status = dt_view_transpose(out, &flipped, dims[0], dims[1]);
    dt_tensor_clear(&flipped);
    return status;
}

int dt_recorded_rot90(dt_tensor *out, const dt_tensor *x, int64_t k,
                      const int64_t *dims)
{
    int64_t turns = (k % 4 + 4) % 4;
    out->storage = NULL;
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90: a tensor of %d dimension%s cannot be turned; give one "
                       "of at least 2",
                       x->ndim, x->ndim == 1 ? "" : "s");
    int a = dt_shape_wrap_dim("rot90", dims[0], x->ndim);
    int b = a < 0 ? -1 : dt_shape_wrap_dim("rot90", dims[1], x->ndim);
    if (b < 0)
        return -1;
    if (a == b)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90: both dimensions are number %d; name two different ones",
                       a);
    if (rotate(out, x, turns, dims) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(out,
                           keep(&rot90_type, "Rot90Backward0", x, 2, dims, 1, &turns));
}

/* --- several times --- */

/* Sums over the copies along one dimension after another: each step leaves less to be
 * summed. */
static int repeat_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const numbers *data = node->data; /* the input's shape, and the repeats */
    const dt_tensor *g = gradients[0];
    int extra = data->nb - data->na;
    if (!g || !dt_node_wants(node, 0))
        return 0;
    for (int d = 0; d < data->nb; d++) {
        int64_t shape[DT_MAX_NDIM + 1], size = d < extra ? 1 : data->a[d - extra];
        int64_t dim = d < extra ? 0 : d - extra; /* those in front are gone by now */
        int ndim = g->ndim;
        if (data->b[d] == 1 && d >= extra)
            continue;
        dt_tensor *apart = dt_scope_slot(scope), *sum = dt_scope_slot(scope);
        if (!sum)
            return -1;
        if (d < extra || size == 1) { /* nothing but copies lies there */
            if (dt_recorded_reduce(DT_REDUCE_sum, sum, g, 1, &dim, d >= extra, -1, 0) <
                0)
                return -1;
            g = sum;
            continue;
        }
        for (int i = 0; i < ndim; i++)
            shape[i < dim ? i : i + 1] = g->shape[i];
        shape[dim] = data->b[d];
        shape[dim + 1] = size;
        if (ndim == DT_MAX_NDIM) { /* as a matrix of the copies, elements apart */
            int64_t outer = 1, inner = size;
            for (int i = 0; i < ndim; i++)
                *(i < dim ? &outer : &inner) *= i == dim ? 1 : g->shape[i];
            const int64_t flat[] = {outer, data->b[d], inner}, middle = 1;
            dt_tensor *less = dt_scope_slot(scope);
            for (int i = 0; i < ndim; i++)
                shape[i] = i == dim ? size : g->shape[i];
            if (!less || dt_recorded_reshape(apart, g, 3, flat) < 0 ||
                dt_recorded_reduce(DT_REDUCE_sum, less, apart, 1, &middle, false, -1,
                                   0) < 0 ||
                dt_recorded_reshape(sum, less, ndim, shape) < 0)
                return -1;
        } else if (dt_recorded_reshape(apart, g, ndim + 1, shape) < 0 ||
                   dt_recorded_reduce(DT_REDUCE_sum, sum, apart, 1, &dim, false, -1,
                                      0) < 0) {
            return -1;
        }
        g = sum;
    }
    into[0] = (dt_tensor *)g;
    return 0;
}
static const dt_node_type repeat_type = {repeat_apply, NULL};

int dt_recorded_repeat(const char *what, dt_tensor *out, const dt_tensor *x, int count,
                       const int64_t *repeats)
{
    if (dt_repeat(what, out, x, count, repeats) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(out, keep(&repeat_type, "RepeatBackward0", x, x->ndim,
                                     x->shape, count, repeats));
}

int dt_recorded_repeat_interleave(dt_tensor *out, const dt_tensor *x, int64_t repeats,
                                  int64_t wanted)
{
    int64_t shape[DT_MAX_NDIM];
    out->storage = NULL;
    int dim = dt_shape_wrap_dim("repeat_interleave", wanted, x->ndim);
    if (dim < 0)
        return -1;
    if (repeats < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: the repeats are negative; give 0 or more");
    if (!x->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "repeat_interleave: the tensor has no dimension to repeat "
                       "along; leave dim out");
    if (x->ndim == DT_MAX_NDIM)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "repeat_interleave: a tensor of %d dimensions leaves no room for "
            "the copies; reshape it to fewer first",
            x->ndim);
    for (int d = 0; d < x->ndim; d++)
        shape[d <= dim ? d : d + 1] = x->shape[d];
    shape[dim + 1] = repeats;
    dt_scope scope;
    dt_scope_begin(&scope);
    dt_tensor *apart = dt_scope_slot(&scope), *spread = dt_scope_slot(&scope);
    dt_tensor *copies = dt_scope_slot(&scope);
    int status = -1;
    if (copies && dt_recorded_unsqueeze(apart, x, dim + 1) == 0 &&
        dt_recorded_expand("repeat_interleave", spread, apart, x->ndim + 1, shape) ==
            0 &&
        (spread->contiguous
             ? dt_recorded_to(copies, spread, (dt_dtype)x->dtype, dt_tensor_device(x))
             : dt_recorded_contiguous(copies, spread)) == 0)
        status = dt_recorded_flatten(out, copies, dim, dim + 1);
    dt_scope_end(&scope);
    return status;
}

int dt_recorded_repeat_interleave_by(dt_tensor *out, const dt_tensor *x,
                                     const dt_tensor *repeats, int64_t wanted,
                                     int64_t output_size)
{
    dt_tensor index;
    out->storage = NULL;
    int dim = dt_shape_wrap_dim("repeat_interleave", wanted, x->ndim);
    if (dim < 0)
        return -1;
    if (!x->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "repeat_interleave: the tensor has no dimension to repeat "
                       "along; leave dim out");
    if (dt_repeat_index(&index, repeats, x->shape[dim], output_size) < 0)
        return -1;
    dt_indexing choice = {.what = "repeat_interleave",
                          .form = DT_INDEXING_INDEX,
                          .code = DT_ERROR_INDEX,
                          .count = 1};
    choice.indices[0] = &index;
    choice.dims[0] = dim;
    int status = dt_recorded_index_read("IndexSelectBackward0", out, x, &choice);
    dt_tensor_clear(&index);
    return status;
}

/* --- diagonals --- */

/* The gradient is the diagonal of the result's. */
static int embed_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const numbers *data = node->data;
    GRADIENT_SLOT();
    return dt_recorded_diagonal(into[0], gradients[0], data->a[0], data->a[1],
                                data->a[2]);
}
static const dt_node_type embed_type = {embed_apply, NULL};

int dt_recorded_diag_embed(const char *what, dt_tensor *out, const dt_tensor *x,
                           int64_t offset, int64_t dim1, int64_t dim2)
{
    const int64_t where[] = {offset, dim1, dim2};
    if (dt_diag_embed(what, out, x, offset, dim1, dim2) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(
        out, keep(&embed_type, "DiagEmbedBackward0", x, 3, where, 0, NULL));
}

/* The gradient of what was read from a diagonal: there, and zeros elsewhere. */
static int diagonal_of_matrix_apply(dt_node *node, dt_scope *scope,
                                    dt_tensor *const *gradients, dt_tensor **into)
{
    const numbers *data = node->data; /* the input's shape, and the offset */
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *whole = dt_scope_slot(scope), *part = dt_scope_slot(scope);
    if (!part || dt_full(node->name, whole, (dt_dtype)g->dtype, data->na, data->a,
                         dt_tensor_device(g), dt_scalar_float(0)) < 0)
        return -1;
    if (dt_view_diagonal(part, whole, data->b[0], 0, 1) < 0 ||
        (dt_recording(g) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_copy_into(node->name, part, g) < 0)
        return -1;
    into[0] = whole;
    return 0;
}
static const dt_node_type matrix_type = {diagonal_of_matrix_apply, NULL};

int dt_recorded_diag(dt_tensor *out, const dt_tensor *x, int64_t offset)
{
    dt_tensor diagonal;
    out->storage = NULL;
    if (x->ndim == 1)
        return dt_recorded_diag_embed("diag", out, x, offset, 0, 1);
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "diag: the tensor has %d dimensions; give a vector or a matrix, "
                       "or use diagonal or diag_embed",
                       x->ndim);
    if (dt_view_diagonal(&diagonal, x, offset, 0, 1) < 0)
        return -1;
    int status = dt_to(out, &diagonal, (dt_dtype)x->dtype, dt_tensor_device(x));
    dt_tensor_clear(&diagonal);
    if (status < 0 || !dt_recording(x))
        return status;
    return dt_record_steal(
        out, keep(&matrix_type, "DiagonalBackward0_copy", x, 2, x->shape, 1, &offset));
}

int dt_recorded_trace(dt_tensor *out, const dt_tensor *x)
{
    dt_tensor diagonal;
    const int64_t offset = 0;
    out->storage = NULL;
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "trace: the tensor has %d dimension%s; give a matrix", x->ndim,
                       x->ndim == 1 ? "" : "s");
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "trace: not defined for bools; convert them first, e.g. with "
                       ".int()");
    if (dt_view_diagonal(&diagonal, x, 0, 0, 1) < 0)
        return -1;
    int status = dt_reduce(DT_REDUCE_sum, out, &diagonal, 0, NULL, false, -1, 0);
    dt_tensor_clear(&diagonal);
    if (status < 0 || !dt_recording(x))
        return status;
    return dt_record_steal(
        out, keep(&matrix_type, "TraceBackward0", x, 2, x->shape, 1, &offset));
}
