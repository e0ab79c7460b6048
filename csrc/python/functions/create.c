/* Tensors from nothing, and their random numbers. */
#include <math.h>

#include "autograd/recorded.h"
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/types/format.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/create.h"
#include "tensor/ops/linspace.h"

/* How a new tensor is filled. */
typedef enum fill { EMPTY, CONSTANT, UNIFORM, NORMAL, INTEGERS } fill;

typedef struct recipe {
    fill how;
    dt_scalar low, high; /* low alone: the constant */
    dt_generator *generator;
} recipe;

/* strides NULL: row-major. */
static int make(const char *what, dt_tensor *out, const recipe *r, dt_dtype dtype,
                int ndim, const int64_t *shape, const int64_t *strides,
                dt_device device)
{
    static const dt_distribution distributions[] = {
        [UNIFORM] = DT_RANDOM_UNIFORM,
        [NORMAL] = DT_RANDOM_NORMAL,
        [INTEGERS] = DT_RANDOM_INTEGERS,
    };
    if (r->how == CONSTANT && !strides)
        return dt_full(what, out, dtype, ndim, shape, device, r->low);
    if ((strides
             ? dt_tensor_empty_strided(what, out, dtype, ndim, shape, strides, device)
             : dt_tensor_empty(what, out, dtype, ndim, shape, device)) < 0)
        return -1;
    if (r->how == EMPTY)
        return 0;
    if (r->how == CONSTANT) {
        if (dt_fill_into(what, out, r->low) == 0)
            return 0;
    } else if (dt_random_into(what, out, distributions[r->how], r->low, r->high,
                              r->generator) == 0) {
        return 0;
    }
    dt_tensor_clear(out);
    return -1;
}

/* The words of DT_FACTORY_KWARGS begin at first. */
static PyObject *create(const dt_args *args, int first, const recipe *r, int dtype,
                        int ndim, const int64_t *shape, const int64_t *strides,
                        dt_device device)
{
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    /* The product may be nonsense: whether it is too large is for the core to say. */
    double numel = 1;
    for (int d = 0; d < ndim; d++)
        numel *= (double)shape[d];
    int status;
    DT_RUN(status, numel > DT_LONG_NUMEL,
           make(args->signature->name, &out->tensor, r, (dt_dtype)dtype, ndim, shape,
                strides, device));
    return dt_finish_factory(args, first, dt_tensor_result(out, status));
}

/* Sizes are parameter 0, the words of DT_FACTORY_KWARGS begin at first. */
static PyObject *create_sized(const dt_args *args, int first, int sizes_at,
                              int generator_at, recipe r, int dtype)
{
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    dt_device device;
    if (dt_take_sizes(args, sizes_at, &ndim, shape) < 0 ||
        dt_take_factory(args, first, &dtype, &device) < 0 ||
        (generator_at >= 0 &&
         dt_take_generator(args, generator_at, device, &r.generator) < 0))
        return NULL;
    return create(args, first, &r, dtype, ndim, shape, NULL, device);
}

static recipe constant(int64_t value)
{
    return (recipe){.how = CONSTANT, .low = dt_scalar_int(value)};
}
static recipe uniform(void)
{
    return (recipe){UNIFORM, dt_scalar_float(0), dt_scalar_float(1), NULL};
}
static recipe normal(void)
{
    return (recipe){NORMAL, dt_scalar_float(0), dt_scalar_float(1), NULL};
}
static const recipe nothing = {.how = EMPTY};

