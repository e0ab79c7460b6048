/* csrc/tensor on the CPU: views, planning, conversions, promotion, reductions,
 * products, errors, and leaks. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/runtime/cpu.h"
#include "device/transfer.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

static const dt_device cpu = {DT_CPU, 0};

/* 0, 1, 2, ... in a shape. */
static dt_tensor counting(dt_dtype dtype, int ndim, const int64_t *shape)
{
    dt_tensor flat, out;
    int64_t numel = dt_shape_numel("test", ndim, shape, 8);
    assert(!dt_arange(&flat, dt_scalar_int(0), dt_scalar_int(numel), dt_scalar_int(1),
                      dtype, cpu));
    assert(!dt_view_shape(&out, &flat, ndim, shape));
    dt_tensor_clear(&flat);
    return out;
}

static double at(const dt_tensor *t, int64_t i, int64_t j)
{
    int64_t offset = t->offset + (t->ndim > 1 ? i * t->strides[0] + j * t->strides[1]
                                  : t->ndim   ? i * t->strides[0]
                                              : 0);
    size_t size = dt_dtype_size((dt_dtype)t->dtype);
    return dt_scalar_as_double(dt_element_to_scalar(
        (dt_dtype)t->dtype, (char *)t->storage->data + offset * (int64_t)size));
}

static void expect_failure(int status, dt_error_code code, const char *words)
{
    assert(status == -1);
    if (dt_error_slot()->code != code || !strstr(dt_error_slot()->text, words)) {
        printf("expected '%s' in: %s\n", words, dt_error_slot()->text);
        assert(!"another error");
    }
    dt_error_clear();
}

/* Of rows of ops/functions. */
int dt_norm_forward(dt_call *), dt_max_along_forward(dt_call *),
    dt_mm_forward(dt_call *), dt_dot_forward(dt_call *), dt_addmm_forward(dt_call *),
    dt_eye_forward(dt_call *);

/* Runs a forward function; second: its second result, or NULL. */
static int forward(int (*function)(dt_call *), const char *name, dt_tensor *out,
                   dt_tensor *second, const dt_value *args)
{
    dt_call call = {.name = name, .args = args, .out = {out, second}};
    return function(&call);
}

static dt_value tensor(const dt_tensor *t)
{
    return dt_value_tensor(t);
}

/* norm(x, p) */
static int norm(dt_tensor *out, const dt_tensor *x, double p)
{
    const dt_value args[6] = {tensor(x),       {.f = p, .given = true},
                              dt_value_none(), dt_value_bool(false),
                              dt_value_none(), dt_value_dtype(-1)};
    return forward(dt_norm_forward, "norm", out, NULL, args);
}

static void test_views(void)
{
    int64_t shape[] = {3, 4}, six[] = {2, -1}, five[] = {5, -1}, cube[] = {2, 2, 3};
    dt_tensor x = counting(DT_FLOAT32, 2, shape), t, v;
    assert(!dt_view_t(&t, &x) && t.shape[0] == 4 && t.strides[0] == 1 && !t.contiguous);
    assert(t.storage == x.storage && at(&t, 3, 1) == 7);
    expect_failure(dt_view_shape(&v, &t, 2, six), DT_ERROR_RUNTIME, "use reshape");
    assert(!dt_view_reshape(&v, &t, 2, six) && v.storage != x.storage &&
           v.shape[1] == 6);
    assert(at(&v, 0, 1) == 4 && at(&v, 1, 5) == 11);
    dt_tensor_clear(&v);
    expect_failure(dt_view_reshape(&v, &x, 2, five), DT_ERROR_RUNTIME, "12 elements");
    assert(!dt_view_reshape(&v, &x, 3, cube) && v.storage == x.storage);
    dt_tensor_clear(&v);

    dt_subscript items[] = {
        {.kind = DT_SUBSCRIPT_ELLIPSIS},
        {.kind = DT_SUBSCRIPT_SLICE, .start = 1, .has_start = true, .step = 2}};
    assert(!dt_view_index(&v, &x, items, 2) && v.shape[0] == 3 && v.shape[1] == 2);
    assert(v.strides[1] == 2 && at(&v, 2, 1) == 11);
    dt_tensor_clear(&v);
    dt_subscript far[] = {{.kind = DT_SUBSCRIPT_INTEGER, .start = 3}};
    expect_failure(dt_view_index(&v, &x, far, 1), DT_ERROR_INDEX,
                   "use one from -3 to 2");
    assert(!v.storage);

    int64_t wide[] = {2, 3, 4};
    assert(!dt_view_expand("expand", &v, &x, 3, wide) && v.strides[0] == 0);
    assert(dt_tensor_overlaps_itself(&v));
    expect_failure(dt_fill_into("fill_", &v, dt_scalar_int(1)), DT_ERROR_RUNTIME,
                   "clone()");
    dt_tensor_clear(&v);
    dt_tensor_clear(&t);
    dt_tensor_clear(&x);
}

