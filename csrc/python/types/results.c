#include "autograd/variable.h"
#include "tensor/call.h"

#include "python/errors.h"
#include "python/module.h"
#include "python/output.h"

#include <string.h>

/* Made at the first use, and kept. */
typedef struct named_tuple {
    struct named_tuple *next;
    const char *results; /* the text of a record that finds it */
    char name[2 * DT_MAX_NAME],
        names[DT_MAX_NAMES]; /* the fields' names follow one another */
    PyStructSequence_Field fields[DT_MAX_RESULTS + 1];
    PyStructSequence_Desc description;
    PyTypeObject *type;
} named_tuple;
static named_tuple *named_tuples;

static PyObject *named_tuple_repr(PyObject *self)
{
    const named_tuple *t = named_tuples;
    while (t && t->type != Py_TYPE(self))
        t = t->next;
    PyObject *text = PyUnicode_FromFormat("%s(", Py_TYPE(self)->tp_name);
    for (int i = 0; t && text && i < t->description.n_in_sequence; i++)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%s\n%s=%R", i ? "," : "",
                                                           t->fields[i].name,
                                                           PyTuple_GET_ITEM(self, i)));
    if (text)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    return text;
}

static named_tuple *make(const char *name, const char *results)
{
    named_tuple *t = PyMem_RawCalloc(1, sizeof *t);
    if (!t) {
        PyErr_NoMemory();
        return NULL;
    }
    snprintf(t->name, sizeof t->name, "torch.return_types.%s", name);
    size_t used = 0;
    int count = 0;
    for (const char *c = results + 1; *c && *c != ')' && count < DT_MAX_RESULTS;) {
        size_t length = strcspn(c, ",)");
        memcpy(t->names + used, c, length);
        t->fields[count++].name = t->names + used;
        used += length + 1;
        c += length;
        c += strspn(c, ", ");
    }
    t->description.name = t->name;
    t->description.fields = t->fields;
    t->description.n_in_sequence = count;
    t->type = PyStructSequence_NewType(&t->description);
    if (!t->type) {
        /* CPython 3.11 does not always say that there was no memory. */
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        PyMem_RawFree(t);
        return NULL;
    }
    t->type->tp_repr = named_tuple_repr;
    t->next = named_tuples;
    named_tuples = t;
    return t;
}

static named_tuple *find_or_make(const char *name, const char *results)
{
    named_tuple *t = named_tuples;
    while (t && strcmp(strrchr(t->name, '.') + 1, name) != 0)
        t = t->next;
    return t ? t : make(name, results);
}

PyTypeObject *dt_named_tuple_type(const char *name, const char *results)
{
    named_tuple *t = named_tuples;
    while (t && t->results != results)
        t = t->next;
    if (!t)
        t = find_or_make(name, results);
    if (t && !t->results)
        t->results = results;
    return t ? t->type : NULL;
}

/* Copies the results into the tensors of the tuple `out`, which then replace them. */
static int into_output(const dt_args *args, PyObject *out, PyObject *results, int count)
{
    const char *name = args->signature->name;
    bool tensors = PyTuple_Check(out) && PyTuple_GET_SIZE(out) == count;
    for (int i = 0; i < count && tensors; i++)
        tensors = dt_tensor_check(PyTuple_GET_ITEM(out, i));
    if (!tensors)
        return DT_SET_ERROR(PyExc_TypeError,
                            "%s(): out must be a tuple of %s Tensors, one per result",
                            name, count == 2 ? "two" : "as many");
    for (int i = 0; i < count; i++) {
        PyObject *target = PyTuple_GET_ITEM(out, i),
                 *made = PyTuple_GET_ITEM(results, i);
        if (dt_output_into(name, target, made) < 0)
            return -1;
        PyTuple_SET_ITEM(results, i, Py_NewRef(target));
        Py_DECREF(made);
    }
    return 0;
}

PyObject *dt_finish_results(const dt_args *args, int out_at, PyTypeObject *type,
                            int count, dt_tensor_object **results)
{
    PyObject *tuple = PyStructSequence_New(type);
    for (int i = 0; i < count; i++) {
        if (results[i]->tensor.history)
            dt_tensor_object_track(results[i]);
        if (tuple)
            PyStructSequence_SetItem(tuple, i, (PyObject *)results[i]);
        else
            Py_DECREF((PyObject *)results[i]);
    }
    if (tuple && out_at >= 0 && dt_given(args, out_at) &&
        into_output(args, args->slots[out_at], tuple, count) < 0)
        Py_CLEAR(tuple);
    return tuple;
}
