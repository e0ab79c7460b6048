/* Errors of the float functions against correctly rounded results over the whole
 * range, and their special values. With an argument, the step between the floats
 * tested: 1 tests all. */
#include "cpu_support.h"
#include "ops/elementwise_ops.h"

static const dt_backend *cpu;

static void apply(dt_elementwise_op op, dt_dtype dtype, int64_t n, const void *x,
                  void *out)
{
    dt_plan plan = {
        .ndim = 1, .noperands = 2, .numel = n, .shape = {n}, .contiguous = true};
    plan.operands[0].data = out;
    plan.operands[1].data = (void *)(uintptr_t)x;
    for (int i = 0; i < 2; i++) {
        plan.operands[i].dtype = dtype;
        plan.operands[i].strides[0] = (int64_t)dt_dtype_size(dtype);
    }
    CHECK(cpu->elementwise(stream, op, &plan) == 0, "%s", dt_error_slot()->text);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Allowed error of the vector code in ulp; 0.5 is correct rounding. */
static const struct function {
    const char *name;
    dt_elementwise_op op;
    double (*exact)(double);
    double allowed;
} functions[] = {
    {"exp", DT_OP_exp, exp, 1},          {"log", DT_OP_log, log, 1},
    {"tanh", DT_OP_tanh, tanh, 1.6},     {"sigmoid", DT_OP_sigmoid, sigmoid, 2.5},
    {"expm1", DT_OP_expm1, expm1, 0.51}, {"log1p", DT_OP_log1p, log1p, 0.51},
    {"log2", DT_OP_log2, log2, 0.51},    {"log10", DT_OP_log10, log10, 0.51},
    {"sin", DT_OP_sin, sin, 0.51},       {"cos", DT_OP_cos, cos, 0.51},
    {"tan", DT_OP_tan, tan, 0.51},       {"sinh", DT_OP_sinh, sinh, 0.51},
    {"cosh", DT_OP_cosh, cosh, 0.51},    {"erf", DT_OP_erf, erf, 2},
};

static double distance(float got, double exact)
{
    if (isnan(got) || isnan(exact))
        return isnan(got) && isnan(exact) ? 0 : INFINITY;
    float nearest = (float)exact;
    if (got == nearest)
        return signbit(got) == signbit(nearest) ? 0 : INFINITY;
    if (isinf(got) || isinf(nearest)) {
        /* Next to overflow, one step is one ulp. */
        float other = isinf(got) ? nearest : got;
        return fabsf(other) == 3.402823466e38f ? 1 : INFINITY;
    }
    int e;
    frexp(exact, &e);
    double ulp = ldexp(1, e - 24 < -149 ? -149 : e - 24);
    return fabs((double)got - exact) / ulp;
}

static void measure(const struct function *f, uint32_t step)
{
    enum { BATCH = 4096 };
    static float x[BATCH], out[BATCH];
    double worst = 0;
    float where = 0;
    for (uint64_t bits = noise() % step; bits < (uint64_t)1 << 32;) {
        int n = 0;
        for (; n < BATCH && bits < (uint64_t)1 << 32; n++, bits += step) {
            uint32_t word = (uint32_t)bits;
            memcpy(&x[n], &word, 4);
        }
        apply(f->op, DT_FLOAT32, n, x, out);
        for (int i = 0; i < n; i++) {
            double exact = f->exact((double)x[i]), d = distance(out[i], exact);
            /* The formula overflows internally, to 0, where the true value is
             * subnormal. */
            if (f->op == DT_OP_sigmoid && exact < 0x1p-126 && out[i] >= 0 &&
                out[i] < 0x1p-125f)
                continue;
            if (d > worst) {
                worst = d;
                where = x[i];
            }
        }
    }
    printf("%-8s float32: %.3f ulp at %a\n", f->name, worst, (double)where);
    CHECK(worst <= f->allowed, "%s is off by %.3f ulp at %a", f->name, worst,
          (double)where);
}

static void measure_exp64(void)
{
    enum { BATCH = 1 << 20 };
    double *x = malloc(BATCH * sizeof *x), *out = malloc(BATCH * sizeof *out),
           worst = 0, at = 0;
    for (int i = 0; i < BATCH; i++)
        x[i] = i % 3 ? noise_between(-1, 1) : noise_between(-745, 709);
    apply(DT_OP_exp, DT_FLOAT64, BATCH, x, out);
    for (int i = 0; i < BATCH; i++) {
        long double exact = expl((long double)x[i]);
        int e;
        frexpl(exact, &e);
        double off = fabs((double)((long double)out[i] - exact) /
                          ldexp(1, e - 53 < -1074 ? -1074 : e - 53));
        if (off > worst) {
            worst = off;
            at = x[i];
        }
    }
    printf("exp      float64: %.3f ulp at %a\n", worst, at);
    CHECK(worst <= 1.01, "exp is off by %.3f ulp at %a", worst, at);
    free(x);
    free(out);
}

/* Values where formulas tend to fail, alone and among others. */
static void test_special(const struct function *f)
{
    static const float special[] = {0.0f,
                                    -0.0f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    1.0f,
                                    -1.0f,
                                    0x1p-149f,
                                    -0x1p-149f,
                                    0x1p-126f,
                                    0x1.fffffep127f,
                                    -0x1.fffffep127f,
                                    88.72284f,
                                    -103.97f,
                                    1e9f,
                                    -3e38f,
                                    8e8f};
    enum { COUNT = sizeof special / sizeof *special };
    float x[3 * COUNT], out[3 * COUNT], alone;
    double dx[COUNT], dout[COUNT];
    for (int i = 0; i < 3 * COUNT; i++)
        x[i] = special[i % COUNT];
    for (int i = 0; i < COUNT; i++)
        dx[i] = (double)special[i];
    apply(f->op, DT_FLOAT32, 3 * COUNT, x, out);
    apply(f->op, DT_FLOAT64, COUNT, dx, dout);
    for (int i = 0; i < 3 * COUNT; i++) {
        double exact = f->exact((double)x[i]);
        CHECK(distance(out[i], exact) <= f->allowed, "%s(%a) is %a, not %a", f->name,
              (double)x[i], (double)out[i], exact);
        apply(f->op, DT_FLOAT32, 1, &x[i], &alone);
        CHECK(!memcmp(&alone, &out[i], 4) || (isnan(alone) && isnan(out[i])),
              "%s(%a) alone is %a, among others %a", f->name, (double)x[i],
              (double)alone, (double)out[i]);
        if (i < COUNT)
            CHECK((isnan(dout[i]) && isnan(exact)) ||
                      (dout[i] == exact && signbit(dout[i]) == signbit(exact)) ||
                      fabs(dout[i] - exact) <= 4e-16 * fabs(exact),
                  "%s(%a) of float64 is %a, not %a", f->name, dx[i], dout[i], exact);
        /* In place: the result overwrites the input. */
        float same = x[i];
        apply(f->op, DT_FLOAT32, 1, &same, &same);
        CHECK(!memcmp(&same, &alone, 4) || isnan(same), "%s in place", f->name);
    }
}

int main(int argc, char **argv)
{
    cpu = dt_cpu_backend();
    uint32_t step = argc > 1 ? (uint32_t)atoi(argv[1]) : 2003;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        measure(&functions[i], step);
        test_special(&functions[i]);
    }
    measure_exp64();
    return failures != 0;
}
