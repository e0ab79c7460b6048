/* Tensors divided into views of their parts. The parts of split, chunk and unbind are
 * results of one node, which puts their gradients together; those of tensor_split have
 * a node each, as in PyTorch. */
#include <stdlib.h>

#include "autograd/grad.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "tensor/ops/copy.h"

/* Dimension `dim` of the first argument, counted from 0; -1 after dt_fail. */
static int split_dim(const dt_call *c, int64_t dim)
{
    int ndim = c->args[0].tensor->ndim;
    if (!ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): the Tensor has no dimensions to divide; unsqueeze it "
                       "first",
                       c->name);
    return dt_shape_wrap_dim(c->name, dim, ndim);
}

static int too_few(const dt_call *c, int64_t parts)
{
    return dt_fail(DT_ERROR_RUNTIME, "%s(): %lld parts are impossible; give 1 or more",
                   c->name, (long long)parts);
}

/* --- the node of all parts --- */

typedef struct division {
    int dim, ndim;
    bool removes; /* the parts lack the dimension */
    bool turned;  /* the dimensions are in another order in memory, `order` */
    int64_t order[DT_MAX_NDIM];
} division;

/* The gradient gets the tensor's order of dimensions in memory, so that the gradient of a
 * reshape before the division is a view, too. */
static void set_order(division *d, const dt_tensor *x)
{
    d->turned = !x->contiguous;
    for (int k = 0; k < x->ndim; k++) {
        int at = k;
        for (; at && x->strides[d->order[at - 1]] < x->strides[k]; at--)
            d->order[at] = d->order[at - 1];
        d->order[at] = k;
    }
}

static dt_arg cat_in_order(dt_scope *scope, const division *d, int count,
                           const dt_tensor *const *pieces)
{
    int64_t back[DT_MAX_NDIM];
    for (int k = 0; k < d->ndim; k++)
        back[d->order[k]] = k;
    const dt_arg whole = SCOPE_CALL(scope, cat, dt_value_tensors(count, pieces),
                                    dt_value_int(back[d->dim]));
    return SCOPE_CALL(scope, permute, TENSOR(whole), dt_value_ints(d->ndim, back));
}

/* Zeros for the parts without a gradient from *next on, as a view of one element. Sets
 * *next to the next part with a gradient. */
static dt_arg missing(dt_scope *scope, const dt_node *node, const division *d,
                      dt_tensor *const *gradients, int *next)
{
    dt_result like = node->results[*next];
    if (d->removes) {
        for (int k = like.ndim++; k > d->dim; k--)
            like.shape[k] = like.shape[k - 1];
        like.shape[d->dim] = 1;
    }
    int64_t length = 0;
    for (; *next < node->nresults && !gradients[*next]; ++*next)
        length += d->removes ? 1 : node->results[*next].shape[d->dim];
    like.shape[d->dim] = length;
    dt_tensor *zero = dt_scope_slot(scope), *zeros = zero ? dt_scope_slot(scope) : NULL;
    if (!zeros ||
        dt_full("backward", zero, like.dtype, 0, NULL, like.device,
                dt_scalar_float(0)) < 0 ||
        dt_view_expand("expand", zeros, zero, like.ndim, like.shape) < 0)
        scope->failed = true;
    return dt_arg_tensor(zeros);
}

static int divided_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const division *d = node->data;
    const dt_tensor **pieces = calloc((size_t)node->nresults, sizeof *pieces);
    int count = 0;
    if (!pieces)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "backward: no memory left for the gradients of %d parts",
                       node->nresults);
    for (int i = 0; i < node->nresults && !scope->failed;) {
        dt_arg piece = dt_arg_tensor(gradients[i]);
        if (!gradients[i]) {
            piece = missing(scope, node, d, gradients, &i);
        } else {
            if (d->removes)
                piece =
                    SCOPE_CALL(scope, unsqueeze, TENSOR(piece), dt_value_int(d->dim));
            i++;
        }
        if (d->turned)
            piece = SCOPE_CALL(scope, permute, TENSOR(piece),
                               dt_value_ints(d->ndim, d->order));
        pieces[count++] = piece.tensor;
    }
    if (!scope->failed) {
        const dt_arg whole =
            d->turned ? cat_in_order(scope, d, count, pieces)
                      : SCOPE_CALL(scope, cat, dt_value_tensors(count, pieces),
                                   dt_value_int(d->dim));
        into[0] = dt_scope_tensor(scope, whole, pieces[0]);
    }
    free(pieces);
    return scope->failed ? -1 : 0;
}
static const dt_node_type divided = {divided_apply, NULL, NULL};

