/* Defaults that a program can set: device, current GPU, floating type. */
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"

#include <string.h>

#include "tensor/ops/ops.h"

/* Devices of `with device(...)` below the present default, by thread. */
typedef struct saved {
    struct saved *below;
    dt_device named;
} saved;

static _Thread_local struct {
    saved *stack;
    dt_device named; /* {DT_CPU, 0} at first */
    int current;
} here;

int dt_default_device_push(dt_device named)
{
    saved *top = PyMem_RawMalloc(sizeof *top);
    if (!top) {
        PyErr_NoMemory();
        return -1;
    }
    top->below = here.stack;
    top->named = here.named;
    here.stack = top;
    here.named = named;
    return 0;
}

void dt_default_device_pop(void)
{
    saved *top = here.stack;
    if (!top)
        return;
    here.named = top->named;
    here.stack = top->below;
    PyMem_RawFree(top);
}

int dt_default_device(dt_device *out)
{
    dt_device named = here.named;
    if (named.type == DT_CPU) {
        *out = dt_device_make(DT_CPU, 0);
        return 0;
    }
    return dt_device_resolve(named, out);
}

int dt_python_current_device(void)
{
    return here.current;
}

void dt_python_set_current_device(int index)
{
    here.current = index;
}

DT_PUBLIC(set_default_device, "set_default_device(device: Any)")
{
    dt_device named = dt_device_make(DT_CPU, 0);
    if (args->slots[0] != Py_None &&
        dt_device_from_python("set_default_device", "device", args->slots[0], &named) <
            0)
        return NULL;
    here.named = named;
    Py_RETURN_NONE;
}

DT_PUBLIC(get_default_device, "get_default_device()")
{
    dt_device device;
    if (dt_default_device(&device) < 0)
        return NULL;
    return dt_device_object_of(device);
}

DT_PUBLIC(set_default_dtype, "set_default_dtype(d: Dtype)")
{
    dt_dtype dtype = (dt_dtype)v[0].dtype;
    if (!dt_dtype_is_float(dtype))
        return PyErr_Format(
            PyExc_TypeError,
            "set_default_dtype(): %R holds no fractions; give a floating type such "
            "as float32",
            dt_py.dtypes[dtype]);
    dt_set_default_dtype(dtype);
    Py_RETURN_NONE;
}

DT_PUBLIC(get_default_dtype, "get_default_dtype()")
{
    return dt_dtype_object_get(dt_default_dtype());
}

static const char *const precisions[] = {"highest", "high", "medium"};

DT_PUBLIC(set_float32_matmul_precision, "set_float32_matmul_precision(precision: str)")
{
    for (int i = 0; i <= DT_MATMUL_MEDIUM; i++)
        if (!strcmp(v[0].text, precisions[i])) {
            dt_set_float32_matmul_precision((dt_matmul_precision)i);
            Py_RETURN_NONE;
        }
    return PyErr_Format(
        PyExc_RuntimeError,
        "set_float32_matmul_precision(): there is no precision '%.100s'; "
        "give 'highest', 'high' or 'medium'",
        v[0].text);
}

DT_PUBLIC(get_float32_matmul_precision, "get_float32_matmul_precision()")
{
    return PyUnicode_FromString(precisions[dt_float32_matmul_precision()]);
}

static const dt_function rows[] = {
    DT_FUNCTION(set_default_device, "set_default_device",
                "Make factories use device where they name none; None means the CPU.",
                "torch.set_default_device('cpu')", ""),
    DT_FUNCTION(get_default_device, "get_default_device",
                "The device that factories use where they name none.",
                "torch.get_default_device()", "device(type='cpu')"),
    DT_FUNCTION(set_default_dtype, "set_default_dtype",
                "Make d the type of floats where none is named.",
                "torch.set_default_dtype(torch.float32)", ""),
    DT_FUNCTION(get_default_dtype, "get_default_dtype",
                "The type of floats where none is named.", "torch.get_default_dtype()",
                "torch.float32"),
    DT_FUNCTION(
        set_float32_matmul_precision, "set_float32_matmul_precision",
        "Say how exact float32 matrix products on GPUs have to be.\n\n"
        "precision: 'highest', in float32; 'high' or 'medium', elements may be rounded "
        "to TF32, which has 10 bits of fraction, for several times the speed, and sums "
        "stay in float32. RuntimeError for others. The CPU and simulated GPUs always "
        "compute in float32.",
        "torch.set_float32_matmul_precision('highest')", ""),
    DT_FUNCTION(get_float32_matmul_precision, "get_float32_matmul_precision",
                "What set_float32_matmul_precision was given; 'highest' at first.",
                "torch.get_float32_matmul_precision()", "'highest'"),
};

int dt_setup_defaults(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