DT_PUBLIC(empty, "empty(*size: Sizes, " DT_FACTORY_KWARGS_OUT
                 ", memory_format: Format = None)")
{
    int ndim, dtype = dt_default_dtype();
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    dt_device device;
    dt_format format = DT_FORMAT_CONTIGUOUS;
    if (!dt_given(args, 7))
        return create_sized(args, 1, 0, -1, nothing, dtype);
    if (dt_take_sizes(args, 0, &ndim, shape) < 0 ||
        dt_take_factory(args, 1, &dtype, &device) < 0 ||
        dt_take_format(args, 7, &format) < 0 ||
        dt_format_check("empty", format, ndim) < 0)
        return NULL;
    if (format == DT_FORMAT_PRESERVE) {
        PyErr_SetString(PyExc_RuntimeError,
                        "empty(): preserve_format is no order, as there is nothing to "
                        "be like; give contiguous_format or channels_last");
        return NULL;
    }
    dt_format_strides(format, ndim, shape, strides);
    return create(args, 1, &nothing, dtype, ndim, shape,
                  format == DT_FORMAT_CONTIGUOUS ? NULL : strides, device);
}
DT_PUBLIC(zeros, "zeros(*size: Sizes, " DT_FACTORY_KWARGS_OUT ")")
{
    return create_sized(args, 1, 0, -1, constant(0), dt_default_dtype());
}
DT_PUBLIC(ones, "ones(*size: Sizes, " DT_FACTORY_KWARGS_OUT ")")
{
    return create_sized(args, 1, 0, -1, constant(1), dt_default_dtype());
}
DT_PUBLIC(rand,
          "rand(*size: Sizes, generator: Generator = None, " DT_FACTORY_KWARGS_OUT ")")
{
    return create_sized(args, 2, 0, 1, uniform(), dt_default_dtype());
}
DT_PUBLIC(randn,
          "randn(*size: Sizes, generator: Generator = None, " DT_FACTORY_KWARGS_OUT ")")
{
    return create_sized(args, 2, 0, 1, normal(), dt_default_dtype());
}

/* The type of a tensor full of value. */
static int dtype_of_value(dt_scalar value)
{
    if (value.kind == DT_KIND_FLOAT)
        return dt_default_dtype();
    return value.kind == DT_KIND_BOOL ? DT_BOOL : DT_INT64;
}

DT_PUBLIC(full, "full(size: Sizes, fill_value: Number, *, " DT_FACTORY_KWARGS_OUT ")")
{
    recipe r = {.how = CONSTANT};
    if (dt_take_number(args, 1, &r.low) < 0)
        return NULL;
    return create_sized(args, 2, 0, -1, r, dtype_of_value(r.low));
}

DT_PUBLIC(scalar_tensor, "scalar_tensor(s: Number, *, " DT_FACTORY_KWARGS ")")
{
    recipe r = {.how = CONSTANT};
    int dtype = dt_default_dtype();
    dt_device device;
    if (dt_take_number(args, 0, &r.low) < 0 ||
        dt_take_factory(args, 1, &dtype, &device) < 0)
        return NULL;
    return create(args, 1, &r, dtype, 0, NULL, NULL, device);
}

#define RANDINT_END                                                                    \
    "size: Sizes, *, generator: Generator = None, " DT_FACTORY_KWARGS_OUT ")"
DT_PUBLIC(randint, "randint(high: int, " RANDINT_END
                   " | randint(low: int, high: int, " RANDINT_END)
{
    int64_t low = 0, high;
    int at = args->form; /* of high */
    if ((at && dt_take_int(args, 0, &low) < 0) || dt_take_int(args, at, &high) < 0)
        return NULL;
    recipe r = {INTEGERS, dt_scalar_int(low), dt_scalar_int(high), NULL};
    return create_sized(args, at + 3, at + 1, at + 2, r, DT_INT64);
}