/* Records the parts, which are made, as views of the first argument along dim. */
static int record_parts(dt_call *c, const char *name, int dim, bool removes)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_node *node = NULL;
    int status = 0;
    if (c->list_count && dt_recording(x)) {
        node = dt_record_node(&divided, name, 1, &x, 0, (int)c->list_count,
                              sizeof(division));
        if (!node)
            return -1;
        *(division *)node->data = (division){dim, x->ndim, removes, false, {0}};
        set_order(node->data, x);
    }
    for (int i = 0; i < (int)c->list_count && !status; i++) {
        dt_tensor *part = &c->list[i];
        if (node)
            status = dt_record_result(part, node, i);
        if (!status)
            status = node ? dt_variable_set_view(part, x) : dt_variable_follow(part, x);
    }
    dt_node_release(node);
    return status;
}

/* --- split, chunk, unbind --- */

/* Parts of one size; the last one is smaller where they do not divide the dimension. */
static int equal_parts(dt_call *c, int dim, int64_t size, int64_t count)
{
    const dt_tensor *x = c->args[0].tensor;
    int status = dt_call_make_list(c, count);
    for (int64_t i = 0; i < count && !status; i++) {
        int64_t left = x->shape[dim] - i * size;
        status =
            dt_view_narrow(&c->list[i], x, dim, i * size, left < size ? left : size);
    }
    return status ? status : record_parts(c, "SplitBackward0", dim, false);
}

int dt_split_forward(dt_call *c)
{
    int64_t size = c->args[1].i;
    int dim = split_dim(c, c->args[2].i);
    if (dim < 0)
        return -1;
    int64_t total = c->args[0].tensor->shape[dim];
    if (size < 0 || (size == 0 && total))
        return dt_fail(DT_ERROR_RUNTIME,
                       "split(): parts of size %lld are impossible; give 1 or more",
                       (long long)size);
    /* (total - 1) / size + 1 does not overflow where total + size would. */
    return equal_parts(c, dim, size, total ? (total - 1) / size + 1 : 1);
}

int dt_chunk_forward(dt_call *c)
{
    int64_t chunks = c->args[1].i;
    int dim = split_dim(c, c->args[2].i);
    if (dim < 0)
        return -1;
    if (chunks < 1)
        return too_few(c, chunks);
    int64_t total = c->args[0].tensor->shape[dim];
    int64_t size = total ? (total - 1) / chunks + 1 : 0;
    return equal_parts(c, dim, size, total ? (total - 1) / size + 1 : chunks);
}

int dt_split_with_sizes_forward(dt_call *c)
{
    const dt_value *sizes = &c->args[1];
    int dim = split_dim(c, c->args[2].i);
    if (dim < 0)
        return -1;
    int64_t total = c->args[0].tensor->shape[dim], sum = 0, start = 0;
    bool valid = true;
    for (int i = 0; i < sizes->count; i++)
        valid = valid && sizes->ints[i] >= 0 &&
                !__builtin_add_overflow(sum, sizes->ints[i], &sum);
    if (!valid || sum != total)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s(): the sizes have to be 0 or more and to add up to %lld, the "
            "size of the dimension",
            c->name, (long long)total);
    int status = dt_call_make_list(c, sizes->count);
    for (int i = 0; i < sizes->count && !status; i++) {
        status =
            dt_view_narrow(&c->list[i], c->args[0].tensor, dim, start, sizes->ints[i]);
        start += sizes->ints[i];
    }
    return status ? status : record_parts(c, "SplitWithSizesBackward0", dim, false);
}

