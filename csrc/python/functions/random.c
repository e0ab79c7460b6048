/* Random numbers beyond plain fills: choices, permutations, states; and matrices of
 * spaced numbers and triangles. */
#include <math.h>
#include <string.h>

#include "autograd/recorded.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/random.h"
#include "tensor/ops/reduce.h"
#include "tensor/ops/linspace.h"

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

static PyObject *spaced(const dt_args *args, int first, double base)
{
    dt_scalar start, end;
    int64_t steps;
    int dtype = dt_default_dtype();
    dt_device device;
    if (dt_take_number(args, 0, &start) < 0 || dt_take_number(args, 1, &end) < 0 ||
        dt_take_int(args, 2, &steps) < 0 ||
        dt_take_factory(args, first, &dtype, &device) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, steps > DT_LONG_NUMEL,
           dt_linspace(args->signature->name, &out->tensor, dt_scalar_as_double(start),
                       dt_scalar_as_double(end), steps, base, (dt_dtype)dtype, device));
    return dt_finish_factory(args, first, dt_tensor_result(out, status));
}

DT_PUBLIC(linspace, "linspace(start: Number, end: Number, steps: int, "
                    "*, " DT_FACTORY_KWARGS_OUT ")")
{
    return spaced(args, 3, NAN);
}
DT_PUBLIC(logspace,
          "logspace(start: Number, end: Number, steps: int, base: float = 10, "
          "*, " DT_FACTORY_KWARGS_OUT ")")
{
    double base;
    if (dt_take_float(args, 3, &base) < 0)
        return NULL;
    return spaced(args, 4, base);
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
        status = dt_binary_into(DT_BINARY_mul, made, dt_arg_tensor(made), s);
    if (!status)
        status = dt_binary_into(DT_BINARY_add, made, dt_arg_tensor(made), m);
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

/* --- triangles --- */

static int triangle(const char *what, dt_tensor *out, const dt_tensor *x, bool lower,
                    int64_t diagonal)
{
    dt_tensor mask;
    out->storage = NULL;
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: input has %d dimensions; give a matrix, or a batch of them",
                       what, x->ndim);
    if (dt_triangle(what, &mask, x->shape[x->ndim - 2], x->shape[x->ndim - 1], lower,
                    diagonal, dt_tensor_device(x)))
        return -1;
    dt_scalar zero = dt_dtype_kind((dt_dtype)x->dtype) == DT_KIND_BOOL
                         ? (dt_scalar){.kind = DT_KIND_BOOL}
                         : dt_scalar_int(0);
    int status = dt_recorded_where(out, &mask, dt_arg_tensor(x), dt_arg_scalar(zero));
    dt_tensor_clear(&mask);
    return status;
}

static PyObject *triangle_of(const dt_args *args, bool lower, bool in_place)
{
    dt_tensor *x;
    int64_t diagonal;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &diagonal) < 0)
        return NULL;
    const char *what = args->signature->name;
    int status;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           triangle(what, &out->tensor, x, lower, diagonal));
    if (!in_place || status)
        return dt_tensor_result(out, status);
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_copy_into(what, x, &out->tensor));
    PyObject *done = dt_tensor_result(out, status);
    if (!done)
        return NULL;
    Py_DECREF(done);
    return Py_NewRef(args->slots[0]);
}

DT_PUBLIC(tril, "tril(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, true, false);
}
DT_PUBLIC(triu, "triu(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, false, false);
}
DT_PUBLIC(tril_, "tril_(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, true, true);
}
DT_PUBLIC(triu_, "triu_(input: Tensor, diagonal: int = 0)")
{
    return triangle_of(args, false, true);
}

static const dt_function rows[] = {
    DT_FUNCTION(randperm, "randperm",
                "0, ..., n - 1 in random order.\n\n"
                "int64. RuntimeError for a negative n."),
    DT_FUNCTION(linspace, "linspace",
                "steps numbers at even distances from start to end, both included.\n\n"
                "Of the default floating type. RuntimeError for negative steps."),
    DT_FUNCTION(logspace, "logspace",
                "base to the powers of linspace(start, end, steps).\n\n"
                "Of the default floating type. RuntimeError for negative steps."),
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
    DT_BOTH(tril, "tril",
            "A matrix with zeros above the diagonal.\n\n"
            "diagonal: how far above (or, negative, below) the main one. A batch of "
            "matrices too; RuntimeError for fewer than two dimensions."),
    DT_BOTH(triu, "triu",
            "A matrix with zeros below the diagonal.\n\n"
            "diagonal: how far above (or, negative, below) the main one. A batch of "
            "matrices too; RuntimeError for fewer than two dimensions."),
    DT_METHOD(tril_, "tril_", "Set what is above the diagonal to zero."),
    DT_METHOD(triu_, "triu_", "Set what is below the diagonal to zero."),
};

int dt_setup_random(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
