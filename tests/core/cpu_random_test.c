/* Random numbers and arange against PyTorch 2.13 on a CPU after manual_seed(42). */
#include "cpu_support.h"
#include "device/random.h"

static const dt_backend *cpu;
static dt_generator generator;

static void draw(dt_distribution distribution, dt_dtype dtype, int64_t n, void *out,
                 dt_scalar low, dt_scalar high)
{
    dt_random_call call = {.distribution = distribution,
                           .dtype = dtype,
                           .out = out,
                           .numel = n,
                           .low = low,
                           .high = high};
    CHECK(cpu->random(stream, &generator, &call) == 0, "%s", dt_error_slot()->text);
}
static void draw_floats(dt_distribution distribution, dt_dtype dtype, int64_t n,
                        void *out, double low, double high)
{
    draw(distribution, dtype, n, out, dt_scalar_float(low), dt_scalar_float(high));
}

static void expect(const char *what, dt_dtype dtype, const void *got, int n,
                   const double *wanted, double relative)
{
    for (int i = 0; i < n; i++) {
        double g = get(dtype, (const char *)got + (size_t)i * dt_dtype_size(dtype));
        CHECK(fabs(g - wanted[i]) <= relative * fabs(wanted[i]),
              "%s: number %d is %a, not %a", what, i, g, wanted[i]);
    }
}

static void test_uniform(void)
{
    static const double unit[] = {0x1.c3b8cc0p-1, 0x1.d47b660p-1, 0x1.880d700p-2,
                                  0x1.eb2a1c0p-1, 0x1.8fd1a80p-2};
    static const double wide[] = {0x1.a595320p+0, 0x1.beb9180p+0, 0x1.3050a00p-3,
                                  0x1.e0bf2a0p+0, 0x1.5ee9f00p-3};
    static const double doubles[] = {0x1.dc66cbea3db30p-5, 0x1.01ae177aca870p-4,
                                     0x1.fa3563ccea238p-4};
    static const double after[] = {0x1.c8fe100p-1, 0x1.cb758c0p-2};
    float f[5];
    double d[3];
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT32, 5, f, 0, 1);
    expect("uniform", DT_FLOAT32, f, 5, unit, 0);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT32, 5, f, -1, 2);
    expect("uniform of -1 to 2", DT_FLOAT32, f, 5, wide, 0);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT64, 3, d, 0, 1);
    expect("uniform of float64", DT_FLOAT64, d, 3, doubles, 0);
    /* Far into the sequence, in one call and in calls of odd lengths. */
    float *many = malloc(100000 * sizeof *many);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT32, 100000, many, 0, 1);
    draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT32, 2, f, 0, 1);
    expect("after 100000", DT_FLOAT32, f, 2, after, 0);
    dt_generator_seed(&generator, 42);
    for (int64_t at = 0, n = 1; at < 100000; at += n, n = n * 3 % 1009 + 1) {
        n = n > 100000 - at ? 100000 - at : n;
        float part[1010];
        draw_floats(DT_RANDOM_UNIFORM, DT_FLOAT32, n, part, 0, 1);
        CHECK(!memcmp(part, many + at, (size_t)n * sizeof *part),
              "pieces of a sequence");
    }
    free(many);
}

static void test_normal(void)
{
    static const double few[] = {0x1.58c55c0p-2, 0x1.07cd3a0p-3, 0x1.e02dce0p-3,
                                 0x1.d7b8d80p-3};
    static const double few64[] = {0x1.58c55b33d44ccp-2, 0x1.07cd39b3d4b85p-3,
                                   0x1.e02dcdb63ec41p-3};
    static const double block[] = {
        0x1.ed4a520p+0,  0x1.7cbea60p+0,  0x1.cd2ace0p-1,  0x1.c223b00p-2,
        -0x1.8429c40p-1, 0x1.140ca00p+0,  0x1.9a02880p-1,  0x1.ae3d260p+0,
        0x1.6c668a0p-2,  -0x1.5f8d0c0p-1, -0x1.f932680p-2, 0x1.55b1600p+0,
        -0x1.da5dda0p-3, 0x1.5618000p-5,  -0x1.019cf40p-2, 0x1.b83f600p-1,
        -0x1.3d29040p-2, -0x1.9535220p-2, 0x1.9b58780p-1};
    static const double block64[] = {
        0x1.532bee22ccb50p+3, 0x1.a04ae983a08efp+3, 0x1.9161bf140c96dp+3,
        0x1.67984a07b055fp+3, 0x1.3d9e77471d74bp+3, 0x1.82417de13dde4p+3,
        0x1.3f5ac2418805fp+3, 0x1.45ba0afeb5cc6p+3, 0x1.4275b912d6b99p+3,
        0x1.58f5d12bd9d17p+3, 0x1.1ae3e0a9f7e2ep+3, 0x1.780ea53955190p+3,
        0x1.591cd551d1ca0p+3, 0x1.86f1072ace0b1p+3, 0x1.775f0086137f7p+3,
        0x1.76bbdbba629a5p+3, 0x1.4ff65d3ea096ep+3};
    float f[19];
    double d[17];
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_NORMAL, DT_FLOAT32, 3, f, 0, 1);
    draw_floats(DT_RANDOM_NORMAL, DT_FLOAT32, 1, f + 3, 0, 1);
    expect("a few normals", DT_FLOAT32, f, 4, few, 0);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_NORMAL, DT_FLOAT64, 3, d, 0, 1);
    expect("a few normals of float64", DT_FLOAT64, d, 3, few64, 3e-16);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_NORMAL, DT_FLOAT32, 19, f, 0, 1);
    expect("normals", DT_FLOAT32, f, 19, block, 4e-7);
    dt_generator_seed(&generator, 42);
    draw_floats(DT_RANDOM_NORMAL, DT_FLOAT64, 17, d, 10, 2);
    expect("normals of float64", DT_FLOAT64, d, 17, block64, 3e-16);
}

