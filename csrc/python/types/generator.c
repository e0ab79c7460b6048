/* `Generator`: random state as a Python object, the CPU's default generator, and
 * seeds. */
#include <sys/random.h>

#include "python/types/device.h"
#include "python/functions.h"
#include "tensor/ops/ops.h"

typedef struct generator_object {
    PyObject_HEAD dt_generator *generator; /* owned, or the device's default
                                              generator */
    dt_device device;
    dt_generator own;
} generator_object;

/* The seed of a generator without a seed: PyTorch's. */
#define DEFAULT_SEED UINT64_C(67280421310721)

static PyObject *default_generator; /* the CPU's */

static generator_object *generator_of(PyObject *self)
{
    return (generator_object *)self;
}

int dt_seed_from_python(const char *function, PyObject *value, uint64_t *out)
{
    PyObject *whole = PyNumber_Index(value);
    if (!whole) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Clear();
        return DT_SET_ERROR(PyExc_TypeError, "%s(): seed is %s; give an int", function,
                            dt_describe(value, text, sizeof text));
    }
    /* Negative seeds count down from 2^64. */
    int overflow;
    long long small = PyLong_AsLongLongAndOverflow(whole, &overflow);
    *out = overflow > 0 ? PyLong_AsUnsignedLongLong(whole) : (unsigned long long)small;
    Py_DECREF(whole);
    if (overflow >= 0 && !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return DT_SET_ERROR(PyExc_ValueError,
                        "%s(): %R is beyond 64 bits; give a seed of -2**63 to 2**64-1",
                        function, value);
}

int dt_seed_draw(uint64_t *out)
{
    if (getrandom(out, sizeof *out, 0) == (ssize_t)sizeof *out)
        return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

dt_generator *dt_generator_from_python(const char *function, PyObject *value,
                                       dt_device device)
{
    char a[DT_DEVICE_TEXT], b[DT_DEVICE_TEXT];
    if (!PyObject_TypeCheck(value, dt_py.generator_type)) {
        PyErr_Format(PyExc_TypeError, "%s(): %R is no Generator; give one", function,
                     value);
        return NULL;
    }
    generator_object *self = generator_of(value);
    if (dt_device_equal(self->device, device))
        return self->generator;
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): the generator is on %s and what it draws for on %s; give "
                 "Generator(device='%s')",
                 function, dt_device_text(self->device, a), dt_device_text(device, b),
                 b);
    return NULL;
}

int dt_take_generator(const dt_args *args, int i, dt_device device, dt_generator **out)
{
    *out = NULL;
    if (!dt_given(args, i))
        return 0;
    PyObject *value = args->slots[i];
    if (!PyObject_TypeCheck(value, dt_py.generator_type))
        return dt_argument_error(args, i);
    *out = dt_generator_from_python(args->signature->name, value, device);
    return *out ? 0 : -1;
}

static PyObject *make(PyTypeObject *type, dt_device device)
{
    generator_object *self = (generator_object *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->device = device;
    self->generator = &self->own;
    dt_generator_init(&self->own, DEFAULT_SEED);
    return (PyObject *)self;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"device", NULL};
    PyObject *value = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", words, &value))
        return NULL;
    dt_device device = dt_device_make(DT_CPU, 0);
    if (value != Py_None &&
        (dt_device_from_python("Generator", "device", value, &device) < 0 ||
         dt_device_resolve(device, &device) < 0))
        return NULL;
    return make(type, device);
}

static void generator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *generator_manual_seed(PyObject *self, PyObject *value)
{
    uint64_t seed;
    if (!PyIndex_Check(value)) { /* unlike torch.manual_seed's TypeError */
        char text[DT_DESCRIBE_TEXT];
        return PyErr_Format(PyExc_RuntimeError,
                            "manual_seed(): seed is %s; give an int",
                            dt_describe(value, text, sizeof text));
    }
    if (dt_seed_from_python("manual_seed", value, &seed) < 0)
        return NULL;
    dt_generator_seed(generator_of(self)->generator, seed);
    return Py_NewRef(self);
}

