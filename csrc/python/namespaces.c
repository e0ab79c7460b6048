/* The functions of namespaces such as linalg, which their modules ask for when they are
 * imported, and the signatures of all functions. */
#include "python/functions.h"

#include <string.h>

/* All tables of functions: the package's, whose namespace is "", and those that the modules
 * of a namespace make functions of. */
#define MAX_TABLES 2048
static struct {
    const char *space;
    const dt_function *rows;
    size_t count;
} tables[MAX_TABLES];
static size_t ntables;

void dt_publish(const char *space, const dt_function *rows, size_t count)
{
    if (ntables == MAX_TABLES)
        return;
    tables[ntables].space = space;
    tables[ntables].rows = rows;
    tables[ntables++].count = count;
}

/* _signatures(namespace=""): [(name, signature, is a function, is a method), ...] */
static PyObject *signatures(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *space = "";
    PyObject *list = PyArg_ParseTuple(args, "|s", &space) ? PyList_New(0) : NULL;
    for (size_t t = 0; list && t < ntables; t++)
        for (size_t i = 0;
             list && !strcmp(tables[t].space, space) && i < tables[t].count; i++) {
            const dt_function *row = &tables[t].rows[i];
            dt_list_append(&list,
                           Py_BuildValue("(ssNN)", row->name, row->signature->text,
                                         PyBool_FromLong(row->function != NULL),
                                         PyBool_FromLong(row->method != NULL)));
        }
    return list;
}

static PyObject *namespace_functions(PyObject *self, PyObject *space)
{
    const char *name = PyUnicode_AsUTF8(space);
    PyObject *home = name ? PyUnicode_FromFormat("pydevtensor.%s", name) : NULL;
    PyObject *made = home ? PyDict_New() : NULL;
    for (size_t t = 0; made && t < ntables; t++)
        for (size_t i = 0;
             made && !strcmp(tables[t].space, name) && i < tables[t].count; i++)
            if (dt_add_function(made, &tables[t].rows[i], self, home) < 0)
                Py_CLEAR(made);
    Py_XDECREF(home);
    return made;
}

int dt_setup_namespaces(PyObject *module)
{
    static PyMethodDef own[] = {
        {"_signatures", signatures, METH_VARARGS,
         "The name and signature of every public function and method, or of those of a "
         "namespace such as 'linalg'."},
        {"_namespace", namespace_functions, METH_O,
         "The functions of a namespace such as 'linalg', by name."},
        {NULL, NULL, 0, NULL},
    };
    return PyModule_AddFunctions(module, own);
}
