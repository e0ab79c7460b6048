#include "tensor/ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/gil.h"
#include "base/lock.h"
#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "ops/philox.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* --- generators --- */

static struct {
    dt_generator generators[DT_DEVICE_SLOTS];
    bool made[DT_DEVICE_SLOTS];
    bool seeded; /* devices that come later, other than the CPU, take this seed too */
    uint64_t seed;
} random_state;

static uint64_t fresh_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
    return seed >> 11; /* survives a trip through a double */
}

dt_generator *dt_default_generator(dt_device device)
{
    const int slot = dt_device_slot(device);
    dt_generator *generator = &random_state.generators[slot];
    bool *made = &random_state.made[slot];
    if (__atomic_load_n(made, __ATOMIC_ACQUIRE))
        return generator;
    dt_lock(DT_LOCK_DEFAULT_GENERATORS);
    if (!*made) {
        bool known = random_state.seeded && !dt_device_is_cpu(device);
        dt_generator_init(generator, known ? random_state.seed : fresh_seed());
        __atomic_store_n(made, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_DEFAULT_GENERATORS);
    return generator;
}

void dt_seed_all(uint64_t seed)
{
    dt_default_generator(dt_device_make(DT_CPU, 0));
    dt_lock(DT_LOCK_DEFAULT_GENERATORS);
    random_state.seeded = true;
    random_state.seed = seed;
    for (int i = 0; i < DT_DEVICE_SLOTS; i++)
        if (random_state.made[i])
            dt_generator_seed(&random_state.generators[i], seed);
    dt_unlock(DT_LOCK_DEFAULT_GENERATORS);
}

/* --- filling a tensor --- */

static const char *const distribution_names[DT_NDISTRIBUTIONS] = {
    "uniform", "normal", "randint", "bernoulli", "dropout"};

static int check_random(const char *op_name, dt_distribution distribution,
                        dt_dtype dtype, dt_scalar low, dt_scalar high)
{
    double a = dt_scalar_as_double(low), b = dt_scalar_as_double(high);
    if (distribution <= DT_RANDOM_NORMAL && !dt_dtype_is_float(dtype))
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: %s numbers are not whole, but the type is %s; use a floating type, "
            "or randint",
            op_name, distribution_names[distribution], dt_dtype_name(dtype));
    if (distribution == DT_RANDOM_UNIFORM && !(a <= b))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the interval from %g to %g is empty; give the lower bound first",
            op_name, a, b);
    if (distribution == DT_RANDOM_NORMAL && !(b >= 0))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the standard deviation is %g; give 0 or more", op_name, b);
    if (distribution == DT_RANDOM_INTEGERS && low.i >= high.i && high.i != INT64_MIN)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: there is no integer from %" PRId64
                       " up to but without %" PRId64 "; give low < high",
                       op_name, low.i, high.i);
    if (distribution == DT_RANDOM_BERNOULLI && !(a >= 0 && a <= 1))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the probability is %g; give one from 0 to 1", op_name, a);
    return 0;
}

/* Draws the parts of complex numbers. */
static __attribute__((noinline)) int
random_complex(const char *op_name, dt_tensor *target, dt_distribution distribution,
               dt_scalar low, dt_scalar high, dt_generator *generator)
{
    DT_LOCAL(pairs);
    if (distribution > DT_RANDOM_NORMAL)
        return dt_check_real(op_name,
                             distribution == DT_RANDOM_BERNOULLI
                                 ? DT_ERROR_NOT_IMPLEMENTED
                                 : DT_ERROR_RUNTIME,
                             target);
    if (distribution == DT_RANDOM_NORMAL) /* whose variance they share */
        high = dt_scalar_float(dt_scalar_as_double(high) * 0.70710678118654752);
    return dt_complex_pairs(op_name, &pairs, target)
               ? -1
               : dt_random_into(op_name, &pairs, distribution, low, high, generator);
}

