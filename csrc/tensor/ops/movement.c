#include "tensor/ops/ops.h"

#include <inttypes.h>

#include "base/gil.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

/* --- backwards, and round --- */

static int flip(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims)
{
    bool flips[DT_MAX_NDIM];
    dt_tensor mirror = *t; /* borrowed; its steps lead back from the last element */
    if (dt_shape_wrap_dims("flip", count, dims, t->ndim, flips))
        return -1;
    for (int d = 0; d < t->ndim; d++) {
        if (!flips[d] || !t->numel || t->shape[d] == 1)
            continue;
        mirror.offset += (t->shape[d] - 1) * t->strides[d];
        mirror.strides[d] = -t->strides[d];
        mirror.contiguous = false;
    }
    dt_plan unused;
    dt_input like = {.tensor = t, .dtype = (dt_dtype)t->dtype};
    out->storage = NULL; /* to be made */
    if (dt_iterate_plan(&unused, "flip", out, (dt_dtype)t->dtype, dt_tensor_device(t),
                        &like, 1) < 0 ||
        dt_copy_part("flip", out, &mirror))
        return -1;
    out->storage->version = 0;
    return 0;
}

/* By a quarter turn in the plane of two dimensions, `turns` times (0 to 3). */
static int rotate(dt_tensor *out, const dt_tensor *x, int64_t turns,
                  const int64_t *dims)
{
    DT_LOCAL(flipped);
    if (turns == 0)
        return x->contiguous ? flip(out, x, 0, NULL) : dt_contiguous(out, x);
    if (turns == 2)
        return flip(out, x, 2, dims);
    return flip(&flipped, x, 1, &dims[turns == 1])
               ? -1
               : dt_view_transpose(out, &flipped, dims[0], dims[1]);
}

static int rot90(dt_call *c)
{
    static const int64_t first_two[] = {0, 1};
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[2];
    const int64_t *plane = dims->given ? dims->ints : first_two;
    int a, b;
    if (dims->given && dims->count != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90(): dims names %d dimension%s; give 2, from one towards "
                       "the other",
                       dims->count, dims->count == 1 ? "" : "s");
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90: a tensor of %d dimension%s cannot be rotated; give one "
                       "of at least 2",
                       x->ndim, x->ndim == 1 ? "" : "s");
    if (dt_shape_wrap_pair("rot90", plane[0], plane[1], x->ndim, &a, &b))
        return -1;
    return rotate(c->out[0], x, (c->args[1].i % 4 + 4) % 4, plane);
}

/* t shifted by less than its size along each dimension: the two parts of every
 * dimension make boxes, which are copied one by one. */
static int roll_boxes(dt_tensor *out, const dt_tensor *t, const int64_t *shifts)
{
    int rolled[DT_MAX_NDIM], count = 0;
    if (dt_tensor_empty("roll", out, (dt_dtype)t->dtype, t->ndim, t->shape,
                        dt_tensor_device(t)))
        return -1;
    for (int d = 0; d < t->ndim; d++)
        if (shifts[d])
            rolled[count++] = d;
    for (unsigned box = 0; box >> count == 0; box++) {
        dt_tensor to = *out, from = *t; /* borrowed */
        for (int i = 0; i < count; i++) {
            int d = rolled[i];
            bool wraps = box >> i & 1;
            int64_t kept = t->shape[d] - shifts[d];
            to.shape[d] = from.shape[d] = wraps ? shifts[d] : kept;
            to.offset += wraps ? 0 : shifts[d] * to.strides[d];
            from.offset += wraps ? kept * from.strides[d] : 0;
        }
        dt_tensor_update(&to);
        dt_tensor_update(&from);
        if (dt_copy_part("roll", &to, &from))
            return -1;
    }
    out->storage->version = 0;
    return 0;
}

static int64_t wrapped(int64_t shift, int64_t size)
{
    int64_t rest = size ? shift % size : 0;
    return rest < 0 ? rest + size : rest;
}

static int roll_flat(dt_tensor *out, const dt_tensor *t, int64_t shift)
{
    int64_t numel = t->numel, by = wrapped(shift, numel);
    DT_LOCAL(row);
    DT_LOCAL(rolled);
    return dt_view_reshape(&row, t, 1, &numel) || roll_boxes(&rolled, &row, &by)
               ? -1
               : dt_view_shape(out, &rolled, t->ndim, t->shape);
}

