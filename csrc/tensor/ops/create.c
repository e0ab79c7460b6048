#include "tensor/ops/create.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sys/random.h>
#include <time.h>

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/format.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

static int check_value(const char *what, dt_dtype dtype, dt_scalar value)
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
                what, value.f, dt_dtype_name(dtype));
    }
    if (dt_scalar_fits(dtype, value))
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the number %" PRId64
                   " does not fit into the type %s; use a wider type",
                   what, value.i, dt_dtype_name(dtype));
}

int dt_fill_into(const char *what, dt_tensor *target, dt_scalar value)
{
    dt_plan plan;
    dt_dtype dtype = (dt_dtype)target->dtype;
    dt_device device = dt_tensor_device(target);
    dt_input input = {.tensor = NULL, .dtype = dtype};
    if (check_value(what, dtype, value))
        return -1;
    input.value = dt_element_from_scalar(dtype, value);
    int status = dt_iterate_plan(&plan, what, target, dtype, device, &input, 1);
    if (status)
        return status < 0 ? -1 : 0;
    if (dt_storage_use(target->storage))
        return -1;
    return dt_backend_of(device)->fill(dt_stream_current(device), &plan);
}

int dt_full(const char *what, dt_tensor *out, dt_dtype dtype, int ndim,
            const int64_t *shape, dt_device device, dt_scalar value)
{
    if (dt_tensor_empty(what, out, dtype, ndim, shape, device))
        return -1;
    if (dt_fill_into(what, out, value)) {
        dt_tensor_clear(out);
        return -1;
    }
    out->storage->version = 0;
    return 0;
}

/* How many steps lie before the end; -1 after dt_fail. */
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
    /* An integer type that was asked for applies to the ends and the step themselves.
     */
    if (dtype >= 0 && !dt_dtype_is_float((dt_dtype)dtype) &&
        isfinite(dt_scalar_as_double(start)) && isfinite(dt_scalar_as_double(end))) {
        start = dt_scalar_int(dt_element_from_scalar(DT_INT64, start).as_int64);
        end = dt_scalar_int(dt_element_from_scalar(DT_INT64, end).as_int64);
        step = dt_scalar_int(dt_element_from_scalar(DT_INT64, step).as_int64);
    }
    bool whole = start.kind != DT_KIND_FLOAT && end.kind != DT_KIND_FLOAT &&
                 step.kind != DT_KIND_FLOAT;
    out->storage = NULL;
    int64_t count = count_steps(start, end, step, whole);
    if (count < 0)
        return -1;
    if (dtype < 0)
        dtype = whole ? DT_INT64 : (int)dt_default_dtype();
    if (dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "arange: not defined for the type bool; use an integer or floating type");
    if (dt_tensor_empty("arange", out, (dt_dtype)dtype, 1, &count, device))
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
    if (dt_storage_use(out->storage) ||
        dt_backend_of(device)->arange(dt_stream_current(device), &call)) {
        dt_tensor_clear(out);
        return -1;
    }
    return 0;
}

int dt_eye(dt_tensor *out, int64_t n, int64_t m, dt_dtype dtype, dt_device device)
{
    int64_t shape[] = {n, m}, length = n < m ? n : m, step = m + 1;
    dt_tensor diagonal;
    if (dt_full("eye", out, dtype, 2, shape, device, dt_scalar_int(0)))
        return -1;
    if (!out->numel)
        return 0;
    int status = dt_view_as_strided(&diagonal, out, 1, &length, &step, 0);
    if (!status) {
        status = dt_fill_into("eye", &diagonal, dt_scalar_int(1));
        dt_tensor_clear(&diagonal);
    }
    if (status)
        dt_tensor_clear(out);
    return status;
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
    dt_scalar low, high; /* low alone: the constant */
    dt_generator *generator;
} recipe;

static const recipe empty = {.how = EMPTY};

static recipe constant(dt_scalar value)
{
    return (recipe){.how = CONSTANT, .low = value};
}

static recipe uniform(dt_generator *generator)
{
    return (recipe){RANDOM, DT_RANDOM_UNIFORM, dt_scalar_float(0), dt_scalar_float(1),
                    generator};
}