int dt_random_into(const char *op_name, dt_tensor *target, dt_distribution distribution,
                   dt_scalar low, dt_scalar high, dt_generator *generator)
{
    dt_dtype dtype = (dt_dtype)target->dtype;
    dt_device device = dt_tensor_device(target);
    DT_LOCAL(dense);
    if (dt_dtype_is_complex(dtype))
        return random_complex(op_name, target, distribution, low, high, generator);
    if (check_random(op_name, distribution, dtype, low, high))
        return -1;
    if (dt_tensor_check_writable(op_name, target))
        return -1;
    if (!target->numel)
        return 0;
    dt_tensor_written(target);
    /* A backend fills memory in one run, so a dense tensor is filled in memory
     * order, and other layouts through a row-major copy: PyTorch's order in both
     * cases. */
    bool in_one_run = dt_tensor_is_non_overlapping_and_dense(target);
    if (!in_one_run &&
        dt_tensor_empty(op_name, &dense, dtype, target->ndim, target->shape, device))
        return -1;
    dt_tensor *filled = in_one_run ? target : &dense;
    if (!generator)
        generator = dt_default_generator(device);
    dt_random_call call = {.distribution = distribution,
                           .dtype = dtype,
                           .out = dt_tensor_data(filled),
                           .numel = filled->numel,
                           .low = low,
                           .high = high,
                           .singly = !target->contiguous};
    if (dt_storage_use(filled->storage) ||
        dt_backend_of(device)->random(dt_stream_current(device), generator, &call))
        return -1;
    return in_one_run ? 0 : dt_copy_into(op_name, target, &dense);
}

/* --- permutations --- */

/* Up to here 32 bits are near enough to even for a remainder: PyTorch's bound. */
#define NARROW_PERMUTATION (UINT32_MAX / 20)

static int check_permutation(int64_t n, dt_dtype dtype)
{
    if (n < 0)
        return dt_fail(DT_ERROR_RUNTIME, "randperm: n is %" PRId64 "; give 0 or more",
                       n);
    if (dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "randperm: not defined for the type bool; use an integer or floating type");
    int64_t room = INT64_MAX;
    if (dt_dtype_is_float(dtype) && dtype != DT_BFLOAT16) /* which PyTorch lets round */
        room = (int64_t)(2 / dt_dtype_limits(dtype).eps);
    bool fits = dt_dtype_kind(dtype) == DT_KIND_FLOAT
                    ? n - 1 <= room
                    : !n || dt_scalar_fits(dtype, dt_scalar_int(n - 1));
    if (fits)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "randperm: the numbers below %" PRId64
                   " do not all fit into the type %s; use a wider type",
                   n, dt_dtype_name(dtype));
}

/* The next number for the host: of the CPU's twister, or of one Philox counter of a GPU's
 * generator. */
static uint64_t draw(dt_generator *generator, bool twister, bool narrow)
{
    if (twister)
        return narrow ? dt_generator_u32(generator) : dt_generator_u64(generator);
    dt_philox p = dt_philox_words(generator->seed, generator->offset++, 0);
    return narrow ? p.words[1] : (uint64_t)p.words[0] << 32 | p.words[1];
}

/* Draws between two looks for an interrupt. */
#define CHUNK 4096

static int shuffle(int64_t *p, int64_t n, dt_generator *generator, bool twister)
{
    bool narrow = n < NARROW_PERMUTATION;
    int status = 0;
    DT_WITHOUT_GIL(n > 4096);
    for (int64_t i = 0; i < n; i++)
        p[i] = i;
    dt_lock(generator->lock);
    for (int64_t i = 0; i < n - 1 && !status; i++) {
        uint64_t word = draw(generator, twister, narrow);
        int64_t j = i + (int64_t)(word % (uint64_t)(n - i)), kept = p[i];
        p[i] = p[j];
        p[j] = kept;
        if (i % CHUNK == 0)
            status = dt_generator_check(generator);
    }
    dt_unlock(generator->lock);
    return status;
}