static void test_elementwise(void)
{
    int64_t shape[] = {3, 4}, row[] = {4}, other[] = {3};
    dt_tensor x = counting(DT_FLOAT32, 2, shape), r = counting(DT_INT64, 1, row);
    dt_tensor bad = counting(DT_FLOAT32, 1, other), y, t, z;
    assert(
        !dt_elementwise(DT_OP_add, &y, DT_ARGS(dt_arg_tensor(&x), dt_arg_tensor(&r))));
    assert(y.dtype == DT_FLOAT32 && at(&y, 2, 3) == 14);
    expect_failure(
        dt_elementwise(DT_OP_mul, &z, DT_ARGS(dt_arg_tensor(&x), dt_arg_tensor(&bad))),
        DT_ERROR_RUNTIME, "[3, 4] and [3]");
    /* A result takes the layout of its inputs. */
    assert(!dt_view_t(&t, &x));
    assert(!dt_elementwise(
        DT_OP_mul, &z, DT_ARGS(dt_arg_tensor(&t), dt_arg_scalar(dt_scalar_int(2)))));
    assert(z.strides[0] == 1 && z.strides[1] == 4 && at(&z, 3, 2) == 22);
    dt_tensor_clear(&z);
    /* Overlap: t is x transposed, so it must be read before x is written. */
    dt_tensor square, across;
    int64_t sides[] = {3, 3};
    square = counting(DT_FLOAT64, 2, sides);
    assert(!dt_view_t(&across, &square));
    assert(!dt_elementwise_into(
        DT_OP_add, &square, DT_ARGS(dt_arg_tensor(&square), dt_arg_tensor(&across))));
    assert(at(&square, 0, 1) == 4 && at(&square, 1, 0) == 4 && at(&square, 2, 1) == 12);
    dt_tensor_clear(&across);
    dt_tensor_clear(&square);
    /* In-place types, integer division, powers. */
    expect_failure(dt_elementwise_into(
                       DT_OP_add, &r,
                       DT_ARGS(dt_arg_tensor(&r), dt_arg_scalar(dt_scalar_float(0.5)))),
                   DT_ERROR_RUNTIME, "int64");
    assert(!dt_elementwise(
        DT_OP_div, &z, DT_ARGS(dt_arg_tensor(&r), dt_arg_scalar(dt_scalar_int(2)))));
    assert(z.dtype == DT_FLOAT32 && at(&z, 3, 0) == 1.5);
    dt_tensor_clear(&z);
    expect_failure(dt_elementwise(DT_OP_remainder, &z,
                                  DT_ARGS(dt_arg_tensor(&r), dt_arg_tensor(&r))),
                   DT_ERROR_RUNTIME, "by zero");
    expect_failure(
        dt_elementwise(DT_OP_pow, &z,
                       DT_ARGS(dt_arg_tensor(&r), dt_arg_scalar(dt_scalar_int(-1)))),
        DT_ERROR_RUNTIME, "negative power");
    assert(!dt_elementwise(DT_OP_sqrt, &z, DT_ARGS(dt_arg_tensor(&r))) &&
           z.dtype == DT_FLOAT32 && at(&z, 1, 0) == 1);
    dt_tensor_clear(&z);
    assert(!dt_elementwise(
        DT_OP_lt, &z, DT_ARGS(dt_arg_tensor(&r), dt_arg_scalar(dt_scalar_float(1.5)))));
    assert(z.dtype == DT_BOOL && at(&z, 1, 0) == 1 && at(&z, 2, 0) == 0);
    dt_tensor_clear(&z);
    dt_tensor_clear(&t);
    dt_tensor_clear(&y);
    dt_tensor_clear(&bad);
    dt_tensor_clear(&r);
    dt_tensor_clear(&x);
}

