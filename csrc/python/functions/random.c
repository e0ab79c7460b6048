/* Seeds of the default generators. */
#include <sys/random.h>

#include "python/functions.h"
#include "tensor/ops/create.h"

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
    DT_FUNCTION(manual_seed, "manual_seed", "Seed the generators of all devices."),
    DT_FUNCTION(seed, "seed", "Seed all generators from the system's randomness."),
    DT_FUNCTION(initial_seed, "initial_seed", "The seed of the CPU's generator."),
};

int dt_setup_random(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
