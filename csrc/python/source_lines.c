#include "python/source_lines.h"
#include "python/threads.h"

#include <string.h>

/* Source lines by number, and the numbers by line. None is forgotten: there are as many as
 * used the library while somebody asked. */
static PyObject *lines, *numbers;
/* The path of the module of nn that runs, as "Net.layers.0"; NULL: nobody asked. */
static _Thread_local PyObject *module_path;
/* The folder of the library, with the '/' behind it: its frames are not the program's. */
static char package[4096];

/* The number of a frame's line; -1 without memory. */
static int number_of(PyCodeObject *code, int line)
{
    DT_REF path = module_path ? Py_NewRef(module_path) : PyUnicode_New(0, 0);
    DT_REF found =
        path ? Py_BuildValue("(OiOO)", code->co_filename, line, code->co_name, path)
             : NULL;
    PyObject *known = found ? PyDict_GetItemWithError(numbers, found) : NULL;
    if (known)
        return (int)PyLong_AsLong(known);
    Py_ssize_t next = PyList_GET_SIZE(lines);
    DT_REF number = PyLong_FromSsize_t(next);
    if (!found || !number || PyList_Append(lines, found) < 0)
        return -1;
    /* Without memory for it the line gets another number the next time. */
    return PyDict_SetItem(numbers, found, number) < 0 ? -1 : (int)next;
}

/* The number of the line that a frame is at; -1 without memory. Python searches a function
 * from its beginning for a line, so the last ones found are kept, by the instruction. */
static int number_at(PyFrameObject *frame, PyCodeObject *code)
{
    static struct {
        PyObject *code, *path;
        int at, number;
    } found[64], *one;
    int at = PyFrame_GetLasti(frame);
    one = &found[((uintptr_t)code >> 4 ^ (unsigned)at >> 1) % 64];
    if (one->code == (PyObject *)code && one->at == at && one->path == module_path)
        return one->number;
    int number = number_of(code, PyFrame_GetLineNumber(frame));
    if (number >= 0) {
        PyObject *old_code = one->code, *old_path = one->path;
        one->code = Py_NewRef(code);
        one->path = Py_XNewRef(module_path);
        one->at = at;
        one->number = number;
        Py_XDECREF(old_code);
        Py_XDECREF(old_path);
    }
    return number;
}

static bool is_own(PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    return file && !strncmp(file, package, strlen(package));
}

/* The innermost frame outside of the library, from this one on, which it releases. */
static int find_line_from(PyFrameObject *frame)
{
    int number = -1;
    while (frame && number < 0) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (!is_own(code)) {
            number = number_at(frame, code);
            Py_CLEAR(frame);
        } else {
            PyFrameObject *back = PyFrame_GetBack(frame);
            Py_SETREF(frame, back);
        }
        Py_DECREF(code);
    }
    return number;
}

static int find_line(void)
{
    return find_line_from((PyFrameObject *)Py_XNewRef(PyEval_GetFrame()));
}

static int line_with_gil(void)
{
    if (!PyGILState_GetThisThreadState())
        return -1;
    DT_WITH_GIL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int number = find_line();
    PyErr_Restore(type, value, trace);
    return number;
}

/* "train.py", or "In[4]" of a cell of a notebook. A new reference; NULL: unknown. */
static PyObject *short_name(PyObject *file)
{
    const char *path = PyUnicode_AsUTF8(file);
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (path && strstr(path, "ipykernel_"))
        return dt_python_call("pydevtensor.printing", "name_of_file", "(O)", file);
    return path ? PyUnicode_FromString(slash ? slash + 1 : path) : NULL;
}

char *dt_source_line_text(int number, char text[DT_LINE_TEXT])
{
    /* With the GIL, as all of Python's: a loop asks for the same one. */
    static int last = -1;
    static char last_text[DT_LINE_TEXT];
    if (number >= 0 && number == last)
        return memcpy(text, last_text, DT_LINE_TEXT);
    *text = 0;
    if (number >= 0) {
        PyObject *known = PyList_GET_ITEM(lines, number);
        DT_REF file = short_name(PyTuple_GET_ITEM(known, 0));
        const char *name = file ? PyUnicode_AsUTF8(file) : NULL;
        snprintf(text, DT_LINE_TEXT, "%s:%ld", name ? name : "?",
                 PyLong_AsLong(PyTuple_GET_ITEM(known, 1)));
        memcpy(last_text, text, DT_LINE_TEXT);
        last = number;
    }
    PyErr_Clear();
    return text;
}

char *dt_source_line_now(char text[DT_LINE_TEXT])
{
    return dt_source_line_text(find_line(), text);
}

char *dt_source_line_above(int depth, char text[DT_LINE_TEXT])
{
    PyObject *get = PySys_GetObject("_getframe");
    DT_REF number = PyLong_FromLong(depth);
    PyObject *frame = get && number ? PyObject_CallOneArg(get, number) : NULL;
    PyErr_Clear();
    int line = frame ? find_line_from((PyFrameObject *)frame) : find_line();
    return dt_source_line_text(line, text);
}

static char *text_with_gil(int number, char text[DT_LINE_TEXT])
{
    *text = 0;
    if (!PyGILState_GetThisThreadState())
        return text;
    DT_WITH_GIL;
    dt_source_line_text(number, text);
    return text;
}

PyObject *dt_source_lines(void)
{
    return PyList_GetSlice(lines, 0, PyList_GET_SIZE(lines));
}

void dt_source_lines_start(const char *folder)
{
    snprintf(package, sizeof package, "%s/", folder);
}

/* _set_module_path(path): sets it for this thread, None for none; returns the former. */
static PyObject *set_module_path(PyObject *Py_UNUSED(self), PyObject *path)
{
    if (path != Py_None && !PyUnicode_Check(path))
        return PyErr_Format(PyExc_TypeError, "a path is a str or None");
    PyObject *former = module_path ? module_path : Py_NewRef(Py_None);
    module_path = path == Py_None ? NULL : Py_NewRef(path);
    return former;
}

/* _source_lines(): [(file, line, function, module), ...] by number. */
static PyObject *list_source_lines(PyObject *Py_UNUSED(self),
                                   PyObject *Py_UNUSED(unused))
{
    return dt_source_lines();
}

/* _source_line(): "train.py:31" of the line of the program that runs now, or "". */
static PyObject *source_line(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    char text[DT_LINE_TEXT];
    return PyUnicode_DecodeFSDefault(dt_source_line_now(text));
}

static PyMethodDef functions[] = {
    {"_source_line", source_line, METH_NOARGS, NULL},
    {"_source_lines", list_source_lines, METH_NOARGS, NULL},
    {"_set_module_path", set_module_path, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int dt_setup_source_lines(PyObject *module)
{
    lines = PyList_New(0);
    numbers = PyDict_New();
    dt_activity_lines_set(line_with_gil, text_with_gil);
    return lines && numbers ? PyModule_AddFunctions(module, functions) : -1;
}
