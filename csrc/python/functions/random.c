/* Seeds of the default generators. */
#include "python/functions.h"
#include "python/seed.h"
#include "tensor/ops/create.h"

DT_PUBLIC(manual_seed, "manual_seed(seed: Any)")
{
    uint64_t seed;
    PyObject *given = args->slots[0];
    PyObject *whole = PyFloat_Check(given) ? PyNumber_Long(given) : NULL;
    PyErr_Clear(); /* an infinity or a NaN: refused as a float is */
    int status = dt_seed_from_python("manual_seed", whole ? whole : given, &seed);
    Py_XDECREF(whole);
    if (status < 0)
        return NULL;
    dt_seed_all(seed);
    return PyObject_GetAttrString(dt_py.module, "default_generator");
}

DT_PUBLIC(seed, "seed()")
{
    (void)args;
    uint64_t drawn;
    if (dt_seed_draw(&drawn) < 0)
        return NULL;
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
