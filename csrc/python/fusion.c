/* The functions behind torch.fused and torch.compile: device/fusion.h. */
#include "device/fusion.h"

#include "device/activity.h"
#include "python/module.h"

static PyObject *reports; /* a list that grows; NULL: nobody listens */

static const char *name_of(const dt_chain_step *step)
{
    return step->op == DT_CHAIN_CONVERT ? "copy" : dt_elementwise_rows[step->op].name;
}

/* (why, numel, bytes, bytes apart, [(name, line, stored, wanted), ...]) */
static PyObject *tuple_of(const dt_fusion_report *r)
{
    DT_REF steps = PyList_New(r->chain->nsteps);
    for (int s = 0; steps && s < r->chain->nsteps; s++) {
        const dt_chain_step *step = &r->chain->steps[s];
        char line[DT_LINE_TEXT];
        PyObject *item = Py_BuildValue(
            "(ssNN)", name_of(step), dt_activity_line_text(r->lines[s], line),
            PyBool_FromLong(step->out != NULL), PyBool_FromLong(step->wanted));
        if (!item)
            return NULL;
        PyList_SET_ITEM(steps, s, item);
    }
    return steps ? Py_BuildValue("(sLLLO)", r->why, (long long)r->chain->numel,
                                 (long long)r->bytes, (long long)r->apart, steps)
                 : NULL;
}

/* In the midst of a call, which may have failed. */
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
    dt_fusion_end();
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

static PyMethodDef functions[] = {
    {"_fusion_begin", begin, METH_NOARGS, NULL},
    {"_fusion_end", end, METH_NOARGS, NULL},
    {"_fusion_listen", set_reports, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_fusion(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