static void test_promotion(void)
{
    int64_t shape[] = {2};
    dt_tensor bytes = counting(DT_UINT8, 1, shape),
              single = counting(DT_FLOAT32, 0, shape);
    dt_tensor wide = counting(DT_FLOAT64, 0, shape), f = counting(DT_FLOAT32, 1, shape);
    dt_arg args[2] = {dt_arg_tensor(&bytes), dt_arg_scalar(dt_scalar_int(3))};
    assert(dt_result_type(args, 2) == DT_UINT8);
    args[1] = dt_arg_scalar(dt_scalar_float(3));
    assert(dt_result_type(args, 2) == DT_FLOAT32);
    args[1] = dt_arg_tensor(&wide);
    assert(dt_result_type(args, 2) == DT_FLOAT64);
    args[0] = dt_arg_tensor(&f);
    assert(dt_result_type(args, 2) == DT_FLOAT32);
    args[1] = dt_arg_tensor(&single);
    assert(dt_result_type(args, 2) == DT_FLOAT32);
    assert(dt_dtype_promote(DT_UINT8, DT_INT8) == DT_INT16);
    dt_tensor_clear(&f);
    dt_tensor_clear(&wide);
    dt_tensor_clear(&single);
    dt_tensor_clear(&bytes);
}

static void test_reductions(void)
{
    int64_t shape[] = {3, 4}, dim0[] = {0}, last[] = {-1}, none[] = {0, 3},
            twice[] = {1, -1};
    dt_tensor x = counting(DT_FLOAT32, 2, shape), t, y, i, empty;
    assert(!dt_view_t(&t, &x));
    assert(!dt_reduce(DT_REDUCE_sum, &y, &t, 1, dim0, false, -1, 0) &&
           at(&y, 2, 0) == 38);
    dt_tensor_clear(&y);
    assert(!dt_reduce(DT_REDUCE_mean, &y, &x, 1, last, true, -1, 0) && y.ndim == 2);
    assert(at(&y, 1, 0) == 5.5);
    dt_tensor_clear(&y);
    expect_failure(dt_reduce(DT_REDUCE_sum, &y, &x, 2, twice, false, -1, 0),
                   DT_ERROR_RUNTIME, "twice");
    assert(!norm(&y, &x, 2) && fabs(at(&y, 0, 0) - sqrt(506)) < 1e-4);
    dt_tensor_clear(&y);
    assert(!norm(&y, &x, INFINITY) && at(&y, 0, 0) == 11);
    dt_tensor_clear(&y);
    const dt_value along[] = {tensor(&t), dt_value_int(0), dt_value_bool(false)};
    assert(!forward(dt_max_along_forward, "max", &y, &i, along));
    assert(at(&y, 0, 0) == 3 && i.dtype == DT_INT64 && at(&i, 1, 0) == 3);
    dt_tensor_clear(&i);
    dt_tensor_clear(&y);
    assert(!dt_tensor_empty("empty", &empty, DT_FLOAT32, 2, none, cpu));
    assert(!dt_reduce(DT_REDUCE_sum, &y, &empty, 1, dim0, false, -1, 0) &&
           at(&y, 2, 0) == 0);
    dt_tensor_clear(&y);
    expect_failure(dt_reduce(DT_REDUCE_amax, &y, &empty, 1, dim0, false, -1, 0),
                   DT_ERROR_INDEX, "no elements");
    dt_tensor_clear(&y);
    dt_tensor_clear(&empty);
    dt_tensor bools;
    assert(!dt_full("full", &bools, DT_BOOL, 2, shape, cpu, dt_scalar_bool(true)));
    assert(!dt_reduce(DT_REDUCE_sum, &y, &bools, 0, NULL, false, -1, 0));
    assert(y.dtype == DT_INT64 && at(&y, 0, 0) == 12);
    dt_tensor_clear(&y);
    dt_tensor_clear(&bools);
    dt_tensor_clear(&t);
    dt_tensor_clear(&x);
}

