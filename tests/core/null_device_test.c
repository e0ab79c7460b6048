/* Tensors on a third type of devices (null_backend.h): the core asks what is true of a
 * type, and never which type it is. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cpu/runtime/cpu.h"
#include "device/activity.h"
#include "device/graph.h"
#include "device/storage.h"
#include "device/stream.h"
#include "device/transfer.h"
#include "null_backend.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const dt_device cpu = {DT_CPU, 0};
static dt_device here, there, other; /* two of one type, and one of another */

static void expect_failure(int status, dt_error_code code, const char *words)
{
    assert(status == -1);
    if (dt_error_slot()->code != code || !strstr(dt_error_slot()->text, words)) {
        printf("expected '%s' in: %s\n", words, dt_error_slot()->text);
        assert(!"another error");
    }
    dt_error_clear();
}

/* 0, 1, ..., n - 1 in a type. */
static dt_tensor counting(int64_t n, dt_dtype dtype, dt_device device)
{
    dt_tensor out;
    assert(!dt_arange(&out, dt_scalar_int(0), dt_scalar_int(n), dt_scalar_int(1), dtype,
                      device));
    return out;
}

/* Whether x has these numbers, wherever it is. */
static void expect(const dt_tensor *x, int64_t count, const double *wanted)
{
    dt_tensor copy;
    assert(x->numel == count && !dt_to(&copy, x, DT_FLOAT64, cpu));
    for (int64_t i = 0; i < count; i++)
        assert(((double *)copy.storage->data)[copy.offset + i] == wanted[i]);
    dt_tensor_clear(&copy);
}
#define EXPECT(x, ...)                                                                 \
    expect((x), sizeof((double[]){__VA_ARGS__}) / sizeof(double),                      \
           (double[]){__VA_ARGS__})

static void test_names(void)
{
    char text[DT_DEVICE_TEXT];
    assert(!strcmp(dt_device_text(there, text), "null:1"));
    assert(!dt_device_is_host(here) && !dt_device_has_streams(here));
    assert(dt_device_is_host(cpu) && !dt_device_has_streams(cpu));
    assert(!dt_device_check(there));
    expect_failure(dt_device_check(dt_device_make((dt_device_type)here.type, 5)),
                   DT_ERROR_ACCELERATOR, "2 null devices; use null:0 to null:1");
}

static void test_work(void)
{
    dt_tensor x = counting(6, DT_FLOAT32, here), number = counting(1, DT_FLOAT64, cpu),
              guest, y, z, mask, where, grid;
    int64_t shape[] = {2, 3};
    dt_scalar value;
    assert(!dt_view_shape(&guest, &number, 0, NULL));
    /* Numbers, and what the host can read as one, on the device's tensor. */
    assert(!dt_elementwise(
        DT_OP_add, &y, DT_ARGS(dt_arg_tensor(&x), dt_arg_scalar(dt_scalar_int(2)))));
    assert(!dt_elementwise(DT_OP_mul, &z,
                           DT_ARGS(dt_arg_tensor(&y), dt_arg_tensor(&guest))));
    assert(dt_device_equal(dt_tensor_device(&z), here));
    EXPECT(&y, 2, 3, 4, 5, 6, 7);
    EXPECT(&z, 0, 0, 0, 0, 0, 0);
    dt_tensor_clear(&z);
    assert(!dt_reduce(DT_REDUCE_sum, &z, &y, 0, NULL, false, -1, 0));
    assert(!dt_item("item", &z, &value) && dt_scalar_as_double(value) == 27);
    dt_tensor_clear(&z);
    /* A count that the host has to know. */
    assert(!dt_elementwise(
        DT_OP_gt, &mask, DT_ARGS(dt_arg_tensor(&y), dt_arg_scalar(dt_scalar_int(4)))));
    assert(!dt_nonzero(&where, &mask));
    EXPECT(&where, 3, 4, 5);
    dt_tensor_clear(&mask);
    /* An index of the host's. */
    dt_tensor index = counting(3, DT_INT64, cpu);
    dt_indexing chosen =
        dt_indexing_along("index_select", DT_INDEXING_ADVANCED, 0, &index);
    assert(!dt_index_read(&z, &y, &chosen));
    EXPECT(&z, 2, 3, 4);
    dt_tensor_clear(&z);
    /* A product, with a copy of a layout that is not row-major. */
    dt_tensor turned;
    assert(!dt_view_shape(&grid, &y, 2, shape) && !dt_view_t(&turned, &grid));
    assert(!dt_matmul(&z, &grid, &turned));
    EXPECT(&z, 29, 56, 56, 110);
    dt_tensor *const all[] = {&x,     &number, &guest, &y,     &z,
                              &where, &grid,   &index, &turned};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        dt_tensor_clear(all[i]);
}

