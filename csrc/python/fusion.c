/* The functions behind torch.fused and torch.compile: device/fusion.h. */
#include "device/fusion.h"

#include "device/activity.h"
#include "python/errors.h"
#include "python/module.h"
#include "tensor/ops/ops.h"

static PyObject *reports; /* a list that grows; NULL: nobody listens */

static const char *end_name(const dt_chain_end *end)
{
    return end->work == DT_WORK_nn       ? end->rows.op_name
           : end->work == DT_WORK_reduce ? dt_reduce_names[end->op]
                                         : "var";
}

static PyObject *item_of(const char *name, int line, bool stored, bool wanted)
{
    char text[DT_LINE_TEXT];
    return Py_BuildValue("(ssNN)", name, dt_activity_line_text(line, text),
                         PyBool_FromLong(stored), PyBool_FromLong(wanted));
}

/* (why, numel, bytes, bytes apart, [(name, line, stored, wanted), ...]) */
static PyObject *tuple_of(const dt_fusion_report *r)
{
    const dt_chain *chain = r->chain;
    DT_REF items = PyList_New(chain->nsteps + chain->nends);
    for (int i = 0; items && i < chain->nsteps + chain->nends; i++) {
        const int e = i - chain->nsteps;
        const dt_chain_step *step = &chain->steps[e < 0 ? i : 0];
        const dt_chain_end *end = &chain->ends[e < 0 ? 0 : e];
        PyObject *item =
            e < 0 ? item_of(dt_chain_step_name(step), r->lines[i], step->out,
                            step->wanted)
                  : item_of(end_name(end), end->line, end->wanted, end->wanted);
        if (!item)
            return NULL;
        PyList_SET_ITEM(items, i, item);
    }
    return items ? Py_BuildValue("(sLLLO)", r->why, (long long)chain->numel,
                                 (long long)r->bytes, (long long)r->apart, items)
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