static recipe normal(dt_generator *generator)
{
    return (recipe){RANDOM, DT_RANDOM_NORMAL, dt_scalar_float(0), dt_scalar_float(1),
                    generator};
}

static recipe integers(int64_t low, int64_t high, dt_generator *generator)
{
    return (recipe){RANDOM, DT_RANDOM_INTEGERS, dt_scalar_int(low), dt_scalar_int(high),
                    generator};
}

/* strides NULL: row-major. */
static int create(dt_call *c, recipe r, int first, dt_dtype otherwise, int ndim,
                  const int64_t *shape, const int64_t *strides)
{
    dt_tensor *out = c->out[0];
    dt_dtype dtype = dt_factory_dtype(c, first, otherwise);
    dt_device device = c->args[first + 2].device;
    int status;
    if (r.how == CONSTANT && !strides)
        return dt_full(c->name, out, dtype, ndim, shape, device, r.low);
    if (strides
            ? dt_tensor_empty_strided(c->name, out, dtype, ndim, shape, strides, device)
            : dt_tensor_empty(c->name, out, dtype, ndim, shape, device))
        return -1;
    if (r.how == EMPTY)
        return 0;
    status = r.how == CONSTANT ? dt_fill_into(c->name, out, r.low)
                               : dt_random_into(c->name, out, r.distribution, r.low,
                                                r.high, r.generator);
    if (status)
        dt_tensor_clear(out);
    return status;
}

/* Row-major, with the sizes of argument `sizes`. */
static int create_sized(dt_call *c, recipe r, int sizes, int first, dt_dtype otherwise)
{
    return create(c, r, first, otherwise, c->args[sizes].count, c->args[sizes].ints,
                  NULL);
}

int dt_zeros_forward(dt_call *c)
{
    return create_sized(c, constant(dt_scalar_int(0)), 0, 1, dt_default_dtype());
}

int dt_ones_forward(dt_call *c)
{
    return create_sized(c, constant(dt_scalar_int(1)), 0, 1, dt_default_dtype());
}

int dt_full_forward(dt_call *c)
{
    dt_scalar value = c->args[1].scalar;
    dt_dtype dtype = value.kind == DT_KIND_FLOAT  ? dt_default_dtype()
                     : value.kind == DT_KIND_BOOL ? DT_BOOL
                                                  : DT_INT64;
    return create_sized(c, constant(value), 0, 2, dtype);
}

int dt_scalar_tensor_forward(dt_call *c)
{
    return create(c, constant(c->args[0].scalar), 1, dt_default_dtype(), 0, NULL, NULL);
}

int dt_rand_forward(dt_call *c)
{
    return create_sized(c, uniform(c->args[1].generator), 0, 2, dt_default_dtype());
}

int dt_randn_forward(dt_call *c)
{
    return create_sized(c, normal(c->args[1].generator), 0, 2, dt_default_dtype());
}

int dt_randint_forward(dt_call *c)
{
    recipe r = integers(0, c->args[0].i, c->args[2].generator);
    return create_sized(c, r, 1, 3, DT_INT64);
}

int dt_randint_from_forward(dt_call *c)
{
    recipe r = integers(c->args[0].i, c->args[1].i, c->args[3].generator);
    return create_sized(c, r, 2, 4, DT_INT64);
}

int dt_arange_forward(dt_call *c)
{
    return dt_arange(c->out[0], dt_scalar_int(0), c->args[0].scalar, dt_scalar_int(1),
                     c->args[1].dtype, c->args[3].device);
}

int dt_arange_from_forward(dt_call *c)
{
    return dt_arange(c->out[0], c->args[0].scalar, c->args[1].scalar, c->args[2].scalar,
                     c->args[3].dtype, c->args[5].device);
}

int dt_eye_forward(dt_call *c)
{
    int64_t n = c->args[0].i, m = c->args[1].given ? c->args[1].i : n;
    return dt_eye(c->out[0], n, m, dt_factory_dtype(c, 2, dt_default_dtype()),
                  c->args[4].device);
}

/* --- like another tensor --- */

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

