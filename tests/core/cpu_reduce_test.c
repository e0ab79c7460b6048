/* Reductions over every kind of layout against plain loops, with the same result for
 * any number of threads. */
#include "cpu_support.h"
#include "ops/reduce_ops.h"

static const char *const names[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...)                       \
    [DT_REDUCE_##name] = #name,
#include "ops/reduce.def"
#undef REDUCE
};

/* Each op in long double, written independently of its formula. */
static long double start_of(dt_reduce_op op, long double x)
{
    switch (op) {
    case DT_REDUCE_prod:
    case DT_REDUCE_all:
        return 1;
    case DT_REDUCE_amax:
    case DT_REDUCE_amin:
        return x;
    case DT_REDUCE_norm_min:
        return INFINITY;
    default:
        return 0;
    }
}
static long double accumulate(dt_reduce_op op, long double a, long double x, double p)
{
    switch (op) {
    case DT_REDUCE_sum:
    case DT_REDUCE_mean:
        return a + x;
    case DT_REDUCE_prod:
        return a * x;
    case DT_REDUCE_amax:
        return isnan(a) || isnan(x) ? NAN : x > a ? x : a;
    case DT_REDUCE_amin:
        return isnan(a) || isnan(x) ? NAN : x < a ? x : a;
    case DT_REDUCE_any:
        return a != 0 || x != 0;
    case DT_REDUCE_all:
        return a != 0 && x != 0;
    case DT_REDUCE_norm_0:
        return a + (x != 0);
    case DT_REDUCE_norm_1:
        return a + fabsl(x);
    case DT_REDUCE_norm_2:
        return a + x * x;
    case DT_REDUCE_norm_p:
        return a + powl(fabsl(x), p);
    case DT_REDUCE_norm_max:
        return fabsl(x) > a ? fabsl(x) : a;
    case DT_REDUCE_norm_min:
        return fabsl(x) < a ? fabsl(x) : a;
    default:
        return NAN;
    }
}
static long double finish(dt_reduce_op op, long double a, int64_t count, double p)
{
    return op == DT_REDUCE_mean     ? a / (long double)count
           : op == DT_REDUCE_norm_2 ? sqrtl(a)
           : op == DT_REDUCE_norm_p ? powl(a, 1 / (long double)p)
                                    : a;
}

/* The input's dimensions in memory order, and which of them are reduced. */
typedef struct layout {
    int ndim;
    int64_t shape[4];
    int reduced; /* bit d */
    int64_t gap;
} layout;
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const layout layouts[] = {
    {1, {1}, 1},           {1, {1}, 0},          {1, {7}, 1},
    {1, {1000}, 1},        {1, {1025}, 1},       {1, {200003}, 1},
    {1, {5000}, 1, 2},     {1, {100001}, 1, 1},  {1, {40}, 0},
    {2, {30, 50}, 2},      {2, {30, 50}, 1},     {2, {3, 5000}, 2},
    {2, {3, 70000}, 2},    {2, {5000, 3}, 1},    {2, {5000, 7}, 1},
    {2, {70, 3000}, 1},    {2, {3000, 70}, 1},   {2, {4000, 3}, 2},
    {2, {40, 50}, 1, 1},   {2, {40, 50}, 2, 1},  {3, {11, 12, 13}, 2},
    {3, {11, 12, 13}, 5},  {3, {11, 12, 13}, 4}, {3, {60, 7, 80}, 3},
    {3, {60, 7, 80}, 1},   {3, {60, 70, 80}, 5}, {3, {60, 7, 80}, 6},
    {4, {3, 4, 5, 6}, 10}, {4, {3, 4, 5, 6}, 5}, {3, {2000, 2, 40}, 1},
};

static void merge(int *ndim, int64_t *shape, int64_t *strides)
{
    for (int d = *ndim - 1; d > 0; d--)
        if (strides[d - 1] == strides[d] * shape[d]) {
            shape[d - 1] *= shape[d];
            strides[d - 1] = strides[d];
            for (int e = d; e < *ndim - 1; e++) {
                shape[e] = shape[e + 1];
                strides[e] = strides[e + 1];
            }
            --*ndim;
        }
}

static dt_dtype result_of(dt_reduce_op op, dt_dtype dtype)
{
    if (op == DT_REDUCE_any || op == DT_REDUCE_all)
        return DT_BOOL;
    if ((op == DT_REDUCE_sum || op == DT_REDUCE_prod) && !dt_dtype_is_float(dtype))
        return DT_INT64;
    return dtype;
}