/* Drawn on the host, also for a GPU, and then copied. */
static int randperm(dt_call *c)
{
    int64_t n = c->args[0].i;
    dt_generator *generator = c->args[1].generator;
    dt_dtype dtype = dt_factory_dtype(c, 2, DT_INT64);
    dt_device device = c->args[4].device;
    DT_LOCAL(order);
    if (check_permutation(n, dtype) ||
        dt_tensor_empty("randperm", &order, DT_INT64, 1, &n, dt_device_make(DT_CPU, 0)))
        return -1;
    if (!generator)
        generator = dt_default_generator(device);
    if (shuffle(dt_tensor_data(&order), n, generator, dt_device_is_cpu(device)))
        return -1;
    return dt_contiguous_as(c->out[0], &order, dtype, device);
}

/* --- one draw an element --- */

/* Uniform numbers of target's shape, drawn in the order in which target is filled. */
static int uniform_like(const char *op_name, dt_tensor *out, const dt_tensor *target,
                        dt_dtype dtype, dt_generator *generator)
{
    dt_device device = dt_tensor_device(target);
    if (dt_tensor_is_non_overlapping_and_dense(target)
            ? dt_tensor_empty_strided(op_name, out, dtype, target->ndim, target->shape,
                                      target->strides, device)
            : dt_tensor_empty(op_name, out, dtype, target->ndim, target->shape, device))
        return -1;
    return dt_random_into(op_name, out, DT_RANDOM_UNIFORM, dt_scalar_float(0),
                          dt_scalar_float(1), generator);
}

static int check_probabilities(const char *op_name, const dt_tensor *p)
{
    DT_LOCAL(wide);
    if (!dt_device_is_host(dt_tensor_device(p)))
        return 0;
    if (dt_contiguous_as(&wide, p, DT_FLOAT64, dt_tensor_device(p)))
        return -1;
    const double *values = dt_tensor_data(&wide);
    for (int64_t i = 0; i < wide.numel; i++)
        if (!(values[i] >= 0 && values[i] <= 1))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: a probability is %g; give numbers from 0 to 1", op_name,
                           values[i]);
    return 0;
}

/* 1 where a uniform number is less than the probability in p (broadcast to target), else
 * 0. Probabilities are checked on the CPU only, where that needs no synchronization. */
static int bernoulli_into(const char *op_name, dt_tensor *target, const dt_tensor *p,
                          dt_generator *generator)
{
    dt_dtype dtype = (dt_dtype)p->dtype;
    DT_LOCAL(wide);
    DT_LOCAL(drawn);
    DT_LOCAL(less);
    return dt_check_float(op_name, DT_ERROR_NOT_IMPLEMENTED, p) ||
                   check_probabilities(op_name, p) ||
                   dt_view_expand(op_name, &wide, p, target->ndim, target->shape) ||
                   uniform_like(op_name, &drawn, target, dt_dtype_compute(dtype),
                                generator) ||
                   dt_elementwise(
                       DT_OP_lt, &less,
                       DT_ARGS(dt_arg_tensor(&drawn), dt_arg_tensor(&wide))) ||
                   dt_copy_into(op_name, target, &less)
               ? -1
               : 0;
}

/* Draws with the probabilities p or, without them, with one number for all. */
static int write_bernoulli(dt_call *c, const dt_tensor *p, double number,
                           dt_generator *generator)
{
    return p ? bernoulli_into(c->name, c->out[0], p, generator)
             : dt_random_into(c->name, c->out[0], DT_RANDOM_BERNOULLI,
                              dt_scalar_float(number), dt_scalar_float(0), generator);
}

/* Row-major, whatever the layout of input: PyTorch's numbers. p NULL: the number. */
static int bernoulli(dt_call *c, const dt_tensor *p, double number,
                     dt_generator *generator)
{
    const dt_tensor *x = c->args[0].tensor;
    return dt_tensor_empty(c->name, c->out[0], (dt_dtype)x->dtype, x->ndim, x->shape,
                           dt_tensor_device(x))
               ? -1
               : write_bernoulli(c, p, number, generator);
}