/* memory_format follows the keywords of all factories. */
static int create_like(dt_call *c, recipe r, int first)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t strides[DT_MAX_NDIM];
    dt_format format = (dt_format)c->args[first + DT_FACTORY_NKWARGS].i;
    if (dt_format_check(c->name, format, x->ndim))
        return -1;
    bool preserve = format == DT_FORMAT_PRESERVE;
    bool ordered = preserve
                       ? !x->contiguous && x->numel && !dt_tensor_overlaps_itself(x)
                       : format != DT_FORMAT_CONTIGUOUS;
    if (ordered && preserve)
        strides_like(x, strides);
    else if (ordered)
        dt_format_strides(format, x->ndim, x->shape, strides);
    return create(c, r, first, (dt_dtype)x->dtype, x->ndim, x->shape,
                  ordered ? strides : NULL);
}

int dt_empty_like_forward(dt_call *c)
{
    return create_like(c, empty, 1);
}

int dt_zeros_like_forward(dt_call *c)
{
    return create_like(c, constant(dt_scalar_int(0)), 1);
}

int dt_ones_like_forward(dt_call *c)
{
    return create_like(c, constant(dt_scalar_int(1)), 1);
}

int dt_full_like_forward(dt_call *c)
{
    return create_like(c, constant(c->args[1].scalar), 2);
}

int dt_rand_like_forward(dt_call *c)
{
    return create_like(c, uniform(NULL), 1);
}

int dt_randn_like_forward(dt_call *c)
{
    return create_like(c, normal(NULL), 1);
}

int dt_randint_like_forward(dt_call *c)
{
    return create_like(c, integers(0, c->args[1].i, NULL), 2);
}

int dt_randint_like_from_forward(dt_call *c)
{
    return create_like(c, integers(c->args[1].i, c->args[2].i, NULL), 3);
}

static int create_new(dt_call *c, recipe r, int first)
{
    return create_sized(c, r, 1, first, (dt_dtype)c->args[0].tensor->dtype);
}

int dt_new_empty_forward(dt_call *c)
{
    return create_new(c, empty, 2);
}

int dt_new_zeros_forward(dt_call *c)
{
    return create_new(c, constant(dt_scalar_int(0)), 2);
}

int dt_new_ones_forward(dt_call *c)
{
    return create_new(c, constant(dt_scalar_int(1)), 2);
}

int dt_new_full_forward(dt_call *c)
{
    return create_new(c, constant(c->args[2].scalar), 3);
}

/* --- with an order in memory --- */

int dt_empty_forward(dt_call *c)
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
static int check_strides(const char *what, int ndim, const int64_t *shape, int nstrides,
                         const int64_t *strides)
{
    if (nstrides != ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): size has %d dimensions and stride %d; give as many", what,
                       ndim, nstrides);
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
                           what, strides[d], shape[d]);
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

int dt_empty_strided_forward(dt_call *c)
{
    return create_strided(c, 0, c->args[1].ints, dt_default_dtype());
}

int dt_new_empty_strided_forward(dt_call *c)
{
    return create_strided(c, 1, c->args[2].ints, (dt_dtype)c->args[0].tensor->dtype);
}

int dt_empty_permuted_forward(dt_call *c)
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

int dt_fill_forward(dt_call *c)
{
    const dt_tensor *value = c->args[1].tensor;
    if (value && value->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): value has %d dimensions; give a number or a Tensor "
                       "without dimensions, or use copy_()",
                       c->name, value->ndim);
    return value ? dt_copy_into(c->name, c->out[0], value)
                 : dt_fill_into(c->name, c->out[0], c->args[1].scalar);
}

int dt_zero_forward(dt_call *c)
{
    return dt_fill_into(c->name, c->out[0], dt_scalar_int(0));
}

/* --- random numbers --- */

static struct {
    pthread_mutex_t lock;
    dt_generator generators[DT_NDEVICE_TYPES][DT_MAX_DEVICES];
    bool made[DT_NDEVICE_TYPES][DT_MAX_DEVICES];
    bool seeded; /* GPUs that come later take this seed too */
    uint64_t seed;
} random_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t fresh_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
    return seed >> 11; /* survives a trip through a double */
}

