/* The extension module: initializes the core and every file of the binding. */
#include "python/module.h"

#include <string.h>

#include "cpu/runtime/cpu.h"
#include "ops/elementwise_ops.h"
#include "python/functions.h"
#include "python/source_lines.h"

dt_python dt_py;

int dt_add_object(PyObject *module, const char *name, PyObject *value)
{
    return PyModule_AddObjectRef(module, name, value);
}

PyTypeObject *dt_add_type(PyObject *module, const char *name, size_t size,
                          unsigned long flags, PyTypeObject *base, PyType_Slot *slots)
{
    PyType_Spec spec = {name, (int)size, 0, (unsigned)flags, slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, (PyObject *)base);
    if (type && dt_add_object(module, strrchr(name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* --- functions and methods --- */

static PyMethodDef *make_definition(const dt_function *row, dt_function_call call,
                                    bool method)
{
    PyMethodDef *definition = PyMem_RawMalloc(sizeof *definition);
    char *text = strstr(row->doc, ">>> ")
                     ? strdup(row->doc)
                     : dt_doc_with_example(row->doc, row->name, row->example,
                                           row->prints, false);
    char *doc =
        text ? dt_signature_doc(row->signature->text, row->name, method, text) : NULL;
    free(text);
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
        PyObject *takes = PyTuple_New(DT_NKINDS),
                 *differentiable = PyTuple_New(row->arity);
        for (int k = 0; takes && k < DT_NKINDS; k++)
            PyTuple_SET_ITEM(takes, k, PyBool_FromLong(row->class_.takes[k]));
        for (int i = 0; differentiable && i < row->arity; i++)
            PyTuple_SET_ITEM(differentiable, i,
                             PyBool_FromLong(row->reads[i] < DT_READS_NOTHING));
        dt_list_append(&list, Py_BuildValue("(sisddNN)", row->name, row->arity,
                                            row->class_name, row->low, row->high, takes,
                                            differentiable));
    }
    return list;
}

/* _find_libraries(folder, packages): where this package's own libraries are, and the
 * colon-separated folders of installed packages, in which others may be. */
static PyObject *find_libraries(PyObject *self, PyObject *args)
{
    (void)self;
    const char *folder, *packages;
    if (!PyArg_ParseTuple(args, "ss", &folder, &packages))
        return NULL;
    if (dt_registry_start(dt_cpu_backend(), folder, packages) < 0)
        return dt_raise();
    dt_cpu_blas_set_search(packages);
    dt_source_lines_start(folder);
    Py_RETURN_NONE;
}

/* Adds value, which is stolen, to the module or to Tensor. */
static int add_to(PyObject *dictionary, const char *name, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dictionary, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

int dt_add_function(PyObject *dictionary, const dt_function *row, PyObject *self,
                    PyObject *home)
{
    PyMethodDef *definition = make_definition(row, row->function, false);
    return add_to(dictionary, row->name,
                  definition ? PyCFunction_NewEx(definition, self, home) : NULL);
}

/* _set_module(class, module): its __module__, also where the class is immutable. */
static PyObject *set_module(PyObject *self, PyObject *args)
{
    (void)self;
    PyTypeObject *type;
    PyObject *module;
    if (!PyArg_ParseTuple(args, "O!U", &PyType_Type, &type, &module) ||
        PyDict_SetItemString(type->tp_dict, "__module__", module) < 0)
        return NULL;
    PyType_Modified(type);
    Py_RETURN_NONE;
}

static PyMethodDef own_functions[] = {
    {"_find_libraries", find_libraries, METH_VARARGS,
     "Says where shared libraries may be."},
    {"_set_module", set_module, METH_VARARGS, "Sets the __module__ of a class."},
    {"_operations", operations, METH_NOARGS,
     "Each row of ops/elementwise.def: name, arity, class, the range from which tests "
     "draw, whether it has kernels for bool, integers and floats, and whether each "
     "input has a derivative."},
    {NULL, NULL, 0, NULL},
};

int dt_add_functions(PyObject *module, const dt_function *rows, size_t count)
{
    PyMethodDef *definition;
    PyObject *package = PyUnicode_InternFromString("pydevtensor");
    int status = package ? 0 : -1;
    dt_publish("", rows, count);
    for (const dt_function *row = rows; row < rows + count && !status; row++) {
        if (row->function)
            status = dt_add_function(PyModule_GetDict(module), row, module, package);
        if (row->method && !status) {
            definition = make_definition(row, row->method, true);
            status = add_to(
                dt_py.tensor_type->tp_dict, row->name,
                definition ? PyDescr_NewMethod(dt_py.tensor_type, definition) : NULL);
        }
    }
    Py_XDECREF(package);
    PyType_Modified(dt_py.tensor_type);
    return status;
}

int dt_add_properties(PyGetSetDef *properties)
{
    int status = 0;
    for (PyGetSetDef *p = properties; p->name && !status; p++)
        status = dt_override_attribute(p) < 0
                     ? -1
                     : add_to(dt_py.tensor_type->tp_dict, p->name,
                              PyDescr_NewGetSet(dt_py.tensor_type, p));
    PyType_Modified(dt_py.tensor_type);
    return status;
}

/* --- initialization --- */

static int execute(PyObject *module)
{
    static bool begun;
    /* Types, and the callbacks of threads that compute, are those of one interpreter. */
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return DT_SET_ERROR(
            PyExc_ImportError,
            "pydevtensor works in the main interpreter of a process only, not in a "
            "sub-interpreter; import it there, or in a process of its own");
    if (begun) {
        if (!dt_py.module)
            return DT_SET_ERROR(PyExc_ImportError,
                                "pydevtensor failed to import before; restart Python");
        /* Imported again: return the same types, or existing tensors would not be
         * Tensors. */
        return PyDict_Merge(PyModule_GetDict(module), PyModule_GetDict(dt_py.module),
                            0);
    }
    begun = true;
#ifndef Py_GIL_DISABLED
    dt_concurrent_end(); /* the GIL keeps threads apart */
#endif
    if (dt_registry_start(dt_cpu_backend(), "", "") < 0)
        return dt_raise_status();
    if (PyModule_AddFunctions(module, own_functions) < 0)
        return -1;
#define SETUP(name)                                                                    \
    if (dt_setup_##name(module) < 0)                                                   \
        return -1;
#define TABLE(name)                                                                    \
    if (PyModule_AddFunctions(module, dt_##name##_functions) < 0)                      \
        return -1;
    DT_SETUPS(SETUP, TABLE)
#undef SETUP
#undef TABLE
    dt_py.module = Py_NewRef(module);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030c0000
    /* Python lets `execute` run in each interpreter, whose refusal says what to do. */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
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