int dt_unbind_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    if (!x->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "%s(): the Tensor has no dimensions; unsqueeze it first",
                       c->name);
    int dim = dt_shape_wrap_dim(c->name, c->args[1].i, x->ndim);
    if (dim < 0 || dt_call_make_list(c, x->shape[dim]) < 0)
        return -1;
    for (int64_t i = 0; i < c->list_count; i++)
        if (dt_view_select(&c->list[i], x, dim, i) < 0)
            return -1;
    return record_parts(c, "UnbindBackward0", dim, true);
}

/* --- tensor_split and its relatives --- */

/* Part i: `length` elements from start on. */
static int part(dt_call *c, int64_t i, int dim, int64_t start, int64_t length)
{
    return DT_CALL_AS("SliceBackward0", narrow, &c->list[i], c->args[0],
                      dt_value_int(dim), dt_value_int(start), dt_value_int(length));
}

/* `sections` parts, the first ones longer by one where they do not divide the size. */
static int into_sections(dt_call *c, int dim, int64_t sections)
{
    if (sections < 1)
        return too_few(c, sections);
    int64_t size = c->args[0].tensor->shape[dim] / sections;
    int64_t longer = c->args[0].tensor->shape[dim] % sections, start = 0;
    int status = dt_call_make_list(c, sections);
    for (int64_t i = 0; i < sections && !status; i++) {
        int64_t length = size + (i < longer);
        status = part(c, i, dim, start, length);
        start += length;
    }
    return status;
}

/* The parts before, between and after the positions, which are clamped as those of
 * slices are. */
static int at_positions(dt_call *c, int dim, int64_t count, const int64_t *positions)
{
    int64_t size = c->args[0].tensor->shape[dim], start = 0;
    int status = dt_call_make_list(c, count + 1);
    for (int64_t i = 0; i <= count && !status; i++) {
        int64_t end = i < count ? positions[i] : size;
        int64_t from = start < 0 ? start + size : start,
                to = end < 0 ? end + size : end;
        from = from < 0 ? 0 : from > size ? size : from;
        to = to < from ? from : to > size ? size : to;
        status = part(c, i, dim, from, to - from);
        start = end;
    }
    return status;
}

/* Divides as the second argument says: an int counts the parts, ints are positions, and a
 * Tensor holds either. */
static int divide(dt_call *c, int dim, bool equal)
{
    const dt_value *how = &c->args[1];
    const dt_tensor *t = how->tensor;
    int64_t size = c->args[0].tensor->shape[dim], count = how->count;
    const int64_t *values = how->ints;
    bool is_number = c->op->info->schema.parameters[1].type == DT_PARAM_INT;
    DT_LOCAL(ints);
    if (t && (t->dtype != DT_INT64 || t->ndim > 1)) {
        char shape[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): the positions are a Tensor of shape %s and type %s; give "
                       "int64 of at most one dimension",
                       c->name, dt_shape_text(t->ndim, t->shape, shape, sizeof shape),
                       dt_dtype_name((dt_dtype)t->dtype));
    }
    if (t) {
        if (dt_to(&ints, t, DT_INT64, dt_device_make(DT_CPU, 0)) < 0)
            return -1;
        is_number = !t->ndim;
        count = t->numel;
        values = dt_tensor_data(&ints);
    } else if (is_number) {
        values = &how->i;
    }
    if (!is_number)
        return at_positions(c, dim, count, values);
    if (equal && (*values < 1 || size % *values))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s(): dimension %d of size %lld does not divide into %lld equal "
            "parts; give a divisor, or use tensor_split",
            c->name, dim, (long long)size, (long long)*values);
    return into_sections(c, dim, *values);
}

int dt_tensor_split_forward(dt_call *c)
{
    int dim = split_dim(c, c->args[2].i);
    return dim < 0 ? -1 : divide(c, dim, false);
}

/* Divides dimension `dim` of a Tensor with at least `least` of them, or 0 of a vector. */
static int divide_equally(dt_call *c, int least, int dim)
{
    int ndim = c->args[0].tensor->ndim;
    if (ndim < least)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): the Tensor has %d dimension%s; give one of at least %d",
                       c->name, ndim, ndim == 1 ? "" : "s", least);
    return divide(c, dim < ndim ? dim : 0, true);
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/split.def"