DT_PUBLIC(
    arange,
    "arange(end: Number, *, " DT_FACTORY_KWARGS_OUT ") | "
    "arange(start: Number, end: Number, step: Number = 1, *, " DT_FACTORY_KWARGS_OUT
    ")")
{
    dt_scalar start = dt_scalar_int(0), end, step = dt_scalar_int(1);
    int dtype = -1;
    dt_device device;
    bool from = args->form == 1;
    if ((from &&
         (dt_take_number(args, 0, &start) < 0 || dt_take_number(args, 2, &step) < 0)) ||
        dt_take_number(args, from, &end) < 0 ||
        dt_take_factory(args, from ? 3 : 1, &dtype, &device) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    double steps = (dt_scalar_as_double(end) - dt_scalar_as_double(start)) /
                   dt_scalar_as_double(step);
    int status;
    DT_RUN(status, steps > DT_LONG_NUMEL,
           dt_arange(&out->tensor, start, end, step, dtype, device));
    return dt_finish_factory(args, from ? 3 : 1, dt_tensor_result(out, status));
}

DT_PUBLIC(eye, "eye(n: int, m: int = None, *, " DT_FACTORY_KWARGS_OUT ")")
{
    int64_t n, m;
    int dtype = dt_default_dtype();
    dt_device device;
    if (dt_take_int(args, 0, &n) < 0)
        return NULL;
    m = n;
    if ((dt_given(args, 1) && dt_take_int(args, 1, &m) < 0) ||
        dt_take_factory(args, 2, &dtype, &device) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, (double)n * (double)m > DT_LONG_NUMEL,
           dt_eye(&out->tensor, n, m, (dt_dtype)dtype, device));
    return dt_finish_factory(args, 2, dt_tensor_result(out, status));
}

static PyObject *spaced(const dt_args *args, int first, double base)
{
    dt_scalar start, end;
    int64_t steps;
    int dtype = dt_default_dtype();
    dt_device device;
    if (dt_take_number(args, 0, &start) < 0 || dt_take_number(args, 1, &end) < 0 ||
        dt_take_int(args, 2, &steps) < 0 ||
        dt_take_factory(args, first, &dtype, &device) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, steps > DT_LONG_NUMEL,
           dt_linspace(args->signature->name, &out->tensor, dt_scalar_as_double(start),
                       dt_scalar_as_double(end), steps, base, (dt_dtype)dtype, device));
    return dt_finish_factory(args, first, dt_tensor_result(out, status));
}

DT_PUBLIC(linspace, "linspace(start: Number, end: Number, steps: int, "
                    "*, " DT_FACTORY_KWARGS_OUT ")")
{
    return spaced(args, 3, NAN);
}
DT_PUBLIC(logspace,
          "logspace(start: Number, end: Number, steps: int, base: float = 10, "
          "*, " DT_FACTORY_KWARGS_OUT ")")
{
    double base;
    if (dt_take_float(args, 3, &base) < 0)
        return NULL;
    return spaced(args, 4, base);
}

/* --- like another --- */

/* Type and device of a tensor unless the words at `first` say others. */
static int take_like(const dt_args *args, int first, const dt_tensor *x, int *dtype,
                     dt_device *device)
{
    *dtype = x->dtype;
    if (dt_given(args, first + 2))
        return dt_take_factory(args, first, dtype, device);
    dt_device unused;
    dt_args rest = *args; /* not the default device, which may not even exist */
    rest.slots[first + 2] = dt_py.cpu;
    *device = dt_tensor_device(x);
    return dt_take_factory(&rest, first, dtype, &unused);
}

/* The strides of a dense tensor with the order of dimensions of x. */
static void strides_like(const dt_tensor *x, int64_t *strides)
{
    int order[DT_MAX_NDIM]; /* innermost first */
    for (int d = x->ndim - 1, count = 0; d >= 0; d--) {
        int at = count++;
        for (; at && x->strides[order[at - 1]] > x->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t step = 1;
    for (int i = 0; i < x->ndim; i++) {
        strides[order[i]] = step;
        step *= x->shape[order[i]] > 1 ? x->shape[order[i]] : 1;
    }
}

static PyObject *create_like(const dt_args *args, int first, recipe r)
{
    dt_tensor *x;
    int dtype;
    dt_device device;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        take_like(args, first, x, &dtype, &device) < 0)
        return NULL;
    int64_t strides[DT_MAX_NDIM];
    dt_format format = DT_FORMAT_PRESERVE;
    if (dt_take_format(args, args->signature->count - 1, &format) < 0 ||
        dt_format_check(args->signature->name, format, x->ndim) < 0)
        return NULL;
    bool ordered = format == DT_FORMAT_PRESERVE
                       ? !x->contiguous && x->numel && !dt_tensor_overlaps_itself(x)
                       : format != DT_FORMAT_CONTIGUOUS;
    if (ordered && format != DT_FORMAT_PRESERVE)
        dt_format_strides(format, x->ndim, x->shape, strides);
    else if (ordered)
        strides_like(x, strides);
    return create(args, first, &r, dtype, x->ndim, x->shape, ordered ? strides : NULL,
                  device);
}

#define LIKE_WORDS DT_FACTORY_KWARGS ", memory_format: Format = None)"
DT_PUBLIC(empty_like, "empty_like(input: Tensor, *, " LIKE_WORDS)
{
    return create_like(args, 1, nothing);
}
DT_PUBLIC(zeros_like, "zeros_like(input: Tensor, *, " LIKE_WORDS)
{
    return create_like(args, 1, constant(0));
}
DT_PUBLIC(ones_like, "ones_like(input: Tensor, *, " LIKE_WORDS)
{
    return create_like(args, 1, constant(1));
}
DT_PUBLIC(rand_like, "rand_like(input: Tensor, *, " LIKE_WORDS)
{
    return create_like(args, 1, uniform());
}
DT_PUBLIC(randn_like, "randn_like(input: Tensor, *, " LIKE_WORDS)
{
    return create_like(args, 1, normal());
}
DT_PUBLIC(full_like, "full_like(input: Tensor, fill_value: Number, *, " LIKE_WORDS)
{
    recipe r = {.how = CONSTANT};
    if (dt_take_number(args, 1, &r.low) < 0)
        return NULL;
    return create_like(args, 2, r);
}
DT_PUBLIC(randint_like,
          "randint_like(input: Tensor, high: int, *, " LIKE_WORDS " | "
          "randint_like(input: Tensor, low: int, high: int, *, " LIKE_WORDS)
{
    int64_t low = 0, high;
    int at = args->form + 1; /* of high */
    if ((args->form && dt_take_int(args, 1, &low) < 0) ||
        dt_take_int(args, at, &high) < 0)
        return NULL;
    recipe r = {INTEGERS, dt_scalar_int(low), dt_scalar_int(high), NULL};
    return create_like(args, at + 1, r);
}

static PyObject *create_new(const dt_args *args, int first, recipe r)
{
    dt_tensor *x;
    int dtype, ndim;
    int64_t shape[DT_MAX_NDIM];
    dt_device device;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &ndim, shape) < 0 ||
        take_like(args, first, x, &dtype, &device) < 0)
        return NULL;
    return create(args, first, &r, dtype, ndim, shape, NULL, device);
}

