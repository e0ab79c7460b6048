/* Random numbers beyond plain fills: permutations, distributions, samples, seeds. */
#include <string.h>
#include <sys/random.h>

#include "autograd/recorded.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/random.h"
#include "tensor/ops/reduce.h"

/* --- new tensors --- */

DT_PUBLIC(randperm,
          "randperm(n: int, *, generator: Generator = None, " DT_FACTORY_KWARGS_OUT ")")
{
    int64_t n;
    int dtype = DT_INT64;
    dt_device device;
    dt_generator *generator;
    if (dt_take_int(args, 0, &n) < 0 || dt_take_factory(args, 2, &dtype, &device) < 0 ||
        dt_take_generator(args, 1, device, &generator) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, n > DT_LONG_NUMEL,
           dt_randperm(&out->tensor, n, (dt_dtype)dtype, device, generator));
    return dt_finish_factory(args, 2, dt_tensor_result(out, status));
}

#define NORMAL_END "*, generator: Generator = None"
DT_PUBLIC(normal, "normal(mean: Value, std: Value = 1, " NORMAL_END ") | "
                  "normal(mean: float, std: float, size: Sizes, " NORMAL_END
                  ", " DT_FACTORY_KWARGS_OUT ")")
{
    double mean = 0, std = 1;
    dt_generator *generator;
    dt_tensor_object *out;
    int status;
    if (args->form == 1) {
        int ndim, dtype = dt_default_dtype();
        int64_t shape[DT_MAX_NDIM];
        dt_device device;
        if (dt_take_float(args, 0, &mean) < 0 || dt_take_float(args, 1, &std) < 0 ||
            dt_take_sizes(args, 2, &ndim, shape) < 0 ||
            dt_take_factory(args, 4, &dtype, &device) < 0 ||
            dt_take_generator(args, 3, device, &generator) < 0 ||
            !(out = dt_tensor_object_new()))
            return NULL;
        status = dt_tensor_empty("normal", &out->tensor, (dt_dtype)dtype, ndim, shape,
                                 device);
        if (!status)
            DT_RUN(status, out->tensor.numel > DT_LONG_NUMEL,
                   dt_random_into("normal", &out->tensor, DT_RANDOM_NORMAL,
                                  dt_scalar_float(mean), dt_scalar_float(std),
                                  generator));
        return dt_finish_factory(args, 4, dt_tensor_result(out, status));
    }
    dt_arg m, s;
    if (dt_take_value(args, 0, &m) < 0 || dt_take_value(args, 1, &s) < 0)
        return NULL;
    const dt_tensor *first = m.tensor ? m.tensor : s.tensor;
    if (!first) {
        PyErr_SetString(PyExc_TypeError,
                        "normal(): mean and std are numbers; give a size too, or one "
                        "of them as a Tensor");
        return NULL;
    }
    if (dt_take_generator(args, 2, dt_tensor_device(first), &generator) < 0)
        return NULL;
    int ndim = first->ndim;
    int64_t shape[DT_MAX_NDIM];
    memcpy(shape, first->shape, (size_t)ndim * sizeof *shape);
    if (m.tensor && s.tensor) {
        if (dt_check_same_device("normal", "mean", m.tensor, "std", s.tensor))
            return dt_raise();
        if (dt_shape_broadcast("normal", m.tensor->ndim, m.tensor->shape,
                               s.tensor->ndim, s.tensor->shape, &ndim, shape))
            return dt_raise();
    }
    if (!s.tensor)
        std = dt_scalar_as_double(s.scalar);
    if (s.tensor && dt_tensor_device(s.tensor).type == DT_CPU && s.tensor->numel) {
        dt_tensor least = {.storage = NULL};
        dt_scalar value = dt_scalar_int(0);
        status = dt_reduce(DT_REDUCE_amin, &least, s.tensor, 0, NULL, false, -1, 0);
        if (!status)
            status = dt_item("normal", &least, &value);
        dt_tensor_clear(&least);
        if (!status && dt_scalar_as_double(value) < 0)
            status = dt_fail(DT_ERROR_RUNTIME,
                             "normal: a standard deviation is %g; give 0 or more",
                             dt_scalar_as_double(value));
        if (status)
            return dt_raise();
    }
    if (!(out = dt_tensor_object_new()))
        return NULL;
    dt_tensor *made = &out->tensor;
    status = dt_tensor_empty("normal", made, (dt_dtype)first->dtype, ndim, shape,
                             dt_tensor_device(first));
    if (!status)
        DT_RUN(status, made->numel > DT_LONG_NUMEL,
               dt_random_into("normal", made, DT_RANDOM_NORMAL, dt_scalar_float(0),
                              dt_scalar_float(s.tensor ? 1 : std), generator));
    if (!status && s.tensor)
        status = dt_elementwise_into(DT_OP_mul, made, DT_ARGS(dt_arg_tensor(made), s));
    if (!status)
        status = dt_elementwise_into(DT_OP_add, made, DT_ARGS(dt_arg_tensor(made), m));
    return dt_tensor_result(out, status);
}

/* --- into tensors --- */

/* Fills x, through a new tensor where x has a history, which has to learn of it. */
static int fill_recorded(const char *what, dt_tensor *x, const dt_tensor *p,
                         double rate, dt_generator *generator)
{
    dt_tensor fresh = {.storage = NULL};
    dt_tensor *target = x;
    if (x->storage->read_only)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the target's memory is read-only; clone() it before writing", what);
    if (dt_recording(x)) {
        if (dt_in_place_check(what, x) ||
            dt_to(&fresh, x, (dt_dtype)x->dtype, dt_tensor_device(x)))
            return -1;
        target = &fresh;
    }
    int status = p ? dt_bernoulli_into(what, target, p, generator)
                   : dt_exponential_into(what, target, rate, generator);
    if (!status && target != x)
        status = dt_recorded_copy_into(what, x, &fresh);
    dt_tensor_clear(&fresh);
    return status;
}