static void test_products(void)
{
    int64_t ashape[] = {2, 3}, bshape[] = {3, 4}, vshape[] = {3},
            batch[] = {5, 1, 2, 3};
    int64_t batch2[] = {2, 3, 4};
    dt_tensor a = counting(DT_FLOAT32, 2, ashape), b = counting(DT_FLOAT32, 2, bshape);
    dt_tensor v = counting(DT_FLOAT32, 1, vshape), at_ = {.storage = NULL}, y;
    const dt_value ab[] = {tensor(&a), tensor(&b)}, bb[] = {tensor(&b), tensor(&b)},
                   vv[] = {tensor(&v), tensor(&v)};
    assert(!forward(dt_mm_forward, "mm", &y, NULL, ab) && at(&y, 0, 0) == 20 &&
           at(&y, 1, 3) == 92);
    dt_tensor_clear(&y);
    expect_failure(forward(dt_mm_forward, "mm", &y, NULL, bb), DT_ERROR_RUNTIME,
                   "[3, 4] and [3, 4]");
    assert(!dt_view_t(&at_, &a));
    assert(!dt_matmul(&y, &at_, &a) && y.shape[0] == 3 && at(&y, 2, 1) == 22);
    dt_tensor_clear(&y);
    assert(!dt_matmul(&y, &a, &v) && y.ndim == 1 && at(&y, 1, 0) == 14);
    dt_tensor_clear(&y);
    assert(!forward(dt_dot_forward, "dot", &y, NULL, vv) && y.ndim == 0 &&
           at(&y, 0, 0) == 5);
    dt_tensor_clear(&y);
    dt_tensor many = counting(DT_FLOAT64, 4, batch),
              few = counting(DT_FLOAT64, 3, batch2);
    assert(!dt_matmul(&y, &many, &few) && y.ndim == 4 && y.shape[0] == 5 &&
           y.shape[1] == 2);
    double *values = dt_tensor_data(&y), expected = 0;
    for (int k = 0; k < 3; k++) /* element [4, 1, 1, 2] */
        expected += (24 + 3 + k) * (12.0 + 4 * k + 2);
    assert(values[((4 * 2 + 1) * 2 + 1) * 4 + 2] == expected);
    dt_tensor_clear(&y);
    dt_tensor_clear(&few);
    dt_tensor_clear(&many);
    dt_tensor bias;
    int64_t four[] = {4};
    bias = counting(DT_FLOAT32, 1, four);
    const dt_value sum[] = {tensor(&bias), tensor(&a), tensor(&b),
                            dt_value_scalar(dt_scalar_int(2)),
                            dt_value_scalar(dt_scalar_float(0.5))};
    assert(!forward(dt_addmm_forward, "addmm", &y, NULL, sum));
    assert(at(&y, 1, 3) == 52);
    dt_tensor_clear(&y);
    dt_tensor_clear(&bias);
    dt_tensor_clear(&at_);
    dt_tensor_clear(&v);
    dt_tensor_clear(&b);
    dt_tensor_clear(&a);
}

static void test_creation_and_items(void)
{
    dt_tensor x, eye;
    dt_scalar value;
    assert(
        !dt_arange(&x, dt_scalar_int(5), dt_scalar_int(0), dt_scalar_int(-2), -1, cpu));
    assert(x.numel == 3 && x.dtype == DT_INT64 && at(&x, 2, 0) == 1);
    expect_failure(dt_item("item", &x, &value), DT_ERROR_RUNTIME, "3 elements");
    dt_tensor_clear(&x);
    expect_failure(
        dt_arange(&x, dt_scalar_int(0), dt_scalar_int(5), dt_scalar_int(0), -1, cpu),
        DT_ERROR_RUNTIME, "step");
    int64_t negative[] = {2, -3}, huge[] = {INT64_MAX, 4};
    expect_failure(dt_tensor_empty("zeros", &x, DT_FLOAT32, 2, negative, cpu),
                   DT_ERROR_RUNTIME, "negative");
    expect_failure(dt_tensor_empty("zeros", &x, DT_FLOAT32, 2, huge, cpu),
                   DT_ERROR_RUNTIME, "smaller shape");
    const dt_value sizes[] = {dt_value_int(3),
                              dt_value_int(2),
                              dt_value_dtype(DT_FLOAT32),
                              dt_value_none(),
                              {.device = cpu, .given = true}};
    assert(!forward(dt_eye_forward, "eye", &eye, NULL, sizes) && at(&eye, 1, 1) == 1 &&
           at(&eye, 2, 1) == 0);
    dt_tensor_clear(&eye);
    dt_device gone = dt_device_make(DT_CUDA, 7);
    assert(dt_device_check(gone) == -1);
    dt_error_clear();
}

int main(void)
{
    assert(!dt_registry_start(dt_cpu_backend(), ".", ""));
    test_views();
    test_elementwise();
    test_promotion();
    test_reductions();
    test_products();
    test_creation_and_items();
    assert(dt_storage_count(cpu) == 0);
    assert(dt_error_slot()->code == DT_ERROR_NONE);
    puts("tensor: all hold");
    return 0;
}