static void test_integers(void)
{
    static const double small[] = {367, 537, 11, 779, 781, 900};
    static const double large[] = {810017303572, 440001501305, 902372521174};
    static const double edge[] = {93410762, 91090292};
    static const double truth[] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
    int64_t i[12];
    dt_generator_seed(&generator, 42);
    draw(DT_RANDOM_INTEGERS, DT_INT64, 6, i, dt_scalar_int(-5), dt_scalar_int(1000));
    expect("integers", DT_INT64, i, 6, small, 0);
    draw(DT_RANDOM_INTEGERS, DT_INT64, 3, i, dt_scalar_int(0),
         dt_scalar_int((int64_t)1 << 40));
    expect("large integers", DT_INT64, i, 3, large, 0);
    draw(DT_RANDOM_INTEGERS, DT_INT64, 2, i, dt_scalar_int(0), dt_scalar_int(1 << 28));
    expect("integers of 28 bits", DT_INT64, i, 2, edge, 0);
    for (int dtype = 0; dtype < NREAL; dtype++) {
        dt_generator_seed(&generator, 42);
        draw_floats(DT_RANDOM_BERNOULLI, (dt_dtype)dtype, 12, i, 0.3, 0);
        expect("bernoulli", (dt_dtype)dtype, i, 12, truth, 0);
    }
    dt_random_call call = {
        .distribution = DT_RANDOM_NORMAL, .dtype = DT_INT32, .out = i, .numel = 3};
    CHECK(cpu->random(stream, &generator, &call) == -1,
          "no normal numbers among integers");
    dt_error_clear();
}

static void test_progression(void)
{
    static const double floats[] = {
        -0x1.4p+2, -0x1.133334p+2, -0x1.ccccccp+1, -0x1.733334p+1, -0x1.19999ap+1,
        -0x1.8p+0, -0x1.99999ap-1, -0x1.99999ap-4, 0x1.333334p-1,  0x1.4cccccp+0,
        0x1p+1,    0x1.59999ap+1,  0x1.b33334p+1,  0x1.066666p+2,  0x1.333334p+2};
    static const double doubles[] = {
        -0x1.4000000000000p+2, -0x1.1333333333333p+2, -0x1.ccccccccccccdp+1,
        -0x1.7333333333334p+1, -0x1.199999999999ap+1, -0x1.8000000000001p+0,
        -0x1.999999999999cp-1, -0x1.99999999999b0p-4, 0x1.3333333333330p-1,
        0x1.4cccccccccccbp+0,  0x1.ffffffffffffep+0,  0x1.5999999999998p+1,
        0x1.b333333333332p+1,  0x1.0666666666666p+2,  0x1.3333333333332p+2};
    float f[334];
    double d[15];
    int64_t i[5];
    int8_t b[300];
    dt_arange_call p = {.dtype = DT_FLOAT32,
                        .out = f,
                        .numel = 15,
                        .start = dt_scalar_float(-5),
                        .step = dt_scalar_float(0.7)};
    cpu->arange(stream, &p);
    expect("progression", DT_FLOAT32, f, 15, floats, 0);
    p.dtype = DT_FLOAT64;
    p.out = d;
    cpu->arange(stream, &p);
    expect("progression of float64", DT_FLOAT64, d, 15, doubles, 0);
    dt_arange_call q = {.dtype = DT_FLOAT32,
                        .out = f,
                        .numel = 334,
                        .start = dt_scalar_int(0),
                        .step = dt_scalar_float(0.3)};
    cpu->arange(stream, &q);
    CHECK(f[319] == 0x1.7eccccp+6f && f[320] == 0x1.8p+6f && f[331] == 0x1.8d3334p+6f &&
              f[333] == 0x1.8f999ap+6f,
          "%a %a %a", (double)f[319], (double)f[320], (double)f[331]);
    dt_arange_call w = {.dtype = DT_INT64,
                        .out = i,
                        .numel = 5,
                        .start = dt_scalar_int(INT64_MAX - 2),
                        .step = dt_scalar_int(1)};
    cpu->arange(stream, &w);
    CHECK(i[2] == INT64_MAX && i[3] == INT64_MIN, "integers wrap");
    dt_arange_call s = {.dtype = DT_INT8,
                        .out = b,
                        .numel = 300,
                        .start = dt_scalar_int(-3),
                        .step = dt_scalar_int(1)};
    cpu->arange(stream, &s);
    CHECK(b[0] == -3 && b[130] == 127 && b[131] == -128, "small integers wrap");
}

int main(void)
{
    cpu = dt_cpu_backend();
    dt_generator_init(&generator, 42);
    test_uniform();
    test_normal();
    test_integers();
    test_progression();
    return failures != 0;
}
