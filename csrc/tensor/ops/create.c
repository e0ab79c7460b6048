#include "tensor/ops/ops.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/gil.h"
#include "base/interrupt.h"
#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/call.h"
#include "tensor/format.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

int dt_check_float(const char *op_name, dt_error_code code, const dt_tensor *x)
{
    if (dt_dtype_is_float((dt_dtype)x->dtype))
        return 0;
    return dt_fail(code,
                   "%s: defined for floating-point tensors only, and one is of type "
                   "%s; convert it first, e.g. with .float()",
                   op_name, dt_dtype_name((dt_dtype)x->dtype));
}

static int check_value(const char *op_name, dt_dtype dtype, dt_scalar value)
{
    if (dt_dtype_kind(dtype) != DT_KIND_INTEGER)
        return 0;
    if (value.kind == DT_KIND_FLOAT) {
        if (value.f > -9223372036854775808.0 && value.f < 9223372036854775808.0)
            value = dt_scalar_int((int64_t)value.f);
        else
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: the number %g does not fit into the type %s; use a floating type",
                op_name, value.f, dt_dtype_name(dtype));
    }
    if (dt_scalar_fits(dtype, value))
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the number %" PRId64
                   " does not fit into the type %s; use a wider type",
                   op_name, value.i, dt_dtype_name(dtype));
}

int dt_fill_into(const char *op_name, dt_tensor *target, dt_scalar value)
{
    dt_plan plan;
    dt_dtype dtype = (dt_dtype)target->dtype;
    dt_device device = dt_tensor_device(target);
    dt_input input = {.tensor = NULL, .dtype = dtype};
    if (check_value(op_name, dtype, value))
        return -1;
    input.value = dt_element_from_scalar(dtype, value);
    int status = dt_iterate_plan(&plan, op_name, target, dtype, device, &input, 1);
    if (status)
        return status < 0 ? -1 : 0;
    if (dt_storage_use(target->storage))
        return -1;
    return dt_run_fill(device, &plan);
}

/* The same with a tensor without dimensions: one that has some is the error `dimensions`. */
static int fill_with(const char *op_name, dt_tensor *target, const dt_tensor *number,
                     dt_error_code dimensions)
{
    if (number->ndim)
        return dt_fail(dimensions,
                       "%s(): value has %d dimensions; give a number or a Tensor "
                       "without dimensions, or use copy_()",
                       op_name, number->ndim);
    return dt_check_imag(op_name, (dt_dtype)target->dtype, number)
               ? -1
               : dt_copy_into(op_name, target, number);
}

int dt_full(const char *op_name, dt_tensor *out, dt_dtype dtype, int ndim,
            const int64_t *shape, dt_device device, dt_scalar value)
{
    if (dt_tensor_empty(op_name, out, dtype, ndim, shape, device) ||
        dt_fill_into(op_name, out, value))
        return -1;
    out->storage->version = 0;
    return 0;
}

/* --- progressions --- */

static int check_counts(const char *op_name, dt_dtype dtype)
{
    if (dtype != DT_BOOL)
        return 0;
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "%s: not defined for the type bool; use an integer or floating type",
                   op_name);
}

/* The number of steps before the end; -1 after dt_fail. */
static int64_t count_steps(dt_scalar start, dt_scalar end, dt_scalar step, bool whole)
{
    double first = dt_scalar_as_double(start), last = dt_scalar_as_double(end);
    double by = dt_scalar_as_double(step);
    if (by == 0 || by != by)
        return dt_fail(DT_ERROR_RUNTIME,
                       "arange: the step is %g; give one that leads from start "
                       "to end",
                       by);
    if (!isfinite(first) || !isfinite(last))
        return dt_fail(DT_ERROR_RUNTIME,
                       "arange: start %g and end %g have to be finite numbers", first,
                       last);
    if (by > 0 ? first > last : first < last)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "arange: a step of %g does not lead from %g to %g; change its sign, or "
            "swap start and end",
            by, first, last);
    if (whole) {
        /* Exact where doubles are not: the distance as an unsigned number. */
        uint64_t distance = by > 0 ? (uint64_t)end.i - (uint64_t)start.i
                                   : (uint64_t)start.i - (uint64_t)end.i;
        uint64_t stride = by > 0 ? (uint64_t)step.i : -(uint64_t)step.i;
        assert(stride);
        uint64_t count = distance / stride + (distance % stride != 0);
        if (count <= INT64_MAX)
            return (int64_t)count;
    } else {
        double count = ceil((last - first) / by);
        if (count < 9e18)
            return (int64_t)count;
    }
    return dt_fail(DT_ERROR_RUNTIME,
                   "arange: from %g to %g by %g are too many numbers; use a "
                   "larger step",
                   first, last, by);
}