DT_PUBLIC(new_empty, "new_empty(input: Tensor, *size: Sizes, " DT_FACTORY_KWARGS ")")
{
    return create_new(args, 2, nothing);
}
DT_PUBLIC(new_zeros, "new_zeros(input: Tensor, *size: Sizes, " DT_FACTORY_KWARGS ")")
{
    return create_new(args, 2, constant(0));
}
DT_PUBLIC(new_ones, "new_ones(input: Tensor, *size: Sizes, " DT_FACTORY_KWARGS ")")
{
    return create_new(args, 2, constant(1));
}
DT_PUBLIC(
    new_full,
    "new_full(input: Tensor, size: Sizes, fill_value: Number, *, " DT_FACTORY_KWARGS
    ")")
{
    recipe r = {.how = CONSTANT};
    if (dt_take_number(args, 2, &r.low) < 0)
        return NULL;
    return create_new(args, 3, r);
}
DT_PUBLIC(new_tensor, "new_tensor(input: Tensor, data: Any, *, " DT_FACTORY_KWARGS ")")
{
    dt_tensor *x;
    int dtype;
    dt_device device;
    if (dt_take_tensor(args, 0, &x) < 0 || take_like(args, 2, x, &dtype, &device) < 0)
        return NULL;
    return dt_finish_factory(
        args, 2, dt_tensor_from_data("new_tensor", args->slots[1], dtype, device));
}

/* --- with an order in memory --- */

/* Strides that a tensor of a shape can be made with; -1 raised. */
static int check_strides(const dt_args *args, int ndim, const int64_t *shape,
                         int nstrides, const int64_t *strides)
{
    const char *what = args->signature->name;
    if (nstrides != ndim) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): size has %d dimensions and stride %d; give as many", what,
                     ndim, nstrides);
        return -1;
    }
    int64_t reach = 0;
    for (int d = 0; d < ndim; d++) {
        int64_t span;
        if (strides[d] < 0 ||
            (shape[d] > 1 &&
             (__builtin_mul_overflow(shape[d] - 1, strides[d], &span) ||
              __builtin_add_overflow(reach, span, &reach) || reach >= INT64_MAX / 8))) {
            PyErr_Format(
                PyExc_RuntimeError,
                "%s(): a stride of %lld for a size of %lld reaches beyond what "
                "memory can hold; give smaller strides of 0 or more",
                what, (long long)strides[d], (long long)shape[d]);
            return -1;
        }
    }
    return 0;
}

DT_PUBLIC(empty_strided,
          "empty_strided(size: Sizes, stride: Sizes, *, " DT_FACTORY_KWARGS ")")
{
    int ndim, nstrides, dtype = dt_default_dtype();
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    dt_device device;
    if (dt_take_sizes(args, 0, &ndim, shape) < 0 ||
        dt_take_sizes(args, 1, &nstrides, strides) < 0 ||
        check_strides(args, ndim, shape, nstrides, strides) < 0 ||
        dt_take_factory(args, 2, &dtype, &device) < 0)
        return NULL;
    return create(args, 2, &nothing, dtype, ndim, shape, strides, device);
}