/* --- in place --- */

static int bernoulli_in_place(dt_call *c)
{
    const dt_value *p = &c->args[1];
    return dt_tensor_check_writable(c->name, c->out[0])
               ? -1
               : write_bernoulli(c, p->tensor,
                                 p->tensor ? 0 : dt_scalar_as_double(p->scalar),
                                 c->args[2].generator);
}

static int random_into(dt_call *c, dt_distribution distribution)
{
    return dt_random_into(c->name, c->out[0], distribution,
                          dt_scalar_float(c->args[1].f), dt_scalar_float(c->args[2].f),
                          c->args[3].generator);
}

/* One more than the largest integer below which a type holds every integer. */
static int64_t integers_of(dt_dtype dtype)
{
    if (dtype == DT_BOOL)
        return 2;
    if (dt_dtype_is_float(dtype))
        return (int64_t)(2 / dt_dtype_limits(dtype).eps) + 1;
    if (dtype == DT_INT32 || dtype == DT_INT64)
        return INT64_MIN; /* all of them: dt_random_call */
    return INT64_C(1) << (8 * dt_dtype_size(dtype) - (dtype != DT_UINT8));
}

static int random_integers(dt_call *c, const dt_value *low, const dt_value *high,
                           dt_generator *generator)
{
    int64_t from = low ? low->i : 0;
    int64_t to =
        high && high->given ? high->i : integers_of((dt_dtype)c->out[0]->dtype);
    return dt_random_into(c->name, c->out[0], DT_RANDOM_INTEGERS, dt_scalar_int(from),
                          dt_scalar_int(to), generator);
}

static int exponential(dt_call *c)
{
    dt_tensor *target = c->out[0];
    double rate = c->args[1].f;
    DT_LOCAL(drawn);
    if (dt_tensor_check_writable(c->name, target) ||
        dt_check_float(c->name, DT_ERROR_RUNTIME, target))
        return -1;
    if (!(rate > 0))
        return dt_fail(DT_ERROR_RUNTIME, "%s: the rate is %g; give one above 0",
                       c->name, rate);
    const dt_arg numbers = dt_arg_tensor(&drawn),
                 factor = dt_arg_scalar(dt_scalar_float(-1 / rate));
    return uniform_like(c->name, &drawn, target, DT_FLOAT64, c->args[2].generator) ||
                   dt_elementwise_into(DT_OP_neg, &drawn, &numbers) ||
                   dt_elementwise_into(DT_OP_log1p, &drawn, &numbers) ||
                   dt_elementwise_into(DT_OP_mul, &drawn, DT_ARGS(numbers, factor)) ||
                   dt_copy_into(c->name, target, &drawn)
               ? -1
               : 0;
}

/* --- normal numbers of tensors of means and deviations --- */

static int check_deviations(const dt_tensor *std)
{
    DT_LOCAL(lowest);
    dt_scalar value;
    if (!dt_device_is_host(dt_tensor_device(std)) || !std->numel)
        return 0;
    if (dt_reduce(DT_REDUCE_amin, &lowest, std, 0, NULL, false, -1, 0) ||
        dt_item("normal", &lowest, &value))
        return -1;
    if (dt_scalar_as_double(value) < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "normal: a standard deviation is %g; give 0 or more",
                       dt_scalar_as_double(value));
    return 0;
}

