/* Binding calls to signatures. */
#include "python/arguments.h"
#include "python/types/device.h"
#include "python/types/dtype.h"

#include <stdlib.h>
#include <string.h>

/* Second spellings of parameters: NumPy's, and those that PyTorch's forms of a function
 * have. */
static const char *const spellings[][2] = {
    {"axis", "dim"},
    {"keepdims", "keepdim"},
    {"x", "input"},
    {"a", "input"},
    {"x1", "input"},
    {"self", "input"},
    {"x2", "other"},
    {"sections", "indices_or_sections"},
    {"indices", "indices_or_sections"},
    {"tensor", "input"},
    {"split_size", "split_size_or_sections"},
    {"tensor_indices_or_sections", "indices_or_sections"},
    {"from", "from_"}, /* a word of Python's own, which only **{"from": 0} can give */
};

static int find(const dt_signature *s, PyObject *keyword)
{
    for (int i = 0; i < s->count; i++)
        if (s->names[i] == keyword)
            return i;
    Py_ssize_t length = 0;
    const char *name = PyUnicode_AsUTF8AndSize(keyword, &length);
    if (!name || strlen(name) != (size_t)length) {
        PyErr_Clear();
        return -1;
    }
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->parameters[i].name, name) == 0)
            return i;
    for (size_t k = 0; k < sizeof spellings / sizeof *spellings; k++)
        for (int i = 0; i < s->count && strcmp(spellings[k][0], name) == 0; i++)
            if (strcmp(s->parameters[i].name, spellings[k][1]) == 0)
                return i;
    return -1;
}

/* --- does a value fit a word? For choosing among forms only. --- */

static bool is_number(PyObject *value)
{
    if (PyFloat_Check(value) || PyLong_Check(value))
        return true;
    if (dt_tensor_check(value))
        return dt_tensor_of(value)->ndim == 0;
    if (PyUnicode_Check(value) || PySequence_Check(value) || PyComplex_Check(value))
        return false;
    PyNumberMethods *number = Py_TYPE(value)->tp_as_number;
    return number && (number->nb_index || number->nb_float);
}

static bool is_int(PyObject *value)
{
    if (PyLong_Check(value))
        return !PyBool_Check(value);
    if (dt_tensor_check(value)) {
        const dt_tensor *t = dt_tensor_of(value);
        return t->ndim == 0 && dt_dtype_kind((dt_dtype)t->dtype) == DT_KIND_INTEGER;
    }
    return PyIndex_Check(value) && !PySequence_Check(value);
}

static bool accepts(const dt_parameter *p, PyObject *value)
{
    dt_dtype dtype;
    if (value == Py_None)
        return p->none || p->type == DT_PARAM_ANY;
    switch (p->type) {
    case DT_PARAM_TENSOR:
        return dt_tensor_check(value);
    case DT_PARAM_VALUE:
    case DT_PARAM_NUMBER:
    case DT_PARAM_SCALAR:
        return dt_tensor_check(value) || is_number(value) ||
               dt_is_complex_number(value);
    case DT_PARAM_FLOAT:
        return is_number(value);
    case DT_PARAM_INT:
        return is_int(value);
    case DT_PARAM_BOOL:
        return PyBool_Check(value);
    case DT_PARAM_STR:
        return PyUnicode_Check(value);
    case DT_PARAM_ORDER:
        return PyUnicode_Check(value) || is_number(value);
    case DT_PARAM_DIMS:
    case DT_PARAM_LENGTHS:
        return is_int(value) || PyTuple_Check(value) || PyList_Check(value);
    case DT_PARAM_TENSORS:
    case DT_PARAM_SIZES:
    case DT_PARAM_INTS:
        return PyTuple_Check(value) || PyList_Check(value);
    case DT_PARAM_DTYPE:
        return dt_dtype_from_python(value, &dtype);
    case DT_PARAM_DEVICE:
        return dt_device_object_check(value) || PyUnicode_Check(value) ||
               (PyLong_Check(value) && !PyBool_Check(value));
    case DT_PARAM_LAYOUT:
        return dt_layout_object_check(value);
    case DT_PARAM_FORMAT:
        return dt_format_object_check(value);
    case DT_PARAM_GENERATOR:
        return dt_py.generator_type && PyObject_TypeCheck(value, dt_py.generator_type);
    case DT_PARAM_TRUTH:
    case DT_PARAM_ANY:
    case DT_NPARAM_TYPES:
        break;
    }
    return true;
}

/* --- binding --- */