int dt_arange(dt_tensor *out, dt_scalar start, dt_scalar end, dt_scalar step, int dtype,
              dt_device device)
{
    if (dtype >= 0 && dt_dtype_is_complex((dt_dtype)dtype))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "arange: not defined for the type %s; convert the result with "
                       ".to()",
                       dt_dtype_name((dt_dtype)dtype));
    /* An integer type that was asked for applies to the ends and the step themselves.
     */
    if (dtype >= 0 && !dt_dtype_is_float((dt_dtype)dtype) &&
        isfinite(dt_scalar_as_double(start)) && isfinite(dt_scalar_as_double(end))) {
        start = dt_scalar_int(dt_element_from_scalar(DT_INT64, start).as_int64);
        end = dt_scalar_int(dt_element_from_scalar(DT_INT64, end).as_int64);
        const bool stands = !dt_scalar_as_double(step);
        step = dt_scalar_int(dt_element_from_scalar(DT_INT64, step).as_int64);
        if (!step.i && !stands)
            return dt_fail(DT_ERROR_VALUE,
                           "arange: the step is less than 1, and 0 as a number of type "
                           "%s; give a whole step, or another dtype",
                           dt_dtype_name((dt_dtype)dtype));
    }
    bool whole = start.kind != DT_KIND_FLOAT && end.kind != DT_KIND_FLOAT &&
                 step.kind != DT_KIND_FLOAT;
    int64_t count = count_steps(start, end, step, whole);
    if (count < 0)
        return -1;
    if (dtype < 0)
        dtype = whole ? DT_INT64 : (int)dt_default_dtype();
    if (check_counts("arange", (dt_dtype)dtype) ||
        dt_tensor_empty("arange", out, (dt_dtype)dtype, 1, &count, device))
        return -1;
    if (!count)
        return 0;
    dt_arange_call call = {(dt_dtype)dtype, dt_tensor_data(out), count, start, step};
    if (dt_dtype_kind((dt_dtype)dtype) == DT_KIND_INTEGER) {
        /* Integers step by whole numbers, as PyTorch's do, whatever was given. */
        call.start = dt_element_to_scalar(
            DT_INT64, dt_element_from_scalar(DT_INT64, start).bytes);
        call.step = dt_element_to_scalar(DT_INT64,
                                         dt_element_from_scalar(DT_INT64, step).bytes);
    }
    return dt_storage_use(out->storage)
               ? -1
               : dt_backend_of(device)->arange(dt_stream_current(device), &call);
}

/* Elements between two looks for an interrupt. */
#define CHUNK 65536

/* PyTorch goes from both ends to the middle, rounding once. So do we, to the last bit.
 */
#define SPACED(type, FMA)                                                              \
    static int spaced_##type(type *out, type start, type end, int64_t steps)           \
    {                                                                                  \
        DT_WITHOUT_GIL(steps > 4096);                                                  \
        type step = steps > 1 ? (end - start) / (type)(steps - 1) : 0;                 \
        int64_t half = steps == 1 ? 1 : steps / 2;                                     \
        for (int64_t i = 0; i < steps;) {                                              \
            int64_t stop = steps - i < CHUNK ? steps : i + CHUNK;                      \
            for (; i < stop && i < half; i++)                                          \
                out[i] = FMA(step, (type)i, start);                                    \
            for (; i < stop; i++)                                                      \
                out[i] = FMA(-step, (type)(steps - i - 1), end);                       \
            if (dt_interrupt_check_rarely())                                           \
                return -1;                                                             \
        }                                                                              \
        return 0;                                                                      \
    }
