/* The functions behind pydevtensor/cuda/kernels.py, which keeps modules and kernels as
 * ints: they are never unloaded. */
#include "device/extents.h"
#include "device/module.h"
#include "device/stream.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "python/arguments.h"

/* _module_load(device, path): a module from a file, on GPU number `device`. path: bytes, as
 * the system has it. */
static PyObject *module_load(PyObject *Py_UNUSED(self), PyObject *args)
{
    int index, status;
    const char *path;
    void *module = NULL;
    if (!PyArg_ParseTuple(args, "iy:compile_kernel", &index, &path))
        return NULL;
    if (dt_device_check(dt_device_make(DT_ACCELERATOR, index)) < 0)
        return dt_raise();
    DT_WAIT(status, dt_backends[DT_ACCELERATOR]->module_load(index, path, &module));
    return status < 0 ? dt_raise() : PyLong_FromVoidPtr(module);
}

/* _module_kernel(module, name): the kernel, and a tuple (kind, pointer, constant,
 * components, size, alignment) for each parameter, as in dt_module_parameter. */
static PyObject *module_kernel(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t module;
    const char *name;
    const dt_module_kernel *kernel;
    if (!PyArg_ParseTuple(args, "ns:compile_kernel", &module, &name))
        return NULL;
    if (dt_backends[DT_ACCELERATOR]->module_kernel((void *)module, name, &kernel) < 0)
        return dt_raise();
    DT_REF parameters = PyTuple_New(kernel->count);
    for (int i = 0; parameters && i < kernel->count; i++) {
        const dt_module_parameter *p = &kernel->parameters[i];
        PyObject *row = Py_BuildValue("(CNNIII)", p->kind, PyBool_FromLong(p->pointer),
                                      PyBool_FromLong(p->constant), p->components,
                                      p->size, p->alignment);
        if (!row)
            return NULL;
        PyTuple_SET_ITEM(parameters, i, row);
    }
    return parameters ? Py_BuildValue("(nO)", (Py_ssize_t)kernel, parameters) : NULL;
}

/* The elements of a tensor that a kernel is passed. */
static dt_extent extent_of(const dt_tensor *t, bool writes)
{
    const int64_t item = (int64_t)dt_dtype_size((dt_dtype)t->dtype);
    dt_extent extent = {.data = dt_tensor_data(t),
                        .item = item,
                        .ndim = t->ndim,
                        .reads = true,
                        .writes = writes};
    for (int d = 0; d < t->ndim; d++) {
        extent.shape[d] = t->shape[d];
        extent.strides[d] = t->strides[d] * item;
    }
    return extent;
}

/* Refuses a write that would lose a gradient: nothing is known of the kernel's
 * derivative. */
static int check_gradient(const char *name, const dt_tensor *t)
{
    if (dt_in_place_check(name, t) < 0)
        return -1;
    if (dt_grad_enabled && dt_requires_grad(t))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the kernel writes to a tensor that requires grad, and has no "
            "derivative; launch it under no_grad(), as in a forward() of an "
            "autograd.Function, or pass detach()",
            name);
    return 0;
}

/* A launch, while its arguments are collected. */
typedef struct launch {
    dt_module_call call;
    void *pointers[DT_MODULE_PARAMETERS];
    void *values[DT_MODULE_PARAMETERS];
    dt_extent operands[DT_MODULE_PARAMETERS];
} launch;

/* Argument i: a Tensor or None for a pointer, else the bytes of the value. */
static int take_argument(launch *to, int i, PyObject *argument)
{
    const dt_module_kernel *kernel = to->call.kernel;
    const dt_module_parameter *p = &kernel->parameters[i];
    to->pointers[i] = NULL;
    to->values[i] = &to->pointers[i];
    if (!p->pointer) {
        const size_t bytes = dt_module_bytes(p);
        if (!PyBytes_Check(argument) || (size_t)PyBytes_GET_SIZE(argument) != bytes)
            return DT_SET_ERROR(PyExc_TypeError, "%s: value %d is not %zu bytes",
                                kernel->name, i, bytes);
        to->values[i] = PyBytes_AS_STRING(argument);
    } else if (argument != Py_None) {
        if (!dt_tensor_check(argument))
            return DT_SET_ERROR(PyExc_TypeError, "%s: value %d is no Tensor",
                                kernel->name, i);
        const dt_tensor *t = dt_tensor_of(argument);
        if ((!p->constant && check_gradient(kernel->name, t) < 0) ||
            dt_tensor_use(t) < 0) {
            dt_raise();
            return -1;
        }
        to->pointers[i] = dt_tensor_data(t);
        if (!to->call.noperands)
            to->call.dtype = t->dtype;
        to->call.bytes += t->numel * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
        to->operands[to->call.noperands++] = extent_of(t, !p->constant);
    }
    return 0;
}

/* _kernel_launch(kernel, device, grid, block, shared, arguments): on the device's current
 * stream. The caller has checked them. */
static PyObject *kernel_launch(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t handle, shared;
    int index, status;
    PyObject *arguments;
    launch made = {.call.dtype = DT_FLOAT32};
    unsigned *g = made.call.grid, *b = made.call.block;
    if (!PyArg_ParseTuple(args, "ni(III)(III)nO!:Kernel", &handle, &index, &g[0], &g[1],
                          &g[2], &b[0], &b[1], &b[2], &shared, &PyTuple_Type,
                          &arguments))
        return NULL;
    const dt_module_kernel *kernel = (const dt_module_kernel *)handle;
    if (PyTuple_GET_SIZE(arguments) != kernel->count)
        return PyErr_Format(PyExc_TypeError, "%s: %d arguments are needed",
                            kernel->name, kernel->count);
    made.call.kernel = kernel;
    made.call.shared = (size_t)shared;
    made.call.values = made.values;
    made.call.operands = made.operands;
    for (int i = 0; i < kernel->count; i++)
        if (take_argument(&made, i, PyTuple_GET_ITEM(arguments, i)) < 0)
            return NULL;
    dt_stream stream = dt_stream_current(dt_device_make(DT_ACCELERATOR, index));
    DT_WAIT(status, dt_backends[DT_ACCELERATOR]->launch(stream, &made.call));
    if (status < 0)
        return dt_raise();
    for (int i = 0; i < kernel->count; i++) {
        PyObject *argument = PyTuple_GET_ITEM(arguments, i);
        if (dt_tensor_check(argument) && !kernel->parameters[i].constant)
            dt_tensor_written(dt_tensor_of(argument));
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_module_load", module_load, METH_VARARGS, NULL},
    {"_module_kernel", module_kernel, METH_VARARGS, NULL},
    {"_kernel_launch", kernel_launch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_kernels(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