static int normal(dt_call *c)
{
    const dt_tensor *mean = c->args[0].tensor, *std = c->args[1].tensor;
    const dt_tensor *like = mean ? mean : std;
    dt_tensor *out = c->out[0];
    int64_t shape[DT_MAX_NDIM];
    if (!like)
        return dt_fail(DT_ERROR_TYPE,
                       "normal(): mean and std are numbers; give a size too, or one "
                       "of them as a Tensor");
    int ndim = like->ndim;
    memcpy(shape, like->shape, (size_t)ndim * sizeof *shape);
    if (mean && std &&
        (dt_check_same_device("normal", "mean", mean, "std", std) ||
         dt_shape_broadcast("normal", mean->ndim, mean->shape, std->ndim, std->shape,
                            &ndim, shape)))
        return -1;
    if ((std && check_deviations(std)) ||
        dt_tensor_empty("normal", out, (dt_dtype)like->dtype, ndim, shape,
                        dt_tensor_device(like)))
        return -1;
    double deviation = std ? 1 : dt_scalar_as_double(c->args[1].scalar);
    const dt_arg result = dt_arg_tensor(out);
    if (dt_random_into("normal", out, DT_RANDOM_NORMAL, dt_scalar_float(0),
                       dt_scalar_float(deviation), c->args[2].generator) ||
        (std &&
         dt_elementwise_into(DT_OP_mul, out, DT_ARGS(result, dt_arg_tensor(std)))))
        return -1;
    return dt_elementwise_into(DT_OP_add, out,
                               DT_ARGS(result, dt_value_operand(&c->args[0])));
}

static int normal_sized(dt_call *c)
{
    if (dt_tensor_empty("normal", c->out[0], dt_factory_dtype(c, 4, dt_default_dtype()),
                        c->args[2].count, c->args[2].ints, c->args[6].device))
        return -1;
    return dt_random_into("normal", c->out[0], DT_RANDOM_NORMAL,
                          dt_scalar_float(c->args[0].f), dt_scalar_float(c->args[1].f),
                          c->args[3].generator);
}

/* --- one number for each element's parameters, drawn on the host --- */

typedef struct source {
    dt_generator *generator;
    bool twister;
} source;

static double uniform_of(source *s)
{
    return (double)(draw(s->generator, s->twister, false) & ((UINT64_C(1) << 53) - 1)) *
           0x1p-53;
}

/* By Box and Muller; the second number is kept. */
static double normal_of(source *s)
{
    dt_generator *g = s->generator;
    if (g->normal_kept) {
        g->normal_kept = false;
        return g->normal;
    }
    double turn = uniform_of(s), u = uniform_of(s);
    double radius = sqrt(-2 * log1p(-u)), angle = 6.28318530717958648 * turn;
    g->normal = radius * sin(angle);
    g->normal_kept = true;
    return radius * cos(angle);
}

/* The proposal of Hoermann's transformed rejection: k, and whether it is taken at once. */
typedef struct proposal {
    double us, v, k;
    bool taken;
} proposal;
static proposal propose(source *s, double a, double b, double center, double v_limit)
{
    double u = uniform_of(s) - 0.5;
    proposal p = {.v = uniform_of(s), .us = 0.5 - fabs(u)};
    p.k = floor((2 * a / p.us + b) * u + center);
    p.taken = p.us >= 0.07 && p.v <= v_limit;
    return p;
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* Hoermann, The transformed rejection method for generating Poisson random variables
 * (1993), and below 10 the product of uniform numbers (Knuth). */
static double poisson_of(source *s, double rate, double unused)
{
    (void)unused;
    if (rate == 0)
        return 0;
    if (rate < 10) {
        double limit = exp(-rate), product = uniform_of(s), count = 0;
        for (; product > limit; count++)
            product *= uniform_of(s);
        return count;
    }
    double root = sqrt(rate), logarithm = log(rate);
    double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for (;;) {
        proposal p = propose(s, a, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2));
        if (p.taken)
            return p.k;
        if (p.k < 0 || (p.us < 0.013 && p.v > p.us))
            continue;
        if (log(p.v) + log(inverse_alpha) - log(a / (p.us * p.us) + b) <=
            -rate + p.k * logarithm - log_gamma(p.k + 1))
            return p.k;
    }
}