SPACED(float, fmaf)
SPACED(double, fma)

/* On a GPU, two progressions, the second from the middle on. It would not reach the end
 * itself where start is much larger, so the last element is filled. */
static int spaced_there(dt_tensor *out, double start, double end)
{
    int64_t steps = out->numel, half = steps / 2;
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    dt_device device = dt_tensor_device(out);
    const dt_backend *backend = dt_backend_of(device);
    dt_dtype dtype = (dt_dtype)out->dtype;
    char *data = dt_tensor_data(out);
    dt_arange_call low = {dtype, data, half, dt_scalar_float(start),
                          dt_scalar_float(step)};
    dt_arange_call high = {
        dtype, data + half * (int64_t)dt_dtype_size(dtype), steps - half,
        dt_scalar_float(steps > 1 ? end - step * (double)(steps - half - 1) : start),
        dt_scalar_float(step)};
    if (dt_storage_use(out->storage) ||
        (half && backend->arange(dt_stream_current(device), &low)) ||
        backend->arange(dt_stream_current(device), &high))
        return -1;
    dt_arange_call last = {dtype, data + (steps - 1) * (int64_t)dt_dtype_size(dtype), 1,
                           dt_scalar_float(end), dt_scalar_float(0)};
    return steps > 1 ? backend->arange(dt_stream_current(device), &last) : 0;
}

/* An end of a range, a number or a tensor of one, or its imaginary part. */
static int end_of(const dt_call *c, int i, bool imag, double *out)
{
    const dt_tensor *t = c->args[i].tensor;
    dt_scalar number = c->args[i].scalar;
    char text[DT_SHAPE_TEXT];
    DT_LOCAL(part);
    if (t && t->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %s is a Tensor of shape %s; give a number, or a Tensor "
                       "without dimensions",
                       c->name, i ? "end" : "start",
                       dt_shape_text(t->ndim, t->shape, text, sizeof text));
    const bool complex = t && dt_dtype_is_complex((dt_dtype)t->dtype);
    if (complex)
        dt_complex_part(&part, t, imag);
    *out = 0;
    if (t && dt_item(c->name, complex ? &part : t, &number) < 0)
        return -1;
    if (complex || !imag)
        *out = dt_scalar_as_double(number);
    return 0;
}

/* Numbers from start to end, of float32 or float64. */
static int spaced(const dt_call *c, dt_tensor *out, dt_dtype dtype, dt_device device,
                  double start, double end)
{
    const int64_t steps = c->args[2].i;
    return dt_tensor_empty(c->name, out, dtype, 1, &steps, device) ? -1
           : steps && !dt_device_is_host(device) ? spaced_there(out, start, end)
           : dtype == DT_FLOAT32
               ? spaced_float(dt_tensor_data(out), (float)start, (float)end, steps)
               : spaced_double(dt_tensor_data(out), start, end, steps);
}