static int roll(dt_call *c)
{
    const dt_tensor *t = c->args[0].tensor;
    const dt_value *shifts = &c->args[1], *dims = &c->args[2];
    int64_t by[DT_MAX_NDIM] = {0};
    int ndims = dims->count < 0 ? 0 : dims->count;
    if (!shifts->count)
        return dt_fail(DT_ERROR_RUNTIME,
                       "roll: there are no shifts; give at least one");
    if (ndims ? shifts->count != ndims : shifts->count != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "roll: %d shift%s given for %d dimension%s; give one shift for "
                       "each dimension, or one shift and no dimension",
                       shifts->count, shifts->count == 1 ? " was" : "s were", ndims,
                       ndims == 1 ? "" : "s");
    if (!ndims)
        return roll_flat(c->out[0], t, shifts->ints[0]);
    for (int i = 0; i < ndims; i++) {
        int dim = dt_shape_wrap_dim("roll", dims->ints[i], t->ndim);
        if (dim < 0)
            return -1;
        if (!t->ndim)
            return dt_fail(DT_ERROR_INDEX,
                           "roll: the tensor has no dimensions; leave dims out");
        int64_t size = t->shape[dim];
        by[dim] = wrapped(by[dim] + wrapped(shifts->ints[i], size), size);
    }
    return roll_boxes(c->out[0], t, by);
}

/* --- several times --- */

/* Copies t, of as many dimensions, into every one of its places in out. */
static int fill_repeats(const char *op_name, dt_tensor *out, const dt_tensor *t,
                        const int64_t *repeats)
{
    dt_tensor to = *out, from = *t; /* borrowed */
    int ndim = 0, doubled = 0;
    for (int d = 0; d < t->ndim; d++)
        doubled += repeats[d] > 1 && t->shape[d] > 1;
    if (t->ndim + doubled > DT_MAX_NDIM) {
        /* One copy of the first such dimension after another. */
        int64_t others[DT_MAX_NDIM];
        int first = 0;
        while (repeats[first] <= 1 || t->shape[first] <= 1)
            first++;
        for (int d = 0; d < t->ndim; d++)
            others[d] = d == first ? 1 : repeats[d];
        to.shape[first] = t->shape[first];
        dt_tensor_update(&to);
        for (int64_t i = 0; i < repeats[first]; i++) {
            if (fill_repeats(op_name, &to, t, others))
                return -1;
            to.offset += t->shape[first] * out->strides[first];
        }
        return 0;
    }
    for (int d = 0; d < t->ndim; d++) {
        bool both = repeats[d] > 1 && t->shape[d] > 1;
        if (both) {
            to.shape[ndim] = from.shape[ndim] = repeats[d];
            to.strides[ndim] = t->shape[d] * out->strides[d];
            from.strides[ndim++] = 0;
        }
        to.shape[ndim] = from.shape[ndim] = both ? t->shape[d] : out->shape[d];
        to.strides[ndim] = out->strides[d];
        from.strides[ndim++] = t->shape[d] == 1 ? 0 : t->strides[d];
    }
    to.ndim = from.ndim = (unsigned char)ndim;
    dt_tensor_update(&to);
    dt_tensor_update(&from);
    return dt_copy_part(op_name, &to, &from);
}

static int repeat(dt_call *c)
{
    const dt_tensor *t = c->args[0].tensor;
    int count = c->args[1].count;
    const int64_t *repeats = c->args[1].ints;
    dt_tensor *out = c->out[0];
    char text[DT_SHAPE_TEXT];
    int64_t shape[DT_MAX_NDIM];
    dt_tensor x = *t; /* borrowed, with the new dimensions in front */
    int extra = count - t->ndim;
    if (extra < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %d repeat%s given for a tensor of %d dimensions; give at "
                       "least as many",
                       c->name, count, count == 1 ? " was" : "s were", t->ndim);
    for (int d = count - 1; d >= 0; d--) {
        x.shape[d] = d < extra ? 1 : t->shape[d - extra];
        x.strides[d] = d < extra ? 0 : t->strides[d - extra];
        if (repeats[d] < 0)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the repeats %s contain a negative one; give 0 or more",
                           c->name, dt_shape_text(count, repeats, text, sizeof text));
        if (__builtin_mul_overflow(x.shape[d], repeats[d], &shape[d]))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: repeats %s make a tensor of more elements than 64 bits "
                           "count; give smaller ones",
                           c->name, dt_shape_text(count, repeats, text, sizeof text));
    }
    x.ndim = (unsigned char)count;
    if (dt_tensor_empty(c->name, out, (dt_dtype)t->dtype, count, shape,
                        dt_tensor_device(t)) ||
        (out->numel && fill_repeats(c->name, out, &x, repeats)))
        return -1;
    out->storage->version = 0;
    return 0;
}

/* --- diagonals --- */

static int diag_embed(dt_call *c, int64_t offset, int64_t dim1, int64_t dim2)
{
    const dt_tensor *t = c->args[0].tensor;
    dt_tensor *out = c->out[0];
    int64_t shape[DT_MAX_NDIM], side;
    int ndim = t->ndim + 1, a, b;
    DT_LOCAL(diagonal);
    if (!t->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the tensor has no dimension that could be a diagonal; give "
                       "it one with reshape(1)",
                       c->name);
    if (dt_shape_wrap_pair(c->name, dim1, dim2, ndim, &a, &b) ||
        dt_shape_check_ndim(c->name, ndim))
        return -1;
    if (offset == INT64_MIN ||
        __builtin_add_overflow(t->shape[t->ndim - 1], offset < 0 ? -offset : offset,
                               &side))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the offset %" PRId64 " is too large; give a smaller one",
                       c->name, offset);
    for (int d = 0, from = 0; d < ndim; d++)
        shape[d] = d == a || d == b ? side : t->shape[from++];
    if (dt_full(c->name, out, (dt_dtype)t->dtype, ndim, shape, dt_tensor_device(t),
                dt_scalar_int(0)) ||
        dt_view_diagonal(&diagonal, out, offset, a, b) ||
        dt_copy_part(c->name, &diagonal, t))
        return -1;
    out->storage->version = 0;
    return 0;
}