static PyObject *generator_seed(PyObject *self, PyObject *Py_UNUSED(unused))
{
    uint64_t seed;
    if (dt_seed_draw(&seed) < 0)
        return NULL;
    dt_generator_seed(generator_of(self)->generator, seed);
    return PyLong_FromUnsignedLongLong(seed);
}

static PyObject *generator_initial_seed(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(generator_of(self)->generator->seed);
}

static bool is_twister(PyObject *self)
{
    return generator_of(self)->device.type == DT_CPU;
}

static PyObject *generator_get_state(PyObject *self, PyObject *Py_UNUSED(unused))
{
    dt_tensor state = {.storage = NULL};
    int64_t size = is_twister(self) ? DT_TWISTER_STATE : DT_PHILOX_STATE;
    if (dt_tensor_empty("get_state", &state, DT_UINT8, 1, &size,
                        dt_device_make(DT_CPU, 0)))
        return dt_raise();
    dt_generator_save(generator_of(self)->generator, is_twister(self),
                      dt_tensor_data(&state));
    return dt_tensor_object_steal(&state);
}

static PyObject *generator_set_state(PyObject *self, PyObject *value)
{
    char text[DT_DESCRIBE_TEXT];
    int64_t size = is_twister(self) ? DT_TWISTER_STATE : DT_PHILOX_STATE;
    dt_tensor *given = dt_tensor_check(value) ? dt_tensor_of(value) : NULL;
    if (!given || given->dtype != DT_UINT8 || dt_tensor_device(given).type != DT_CPU)
        return PyErr_Format(
            PyExc_TypeError,
            "set_state(): the state is %s; give a Tensor of uint8 on the CPU, "
            "from get_state()",
            dt_describe(value, text, sizeof text));
    if (given->numel != size)
        return PyErr_Format(
            PyExc_RuntimeError,
            "set_state(): the state has %lld bytes and the generator's states "
            "have %lld; give a result of its get_state()",
            (long long)given->numel, (long long)size);
    dt_tensor bytes;
    if (dt_contiguous(&bytes, given))
        return dt_raise();
    int status = dt_generator_restore(generator_of(self)->generator, is_twister(self),
                                      dt_tensor_data(&bytes));
    dt_tensor_clear(&bytes);
    return status < 0 ? dt_raise() : Py_NewRef(self);
}

static PyObject *generator_clone_state(PyObject *self, PyObject *Py_UNUSED(unused))
{
    unsigned char bytes[DT_TWISTER_STATE];
    PyObject *copy = make(Py_TYPE(self), generator_of(self)->device);
    if (!copy)
        return NULL;
    dt_generator_save(generator_of(self)->generator, is_twister(self), bytes);
    if (dt_generator_restore(generator_of(copy)->generator, is_twister(self), bytes)) {
        Py_DECREF(copy);
        return dt_raise();
    }
    return copy;
}

/* For copy and pickle: a generator of the same device, whose state is set then. */
static PyObject *generator_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    DT_REF device = dt_device_object_of(generator_of(self)->device);
    DT_REF state = device ? generator_get_state(self, NULL) : NULL;
    return state ? Py_BuildValue("O(O)O", Py_TYPE(self), device, state) : NULL;
}

static PyObject *generator_device(PyObject *self, void *Py_UNUSED(unused))
{
    return dt_device_object_of(generator_of(self)->device);
}