DT_PUBLIC(exponential_, "exponential_(input: Tensor, lambd: float = 1, *, "
                        "generator: Generator = None)")
{
    dt_tensor *x;
    double rate;
    dt_generator *generator;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_float(args, 1, &rate) < 0 ||
        dt_take_generator(args, 2, dt_tensor_device(x), &generator) < 0)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           fill_recorded("exponential_", x, NULL, rate, generator));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

DT_PUBLIC(bernoulli_, "bernoulli_(input: Tensor, p: Value = 0.5, *, "
                      "generator: Generator = None)")
{
    dt_tensor *x;
    dt_arg p;
    dt_generator *generator;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_value(args, 1, &p) < 0 ||
        dt_take_generator(args, 2, dt_tensor_device(x), &generator) < 0)
        return NULL;
    int status;
    if (p.tensor)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               fill_recorded("bernoulli_", x, p.tensor, 0, generator));
    else
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_random_into("bernoulli_", x, DT_RANDOM_BERNOULLI,
                                       dt_scalar_float(dt_scalar_as_double(p.scalar)),
                                       dt_scalar_float(0), generator));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

DT_PUBLIC(bernoulli,
          "bernoulli(input: Tensor, *, generator: Generator = None) | "
          "bernoulli(input: Tensor, p: float, *, generator: Generator = None)")
{
    dt_tensor *x;
    double p = 0;
    dt_generator *generator;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (args->form && dt_take_float(args, 1, &p) < 0) ||
        dt_take_generator(args, args->form + 1, dt_tensor_device(x), &generator) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    /* Row-major, in whichever order x lies: so are PyTorch's numbers. */
    int status = dt_tensor_empty("bernoulli", &out->tensor, (dt_dtype)x->dtype, x->ndim,
                                 x->shape, dt_tensor_device(x));
    if (!status && args->form)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_random_into("bernoulli", &out->tensor, DT_RANDOM_BERNOULLI,
                              dt_scalar_float(p), dt_scalar_float(0), generator));
    else if (!status)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_bernoulli_into("bernoulli", &out->tensor, x, generator));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(multinomial, "multinomial(input: Tensor, num_samples: int, "
                       "replacement: bool = False, *, generator: Generator = None)")
{
    dt_tensor *x;
    int64_t count;
    bool replacement;
    dt_generator *generator;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &count) < 0 ||
        dt_take_bool(args, 2, &replacement) < 0 ||
        dt_take_generator(args, 3, dt_tensor_device(x), &generator) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel + count > DT_LONG_NUMEL,
           dt_multinomial(&out->tensor, x, count, replacement, generator));
    return dt_tensor_result(out, status);
}

/* --- seeds --- */

/* The CPU's default generator as an object, where the module has it. */
static PyObject *default_generator(void)
{
    PyObject *generator = PyObject_GetAttrString(dt_py.module, "default_generator");
    if (!generator && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return generator;
}

DT_PUBLIC(manual_seed, "manual_seed(seed: Any)")
{
    PyObject *whole = PyNumber_Index(args->slots[0]);
    if (!whole) {
        PyErr_Clear();
        if (!PyFloat_Check(args->slots[0]) ||
            !(whole = PyNumber_Long(args->slots[0]))) {
            PyErr_Clear();
            dt_argument_error(args, 0);
            return NULL;
        }
    }
    /* Negative seeds count down from 2^64. */
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(whole, &overflow);
    unsigned long long seed =
        overflow > 0 ? PyLong_AsUnsignedLongLong(whole) : (unsigned long long)small;
    Py_DECREF(whole);
    if (overflow < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(
            PyExc_ValueError,
            "manual_seed(): %R is beyond 64 bits; give a seed of -2**63 to 2**64-1",
            args->slots[0]);
        return NULL;
    }
    dt_seed_all(seed);
    return default_generator();
}

DT_PUBLIC(seed, "seed()")
{
    (void)args;
    uint64_t drawn;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return PyErr_SetFromErrno(PyExc_OSError);
    dt_seed_all(drawn);
    return PyLong_FromUnsignedLongLong(drawn);
}

DT_PUBLIC(initial_seed, "initial_seed()")
{
    (void)args;
    return PyLong_FromUnsignedLongLong(
        dt_default_generator(dt_device_make(DT_CPU, 0))->seed);
}

static const dt_function rows[] = {
    DT_FUNCTION(randperm, "randperm",
                "0, ..., n - 1 in random order.\n\n"
                "int64. RuntimeError for a negative n."),
    DT_FUNCTION(normal, "normal",
                "Normally distributed numbers; mean and std may be Tensors."),
    DT_METHOD(exponential_, "exponential_",
              "Fill with intervals between events that happen lambd times a unit."),
    DT_METHOD(bernoulli_, "bernoulli_", "Fill with 1 with probability p, else 0."),
    DT_BOTH(bernoulli, "bernoulli",
            "1 with the probability that input says, else 0.\n\n"
            "Of input's shape and type. RuntimeError for probabilities beyond 0 to "
            "1."),
    DT_BOTH(multinomial, "multinomial",
            "Indices drawn by the weights of each row of input.\n\n"
            "(n, num_samples) for (n, k), int64. RuntimeError for negative weights, "
            "rows of zeros, and more than there are without replacement."),
    DT_FUNCTION(manual_seed, "manual_seed", "Seed the generators of all devices."),
    DT_FUNCTION(seed, "seed", "Seed all generators from the system's randomness."),
    DT_FUNCTION(initial_seed, "initial_seed", "The seed of the CPU's generator."),
};

int dt_setup_random(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