DT_PUBLIC(new_empty_strided, "new_empty_strided(input: Tensor, size: Sizes, "
                             "stride: Sizes, " DT_FACTORY_KWARGS ")")
{
    dt_tensor *x;
    int ndim, nstrides, dtype;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    dt_device device;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &ndim, shape) < 0 ||
        dt_take_sizes(args, 2, &nstrides, strides) < 0 ||
        check_strides(args, ndim, shape, nstrides, strides) < 0 ||
        take_like(args, 3, x, &dtype, &device) < 0)
        return NULL;
    return create(args, 3, &nothing, dtype, ndim, shape, strides, device);
}

DT_PUBLIC(empty_permuted, "empty_permuted(size: Sizes, physical_layout: Sizes, "
                          "*, " DT_FACTORY_KWARGS ")")
{
    int ndim, norder, dtype = dt_default_dtype();
    int64_t shape[DT_MAX_NDIM], order[DT_MAX_NDIM], strides[DT_MAX_NDIM], step = 1;
    bool seen[DT_MAX_NDIM] = {false};
    dt_device device;
    if (dt_take_sizes(args, 0, &ndim, shape) < 0 ||
        dt_take_sizes(args, 1, &norder, order) < 0 ||
        dt_take_factory(args, 2, &dtype, &device) < 0)
        return NULL;
    for (int i = norder - 1; i >= 0; i--) {
        if (norder != ndim || order[i] < 0 || order[i] >= ndim || seen[order[i]]) {
            PyErr_Format(PyExc_RuntimeError,
                         "empty_permuted(): physical_layout has to name each of the %d "
                         "dimensions once, as 0 to %d, the outermost in memory first",
                         ndim, ndim - 1);
            return NULL;
        }
        seen[order[i]] = true;
        strides[order[i]] = step;
        if (shape[order[i]] > 1 && __builtin_mul_overflow(step, shape[order[i]], &step))
            step = INT64_MAX; /* which the check of the strides refuses */
    }
    if (check_strides(args, ndim, shape, norder, strides) < 0)
        return NULL;
    return create(args, 2, &nothing, dtype, ndim, shape, strides, device);
}

/* --- triangles --- */

static int triangle(const char *what, dt_tensor *out, const dt_tensor *x, bool lower,
                    int64_t diagonal)
{
    dt_tensor mask;
    out->storage = NULL;
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: input has %d dimensions; give a matrix, or a batch of them",
                       what, x->ndim);
    if (dt_triangle(what, &mask, x->shape[x->ndim - 2], x->shape[x->ndim - 1], lower,
                    diagonal, dt_tensor_device(x)))
        return -1;
    dt_scalar zero = dt_dtype_kind((dt_dtype)x->dtype) == DT_KIND_BOOL
                         ? (dt_scalar){.kind = DT_KIND_BOOL}
                         : dt_scalar_int(0);
    int status = dt_recorded_elementwise(
        DT_OP_where, out,
        DT_ARGS(dt_arg_tensor(&mask), dt_arg_tensor(x), dt_arg_scalar(zero)));
    dt_tensor_clear(&mask);
    return status;
}

static PyObject *triangle_of(const dt_args *args, bool lower, bool in_place)
{
    dt_tensor *x;
    int64_t diagonal;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &diagonal) < 0)
        return NULL;
    const char *what = args->signature->name;
    int status;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           triangle(what, &out->tensor, x, lower, diagonal));
    if (!in_place || status)
        return dt_tensor_result(out, status);
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_copy_into(what, x, &out->tensor));
    PyObject *done = dt_tensor_result(out, status);
    if (!done)
        return NULL;
    Py_DECREF(done);
    return Py_NewRef(args->slots[0]);
}

DT_PUBLIC(tril, "tril(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, true, false);
}
DT_PUBLIC(triu, "triu(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, false, false);
}
DT_PUBLIC(tril_, "tril_(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, true, true);
}
DT_PUBLIC(triu_, "triu_(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, false, true);
}

/* --- into a tensor --- */