static void run_case(const dt_backend *cpu, dt_reduce_op op, dt_dtype dtype,
                     const layout *l)
{
    bool floats = dt_dtype_is_float(dtype);
    if (!floats && (op == DT_REDUCE_mean || op >= DT_REDUCE_norm_0))
        return;
    size_t size = dt_dtype_size(dtype);
    dt_reduction r = {.input_dtype = dtype,
                      .kept_numel = 1,
                      .reduced_numel = 1,
                      .output_dtype = result_of(op, dtype),
                      .parameter = 3};
    int64_t strides[4], step = (int64_t)size * (1 + l->gap);
    for (int d = l->ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= l->shape[d];
    }
    for (int d = 0; d < l->ndim; d++)
        if (l->reduced >> d & 1) {
            r.reduced_numel *= l->shape[d];
            r.reduced_shape[r.reduced_ndim] = l->shape[d];
            r.reduced_strides[r.reduced_ndim++] = strides[d];
        } else {
            r.kept_numel *= l->shape[d];
            r.kept_shape[r.kept_ndim] = l->shape[d];
            r.kept_strides[r.kept_ndim++] = strides[d];
        }
    char *input = guarded_new((size_t)step);
    memset(input, 0, (size_t)step);
    for (int64_t at = 0; at < step; at += (int64_t)size)
        put(dtype, input + at,
            op == DT_REDUCE_prod && floats          ? noise_between(0.99, 1.01)
            : op == DT_REDUCE_all                   ? (double)(noise() % 2000 != 0)
            : op == DT_REDUCE_any                   ? (double)(noise() % 2000 == 0)
            : dtype == DT_UINT8 || dtype == DT_BOOL ? (double)(noise() % 3)
                                                    : noise_between(-4, 5));
    size_t out_size = dt_dtype_size(r.output_dtype),
           bytes = out_size * (size_t)r.kept_numel;
    char *out = guarded_new(bytes), *again = guarded_new(bytes);
    r.input = input;
    dt_reduction plain = r;
    merge(&r.kept_ndim, r.kept_shape, r.kept_strides);
    merge(&r.reduced_ndim, r.reduced_shape, r.reduced_strides);
    r.output = again;
    dt_cpu_set_num_threads(1);
    CHECK(cpu->reduce(stream, op, &r) == 0, "%s", dt_error_slot()->text);
    r.output = out;
    dt_cpu_set_num_threads(3);
    CHECK(cpu->reduce(stream, op, &r) == 0, "%s", dt_error_slot()->text);
    CHECK(!memcmp(out, again, bytes), "%s does not depend on threads", names[op]);
    int64_t *where = malloc((size_t)r.kept_numel * 8);
    bool extreme = op == DT_REDUCE_amax || op == DT_REDUCE_amin;
    if (extreme) {
        r.output = again;
        r.index = where;
        CHECK(cpu->argreduce(stream, op == DT_REDUCE_amax, &r) == 0, "%s",
              dt_error_slot()->text);
        CHECK(!memcmp(out, again, bytes),
              "the extreme and the value of its place agree");
    }
    for (int64_t k = 0; k < r.kept_numel; k++) {
        const char *base = input;
        int64_t rest = k;
        for (int d = plain.kept_ndim - 1; d >= 0; d--) {
            base += rest % plain.kept_shape[d] * plain.kept_strides[d];
            rest /= plain.kept_shape[d];
        }
        long double a = start_of(op, get(dtype, base));
        int64_t wrapping = op == DT_REDUCE_prod, first = -1;
        long double best = a;
        for (int64_t f = 0; f < plain.reduced_numel; f++) {
            const char *at = base;
            rest = f;
            for (int d = plain.reduced_ndim - 1; d >= 0; d--) {
                at += rest % plain.reduced_shape[d] * plain.reduced_strides[d];
                rest /= plain.reduced_shape[d];
            }
            long double x = get(dtype, at);
            if (op == DT_REDUCE_prod && !floats)
                wrapping = (int64_t)((uint64_t)wrapping * (uint64_t)(int64_t)x);
            a = accumulate(op, a, x, plain.parameter);
            if (extreme && (first < 0 || a != best)) {
                best = a;
                first = f;
            }
        }
        a = finish(op, a, plain.reduced_numel, plain.parameter);
        double got = get(r.output_dtype, out + (size_t)k * out_size);
        if (op == DT_REDUCE_prod && !floats)
            a = (long double)wrapping;
        double unit = dtype == DT_FLOAT64 ? 0x1p-53 : floats ? 0x1p-24 : 0;
        /* The error of a sum is relative to the size of its elements. */
        double scale = (op == DT_REDUCE_sum    ? 3.0 * (double)plain.reduced_numel
                        : op == DT_REDUCE_mean ? 3.0
                                               : fabs((double)a)) *
                       unit;
        double allowed = scale * (4 + 2 * log2((double)plain.reduced_numel + 1));
        if (op == DT_REDUCE_prod)
            allowed = unit * fabs((double)a) * (double)(plain.reduced_numel + 1);
        /* Half precision accumulates in float32 and rounds once, to infinity beyond
         * the maximum. */
        if (dt_dtype_is_half(r.output_dtype) && isinf(got) &&
            fabs((double)a) + allowed >= dt_dtype_limits(dtype).max)
            continue;
        if (dt_dtype_is_half(r.output_dtype))
            allowed += 0.51 * dt_dtype_limits(dtype).eps * fabs((double)a);
        if (!(fabs(got - (double)a) <= allowed)) {
            CHECK(false, "%s of %s, layout %d: %.17g, not %.17Lg", names[op],
                  dt_dtype_name(dtype), (int)(l - layouts), got, a);
            break;
        }
        if (extreme && where[k] != first) {
            CHECK(false, "arg%s of %s, layout %d: at %" PRId64 ", not %" PRId64,
                  names[op], dt_dtype_name(dtype), (int)(l - layouts), where[k], first);
            break;
        }
    }
    free(where);
    guarded_free(input, (size_t)step);
    guarded_free(out, bytes);
    guarded_free(again, bytes);
}