static int diag(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t offset = c->args[1].i;
    DT_LOCAL(diagonal);
    if (x->ndim == 1)
        return diag_embed(c, offset, 0, 1);
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "diag: the tensor has %d dimensions; give a vector or a matrix, "
                       "or use diagonal or diag_embed",
                       x->ndim);
    c->node = "DiagonalBackward0_copy";
    return dt_view_diagonal(&diagonal, x, offset, 0, 1)
               ? -1
               : dt_to(c->out[0], &diagonal, (dt_dtype)x->dtype, dt_tensor_device(x));
}

static int trace(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    DT_LOCAL(diagonal);
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "trace: the tensor has %d dimension%s; give a matrix", x->ndim,
                       x->ndim == 1 ? "" : "s");
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "trace: not defined for bools; convert them first, e.g. with "
                       ".int()");
    return dt_view_diagonal(&diagonal, x, 0, 0, 1)
               ? -1
               : dt_reduce(DT_REDUCE_sum, c->out[0], &diagonal, 0, NULL, false, -1, 0);
}

/* --- as often as a tensor says --- */

/* The sum of n counts, checked; each: else one count stands for all. -1 after dt_fail. */
static int64_t add_up(int64_t n, const int64_t *counts, bool each)
{
    int64_t total = 0;
    for (int64_t i = 0; i < (each ? n : 1); i++) {
        if (counts[i] < 0)
            return dt_fail(DT_ERROR_RUNTIME,
                           "repeat_interleave: repeat %" PRId64 " is %" PRId64
                           "; give 0 or more",
                           i, counts[i]);
        if (each ? __builtin_add_overflow(total, counts[i], &total)
                 : __builtin_mul_overflow(n, counts[i], &total))
            return dt_fail(DT_ERROR_RUNTIME,
                           "repeat_interleave: the repeats add up to more than 64 bits "
                           "hold; give smaller ones");
    }
    return total;
}

/* Writes each of 0 to n-1 as often as its count says, `total` numbers in all: another
 * thread may have written the counts since they were added up. */
static void write_repeats(int64_t *to, int64_t total, int64_t n, const int64_t *counts,
                          bool one)
{
    DT_WITHOUT_GIL(total > 4096);
    int64_t *end = to + total;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = counts[one ? 0 : i]; k > 0 && to < end; k--)
            *to++ = i;
    while (to < end)
        *to++ = 0;
}

int dt_repeat_index(dt_tensor *out, const dt_tensor *repeats, int64_t size,
                    int64_t output_size)
{
    const dt_device cpu = dt_device_make(DT_CPU, 0), device = dt_tensor_device(repeats);
    bool one = repeats->numel == 1;
    DT_LOCAL(counts);
    DT_LOCAL(index);
    if (repeats->ndim > 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: the repeats have %d dimensions; give one, "
                       "such as repeats.flatten()",
                       repeats->ndim);
    if (repeats->dtype != DT_INT64 && repeats->dtype != DT_INT32)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "repeat_interleave: the repeats are of type %s; give int64 or "
                       "int32, such as repeats.long()",
                       dt_dtype_name((dt_dtype)repeats->dtype));
    if (!one && repeats->numel != size)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: %" PRId64 " repeats were given for a "
                       "dimension of size %" PRId64 "; give one for each, or a single "
                       "one",
                       repeats->numel, size);
    if (dt_contiguous_as(&counts, repeats, DT_INT64, cpu))
        return -1;
    const int64_t *count = dt_tensor_data(&counts);
    int64_t total = add_up(size, count, !one);
    if (total < 0)
        return -1;
    if (output_size >= 0 && output_size != total)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: output_size is %" PRId64
                       ", and the repeats make %" PRId64 "; leave it out, or give that",
                       output_size, total);
    if (dt_tensor_empty("repeat_interleave", &index, DT_INT64, 1, &total, cpu))
        return -1;
    write_repeats(dt_tensor_data(&index), total, size, count, one);
    return dt_contiguous_as(out, &index, DT_INT64, device);
}

static int repeat_index(dt_call *c)
{
    const dt_tensor *repeats = c->args[0].tensor;
    if (repeats->ndim != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: the repeats have %d dimensions; give one, "
                       "such as repeats.reshape(-1)",
                       repeats->ndim);
    return dt_repeat_index(c->out[0], repeats, repeats->numel,
                           c->args[1].given ? c->args[1].i : -1);
}

#include "tensor/ops/define.h"
#include "ops/functions/movement.def"
