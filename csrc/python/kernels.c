/* The functions behind pydevtensor/cuda/kernels.py, which keeps modules and kernels as
 * ints: they are never unloaded. */
#include "device/extents.h"
#include "device/fusion.h"
#include "device/module.h"
#include "device/released.h"
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

/* A tuple (kind, pointer, constant, components, size, alignment) for each parameter, as in
 * dt_module_parameter. */
static PyObject *parameters_of(const dt_module_kernel *kernel)
{
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
    return Py_XNewRef(parameters);
}

/* _module_kernel(module, lowered, name, rows): the kernel, and a tuple for each parameter.
 * rows: a number of device/describe.h for each, which modules of real GPUs need. */
static PyObject *module_kernel(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t module;
    const char *lowered;
    PyObject *rows;
    const dt_module_kernel *kernel;
    dt_module_parameter parameters[DT_MODULE_PARAMETERS];
    dt_module_kernel described = {.parameters = parameters};
    if (!PyArg_ParseTuple(args, "nssO!:compile_kernel", &module, &lowered,
                          &described.name, &PyTuple_Type, &rows))
        return NULL;
    described.count = (int)PyTuple_GET_SIZE(rows);
    for (int i = 0; i < described.count && i < DT_MODULE_PARAMETERS; i++) {
        unsigned long long row = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(rows, i));
        if (PyErr_Occurred())
            return NULL;
        parameters[i] = dt_module_parameter_of(row);
    }
    if (dt_backends[DT_ACCELERATOR]->module_kernel((void *)module, lowered, &described,
                                                   &kernel) < 0)
        return dt_raise();
    DT_REF each = parameters_of(kernel);
    return each ? Py_BuildValue("(nO)", (Py_ssize_t)kernel, each) : NULL;
}

/* A tuple of texts as an array of len + 1 pointers into them. NULL with an exception
 * set. */
static const char **texts_of(PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    const char **texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (!texts)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; texts && i < count; i++) {
        texts[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i));
        if (!texts[i]) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts;
}

/* The code, what the compiler said, and each name as the code has it. */
static PyObject *compiled(const dt_module_source *source, const dt_module_code *code)
{
    DT_REF lowered = PyTuple_New(code->code ? source->nnames : 0);
    for (int i = 0; lowered && code->code && i < source->nnames; i++) {
        PyObject *name = PyUnicode_FromString(code->lowered[i]);
        if (!name)
            return NULL;
        PyTuple_SET_ITEM(lowered, i, name);
    }
    DT_REF log =
        PyUnicode_DecodeUTF8(code->log, (Py_ssize_t)strlen(code->log), "replace");
    return lowered && log
               ? Py_BuildValue("(y#OO)", code->code,
                               (Py_ssize_t)(code->code ? code->bytes : 0), log, lowered)
               : NULL;
}

/* _module_compile(text, header_names, headers, options, names): code or None, messages,
 * names. All but the text are tuples of str. */
static PyObject *module_compile(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *tuples[4], *result = NULL;
    const char **texts[4] = {NULL};
    dt_module_source source = {0};
    dt_module_code code = {0};
    int status = 0;
    if (!PyArg_ParseTuple(args, "sO!O!O!O!:compile_kernel", &source.text, &PyTuple_Type,
                          &tuples[0], &PyTuple_Type, &tuples[1], &PyTuple_Type,
                          &tuples[2], &PyTuple_Type, &tuples[3]))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (!(texts[i] = texts_of(tuples[i])))
            goto end;
    source.nheaders = (int)PyTuple_GET_SIZE(tuples[1]);
    source.noptions = (int)PyTuple_GET_SIZE(tuples[2]);
    source.nnames = (int)PyTuple_GET_SIZE(tuples[3]);
    source.header_names = texts[0];
    source.headers = texts[1];
    source.options = texts[2];
    source.names = texts[3];
    code.lowered = PyMem_Calloc((size_t)source.nnames + 1, sizeof *code.lowered);
    if (!code.lowered) {
        PyErr_NoMemory();
        goto end;
    }
    DT_WAIT(status, dt_backends[DT_ACCELERATOR]->module_compile(&source, &code));
    result = status < 0 ? dt_raise() : compiled(&source, &code);
end:
    for (int i = 0; code.lowered && i < source.nnames; i++)
        free(code.lowered[i]);
    PyMem_Free((void *)code.lowered);
    free(code.code);
    free(code.log);
    for (int i = 0; i < 4; i++)
        PyMem_Free((void *)texts[i]);
    return result;
}

/* _module_compiler(): the file of the compiler for real GPUs, and its version. */
static PyObject *module_compiler(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args))
{
    int version = 0;
    const char *path = dt_backends[DT_ACCELERATOR]->module_compiler(&version);
    return path ? Py_BuildValue("(si)", path, version) : dt_raise();
}

/* _module_variable(module, device, name, data=None): the bytes of a variable, or sets them
 * to data, as many. */
static PyObject *module_variable(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t module;
    int device, status;
    const char *name;
    PyObject *data = Py_None;
    size_t bytes = 0;
    const dt_backend *backend = dt_backends[DT_ACCELERATOR];
    if (!PyArg_ParseTuple(args, "nis|O:get_global", &module, &device, &name, &data))
        return NULL;
    if (dt_fusion_order("a variable of a kernel"))
        return dt_raise();
    DT_WAIT(status, backend->module_variable(device, (void *)module, name,
                                             DT_MODULE_SIZE, NULL, &bytes));
    if (status < 0)
        return dt_raise();
    const bool writes = data != Py_None;
    if (writes && (!PyBytes_Check(data) || (size_t)PyBytes_GET_SIZE(data) != bytes))
        return PyErr_Format(PyExc_ValueError, "%s has %zu bytes; give as many", name,
                            bytes);
    DT_REF result =
        writes ? Py_NewRef(data) : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!result)
        return NULL;
    char *host = PyBytes_AS_STRING(result);
    DT_WAIT(status, backend->module_variable(device, (void *)module, name,
                                             writes ? DT_MODULE_WRITE : DT_MODULE_READ,
                                             host, &bytes));
    return status < 0 ? dt_raise() : Py_NewRef(result);
}

/* _module_attribute(kernel, device, attribute, value=None): what the driver knows of a
 * kernel, or None; sets it where a value is given. */
static PyObject *module_attribute(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_ssize_t kernel;
    int device, attribute, value = -1, status;
    if (!PyArg_ParseTuple(args, "nii|i:Kernel", &kernel, &device, &attribute, &value))
        return NULL;
    DT_WAIT(status, dt_backends[DT_ACCELERATOR]->module_attribute(
                        device, (const dt_module_kernel *)kernel, attribute,
                        PyTuple_GET_SIZE(args) > 3, &value));
    if (status < 0)
        return dt_raise();
    if (value < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(value);
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
        if (dt_device_check_memory(dt_tensor_device(t)) ||
            (!p->constant && check_gradient(kernel->name, t) < 0) ||
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

PyMethodDef dt_kernels_functions[] = {
    {"_module_load", module_load, METH_VARARGS, NULL},
    {"_module_kernel", module_kernel, METH_VARARGS, NULL},
    {"_module_compile", module_compile, METH_VARARGS, NULL},
    {"_module_compiler", module_compiler, METH_NOARGS, NULL},
    {"_module_variable", module_variable, METH_VARARGS, NULL},
    {"_module_attribute", module_attribute, METH_VARARGS, NULL},
    {"_kernel_launch", kernel_launch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