/* The difference between log(k!) and Stirling's formula. */
static double stirling_rest(double k)
{
    static const double small[] = {0.0810614667953272,  0.0413406959554092,
                                   0.0276779256849983,  0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707,
                                   0.0118967099458917,  0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    if (k <= 9)
        return small[(int)k];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* p is at most 1/2. Hoermann, The generation of binomial random variates (1993); where few
 * successes are expected, the gaps between them are drawn. */
static double fewer_successes(source *s, double n, double p)
{
    if (n * p < 10) {
        double sum = 0, logarithm = log1p(-p), count = 0;
        for (;; count++) {
            sum += ceil(log(uniform_of(s)) / logarithm);
            if (!(sum <= n))
                return count;
        }
    }
    double deviation = sqrt(n * p * (1 - p)), odds = p / (1 - p);
    double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
    double alpha = (2.83 + 5.1 / b) * deviation, mode = floor((n + 1) * p);
    for (;;) {
        proposal q = propose(s, a, b, n * p + 0.5, 0.92 - 4.2 / b);
        double k = q.k;
        if (q.taken)
            return k;
        if (k < 0 || k > n)
            continue;
        double limit = (mode + 0.5) * log((mode + 1) / (odds * (n - mode + 1))) +
                       (n + 1) * log((n - mode + 1) / (n - k + 1)) +
                       (k + 0.5) * log(odds * (n - k + 1) / (k + 1)) +
                       stirling_rest(mode) + stirling_rest(n - mode) -
                       stirling_rest(k) - stirling_rest(n - k);
        if (log(q.v * alpha / (a / (q.us * q.us) + b)) <= limit)
            return k;
    }
}

static double binomial_of(source *s, double n, double p)
{
    if (isnan(p) || !isfinite(n))
        return NAN;
    if (n <= 0 || p <= 0)
        return 0;
    if (p >= 1)
        return n;
    return p <= 0.5 ? fewer_successes(s, n, p) : n - fewer_successes(s, n, 1 - p);
}

/* Marsaglia and Tsang, A simple method for generating gamma variables (2000). */
static double gamma_of(source *s, double shape, double unused)
{
    double scale = 1;
    (void)unused;
    if (!(shape > 0) || shape == INFINITY)
        return shape < 0 ? NAN : shape;
    if (shape < 1) {
        scale = pow(1 - uniform_of(s), 1 / shape);
        shape += 1;
    }
    double d = shape - (double)(1.0F / 3),
           c = 1 / sqrt(9 * d); /* rounded as PyTorch's */
    for (;;) {
        double x, y;
        do {
            x = normal_of(s);
            y = 1 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - uniform_of(s), square = x * x;
        if (u < 1 - 0.0331 * square * square ||
            log(u) < 0.5 * square + d * (1 - v + log(v)))
            return scale * d * v;
    }
}

typedef double sampler(source *s, double a, double b);

static int draw_each(dt_call *c, sampler *sample, const dt_tensor *a,
                     const dt_tensor *b, dt_generator *generator)
{
    const dt_device host = dt_device_make(DT_CPU, 0);
    dt_device device = dt_tensor_device(a);
    dt_dtype dtype = (dt_dtype)a->dtype;
    int64_t shape[DT_MAX_NDIM];
    int ndim = a->ndim;
    memcpy(shape, a->shape, (size_t)ndim * sizeof *shape);
    DT_LOCAL(first);
    DT_LOCAL(second);
    DT_LOCAL(first_wide);
    DT_LOCAL(second_wide);
    DT_LOCAL(drawn);
    if (dt_check_float(c->name, DT_ERROR_NOT_IMPLEMENTED, a))
        return -1;
    if (b && (dt_check_same_device(c->name, "count", a, "prob", b) ||
              dt_shape_broadcast(c->name, a->ndim, a->shape, b->ndim, b->shape, &ndim,
                                 shape)))
        return -1;
    if (b && b->dtype != a->dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: count is of %s and prob of %s; convert one of them with "
                       ".to()",
                       c->name, dt_dtype_name(dtype),
                       dt_dtype_name((dt_dtype)b->dtype));
    if (dt_view_expand(c->name, &first_wide, a, ndim, shape) ||
        dt_contiguous_as(&first, &first_wide, DT_FLOAT64, host) ||
        (b && (dt_view_expand(c->name, &second_wide, b, ndim, shape) ||
               dt_contiguous_as(&second, &second_wide, DT_FLOAT64, host))) ||
        dt_tensor_empty(c->name, &drawn, DT_FLOAT64, ndim, shape, host))
        return -1;
    const double *as = dt_tensor_data(&first), *bs = b ? dt_tensor_data(&second) : NULL;
    double *out = dt_tensor_data(&drawn);
    const int64_t n = drawn.numel;
    for (int64_t i = 0; i < n && sample == poisson_of; i++)
        if (!(as[i] >= 0 && as[i] < INFINITY))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: a rate is %g; give finite numbers, 0 or more", c->name,
                           as[i]);
    /* A sample of the gamma distribution is not 0: its logarithm is taken. */
    const double smallest = dt_dtype_limits(dtype).tiny;
    source s = {generator ? generator : dt_default_generator(device),
                dt_device_is_cpu(device)};
    int status = 0;
    {
        DT_WITHOUT_GIL(n > 64);
        dt_lock(s.generator->lock);
        for (int64_t i = 0; i < n && !status; i++) {
            if (i % CHUNK == 0)
                status = dt_generator_check(s.generator);
            out[i] = sample(&s, as[i], bs ? bs[i] : 0);
            if (sample == gamma_of && out[i] < smallest)
                out[i] = smallest;
        }
        dt_unlock(s.generator->lock);
    }
    return status ? -1 : dt_contiguous_as(c->out[0], &drawn, dtype, device);
}

/* --- states --- */

/* PyTorch's state of its CPU generator. */
typedef struct twister_state {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next, words[DT_TWISTER_WORDS], unused;
    double normal;
    uint64_t unused_too;
    int32_t kept, padding[3];
} twister_state;
_Static_assert(sizeof(twister_state) == DT_TWISTER_STATE, "PyTorch's layout");

void dt_generator_save(dt_generator *g, bool twister, unsigned char *bytes)
{
    dt_lock(g->lock);
    if (twister) {
        bool used = g->next < DT_TWISTER_WORDS;
        twister_state state = {.seed = g->seed,
                               .left = used ? DT_TWISTER_WORDS + 1 - g->next : 1,
                               .seeded = 1,
                               .next = used ? (uint64_t)g->next : 0,
                               .normal = g->normal_kept ? g->normal : 0,
                               .kept = g->normal_kept};
        for (int i = 0; i < DT_TWISTER_WORDS; i++)
            state.words[i] = g->words[i];
        memcpy(bytes, &state, sizeof state);
    } else {
        const uint64_t state[] = {g->seed, g->offset};
        memcpy(bytes, state, sizeof state);
    }
    dt_unlock(g->lock);
}

int dt_generator_restore(dt_generator *g, bool twister, const unsigned char *bytes)
{
    twister_state state;
    uint64_t philox[2];
    memcpy(philox, bytes, sizeof philox);
    if (!twister) {
        dt_lock(g->lock);
        g->seed = philox[0];
        g->offset = philox[1];
        dt_unlock(g->lock);
        return 0;
    }
    memcpy(&state, bytes, sizeof state);
    if (state.seeded != 1 || state.left < 1 || state.left > DT_TWISTER_WORDS ||
        (state.left > 1 && state.next != (uint64_t)(DT_TWISTER_WORDS + 1 - state.left)))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "set_state: these bytes are not the state of a CPU generator; give "
            "what get_state() gave");
    dt_lock(g->lock);
    g->seed = state.seed;
    g->next = state.left > 1 ? (int)state.next : DT_TWISTER_WORDS;
    for (int i = 0; i < DT_TWISTER_WORDS; i++)
        g->words[i] = (uint32_t)state.words[i];
    g->normal_kept = state.kept != 0;
    g->normal = state.normal;
    dt_unlock(g->lock);
    return 0;
}

#include "tensor/ops/define.h"
#include "ops/functions/random.def"