/* Parts of complex numbers, each evenly spaced. */
static int spaced_parts(const dt_call *c, dt_tensor *out, dt_dtype dtype,
                        dt_device device)
{
    if (!dt_dtype_is_complex(dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: an end is complex, and the dtype is %s; give a complex one",
                       c->name, dt_dtype_name(dtype));
    if (dt_tensor_empty(c->name, out, dtype, 1, &c->args[2].i, device))
        return -1;
    for (int p = 0; p < 2; p++) {
        DT_LOCAL(part);
        DT_LOCAL(target);
        double start = 0, end = 0;
        if (end_of(c, 0, p, &start) || end_of(c, 1, p, &end) ||
            spaced(c, &part, dt_dtype_part(dtype), device, start, end))
            return -1;
        dt_complex_part(&target, out, p);
        if (dt_copy_part(c->name, &target, &part))
            return -1;
    }
    return 0;
}

/* Where base is not NAN: base to the powers of the numbers. */
static int linspace(dt_call *c, double base, int first)
{
    dt_tensor *out = c->out[0];
    double start = 0, end = 0;
    bool complex = false;
    for (int i = 0; i < 2; i++)
        complex |= c->args[i].tensor &&
                   dt_dtype_is_complex((dt_dtype)c->args[i].tensor->dtype);
    if (!complex && (end_of(c, 0, false, &start) || end_of(c, 1, false, &end)))
        return -1;
    int64_t steps = c->args[2].i;
    dt_dtype dtype = dt_default_dtype();
    dtype = dt_factory_dtype(c, first, complex ? dt_dtype_to_complex(dtype) : dtype);
    dt_device device = c->args[first + 2].device;
    if (steps < 0)
        return dt_fail(DT_ERROR_RUNTIME, "%s: steps is %" PRId64 "; give 0 or more",
                       c->name, steps);
    if (check_counts(c->name, dtype))
        return -1;
    /* Integers are truncated doubles, between integral ends. */
    bool floats = dt_dtype_is_inexact(dtype);
    if (!floats) {
        start = trunc(start);
        end = trunc(end);
    }
    dt_dtype wide = floats ? dt_dtype_compute(dt_dtype_part(dtype)) : DT_FLOAT64;
    if (complex ? spaced_parts(c, out, dtype, device)
                : spaced(c, out, wide, device, start, end))
        return -1;
    const dt_arg *power =
        DT_ARGS(dt_arg_scalar(dt_scalar_float(base)), dt_arg_tensor(out));
    if (!isnan(base) && dt_elementwise_into(DT_OP_pow, out, power))
        return -1;
    out->storage->version = 0;
    return dt_retype(out, dtype);
}

/* --- factories --- */

dt_dtype dt_factory_dtype(const dt_call *c, int first, dt_dtype otherwise)
{
    int dtype = c->args[first].dtype;
    return dtype < 0 ? otherwise : (dt_dtype)dtype;
}

/* How a new tensor is filled. */
typedef struct recipe {
    enum { EMPTY, CONSTANT, RANDOM } how;
    dt_distribution distribution;
    dt_scalar low, high;     /* low alone: the constant, */
    const dt_tensor *number; /* unless it is this one */
    dt_generator *generator;
} recipe;

static const recipe empty = {.how = EMPTY};

static recipe constant(dt_scalar value)
{
    return (recipe){.how = CONSTANT, .low = value};
}
#define ZERO constant(dt_scalar_int(0))
#define ONE  constant(dt_scalar_int(1))

static recipe given(dt_value value)
{
    return (recipe){.how = CONSTANT, .low = value.scalar, .number = value.tensor};
}

static recipe drawn(dt_distribution distribution, dt_scalar low, dt_scalar high,
                    dt_generator *generator)
{
    return (recipe){.how = RANDOM,
                    .distribution = distribution,
                    .low = low,
                    .high = high,
                    .generator = generator};
}

static recipe uniform(dt_generator *generator)
{
    return drawn(DT_RANDOM_UNIFORM, dt_scalar_float(0), dt_scalar_float(1), generator);
}

static recipe normal(dt_generator *generator)
{
    return drawn(DT_RANDOM_NORMAL, dt_scalar_float(0), dt_scalar_float(1), generator);
}

static recipe integers(int64_t low, int64_t high, dt_generator *generator)
{
    return drawn(DT_RANDOM_INTEGERS, dt_scalar_int(low), dt_scalar_int(high),
                 generator);
}

/* strides NULL: row-major. Parameter `first` is dtype. */
static inline int create(dt_call *c, recipe r, int first, dt_dtype otherwise, int ndim,
                         const int64_t *shape, const int64_t *strides)
{
    dt_tensor *out = c->out[0];
    dt_dtype dtype = dt_factory_dtype(c, first, otherwise);
    dt_device device = c->args[first + 2].device;
    if (r.how == CONSTANT && !r.number && !strides)
        return dt_full(c->name, out, dtype, ndim, shape, device, r.low);
    if (strides
            ? dt_tensor_empty_strided(c->name, out, dtype, ndim, shape, strides, device)
            : dt_tensor_empty(c->name, out, dtype, ndim, shape, device))
        return -1;
    int status = r.how == EMPTY      ? 0
                 : r.number          ? fill_with(c->name, out, r.number, DT_ERROR_TYPE)
                 : r.how == CONSTANT ? dt_fill_into(c->name, out, r.low)
                                     : dt_random_into(c->name, out, r.distribution,
                                                      r.low, r.high, r.generator);
    out->storage->version = 0;
    return status;
}

/* Row-major, with the sizes of argument `sizes`. */
static int create_sized(dt_call *c, recipe r, int sizes, int first, dt_dtype otherwise)
{
    return create(c, r, first, otherwise, c->args[sizes].count, c->args[sizes].ints,
                  NULL);
}

/* Creates a tensor of the default floating type. */
static int create_float(dt_call *c, recipe r, int first)
{
    return create_sized(c, r, 0, first, dt_default_dtype());
}

static int full(dt_call *c)
{
    const dt_value *value = &c->args[1];
    dt_kind kind = value->tensor ? dt_dtype_kind((dt_dtype)value->tensor->dtype)
                                 : value->scalar.kind;
    dt_dtype dtype = kind == DT_KIND_COMPLEX ? dt_dtype_to_complex(dt_default_dtype())
                     : kind == DT_KIND_FLOAT ? dt_default_dtype()
                     : kind == DT_KIND_BOOL  ? DT_BOOL
                                             : DT_INT64;
    return create_sized(c, given(*value), 0, 2, dtype);
}

static int eye(dt_call *c)
{
    int64_t n = c->args[0].i, m = c->args[1].given ? c->args[1].i : n;
    int64_t shape[] = {n, m}, length = n < m ? n : m, step = m + 1;
    DT_LOCAL(diagonal);
    if (create(c, ZERO, 2, dt_default_dtype(), 2, shape, NULL))
        return -1;
    if (!c->out[0]->numel)
        return 0;
    return dt_view_as_strided(&diagonal, c->out[0], 1, &length, &step, 0)
               ? -1
               : dt_fill_into("eye", &diagonal, dt_scalar_int(1));
}

/* --- like another tensor --- */

/* memory_format follows the keywords of all factories. */
static int create_like(dt_call *c, recipe r, int first)
{
    const dt_tensor *x = c->args[0].tensor;
    int order[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM];
    dt_format format = (dt_format)c->args[first + DT_FACTORY_NKWARGS].i;
    if (dt_format_check(c->name, format, x->ndim))
        return -1;
    bool preserve = format == DT_FORMAT_PRESERVE;
    bool ordered = preserve
                       ? !x->contiguous && x->numel && !dt_tensor_overlaps_itself(x)
                       : format != DT_FORMAT_CONTIGUOUS;
    if (ordered && preserve) {
        dt_shape_order(x->ndim, x->strides, order);
        dt_shape_ordered_strides(x->ndim, x->shape, order, strides);
    } else if (ordered) {
        dt_format_strides(format, x->ndim, x->shape, strides);
    }
    return create(c, r, first, (dt_dtype)x->dtype, x->ndim, x->shape,
                  ordered ? strides : NULL);
}

/* Creates a tensor of another one's type and device, of the sizes in argument 1. */
static int create_new(dt_call *c, recipe r, int first)
{
    return create_sized(c, r, 1, first, (dt_dtype)c->args[0].tensor->dtype);
}

/* --- with an order in memory --- */

static int create_empty(dt_call *c)
{
    int ndim = c->args[0].count;
    const int64_t *shape = c->args[0].ints;
    int64_t strides[DT_MAX_NDIM];
    dt_format format = (dt_format)c->args[7].i;
    if (!c->args[7].given || format == DT_FORMAT_CONTIGUOUS)
        return create(c, empty, 1, dt_default_dtype(), ndim, shape, NULL);
    if (format == DT_FORMAT_PRESERVE)
        return dt_fail(DT_ERROR_RUNTIME,
                       "empty(): preserve_format needs another tensor to be like; give "
                       "contiguous_format or channels_last");
    if (dt_format_check(c->name, format, ndim))
        return -1;
    dt_format_strides(format, ndim, shape, strides);
    return create(c, empty, 1, dt_default_dtype(), ndim, shape, strides);
}

/* Checks that a tensor of a shape can have the strides; -1 after dt_fail. */
static int check_strides(const char *op_name, int ndim, const int64_t *shape,
                         int nstrides, const int64_t *strides)
{
    if (nstrides != ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): size has %d dimensions and stride %d; give as many",
                       op_name, ndim, nstrides);
    int64_t reach = 0;
    for (int d = 0; d < ndim; d++) {
        int64_t span;
        if (strides[d] < 0 ||
            (shape[d] > 1 &&
             (__builtin_mul_overflow(shape[d] - 1, strides[d], &span) ||
              __builtin_add_overflow(reach, span, &reach) || reach >= INT64_MAX / 8)))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s(): a stride of %" PRId64 " for a size of %" PRId64
                           " reaches beyond what memory can hold; give smaller strides "
                           "of 0 or more",
                           op_name, strides[d], shape[d]);
    }
    return 0;
}