static void test_copies(void)
{
    dt_transfer_counters before, after;
    dt_tensor x = counting(4, DT_INT64, cpu), a, b, c, d;
    dt_transfer_counters_read(&before);
    assert(!dt_to(&a, &x, DT_FLOAT32, here) && !dt_to(&b, &a, DT_FLOAT32, there));
    assert(!dt_to(&c, &b, DT_FLOAT32, other) && !dt_to(&d, &c, DT_INT64, cpu));
    dt_transfer_counters_read(&after);
    EXPECT(&d, 0, 1, 2, 3);
    EXPECT(&c, 0, 1, 2, 3);
    /* Between types through the host; nothing waits, as nothing is queued. */
    assert(after.host_to_device - before.host_to_device == 2);
    assert(after.device_to_device - before.device_to_device == 1);
    assert(after.device_to_host - before.device_to_host == 2);
    assert(after.waits == before.waits);
    /* Whatever is asked, there is no stream to wait on. */
    dt_tensor_clear(&d);
    assert(!dt_to_format(&d, &x, DT_INT64, here, DT_FORMAT_PRESERVE, true));
    EXPECT(&d, 0, 1, 2, 3);
    expect_failure(dt_check_same_device("add", "a", &a, "b", &b), DT_ERROR_RUNTIME,
                   "null:0");
    dt_tensor *const all[] = {&x, &a, &b, &c, &d};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        dt_tensor_clear(all[i]);
}

static void test_streams(void)
{
    void *stream = NULL;
    assert(!dt_stream_current(here).handle);
    assert(!dt_device_synchronize(here));
    assert(!dt_stream_synchronize(here, dt_stream_current(here)));
    assert(!dt_graph_is_capturing(here));
    expect_failure(dt_stream_acquire(here, 0, &stream), DT_ERROR_RUNTIME,
                   "null:0 has no streams");
}

static void test_seeds(void)
{
    double first[3], again[3];
    for (int round = 0; round < 2; round++) {
        dt_tensor x, copy;
        int64_t three = 3;
        dt_seed_all(7);
        assert(!dt_tensor_empty("rand", &x, DT_FLOAT64, 1, &three, here));
        assert(!dt_random_into("rand", &x, DT_RANDOM_UNIFORM, dt_scalar_float(0),
                               dt_scalar_float(1), NULL));
        assert(!dt_to(&copy, &x, DT_FLOAT64, cpu));
        memcpy(round ? again : first, dt_tensor_data(&copy), sizeof first);
        dt_tensor_clear(&copy);
        dt_tensor_clear(&x);
    }
    assert(!memcmp(first, again, sizeof first) && first[0] != first[1]);
}

static int observed[DT_ACTIVITY_HOST_USE + 1];
static int begin(const dt_activity *activity, void **mark)
{
    (void)mark;
    if (dt_device_equal(activity->device, there))
        observed[activity->kind]++;
    return 0;
}

static void test_observers(void)
{
    const dt_observer observer = {.kernels = true, .begin = begin};
    dt_observer_add(&observer);
    dt_tensor x = counting(3, DT_INT64, there);
    dt_tensor_clear(&x);
    dt_observer_remove(&observer);
    dt_tensor y = counting(3, DT_INT64, there);
    dt_tensor_clear(&y);
    assert(observed[DT_ACTIVITY_KERNEL] == 1 && observed[DT_ACTIVITY_ALLOCATE] == 1);
    assert(observed[DT_ACTIVITY_FREE] == 1 && !observed[DT_ACTIVITY_WAIT]);
}

int main(void)
{
    dt_device_row second = null_row;
    second.name = second.title = "other";
    assert(!dt_registry_start(dt_cpu_backend(), ".", ""));
    here = dt_device_make((dt_device_type)dt_registry_add(&null_row), 0);
    there = dt_device_make((dt_device_type)here.type, 1);
    other = dt_device_make((dt_device_type)dt_registry_add(&second), 0);
    assert(here.type >= DT_NDEVICE_TYPES && other.type > here.type);
    dt_device_row third = null_row;
    third.name = "third";
    expect_failure(dt_registry_add(&third), DT_ERROR_RUNTIME, "at most 5");
    assert(!dt_device_check(here) && !dt_device_check(other));
    test_names();
    test_work();
    test_copies();
    test_streams();
    test_seeds();
    test_observers();
    assert(!dt_storage_count(here) && !dt_storage_count(there));
    assert(!dt_storage_count(other) && !dt_storage_count(cpu));
    assert(dt_error_slot()->code == DT_ERROR_NONE);
    puts("null devices: all hold");
    return 0;
}
