/* The functions behind torch.fused and torch.compile: device/fusion.h. */
#include "device/fusion.h"

#include <limits.h>
#include <stdlib.h>

#include "device/activity.h"
#include "device/module.h"
#include "python/errors.h"
#include "python/module.h"
#include "tensor/ops/ops.h"

static PyObject *reports;  /* a list that grows; NULL: nobody listens */
static PyObject *compiler; /* NULL: that of pydevtensor.cuda */

static PyObject *item_of(const char *name, int line, bool stored, bool wanted)
{
    char text[DT_LINE_TEXT];
    return Py_BuildValue("(ssNN)", name, dt_activity_line_text(line, text),
                         PyBool_FromLong(stored), PyBool_FromLong(wanted));
}

/* (why, numel, bytes, bytes apart, compiled, [(name, line, stored, wanted), ...]) */
static PyObject *tuple_of(const dt_fusion_report *r)
{
    const dt_chain *chain = r->chain;
    DT_REF items = PyList_New(chain->nsteps + chain->nends);
    for (int i = 0; items && i < chain->nsteps + chain->nends; i++) {
        const int e = i - chain->nsteps;
        const dt_chain_step *step = &chain->steps[e < 0 ? i : 0];
        const dt_chain_end *end = &chain->ends[e < 0 ? 0 : e];
        PyObject *item = e < 0 ? item_of(dt_chain_step_name(step), r->lines[i],
                                         step->out, step->wanted)
                               : item_of(dt_chain_end_name(end), end->line, end->wanted,
                                         end->wanted);
        if (!item)
            return NULL;
        PyList_SET_ITEM(items, i, item);
    }
    return items ? Py_BuildValue("(sLLLNO)", r->why, (long long)chain->numel,
                                 (long long)r->bytes, (long long)r->apart,
                                 PyBool_FromLong(r->compiled), items)
                 : NULL;
}

/* Called inside of an operation, which may have failed: keeps a pending exception. */
static void listen(const dt_fusion_report *report)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    DT_REF item = tuple_of(report);
    if (item && reports)
        PyList_Append(reports, item);
    PyErr_Restore(type, value, trace);
}

static PyObject *begin(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    dt_fusion_begin();
    Py_RETURN_NONE;
}

static PyObject *end(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    if (dt_fusion_end())
        return dt_raise();
    Py_RETURN_NONE;
}

/* _fusion_listen(list or None): a list gets a tuple for each chain that is run. */
static PyObject *set_reports(PyObject *Py_UNUSED(self), PyObject *list)
{
    if (list != Py_None && !PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "give a list or None");
    dt_fusion_listen(NULL);
    Py_XSETREF(reports, list == Py_None ? NULL : Py_NewRef(list));
    dt_fusion_listen(reports ? listen : NULL);
    Py_RETURN_NONE;
}

/* Calls the compiler with the GPU, the number and the source of a chain, and whether any
 * version of CUDA will do. It gives the kernel to _fusion_compiled. */
static PyObject *call_compiler(dt_device device, const dt_chain *chain)
{
    char *source = NULL;
    bool exact;
    const int number =
        dt_backends[device.type]->chain_source(device.index, chain, &source, &exact);
    if (number < 0)
        return dt_raise();
    DT_REF args = Py_BuildValue("(iisO)", device.index, number, source,
                                exact ? Py_True : Py_False);
    free(source);
    DT_REF chosen = Py_XNewRef(compiler);
    return !args ? NULL
           : chosen
               ? PyObject_CallObject(chosen, args)
               : dt_python_call("pydevtensor.cuda._chains", "compile_later", "O", args);
}

/* Called inside of an operation, as listen. */
static void compile(dt_device device, const dt_chain *chain)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    DT_REF done = call_compiler(device, chain);
    if (!done)
        PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, trace);
}

/* How often a chain runs before it is compiled; 0: it never is. */
static int runs_before_compiling(void)
{
    const char *text = getenv("PYDEVTENSOR_COMPILE_AFTER");
    char *end = NULL;
    const long runs = text ? strtol(text, &end, 10) : 0;
    return !text || end == text || *end || runs < 0 || runs > INT_MAX ? 10 : (int)runs;
}

/* _fusion_compiler(function=None, runs=None): compile by this function, after so many
 * runs from now on. */
static PyObject *set_compiler(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *function = Py_None;
    int runs = runs_before_compiling();
    if (!PyArg_ParseTuple(args, "|Oi:_fusion_compiler", &function, &runs))
        return NULL;
    Py_XSETREF(compiler, function == Py_None ? NULL : Py_NewRef(function));
    dt_fusion_compile(runs, compile);
    const dt_backend *gpus = dt_backends[DT_ACCELERATOR];
    if (gpus && gpus->chain_forget)
        gpus->chain_forget();
    Py_RETURN_NONE;
}

/* _fusion_compiled(number, kernel) */
static PyObject *compiled(PyObject *Py_UNUSED(self), PyObject *args)
{
    int number;
    Py_ssize_t kernel;
    if (!PyArg_ParseTuple(args, "in:_fusion_compiled", &number, &kernel))
        return NULL;
    dt_backends[DT_ACCELERATOR]->chain_compiled(number,
                                                (const dt_module_kernel *)kernel);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_fusion_begin", begin, METH_NOARGS, NULL},
    {"_fusion_end", end, METH_NOARGS, NULL},
    {"_fusion_listen", set_reports, METH_O, NULL},
    {"_fusion_compiler", set_compiler, METH_VARARGS, NULL},
    {"_fusion_compiled", compiled, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_fusion(PyObject *module)
{
    dt_fusion_compile(runs_before_compiling(), compile);
    return PyModule_AddFunctions(module, functions);
}