static int create_strided(dt_call *c, int sizes, const int64_t *strides,
                          dt_dtype otherwise)
{
    const dt_value *size = &c->args[sizes];
    if (check_strides(c->name, size->count, size->ints, c->args[sizes + 1].count,
                      strides))
        return -1;
    return create(c, empty, sizes + 2, otherwise, size->count, size->ints, strides);
}

static int empty_permuted(dt_call *c)
{
    int ndim = c->args[0].count, norder = c->args[1].count;
    const int64_t *shape = c->args[0].ints, *order = c->args[1].ints;
    int64_t strides[DT_MAX_NDIM], step = 1;
    bool seen[DT_MAX_NDIM] = {false};
    for (int i = norder - 1; i >= 0; i--) {
        if (norder != ndim || order[i] < 0 || order[i] >= ndim || seen[order[i]])
            return dt_fail(
                DT_ERROR_RUNTIME,
                "empty_permuted(): physical_layout has to name each of the %d "
                "dimensions once, as 0 to %d, the outermost in memory first",
                ndim, ndim - 1);
        seen[order[i]] = true;
        strides[order[i]] = step;
        if (shape[order[i]] > 1 && __builtin_mul_overflow(step, shape[order[i]], &step))
            step = INT64_MAX; /* rejected by check_strides */
    }
    return create_strided(c, 0, strides, dt_default_dtype());
}

