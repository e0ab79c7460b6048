/* Matrix products of all layouts and types against three plain loops, with and
 * without a BLAS. */
#include "cpu_support.h"

#include <sys/wait.h>
#include <unistd.h>

static const int64_t sizes[][3] = {
    {1, 1, 1},      {2, 3, 4},      {4, 4, 4},    {1, 17, 5},      {17, 1, 5},
    {5, 7, 1},      {8, 9, 10},     {33, 17, 9},  {64, 64, 64},    {13, 100, 300},
    {131, 67, 259}, {7, 1100, 40},  {150, 3, 70}, {300, 200, 150}, {61, 150, 131},
    {9, 530, 300},  {270, 64, 140},
};

/* Bits of a layout. */
enum { A_BY_COLUMNS = 1, B_BY_COLUMNS = 2, PADDED = 4, B_PACKED = 8, LAYOUTS = 16 };

/* Decodes all elements once: the plain loops read each of them many times. */
static double *decoded(dt_dtype dtype, const char *data, size_t bytes)
{
    size_t size = dt_dtype_size(dtype);
    double *values = malloc(bytes / size * sizeof *values + 1);
    for (size_t i = 0; i < bytes / size; i++)
        values[i] = get(dtype, data + i * size);
    return values;
}

static void run_case(const dt_backend *cpu, dt_dtype dtype, const int64_t *mnk,
                     int trans, int64_t batch, double alpha, double beta, bool shared_b)
{
    int64_t m = mnk[0], n = mnk[1], k = mnk[2], pad = trans & PADDED ? 3 : 0;
    size_t size = dt_dtype_size(dtype);
    dt_gemm g = {.dtype = dtype,
                 .batch = batch,
                 .m = m,
                 .n = n,
                 .k = k,
                 .alpha = alpha,
                 .beta = beta};
    g.a_row = trans & A_BY_COLUMNS ? 1 : k + pad;
    g.a_col = trans & A_BY_COLUMNS ? m + pad : 1;
    g.b_row = trans & B_BY_COLUMNS ? 1 : n + pad;
    g.b_col = trans & B_BY_COLUMNS ? k + pad : 1;
    g.c_row = n + pad;
    g.a_batch =
        (trans & A_BY_COLUMNS ? k : m) * (trans & A_BY_COLUMNS ? g.a_col : g.a_row);
    g.b_batch = shared_b ? 0
                         : (trans & B_BY_COLUMNS ? n : k) *
                               (trans & B_BY_COLUMNS ? g.b_col : g.b_row);
    g.c_batch = m * g.c_row;
    size_t as = (size_t)(g.a_batch * batch) * size,
           cs = (size_t)(g.c_batch * batch) * size;
    size_t bs = (size_t)((trans & B_BY_COLUMNS ? n : k) *
                         (trans & B_BY_COLUMNS ? g.b_col : g.b_row) * batch) *
                size;
    char *a = guarded_new(as), *b = guarded_new(bs), *c = guarded_new(cs),
         *old = malloc(cs + 1);
    bool floats = dt_dtype_is_float(dtype);
    for (size_t i = 0; i < as; i += size)
        put(dtype, a + i, floats ? noise_between(-1, 1) : (double)(noise() % 5));
    for (size_t i = 0; i < bs; i += size)
        put(dtype, b + i, floats ? noise_between(-1, 1) : (double)(noise() % 7));
    for (size_t i = 0; i < cs; i += size)
        put(dtype, c + i, beta == 0 && floats ? NAN : (double)(noise() % 3));
    memcpy(old, c, cs);
    double *left = decoded(dtype, a, as), *right = decoded(dtype, b, bs);
    g.a = a;
    g.b = b;
    g.c = c;
    void *packed = trans & B_PACKED ? cpu->gemm_pack(&g) : NULL;
    g.packed = packed;
    CHECK(cpu->gemm(stream, &g) == 0, "%s", dt_error_slot()->text);
    for (int64_t t = 0; t < batch; t++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < g.c_row; j++) {
                int64_t at = t * g.c_batch + i * g.c_row + j;
                const char *got = c + (size_t)at * size,
                           *before = old + (size_t)at * size;
                if (j >= n) {
                    CHECK(!memcmp(got, before, size),
                          "what lies between rows is touched");
                    continue;
                }
                double sum = 0;
                const double *x = left + t * g.a_batch + i * g.a_row;
                const double *y = right + t * g.b_batch + j * g.b_col;
                for (int64_t p = 0; p < k; p++)
                    sum += x[p * g.a_col] * y[p * g.b_row];
                double wanted =
                    alpha * sum + (beta == 0 ? 0 : beta * get(dtype, before));
                double value = get(dtype, got);
                if (!floats) {
                    dt_element e =
                        dt_element_from_scalar(dtype, dt_scalar_int((int64_t)wanted));
                    wanted = dt_dtype_kind(dtype) == DT_KIND_BOOL ? wanted != 0
                                                                  : get(dtype, e.bytes);
                }
                double unit = dtype == DT_FLOAT64 ? 1e-15 : 1e-6;
                /* Half-precision sums are float32 sums, rounded once. */
                double eps = dt_dtype_is_half(dtype) ? dt_dtype_limits(dtype).eps : 0;
                if (!(fabs(value - wanted) <=
                      (floats ? unit * (4 + sqrt((double)k) * 4 + fabs(wanted)) +
                                    0.51 * eps * fabs(wanted)
                              : 0))) {
                    CHECK(
                        false,
                        "%s %dx%dx%d layout %d batch %d alpha %g beta %g: (%d, %d) is "
                        "%.9g, not %.9g",
                        dt_dtype_name(dtype), (int)m, (int)n, (int)k, trans, (int)batch,
                        alpha, beta, (int)i, (int)j, value, wanted);
                    goto done;
                }
            }
done:
    guarded_free(a, as);
    guarded_free(b, bs);
    guarded_free(c, cs);
    free(packed);
    free(old);
    free(left);
    free(right);
}