/* The parameters' names, for messages, into text. */
static const char *names_of(const dt_signature *s, int from, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = from; i < s->count && used + 1 < size; i++) {
        const char *name = s->parameters[i].name;
        int wrote =
            snprintf(text + used, size - used, "%s%s", i > from ? ", " : "", name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return text;
}

/* Raises TypeError for parameter i, with the form that it is missing from. */
static void raise_missing(const dt_signature *s, int i, bool method)
{
    char *forms = dt_signature_forms(s->text, s->name, method);
    if (!forms)
        return;
    char *end = strstr(forms + 3, " | ");
    if (end)
        *end = '\0';
    PyErr_Format(PyExc_TypeError, "%s(): argument %s is missing; give it, as in %s",
                 s->name, s->parameters[i].name, forms + 3);
    PyMem_Free(forms);
}

/* Binds to one form; loud says whether to raise. -1 where it does not fit. */
static int bind_form(const dt_signature *s, dt_args *out, PyObject *self,
                     PyObject *const *values, Py_ssize_t count, PyObject *kwnames,
                     bool loud)
{
    char text[512];
    out->signature = s;
    out->given = s->count;
    out->rest = NULL;
    out->nrest = 0;
    for (int i = 0; i < s->count; i++)
        out->slots[i] = NULL;
    int bound = 0;
    if (self)
        out->slots[bound++] = self;
    Py_ssize_t v = 0;
    while (v < count && bound < s->positional)
        out->slots[bound++] = values[v++];
    if (v < count && s->rest >= 0) {
        bool one =
            count - v == 1 && (PyTuple_Check(values[v]) || PyList_Check(values[v]));
        if (one) {
            out->slots[s->rest] = values[v];
        } else {
            out->rest = values + v;
            out->nrest = count - v;
        }
        v = count;
    }
    if (v < count) {
        if (loud)
            PyErr_Format(
                PyExc_TypeError,
                "%s() takes at most %d positional arguments, and %zd were given; "
                "see help() for what they mean",
                s->name, s->positional - (self != NULL), count);
        return -1;
    }
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < nkeywords; k++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, k);
        int i = find(s, keyword);
        if (i < 0) {
            if (loud)
                PyErr_Format(PyExc_TypeError,
                             "%s() has no argument named %R; it takes %s", s->name,
                             keyword, names_of(s, self != NULL, text, sizeof text));
            return -1;
        }
        if (out->slots[i] || (i == s->rest && out->nrest)) {
            if (loud)
                PyErr_Format(PyExc_TypeError, "%s(): %s is given twice; give it once",
                             s->name, s->parameters[i].name);
            return -1;
        }
        out->slots[i] = values[count + k];
    }
    for (int i = 0; i < s->count; i++)
        if (!out->slots[i] && s->parameters[i].required &&
            !(i == s->rest && out->nrest)) {
            if (loud)
                raise_missing(s, i, self != NULL);
            return -1;
        }
    return 0;
}

/* Whether a later form takes a Tensor where this one takes an int: max(x, t) is the one of
 * two Tensors, also if t is an int without dimensions. */
static bool is_later_tensor(const dt_signature *s, int i)
{
    for (const dt_signature *later = s->next; later; later = later->next)
        if (i < later->count && later->parameters[i].type == DT_PARAM_TENSOR)
            return true;
    return false;
}

/* nplaces: the arguments that were given by position. */
static bool fits(const dt_args *args, Py_ssize_t nplaces)
{
    const dt_signature *s = args->signature;
    for (int i = 0; i < s->count; i++)
        if (args->slots[i] &&
            (!accepts(&s->parameters[i], args->slots[i]) ||
             (i < nplaces && s->parameters[i].type == DT_PARAM_INT &&
              dt_tensor_check(args->slots[i]) && is_later_tensor(s, i))))
            return false;
    for (Py_ssize_t i = 0; i < args->nrest; i++)
        if (!is_int(args->rest[i]))
            return false;
    return true;
}

static int no_form(dt_signature *signature, PyObject *self, PyObject *const *values,
                   Py_ssize_t count, PyObject *kwnames)
{
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *given = PyUnicode_FromString("");
    for (Py_ssize_t i = 0; given && i < count + nkeywords; i++) {
        PyObject *name = i < count ? NULL : PyTuple_GET_ITEM(kwnames, i - count);
        char text[DT_DESCRIBE_TEXT];
        dt_describe(values[i], text, sizeof text);
        PyUnicode_AppendAndDel(
            &given, name ? PyUnicode_FromFormat("%s%U: %s", i ? ", " : "", name, text)
                         : PyUnicode_FromFormat("%s%s", i ? ", " : "", text));
    }
    char *forms =
        given ? dt_signature_forms(signature->text, signature->name, self != NULL)
              : NULL;
    if (forms)
        PyErr_Format(PyExc_TypeError,
                     "%s() cannot be called with (%U)%s; use one of its forms: %s",
                     signature->name, given, self ? " on a Tensor" : "", forms + 3);
    PyMem_Free(forms);
    Py_XDECREF(given);
    return -1;
}

int dt_bind_any(dt_signature *signature, dt_args *out, PyObject *self,
                PyObject *const *values, Py_ssize_t count, PyObject *kwnames)
{
    if (!signature->ready && dt_signature_read(signature) < 0)
        return -1;
    out->form = 0;
    if (!signature->next)
        return bind_form(signature, out, self, values, count, kwnames, true);
    for (dt_signature *s = signature; s; s = s->next, out->form++)
        if (bind_form(s, out, self, values, count, kwnames, false) == 0 &&
            fits(out, count + (self != NULL)))
            return 0;
    return no_form(signature, self, values, count, kwnames);
}