static void test_nothing_reduced(const dt_backend *cpu)
{
    float out[3];
    dt_reduction r = {.input = out,
                      .input_dtype = DT_FLOAT32,
                      .output_dtype = DT_FLOAT32,
                      .output = out,
                      .kept_ndim = 1,
                      .reduced_ndim = 1,
                      .kept_numel = 3,
                      .kept_shape = {3},
                      .kept_strides = {4},
                      .reduced_strides = {4}};
    cpu->reduce(stream, DT_REDUCE_sum, &r);
    CHECK(out[0] == 0 && out[2] == 0, "the sum of nothing");
    cpu->reduce(stream, DT_REDUCE_prod, &r);
    CHECK(out[0] == 1 && out[2] == 1, "the product of nothing");
    cpu->reduce(stream, DT_REDUCE_mean, &r);
    CHECK(isnan(out[0]) && isnan(out[2]), "the mean of nothing");
    CHECK(cpu->reduce(stream, DT_REDUCE_amax, &r) == -1, "the greatest of nothing");
    dt_error_clear();
}

static void test_nan(const dt_backend *cpu)
{
    float *x = malloc(5000 * sizeof *x), out;
    int64_t where;
    for (int at = 0; at < 5000; at += 613) {
        for (int i = 0; i < 5000; i++)
            x[i] = (float)(i % 100);
        x[at] = NAN;
        x[4999] = NAN;
        dt_reduction r = {.input = x,
                          .input_dtype = DT_FLOAT32,
                          .output_dtype = DT_FLOAT32,
                          .output = &out,
                          .reduced_ndim = 1,
                          .kept_numel = 1,
                          .reduced_numel = 5000,
                          .reduced_shape = {5000},
                          .reduced_strides = {4},
                          .index = &where};
        for (int greatest = 0; greatest < 2; greatest++) {
            out = 0;
            cpu->reduce(stream, greatest ? DT_REDUCE_amax : DT_REDUCE_amin, &r);
            CHECK(isnan(out), "a NaN is the extreme");
            cpu->argreduce(stream, greatest, &r);
            CHECK(isnan(out) && where == at, "the first NaN is at %d, not %" PRId64, at,
                  where);
        }
        /* As columns. */
        r.kept_ndim = r.reduced_ndim = 1;
        r.kept_numel = r.kept_shape[0] = 10;
        r.kept_strides[0] = 4;
        r.reduced_numel = r.reduced_shape[0] = 500;
        r.reduced_strides[0] = 40;
        float values[10];
        int64_t places[10];
        r.output = values;
        r.index = places;
        cpu->argreduce(stream, true, &r);
        CHECK(isnan(values[at % 10]) && places[at % 10] == at / 10,
              "a NaN in a column");
        cpu->reduce(stream, DT_REDUCE_amin, &r);
        CHECK(isnan(values[at % 10]) && isnan(values[9]), "a NaN in a column");
    }
    free(x);
}

/* Ten million times 0.1: a running float32 sum is wrong in the third digit. */
static void test_accuracy(const dt_backend *cpu)
{
    int64_t n = 10000000;
    float *x = malloc((size_t)n * sizeof *x), out = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = 0.1f;
    dt_reduction r = {.input = x,
                      .input_dtype = DT_FLOAT32,
                      .output_dtype = DT_FLOAT32,
                      .output = &out,
                      .reduced_ndim = 1,
                      .kept_numel = 1,
                      .reduced_numel = n,
                      .reduced_shape = {n},
                      .reduced_strides = {4}};
    cpu->reduce(stream, DT_REDUCE_sum, &r);
    double exact = (double)n * (double)0.1f;
    CHECK(fabs((double)out - exact) <= 1e-6 * exact, "sum %.9g, exact %.9g",
          (double)out, exact);
    cpu->reduce(stream, DT_REDUCE_mean, &r);
    CHECK(fabsf(out - 0.1f) <= 4e-8f, "mean %.9g", (double)out);
    free(x);
}

int main(void)
{
    const dt_backend *cpu = dt_cpu_backend();
    for (int op = 0; op < DT_NREDUCE; op++) {
        noise_of(names[op]);
        for (int dtype = 0; dtype < NREAL; dtype++)
            for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
                run_case(cpu, (dt_reduce_op)op, (dt_dtype)dtype, &layouts[i]);
    }
    test_nothing_reduced(cpu);
    test_nan(cpu);
    test_accuracy(cpu);
    return failures != 0;
}