/* --- into a tensor --- */

static int fill(dt_call *c)
{
    const dt_value *value = &c->args[1];
    return value->tensor
               ? fill_with(c->name, c->out[0], value->tensor, DT_ERROR_RUNTIME)
               : dt_fill_into(c->name, c->out[0], value->scalar);
}

/* --- triangles of a matrix --- */

/* Zeros above diagonal k (lower), or below it, which is k columns to the right of the
 * main one. */
static int triangle(dt_call *c, bool lower)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_device device = dt_tensor_device(x);
    int64_t k = c->args[1].i;
    const dt_scalar none = dt_scalar_int(0), one = dt_scalar_int(1);
    DT_LOCAL(row);
    DT_LOCAL(column);
    DT_LOCAL(tall);
    DT_LOCAL(mask);
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: input has %d dimensions; give a matrix, or a batch of them",
                       c->name, x->ndim);
    int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    /* Beyond the corners all diagonals are the same, and would overflow. */
    k = k > columns ? columns : k < -rows ? -rows : k;
    if (dt_arange(&row, none, dt_scalar_int(columns), one, DT_INT64, device) ||
        dt_arange(&column, dt_scalar_int(k), dt_scalar_int(k + rows), one, DT_INT64,
                  device) ||
        dt_view_unsqueeze(&tall, &column, 1) ||
        dt_elementwise(lower ? DT_OP_le : DT_OP_ge, &mask,
                       DT_ARGS(dt_arg_tensor(&row), dt_arg_tensor(&tall))))
        return dt_fail_prefix("%s: ", c->name);
    dt_scalar zero = x->dtype == DT_BOOL ? dt_scalar_bool(false) : none;
    const dt_arg *args =
        DT_ARGS(dt_arg_tensor(&mask), dt_arg_tensor(x), dt_arg_scalar(zero));
    return c->in_place ? dt_elementwise_into(DT_OP_where, c->out[0], args)
                       : dt_elementwise(DT_OP_where, c->out[0], args);
}

#include "tensor/ops/define.h"
#include "ops/functions/create.def"