static PyMethodDef methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed)\n--\n\nRestart from seed; return the generator.\n\n>>> "
     "torch.Generator().manual_seed(3).initial_seed()\n3"},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self)\n--\n\nRestart from a seed from the system, and return that "
     "seed.\n\n>>> generator = torch.Generator()\n>>> generator.seed() == "
     "generator.initial_seed()\nTrue"},
    {"initial_seed", generator_initial_seed, METH_NOARGS,
     "initial_seed($self)\n--\n\nThe seed of the generator.\n\n>>> "
     "torch.Generator().manual_seed(3).initial_seed()\n3"},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self)\n--\n\nThe state as a Tensor of uint8, for set_state().\n\n>>> "
     "torch.Generator().get_state().dtype\ntorch.uint8"},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, new_state)\n--\n\nRestore new_state, which get_state() "
     "returned; return the generator.\n\nTypeError unless it is a Tensor of uint8 on "
     "the CPU, RuntimeError for what is no\nstate.\n\n>>> generator = "
     "torch.Generator()\n>>> state = "
     "generator.get_state()\n>>> first = torch.rand(2, generator=generator)\n>>> again "
     "= torch.rand(2, generator=generator.set_state(state))\n>>> torch.equal(first, "
     "again)\nTrue"},
    {"__reduce__", generator_reduce, METH_NOARGS,
     "__reduce__($self)\n--\n\nThe generator in parts, for copy and pickle."},
    {"__setstate__", generator_set_state, METH_O,
     "__setstate__($self, state)\n--\n\nset_state(), for copy and pickle."},
    {"clone_state", generator_clone_state, METH_NOARGS,
     "clone_state($self)\n--\n\nA copy of the generator in the same state.\n\n>>> "
     "generator = torch.Generator().manual_seed(3)\n>>> twin = "
     "generator.clone_state()\n>>> a, b = torch.rand(2, generator=generator), "
     "torch.rand(2, generator=twin)\n>>> torch.equal(a, b)\nTrue"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"device", generator_device, NULL, "The device of the tensors that it fills.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Generator(device='cpu')\n--\n\nAn independent source of random numbers for one "
     "device.\n\n>>> generator = torch.Generator().manual_seed(0)\n>>> torch.rand(2, "
     "generator=generator)\ntensor([0.4963, 0.7682])"},
    {Py_tp_new, generator_new},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

/* --- seeds of the default generators --- */

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
    return Py_NewRef(default_generator);
}

DT_PUBLIC(seed, "seed()")
{
    uint64_t drawn;
    if (dt_seed_draw(&drawn) < 0)
        return NULL;
    dt_seed_all(drawn);
    return PyLong_FromUnsignedLongLong(drawn);
}

DT_PUBLIC(initial_seed, "initial_seed()")
{
    return generator_initial_seed(default_generator, NULL);
}

/* The default generator of a device, for its state. */
static PyObject *generator_of_device(PyObject *module, PyObject *value)
{
    (void)module;
    dt_device named, device;
    if (dt_device_from_python("_default_generator", "device", value, &named) < 0 ||
        dt_device_resolve(named, &device) < 0)
        return NULL;
    PyObject *made = make(dt_py.generator_type, device);
    dt_generator *own = made ? dt_default_generator(device) : NULL;
    if (own)
        generator_of(made)->generator = own;
    else if (made) {
        Py_DECREF(made);
        return dt_raise();
    }
    return made;
}

static PyMethodDef of_module[] = {
    {"_default_generator", generator_of_device, METH_O,
     "_default_generator(device, /)\n--\n\nThe default generator of a device."},
    {NULL, NULL, 0, NULL},
};

static const dt_function rows[] = {
    DT_FUNCTION(manual_seed, "manual_seed", "Seed the generators of all devices.",
                "torch.manual_seed(0).initial_seed()", "0"),
    DT_FUNCTION(seed, "seed", "Seed all generators from the system's randomness.",
                "number = torch.seed()\nnumber == torch.initial_seed()", "True"),
    DT_FUNCTION(initial_seed, "initial_seed", "The seed of the CPU's generator.",
                "generator = torch.manual_seed(3)\ntorch.initial_seed()", "3"),
};

int dt_setup_generator_type(PyObject *module)
{
    dt_device cpu = dt_device_make(DT_CPU, 0);
    dt_py.generator_type =
        dt_add_type(module, "pydevtensor.Generator", sizeof(generator_object),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, NULL, slots);
    if (!dt_py.generator_type)
        return -1;
    default_generator = make(dt_py.generator_type, cpu);
    if (!default_generator)
        return -1;
    generator_of(default_generator)->generator = dt_default_generator(cpu);
    if (dt_add_object(module, "default_generator", default_generator) < 0)
        return -1;
    return PyModule_AddFunctions(module, of_module) < 0
               ? -1
               : DT_ADD_FUNCTIONS(module, rows);
}
