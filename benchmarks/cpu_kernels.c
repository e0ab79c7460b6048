/* Times of the CPU backend's functions alone, one line each: NAME NANOSECONDS, the
 * least of several runs. Linked with the core like the C tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/runtime/cpu.h"
#include "device/random.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"

static const dt_backend *cpu;
static const dt_stream stream = {0, NULL};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define TIME(name, runs, inner, ...)                                                   \
    do {                                                                               \
        double least = 1e30;                                                           \
        for (int run_ = 0; run_ < (runs); run_++) {                                    \
            double begin_ = now();                                                     \
            for (int inner_ = 0; inner_ < (inner); inner_++) {                         \
                __VA_ARGS__;                                                           \
            }                                                                          \
            double took_ = (now() - begin_) / (inner);                                 \
            least = took_ < least ? took_ : least;                                     \
        }                                                                              \
        printf("%-24s %14.1f\n", name, least);                                         \
        fflush(stdout);                                                                \
    } while (0)

static dt_plan flat(int noperands, int64_t n)
{
    dt_plan p;
    memset(&p, 0, sizeof p);
    p.ndim = 1;
    p.noperands = noperands;
    p.numel = p.shape[0] = n;
    p.contiguous = true;
    for (int i = 0; i < noperands; i++) {
        p.operands[i].dtype = DT_FLOAT32;
        p.operands[i].strides[0] = 4;
    }
    return p;
}

static void *take(size_t bytes)
{
    void *data = NULL;
    if (cpu->allocate(stream, bytes, &data))
        exit(1);
    return data;
}

/* A fresh result each time, as a program asks for it. */
static void unary(dt_elementwise_op op, int64_t n, void *x)
{
    dt_plan p = flat(2, n);
    p.operands[0].data = take((size_t)n * 4);
    p.operands[1].data = x;
    cpu->elementwise(stream, op, &p);
    cpu->release(0, p.operands[0].data, (size_t)n * 4);
}
static void binary(dt_elementwise_op op, int64_t n, void *a, void *b)
{
    dt_plan p = flat(3, n);
    p.operands[0].data = take((size_t)n * 4);
    p.operands[1].data = a;
    p.operands[2].data = b;
    cpu->elementwise(stream, op, &p);
    cpu->release(0, p.operands[0].data, (size_t)n * 4);
}
static void add_row(int64_t rows, int64_t columns, void *a, void *row)
{
    dt_plan p = flat(3, rows * columns);
    p.ndim = 2;
    p.contiguous = false;
    p.shape[0] = rows;
    p.shape[1] = columns;
    for (int i = 0; i < 3; i++) {
        p.operands[i].strides[0] = i == 2 ? 0 : 4 * columns;
        p.operands[i].strides[1] = 4;
    }
    p.operands[0].data = take((size_t)p.numel * 4);
    p.operands[1].data = a;
    p.operands[2].data = row;
    cpu->elementwise(stream, DT_OP_add, &p);
    cpu->release(0, p.operands[0].data, (size_t)p.numel * 4);
}
static void transpose(int64_t rows, int64_t columns, void *x)
{
    dt_plan p = flat(2, rows * columns);
    p.ndim = 2;
    p.contiguous = false;
    p.shape[0] = columns;
    p.shape[1] = rows;
    p.operands[0].strides[0] = 4 * rows;
    p.operands[0].strides[1] = 4;
    p.operands[1].strides[0] = 4;
    p.operands[1].strides[1] = 4 * columns;
    p.operands[0].data = take((size_t)p.numel * 4);
    p.operands[1].data = x;
    cpu->copy(stream, &p);
    cpu->release(0, p.operands[0].data, (size_t)p.numel * 4);
}
static void fold(dt_reduce_op op, int64_t rows, int64_t columns, int which, void *x,
                 void *out)
{
    dt_reduction r;
    memset(&r, 0, sizeof r);
    r.input = x;
    r.output = out;
    r.input_dtype = r.output_dtype = DT_FLOAT32;
    r.kept_numel = 1;
    r.folded_ndim = 1;
    r.folded_numel = r.folded_shape[0] = which == 0   ? rows * columns
                                         : which == 1 ? columns
                                                      : rows;
    r.folded_strides[0] = which == 2 ? 4 * columns : 4;
    if (which) {
        r.kept_ndim = 1;
        r.kept_numel = r.kept_shape[0] = which == 1 ? rows : columns;
        r.kept_strides[0] = which == 1 ? 4 * columns : 4;
    }
    cpu->reduce(stream, op, &r);
}
static void product(int64_t n, void *a, void *b, void *c)
{
    dt_gemm g;
    memset(&g, 0, sizeof g);
    g.dtype = DT_FLOAT32;
    g.batch = 1;
    g.m = g.n = g.k = g.a_row = g.b_row = g.c_row = n;
    g.a_col = g.b_col = 1;
    g.a = a;
    g.b = b;
    g.c = c;
    g.alpha = 1;
    cpu->gemm(stream, &g);
}
static void draw(dt_distribution distribution, int64_t n, void *out, dt_generator *g)
{
    dt_random_call call;
    memset(&call, 0, sizeof call);
    call.distribution = distribution;
    call.dtype = DT_FLOAT32;
    call.out = out;
    call.numel = n;
    call.low = dt_scalar_float(distribution == DT_RANDOM_BERNOULLI ? 0.5 : 0);
    call.high = dt_scalar_float(1);
    cpu->random(stream, g, &call);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        dt_cpu_blas_set_search(argv[1]);
    cpu = dt_cpu_backend();
    enum { N = 10000000 };
    float *a = take(N * 4), *b = take(N * 4), *c = take(N * 4);
    for (int i = 0; i < N; i++) {
        a[i] = (float)(i % 1999) * 0.01f - 10;
        b[i] = (float)(i % 997) * 0.01f;
        c[i] = 0;
    }
    dt_plan tiny = flat(3, 3);
    tiny.operands[0].data = c;
    tiny.operands[1].data = a;
    tiny.operands[2].data = b;
    TIME("add_3", 20, 100000, cpu->elementwise(stream, DT_OP_add, &tiny));
    tiny.operands[2].immediate = true;
    TIME("add_3_number", 20, 100000, cpu->elementwise(stream, DT_OP_add, &tiny));
    TIME("exp_3", 20, 100000, unary(DT_OP_exp, 3, a));
    TIME("sum_3", 20, 100000, fold(DT_REDUCE_sum, 1, 3, 0, a, c));
    TIME("matmul_4", 20, 100000, product(4, a, b, c));
    TIME("allocate_256", 20, 100000, cpu->release(0, take(256), 256));
    TIME("allocate_4MiB", 20, 1000, cpu->release(0, take(4 << 20), 4 << 20));
    TIME("add_1e3", 20, 10000, binary(DT_OP_add, 1000, a, b));
    TIME("add_1e5", 20, 100, binary(DT_OP_add, 100000, a, b));
    TIME("exp_1e5", 20, 100, unary(DT_OP_exp, 100000, a));
    TIME("add_1e7", 20, 1, binary(DT_OP_add, N, a, b));
    TIME("add_row_1e7", 20, 1, add_row(10000, 1000, a, b));
    TIME("exp_1e7", 20, 1, unary(DT_OP_exp, N, a));
    TIME("tanh_1e7", 20, 1, unary(DT_OP_tanh, N, a));
    TIME("sigmoid_1e7", 20, 1, unary(DT_OP_sigmoid, N, a));
    TIME("log_1e7", 20, 1, unary(DT_OP_log, N, b));
    TIME("sin_1e7", 20, 1, unary(DT_OP_sin, N, a));
    TIME("relu_1e7", 20, 1, unary(DT_OP_relu, N, a));
    TIME("sum_all_1e7", 20, 1, fold(DT_REDUCE_sum, 4000, 2500, 0, a, c));
    TIME("sum_rows_1e7", 20, 1, fold(DT_REDUCE_sum, 4000, 2500, 1, a, c));
    TIME("sum_columns_1e7", 20, 1, fold(DT_REDUCE_sum, 4000, 2500, 2, a, c));
    TIME("sum_1e4", 20, 1000, fold(DT_REDUCE_sum, 1, 10000, 0, a, c));
    TIME("max_all_1e7", 20, 1, fold(DT_REDUCE_amax, 4000, 2500, 0, a, c));
    TIME("transpose_1e7", 20, 1, transpose(4000, 2500, a));
    TIME("matmul_64", 20, 1000, product(64, a, b, c));
    TIME("matmul_256", 20, 10, product(256, a, b, c));
    TIME("matmul_1024", 10, 1, product(1024, a, b, c));
    dt_generator g;
    dt_generator_init(&g, 1);
    TIME("uniform_1e6", 10, 1, draw(DT_RANDOM_UNIFORM, 1000000, c, &g));
    TIME("normal_1e6", 10, 1, draw(DT_RANDOM_NORMAL, 1000000, c, &g));
    TIME("bernoulli_1e6", 10, 1, draw(DT_RANDOM_BERNOULLI, 1000000, c, &g));
    return 0;
}