static void test_no_inner_length(const dt_backend *cpu)
{
    float c[4] = {1, 2, 3, 4}, ab[1] = {0};
    dt_gemm g = {.dtype = DT_FLOAT32,
                 .batch = 1,
                 .m = 2,
                 .n = 2,
                 .a = ab,
                 .b = ab,
                 .c = c,
                 .a_row = 1,
                 .a_col = 1,
                 .b_row = 2,
                 .b_col = 1,
                 .c_row = 2,
                 .alpha = 1,
                 .beta = 0.5};
    CHECK(cpu->gemm(stream, &g) == 0 && c[0] == 0.5f && c[3] == 2, "beta * c");
    g.beta = 0;
    c[0] = NAN;
    CHECK(cpu->gemm(stream, &g) == 0 && c[0] == 0 && c[3] == 0, "zeros");
}

static int run_all(void)
{
    const dt_backend *cpu = dt_cpu_backend();
    dt_cpu_set_num_threads(3);
    for (int dtype = 0; dtype < NREAL; dtype++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int trans = 0; trans < LAYOUTS; trans++) {
                dt_dtype type = (dt_dtype)dtype;
                bool has_more_kernels = type == DT_FLOAT32 || type == DT_FLOAT64;
                if (!has_more_kernels && (trans & B_PACKED || s > 13))
                    continue;
                run_case(cpu, type, sizes[s], trans, 1, 1, 0, false);
                if (s > 9)
                    continue;
                run_case(cpu, type, sizes[s], trans, 1, 1, 1, false);
                if (trans & B_PACKED)
                    continue;
                run_case(cpu, type, sizes[s], trans, 3, 1, 0, trans & A_BY_COLUMNS);
                if (dtype != DT_BOOL)
                    run_case(cpu, type, sizes[s], trans, 2, 2, 3, false);
            }
    int64_t wide[3] = {20, 30, 25};
    run_case(cpu, DT_FLOAT32, wide, 0, 500, 1, 0, false);
    run_case(cpu, DT_FLOAT64, wide, 3, 500, 1, 0, true);
    int64_t large[3] = {700, 90, 110}, flat[3] = {90, 700, 110};
    run_case(cpu, DT_FLOAT32, large, 0, 1, 1, 0, false);
    run_case(cpu, DT_FLOAT32, flat, 3, 1, 1, 0, false);
    test_no_inner_length(cpu);
    return failures != 0;
}

int main(void)
{
    /* A process chooses its BLAS once, so each choice runs in a child. */
    const char *choices[] = {"own", "auto"};
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            setenv("PYDEVTENSOR_BLAS", choices[i], 1);
            const char *packages = getenv("PYDEVTENSOR_TEST_PACKAGES");
            if (packages)
                dt_cpu_blas_set_search(packages);
            int status = run_all();
            fflush(stdout);
            _exit(status);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status) {
            printf("with BLAS %s: status %d\n", choices[i], status);
            failures++;
        }
    }
    return failures != 0;
}