static PyObject *fill_random(const dt_args *args, dt_distribution distribution,
                             dt_scalar low, dt_scalar high, int generator_at)
{
    dt_tensor *x;
    dt_generator *generator;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        dt_take_generator(args, generator_at, dt_tensor_device(x), &generator) < 0)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_random_into(args->signature->name, x, distribution, low, high,
                                   generator));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

static PyObject *fill_two(const dt_args *args, dt_distribution distribution)
{
    dt_scalar low, high;
    if (dt_take_number(args, 1, &low) < 0 || dt_take_number(args, 2, &high) < 0)
        return NULL;
    return fill_random(args, distribution, dt_scalar_float(dt_scalar_as_double(low)),
                       dt_scalar_float(dt_scalar_as_double(high)), 3);
}

DT_PUBLIC(uniform_, "uniform_(input: Tensor, from_: float = 0, to: float = 1, *, "
                    "generator: Generator = None)")
{
    return fill_two(args, DT_RANDOM_UNIFORM);
}
DT_PUBLIC(normal_, "normal_(input: Tensor, mean: float = 0, std: float = 1, *, "
                   "generator: Generator = None)")
{
    return fill_two(args, DT_RANDOM_NORMAL);
}

/* The greatest integer up to which every one can be held, plus 1, as random_() draws
 * below it. */
static int64_t integers_of(dt_dtype dtype)
{
    if (dtype == DT_BOOL)
        return 2;
    if (dt_dtype_is_float(dtype))
        return (int64_t)(2 / dt_dtype_limits(dtype).eps) + 1;
    if (dtype == DT_INT32 || dtype == DT_INT64)
        return INT64_MIN; /* all of them, as dt_random_call says it */
    return INT64_C(1) << (8 * dt_dtype_size(dtype) - dt_dtype_is_signed(dtype));
}

DT_PUBLIC(random_, "random_(input: Tensor, *, generator: Generator = None) | "
                   "random_(input: Tensor, to: int, *, generator: Generator = None) | "
                   "random_(input: Tensor, from_: int, to: int = None, *, "
                   "generator: Generator = None)")
{
    dt_tensor *x;
    int64_t low = 0, high;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    high = integers_of((dt_dtype)x->dtype);
    if ((args->form == 1 && dt_take_int(args, 1, &high) < 0) ||
        (args->form == 2 && (dt_take_int(args, 1, &low) < 0 ||
                             (dt_given(args, 2) && dt_take_int(args, 2, &high) < 0))))
        return NULL;
    return fill_random(args, DT_RANDOM_INTEGERS, dt_scalar_int(low),
                       dt_scalar_int(high), args->form + 1);
}

