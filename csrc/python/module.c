/* The extension module: initializes the core and every file of the binding. */
#include "python/module.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/cpu.h"
#include "python/functions.h"

dt_python dt_py;

int dt_add_object(PyObject *module, const char *name, PyObject *value)
{
    return PyModule_AddObjectRef(module, name, value);
}

PyTypeObject *dt_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, bases);
    if (!type)
        return NULL;
    const char *dot = strrchr(spec->name, '.');
    if (dt_add_object(module, dot ? dot + 1 : spec->name, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

PyObject *dt_python_call(const char *module, const char *function, PyObject *a,
                         PyObject *b)
{
    PyObject *path = PyUnicode_FromFormat("pydevtensor.%s", module);
    PyObject *from = path ? PyImport_Import(path) : NULL;
    PyObject *result =
        from ? PyObject_CallMethod(from, function, b ? "OO" : "O", a, b) : NULL;
    Py_XDECREF(from);
    Py_XDECREF(path);
    return result;
}

/* --- functions and methods --- */

static PyMethodDef *make_definition(const dt_function *row, dt_function_call call,
                                    bool method)
{
    PyMethodDef *definition = PyMem_RawMalloc(sizeof *definition);
    char *text = dt_example_doc(row->name, row->signature->text, row->doc);
    char *doc =
        text ? dt_signature_doc(row->signature->text, row->name, method, text) : NULL;
    PyMem_Free(text);
    if (!definition || !doc) {
        PyMem_RawFree(definition);
        PyMem_Free(doc);
        PyErr_NoMemory();
        return NULL;
    }
    definition->ml_name = row->name;
    definition->ml_meth = (PyCFunction)(void (*)(void))call;
    definition->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    definition->ml_doc = doc;
    return definition;
}

/* All method tables, for tests that call every function. */
#define MAX_TABLES 1024
static struct {
    const dt_function *rows;
    size_t count;
} tables[MAX_TABLES];
static size_t ntables;

/* [(name, signature, is a function, is a method), ...] */
static PyObject *signatures(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyObject *list = PyList_New(0);
    if (list && dt_composite_signatures(list) < 0)
        Py_CLEAR(list);
    for (size_t t = 0; list && t < ntables; t++)
        for (size_t i = 0; list && i < tables[t].count; i++) {
            const dt_function *row = &tables[t].rows[i];
            PyObject *item = Py_BuildValue("(ssNN)", row->name, row->signature->text,
                                           PyBool_FromLong(row->function != NULL),
                                           PyBool_FromLong(row->method != NULL));
            if (!item || PyList_Append(list, item) < 0)
                Py_CLEAR(list);
            Py_XDECREF(item);
        }
    return list;
}

static PyObject *operations(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    static const dt_elementwise_op ops[] = {
#define ELEMENTWISE(name, ...) DT_OP_##name,
#include "ops/elementwise.def"
    };
    PyObject *list = PyList_New(0);
    for (size_t o = 0; list && o < sizeof ops / sizeof *ops; o++) {
        const dt_elementwise_row *row = &dt_elementwise_rows[ops[o]];
        PyObject *takes = PyTuple_New(3), *differentiable = PyTuple_New(row->arity);
        for (int k = 0; takes && k < 3; k++)
            PyTuple_SET_ITEM(takes, k, PyBool_FromLong(row->class_.takes[k]));
        for (int i = 0; differentiable && i < row->arity; i++)
            PyTuple_SET_ITEM(differentiable, i,
                             PyBool_FromLong(row->reads[i] != DT_READS_NOTHING));
        PyObject *item =
            Py_BuildValue("(sisddNN)", row->name, row->arity, row->class_name, row->low,
                          row->high, takes, differentiable);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyMethodDef own_functions[] = {
    {"_operations", operations, METH_NOARGS,
     "Each row of ops/elementwise.def: name, arity, class, the range from which tests "
     "draw, whether it has kernels for bool, integers and floats, and whether each "
     "input has a derivative."},
    {"_signatures", signatures, METH_NOARGS,
     "The name and signature of every public function and method."},
    {NULL, NULL, 0, NULL},
};

int dt_add_functions(PyObject *module, const dt_function *rows, size_t count)
{
    if (ntables < MAX_TABLES) {
        tables[ntables].rows = rows;
        tables[ntables++].count = count;
    }
    for (size_t i = 0; i < count; i++) {
        const dt_function *row = &rows[i];
        if (row->function) {
            PyMethodDef *definition = make_definition(row, row->function, false);
            PyObject *name = definition ? PyUnicode_FromString("pydevtensor") : NULL;
            PyObject *function =
                name ? PyCFunction_NewEx(definition, module, name) : NULL;
            int status = function ? dt_add_object(module, row->name, function) : -1;
            Py_XDECREF(function);
            Py_XDECREF(name);
            if (status < 0)
                return -1;
        }
        if (row->method) {
            PyMethodDef *definition = make_definition(row, row->method, true);
            PyObject *method =
                definition ? PyDescr_NewMethod(dt_py.tensor_type, definition) : NULL;
            int status = method ? PyDict_SetItemString(dt_py.tensor_type->tp_dict,
                                                       row->name, method)
                                : -1;
            Py_XDECREF(method);
            if (status < 0)
                return -1;
        }
    }
    PyType_Modified(dt_py.tensor_type);
    return 0;
}

int dt_add_properties(PyGetSetDef *properties)
{
    for (PyGetSetDef *p = properties; p->name; p++) {
        PyObject *property = PyDescr_NewGetSet(dt_py.tensor_type, p);
        int status = property ? PyDict_SetItemString(dt_py.tensor_type->tp_dict,
                                                     p->name, property)
                              : -1;
        Py_XDECREF(property);
        if (status < 0)
            return -1;
    }
    PyType_Modified(dt_py.tensor_type);
    return 0;
}

/* --- initialization --- */

/* Directories of installed packages, colon-separated, for PyMem_Free: this package's
 * own, then those of sys.path. */
static char *package_folders(const char *parent)
{
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    size_t room = strlen(parent) + 1;
    Py_ssize_t count = path && PyList_Check(path) ? PyList_GET_SIZE(path) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t length;
        PyObject *entry = PyList_GET_ITEM(path, i);
        if (PyUnicode_Check(entry) && PyUnicode_AsUTF8AndSize(entry, &length))
            room += (size_t)length + 1;
        else
            PyErr_Clear();
    }
    char *folders = PyMem_Malloc(room);
    if (!folders) {
        PyErr_NoMemory();
        return NULL;
    }
    char *end = stpcpy(folders, parent);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *entry = PyList_GET_ITEM(path, i);
        const char *text = PyUnicode_Check(entry) ? PyUnicode_AsUTF8(entry) : NULL;
        if (!text)
            PyErr_Clear();
        else if (strstr(text, "-packages") && !strchr(text, ':') &&
                 strcmp(text, parent) != 0) {
            *end++ = ':';
            end = stpcpy(end, text);
        }
    }
    return folders;
}

static int start_core(PyObject *module)
{
    PyObject *file = PyModule_GetFilenameObject(module);
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;
    char *folder = path ? strdup(path) : NULL;
    char *parent = NULL, *packages = NULL;
    int status = -1;
    if (!folder) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        goto done;
    }
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    parent = strdup(slash ? folder : ".");
    if (!parent) {
        PyErr_NoMemory();
        goto done;
    }
    slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
    packages = package_folders(parent);
    if (!packages)
        goto done;
    if (dt_registry_start(dt_cpu_backend(), folder, packages) < 0) {
        dt_raise();
        goto done;
    }
    dt_cpu_blas_set_search(packages);
    status = 0;
done:
    PyMem_Free(packages);
    free(parent);
    free(folder);
    Py_XDECREF(file);
    return status;
}

static int execute(PyObject *module)
{
    static PyInterpreterState *home;
    if (home && home != PyInterpreterState_Get()) {
        PyErr_SetString(PyExc_ImportError,
                        "pydevtensor is already in use in another interpreter of this "
                        "process; use a separate process");
        return -1;
    }
    if (home) {
        if (!dt_py.module) {
            PyErr_SetString(PyExc_ImportError,
                            "pydevtensor failed to import before; restart Python");
            return -1;
        }
        /* Imported again: return the same types, or existing tensors would not be
         * Tensors. */
        return PyDict_Merge(PyModule_GetDict(module), PyModule_GetDict(dt_py.module),
                            0);
    }
    home = PyInterpreterState_Get();
    if (start_core(module) < 0 || PyModule_AddFunctions(module, own_functions) < 0)
        return -1;
#define SETUP(name)                                                                    \
    if (dt_setup_##name(module) < 0)                                                   \
        return -1;
    DT_SETUPS(SETUP)
#undef SETUP
    dt_py.module = Py_NewRef(module);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pydevtensor._C",
    .m_doc = "The extension module of pydevtensor; use the package instead.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void)
{
    return PyModuleDef_Init(&definition);
}