dt_generator *dt_default_generator(dt_device device)
{
    dt_generator *generator =
        &random_state.generators[(int)device.type][(int)device.index];
    bool *made = &random_state.made[(int)device.type][(int)device.index];
    if (__atomic_load_n(made, __ATOMIC_ACQUIRE))
        return generator;
    pthread_mutex_lock(&random_state.lock);
    if (!*made) {
        bool known = random_state.seeded && device.type == DT_CUDA;
        dt_generator_init(generator, known ? random_state.seed : fresh_seed());
        __atomic_store_n(made, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&random_state.lock);
    return generator;
}

void dt_seed_cuda(uint64_t seed)
{
    pthread_mutex_lock(&random_state.lock);
    random_state.seeded = true;
    random_state.seed = seed;
    for (int i = 0; i < DT_MAX_DEVICES; i++)
        if (random_state.made[DT_CUDA][i])
            dt_generator_seed(&random_state.generators[DT_CUDA][i], seed);
    pthread_mutex_unlock(&random_state.lock);
}

void dt_seed_all(uint64_t seed)
{
    dt_generator_seed(dt_default_generator(dt_device_make(DT_CPU, 0)), seed);
    dt_seed_cuda(seed);
}

static const char *const distribution_names[DT_NDISTRIBUTIONS] = {
    "uniform", "normal", "randint", "bernoulli"};

static int check_random(const char *what, dt_distribution distribution, dt_dtype dtype,
                        dt_scalar low, dt_scalar high)
{
    double a = dt_scalar_as_double(low), b = dt_scalar_as_double(high);
    if (distribution <= DT_RANDOM_NORMAL && !dt_dtype_is_float(dtype))
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: %s numbers are not whole, but the type is %s; use a floating type, "
            "or randint",
            what, distribution_names[distribution], dt_dtype_name(dtype));
    if (distribution == DT_RANDOM_UNIFORM && !(a <= b))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the interval from %g to %g is empty; give the lower bound first", what,
            a, b);
    if (distribution == DT_RANDOM_NORMAL && !(b >= 0))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the standard deviation is %g; give 0 or more", what, b);
    if (distribution == DT_RANDOM_INTEGERS && low.i >= high.i && high.i != INT64_MIN)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: there is no integer from %" PRId64
                       " up to but without %" PRId64 "; give low < high",
                       what, low.i, high.i);
    if (distribution == DT_RANDOM_BERNOULLI && !(a >= 0 && a <= 1))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the probability is %g; give one from 0 to 1", what, a);
    return 0;
}

int dt_random_into(const char *what, dt_tensor *target, dt_distribution distribution,
                   dt_scalar low, dt_scalar high, dt_generator *generator)
{
    dt_dtype dtype = (dt_dtype)target->dtype;
    dt_device device = dt_tensor_device(target);
    dt_tensor dense = {.storage = NULL};
    if (check_random(what, distribution, dtype, low, high))
        return -1;
    if (target->storage->read_only)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the target's memory is read-only; clone() it before writing", what);
    if (!target->numel)
        return 0;
    dt_tensor_written(target);
    /* A backend fills memory in one run, so a dense tensor is filled as it lies in
     * memory, and other layouts through a row-major copy: PyTorch's order in both
     * cases. */
    bool in_one_run = dt_tensor_is_non_overlapping_and_dense(target);
    if (!in_one_run &&
        dt_tensor_empty(what, &dense, dtype, target->ndim, target->shape, device))
        return -1;
    dt_tensor *filled = in_one_run ? target : &dense;
    if (!generator)
        generator = dt_default_generator(device);
    dt_random_call call = {distribution, dtype, dt_tensor_data(filled), filled->numel,
                           low,          high,  !target->contiguous};
    int status = -1;
    if (!dt_storage_use(filled->storage) &&
        !dt_backend_of(device)->random(dt_stream_current(device), generator, &call))
        status = filled == target ? 0 : dt_copy_into(what, target, &dense);
    dt_tensor_clear(&dense);
    return status;
}