DT_PUBLIC(fill_, "fill_(input: Tensor, value: Number)")
{
    dt_tensor *x;
    dt_scalar value;
    if (dt_tensor_check(args->slots[1]) && dt_tensor_of(args->slots[1])->ndim) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(
            PyExc_RuntimeError,
            "fill_(): value is %s; give a number or a Tensor without dimensions, or "
            "use copy_()",
            dt_describe(args->slots[1], text, sizeof text));
        return NULL;
    }
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_number(args, 1, &value) < 0)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL, dt_recorded_fill_into("fill_", x, value));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}
DT_PUBLIC(zero_, "zero_(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_fill_into("zero_", x, dt_scalar_int(0)));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    DT_FUNCTION(empty, "empty",
                "A tensor whose elements are whatever was in its memory.\n\n"
                "Sizes as arguments or as one sequence; dtype is the default floating "
                "type, device the default one. RuntimeError for negative sizes and "
                "where memory does not suffice."),
    DT_FUNCTION(zeros, "zeros",
                "A tensor of zeros.\n\n"
                "Sizes as arguments or as one sequence; dtype is the default floating "
                "type, device the default one. RuntimeError for negative sizes and "
                "where memory does not suffice."),
    DT_FUNCTION(ones, "ones",
                "A tensor of ones.\n\n"
                "Sizes as arguments or as one sequence; dtype is the default floating "
                "type, device the default one. RuntimeError for negative sizes and "
                "where memory does not suffice."),
    DT_FUNCTION(full, "full",
                "A tensor of one value.\n\n"
                "Its type is that of fill_value: bool, int64 or the default floating "
                "one."),
    DT_FUNCTION(scalar_tensor, "scalar_tensor",
                "A number as a tensor without dimensions.\n\n"
                "Of the default floating type, unlike tensor(s)."),
    DT_FUNCTION(empty_strided, "empty_strided",
                "As empty, with the given steps in memory between neighbours.\n\n"
                "RuntimeError for negative strides and for another number of them than "
                "of sizes."),
    DT_METHOD(new_empty_strided, "new_empty_strided",
              "As empty_strided, of the type and on the device of this."),
    DT_FUNCTION(empty_permuted, "empty_permuted",
                "As empty, with its dimensions in memory in the order of "
                "physical_layout, the outermost first."),
    DT_FUNCTION(rand, "rand",
                "Random numbers, uniform from 0 up to but without 1.\n\n"
                "Sizes as arguments or as one sequence; dtype is the default floating "
                "type, device the default one. RuntimeError for negative sizes and "
                "where memory does not suffice."),
    DT_FUNCTION(randn, "randn",
                "Random numbers of mean 0 and standard deviation 1.\n\n"
                "Sizes as arguments or as one sequence; dtype is the default floating "
                "type, device the default one. RuntimeError for negative sizes and "
                "where memory does not suffice."),
    DT_FUNCTION(randint, "randint",
                "Random integers from low up to but without high.\n\n"
                "int64. RuntimeError where low is not below high."),
    DT_FUNCTION(
        arange, "arange",
        "start, start + step, ... up to but without end.\n\n"
        "int64 where all are ints, else the default floating type. RuntimeError "
        "for a step of 0 or one that leads away from end."),
    DT_FUNCTION(eye, "eye",
                "The identity matrix.\n\n"
                "n rows and m (n) columns. RuntimeError where one is negative."),
    DT_FUNCTION(empty_like, "empty_like", "As empty, of the shape and type of input."),
    DT_FUNCTION(zeros_like, "zeros_like", "As zeros, of the shape and type of input."),
    DT_FUNCTION(ones_like, "ones_like", "As ones, of the shape and type of input."),
    DT_FUNCTION(full_like, "full_like", "As full, of the shape and type of input."),
    DT_FUNCTION(rand_like, "rand_like", "As rand, of the shape and type of input."),
    DT_FUNCTION(randn_like, "randn_like", "As randn, of the shape and type of input."),
    DT_FUNCTION(randint_like, "randint_like",
                "As randint, of the shape and type of input."),
    DT_METHOD(new_empty, "new_empty",
              "As empty, of the type and on the device of this."),
    DT_METHOD(new_zeros, "new_zeros",
              "As zeros, of the type and on the device of this."),
    DT_METHOD(new_ones, "new_ones", "As ones, of the type and on the device of this."),
    DT_METHOD(new_full, "new_full", "As full, of the type and on the device of this."),
    DT_METHOD(new_tensor, "new_tensor",
              "As tensor, of the type and on the device of this."),
    DT_METHOD(uniform_, "uniform_",
              "Fill with random numbers, uniform in [from_, to).\n\n"
              "Floating types only (NotImplementedError)."),
    DT_METHOD(normal_, "normal_",
              "Fill with normally distributed random numbers.\n\n"
              "Floating types only (NotImplementedError)."),
    DT_METHOD(random_, "random_", "Fill with random integers."),
    DT_BOTH(fill_, "fill_", "Fill with one value."),
    DT_BOTH(zero_, "zero_", "Fill with zeros."),
    DT_FUNCTION(linspace, "linspace",
                "steps numbers at even distances from start to end, both included.\n\n"
                "Of the default floating type. RuntimeError for negative steps."),
    DT_FUNCTION(logspace, "logspace",
                "base to the powers of linspace(start, end, steps).\n\n"
                "Of the default floating type. RuntimeError for negative steps."),
    DT_BOTH(tril, "tril",
            "A matrix with zeros above the diagonal.\n\n"
            "diagonal: how far above (or, negative, below) the main one. A batch of "
            "matrices too; RuntimeError for fewer than two dimensions."),
    DT_BOTH(triu, "triu",
            "A matrix with zeros below the diagonal.\n\n"
            "diagonal: how far above (or, negative, below) the main one. A batch of "
            "matrices too; RuntimeError for fewer than two dimensions."),
    DT_METHOD(tril_, "tril_", "Set what is above the diagonal to zero."),
    DT_METHOD(triu_, "triu_", "Set what is below the diagonal to zero."),
};

int dt_setup_creation(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
