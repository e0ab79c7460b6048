/* Tensors divided into views of their parts: each part is recorded as a view. */
#include "autograd/grad.h"
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

/* Part i: `length` elements from start on. */
static int part(dt_call *c, const char *node, int64_t i, int dim, int64_t start,
                int64_t length)
{
    return DT_CALL_AS(node, narrow, &c->list[i], c->args[0], dt_value_int(dim),
                      dt_value_int(start), dt_value_int(length));
}

/* Parts of one size; the last one is smaller where they do not divide the dimension. */
static int equal_parts(dt_call *c, int dim, int64_t size, int64_t count)
{
    int64_t total = c->args[0].tensor->shape[dim];
    int status = dt_call_make_list(c, count);
    for (int64_t i = 0; i < count && !status; i++) {
        int64_t left = total - i * size;
        status = part(c, "SplitBackward0", i, dim, i * size, left < size ? left : size);
    }
    return status;
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
        status = part(c, "SplitWithSizesBackward0", i, dim, start, sizes->ints[i]);
        start += sizes->ints[i];
    }
    return status;
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
        if (DT_CALL_AS("UnbindBackward0", select, &c->list[i], c->args[0],
                       dt_value_int(dim), dt_value_int(i)) < 0)
            return -1;
    return 0;
}

/* --- tensor_split and its relatives --- */

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
        status = part(c, "SliceBackward0", i, dim, start, length);
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
        status = part(c, "SliceBackward0", i, dim, from, to - from);
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
