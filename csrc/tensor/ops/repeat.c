#include "tensor/ops/ops.h"

#include <inttypes.h>

#include "base/gil.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

/* Copies t, which has as many dimensions, to each of its positions in out. */
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
#include "ops/functions/repeat.def"
