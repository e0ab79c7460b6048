/* Functions that divide a tensor into views of its parts. */
#include "autograd/recorded.h"
#include "python/functions.h"

/* A tuple of parts along dim, `sizes[i]` long each; count of them. name: of the node.
 */
static PyObject *parts(const char *name, const dt_tensor *x, int dim, Py_ssize_t count,
                       int64_t (*size_of)(const void *, Py_ssize_t),
                       const void *context)
{
    PyObject *tuple = PyTuple_New(count);
    if (!tuple && PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): there is no memory for %zd parts; ask for fewer", name,
                     count);
    int64_t start = 0;
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        int64_t size = size_of(context, i);
        dt_tensor_object *out = dt_tensor_object_new();
        PyObject *part =
            out ? dt_tensor_result(
                      out, dt_recorded_narrow(name, &out->tensor, x, dim, start, size))
                : NULL;
        if (!part)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, part);
        start += size;
    }
    return tuple;
}

typedef struct even {
    int64_t size, total;
} even;

static int64_t even_size(const void *context, Py_ssize_t i)
{
    const even *e = context;
    int64_t left = e->total - i * e->size;
    return left < e->size ? left : e->size;
}

static int64_t listed_size(const void *context, Py_ssize_t i)
{
    return ((const int64_t *)context)[i];
}

/* The ints of a tuple or list, for PyMem_Free. */
static int64_t *listed_ints(const char *what, PyObject *list, Py_ssize_t *out_count)
{
    PyObject *items = PySequence_Tuple(list);
    if (!items)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    int64_t *ints = PyMem_New(int64_t, count ? count : 1);
    if (!ints)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; ints && i < count; i++) {
        int status = dt_int_from_python(PyTuple_GET_ITEM(items, i), &ints[i]);
        if (status > 0)
            continue;
        char text[DT_DESCRIBE_TEXT];
        if (!status)
            PyErr_Format(PyExc_TypeError, "%s(): item %zd of the list is %s; give ints",
                         what, i,
                         dt_describe(PyTuple_GET_ITEM(items, i), text, sizeof text));
        PyMem_Free(ints);
        ints = NULL;
    }
    Py_DECREF(items);
    *out_count = count;
    return ints;
}

/* The same, being sizes that add up to total. */
static int64_t *listed_sizes(const char *what, PyObject *list, int64_t total,
                             Py_ssize_t *out_count)
{
    int64_t *sizes = listed_ints(what, list, out_count), sum = 0;
    bool sound = true;
    for (Py_ssize_t i = 0; sizes && i < *out_count; i++)
        sound = sound && sizes[i] >= 0 && !__builtin_add_overflow(sum, sizes[i], &sum);
    if (sizes && (!sound || sum != total)) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): the sizes have to be 0 or more and to add up to %lld, the size of "
            "the dimension",
            what, (long long)total);
        PyMem_Free(sizes);
        return NULL;
    }
    return sizes;
}

/* The dimension at args[i], wrapped, of a tensor that has one; -1 raised. */
static int take_dim(const dt_args *args, int i, const dt_tensor *x)
{
    int64_t dim;
    if (dt_take_int(args, i, &dim) < 0)
        return -1;
    if (!x->ndim) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): the Tensor has no dimensions to divide; unsqueeze it first",
                     args->signature->name);
        return -1;
    }
    int wrapped = dt_shape_wrap_dim(args->signature->name, dim, x->ndim);
    return wrapped < 0 ? dt_raise_status() : wrapped;
}

/* Parts of the sizes that argument 1, a tuple or list, says. */
static PyObject *sized(const dt_args *args, const dt_tensor *x, int dim)
{
    Py_ssize_t count;
    int64_t *sizes =
        listed_sizes(args->signature->name, args->slots[1], x->shape[dim], &count);
    PyObject *tuple =
        sizes ? parts("SplitWithSizesBackward0", x, dim, count, listed_size, sizes)
              : NULL;
    PyMem_Free(sizes);
    return tuple;
}

DT_PUBLIC(split_with_sizes,
          "split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int dim = take_dim(args, 2, x);
    if (dim < 0)
        return NULL;
    if (!PyTuple_Check(args->slots[1]) && !PyList_Check(args->slots[1])) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(PyExc_TypeError,
                     "split_with_sizes(): split_sizes is %s; give a tuple of ints",
                     dt_describe(args->slots[1], text, sizeof text));
        return NULL;
    }
    return sized(args, x, dim);
}

DT_PUBLIC(split, "split(input: Tensor, split_size_or_sections: Any, dim: int = 0)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int dim = take_dim(args, 2, x);
    if (dim < 0)
        return NULL;
    int64_t total = x->shape[dim], size;
    PyObject *how = args->slots[1];
    if (PyTuple_Check(how) || PyList_Check(how))
        return sized(args, x, dim);
    if (dt_take_int(args, 1, &size) < 0)
        return NULL;
    if (size < 0 || (size == 0 && total)) {
        PyErr_Format(PyExc_RuntimeError,
                     "split(): parts of size %lld cannot be made; give 1 "
                     "or more",
                     (long long)size);
        return NULL;
    }
    even e = {size, total};
    /* (total - 1) / size + 1 does not overflow where total + size would. */
    int64_t count = total ? (total - 1) / size + 1 : 1;
    return parts("SplitBackward0", x, dim, (Py_ssize_t)count, even_size, &e);
}

DT_PUBLIC(chunk, "chunk(input: Tensor, chunks: int, dim: int = 0)")
{
    dt_tensor *x;
    int64_t chunks;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &chunks) < 0)
        return NULL;
    int dim = take_dim(args, 2, x);
    if (dim < 0)
        return NULL;
    if (chunks < 1) {
        PyErr_Format(PyExc_RuntimeError,
                     "chunk(): %lld chunks cannot be made; give 1 or more",
                     (long long)chunks);
        return NULL;
    }
    int64_t total = x->shape[dim];
    if (!total) { /* that many empty ones */
        even none = {0, 0};
        return parts("SplitBackward0", x, dim, (Py_ssize_t)chunks, even_size, &none);
    }
    even e = {(total - 1) / chunks + 1, total};
    return parts("SplitBackward0", x, dim, (Py_ssize_t)((total - 1) / e.size + 1),
                 even_size, &e);
}

DT_PUBLIC(unbind, "unbind(input: Tensor, dim: int = 0)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int dim = take_dim(args, 1, x);
    if (dim < 0)
        return NULL;
    PyObject *tuple = PyTuple_New((Py_ssize_t)x->shape[dim]);
    for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++) {
        dt_tensor_object *out = dt_tensor_object_new();
        PyObject *part =
            out ? dt_tensor_result(out, dt_recorded_select("UnbindBackward0",
                                                           &out->tensor, x, dim, i))
                : NULL;
        if (!part)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, part);
    }
    return tuple;
}

/* --- cut at places --- */

/* The parts of x before, between and behind the places, which may lie beyond its ends
 * or count from the end, as those of slices do. */
static PyObject *cut_at(const dt_tensor *x, int dim, Py_ssize_t count,
                        const int64_t *places)
{
    PyObject *tuple = PyTuple_New(count + 1);
    int64_t size = x->shape[dim], start = 0;
    for (Py_ssize_t i = 0; tuple && i <= count; i++) {
        int64_t end = i < count ? places[i] : size;
        int64_t from = start < 0 ? start + size : start,
                to = end < 0 ? end + size : end;
        from = from < 0 ? 0 : from > size ? size : from;
        to = to < from ? from : to > size ? size : to;
        dt_tensor_object *out = dt_tensor_object_new();
        PyObject *part =
            out ? dt_tensor_result(out,
                                   dt_recorded_narrow("SliceBackward0", &out->tensor, x,
                                                      dim, from, to - from))
                : NULL;
        if (!part)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, part);
        start = end;
    }
    return tuple;
}

/* So many parts, the first ones longer by one where it does not divide. */
typedef struct nearly_even {
    int64_t size, longer;
} nearly_even;

static int64_t nearly_even_size(const void *context, Py_ssize_t i)
{
    const nearly_even *e = context;
    return e->size + (i < e->longer);
}

static PyObject *cut_into(const char *what, const dt_tensor *x, int dim,
                          int64_t sections)
{
    if (sections < 1) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): %lld parts cannot be made; give 1 or more", what,
                     (long long)sections);
        return NULL;
    }
    nearly_even e = {x->shape[dim] / sections, x->shape[dim] % sections};
    return parts("SliceBackward0", x, dim, (Py_ssize_t)sections, nearly_even_size, &e);
}

/* By argument 1: an int says how many parts, ints (a tuple, a list, a Tensor of one
 * dimension) say where to cut. `equal`: the parts have to be of one size. */
static PyObject *cut(const dt_args *args, const dt_tensor *x, int dim, bool equal)
{
    const char *what = args->signature->name;
    PyObject *how = args->slots[1];
    bool is_tensor = dt_tensor_check(how);
    if (is_tensor) {
        const dt_tensor *t = dt_tensor_of(how);
        if (t->dtype != DT_INT64 || t->ndim > 1) {
            char text[DT_DESCRIBE_TEXT];
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): the places are %s; give int64 of at most one dimension",
                         what, dt_describe(how, text, sizeof text));
            return NULL;
        }
        is_tensor = t->ndim == 1;
    }
    if (is_tensor || PyTuple_Check(how) || PyList_Check(how)) {
        Py_ssize_t count;
        PyObject *list =
            is_tensor ? PyObject_CallMethod(how, "tolist", NULL) : Py_NewRef(how);
        int64_t *places = list ? listed_ints(what, list, &count) : NULL;
        PyObject *tuple = places ? cut_at(x, dim, count, places) : NULL;
        PyMem_Free(places);
        Py_XDECREF(list);
        return tuple;
    }
    int64_t sections;
    int status = dt_int_from_python(how, &sections);
    if (status <= 0) {
        char text[DT_DESCRIBE_TEXT];
        if (!status)
            PyErr_Format(PyExc_TypeError,
                         "%s(): the parts are %s; give an int, how many there are, or "
                         "ints, where to cut",
                         what, dt_describe(how, text, sizeof text));
        return NULL;
    }
    if (equal && (sections < 1 || x->shape[dim] % sections)) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): dimension %d of size %lld does not divide into %lld equal "
                     "parts; give a divisor, or use tensor_split",
                     what, dim, (long long)x->shape[dim], (long long)sections);
        return NULL;
    }
    return cut_into(what, x, dim, sections);
}

#define CUT_FORMS(NAME, END)                                                           \
    NAME "(input: Tensor, indices_or_sections: Any" END ") | " NAME                    \
         "(input: Tensor, sections: Any" END ") | " NAME                               \
         "(input: Tensor, indices: Any" END ")"
DT_PUBLIC(tensor_split,
          CUT_FORMS("tensor_split",
                    ", dim: int = 0") " | tensor_split"
                                      "(input: Tensor, tensor_indices_or_sections: "
                                      "Any, dim: int = 0)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int dim = take_dim(args, 2, x);
    return dim < 0 ? NULL : cut(args, x, dim, false);
}

static PyObject *cut_along(const dt_args *args, int least, int dim)
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (x->ndim < least) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): the Tensor has %d dimension%s; give one of at least %d",
                     args->signature->name, x->ndim, x->ndim == 1 ? "" : "s", least);
        return NULL;
    }
    return cut(args, x, dim < x->ndim ? dim : 0, true);
}
DT_PUBLIC(hsplit, CUT_FORMS("hsplit", ""))
{
    return cut_along(args, 1, 1); /* of a vector: along its only dimension */
}
DT_PUBLIC(vsplit, CUT_FORMS("vsplit", ""))
{
    return cut_along(args, 2, 0);
}
DT_PUBLIC(dsplit, CUT_FORMS("dsplit", ""))
{
    return cut_along(args, 3, 2);
}

static const dt_function rows[] = {
    DT_BOTH(split, "split",
            "A tuple of parts, of one size or of the sizes given.\n\n"
            "Views; the last part may be smaller. RuntimeError where the sizes "
            "given do not add up."),
    DT_BOTH(
        split_with_sizes, "split_with_sizes",
        "A tuple of views of parts of the given sizes along dim. RuntimeError where\n"
        "they do not add up to its size."),
    DT_BOTH(chunk, "chunk",
            "A tuple of at most that many parts.\n\n"
            "Views of one size, the last one smaller. RuntimeError for fewer than "
            "1."),
    DT_BOTH(unbind, "unbind",
            "A tuple of the slices along a dimension.\n\n"
            "Views without that dimension. IndexError where it is not there."),
    DT_BOTH(
        tensor_split, "tensor_split",
        "A tuple of views of parts along dim. An int says how many parts there are,\n"
        "the first ones longer by one where it does not divide; ints (a tuple, a\n"
        "list, or an int64 Tensor, for which a GPU is waited) say where to cut."),
    DT_BOTH(hsplit, "hsplit",
            "tensor_split along dimension 1, of a vector along 0, into equal parts or\n"
            "at the given places."),
    DT_BOTH(vsplit, "vsplit",
            "tensor_split along dimension 0, into equal parts or at the given places."),
    DT_BOTH(dsplit, "dsplit",
            "tensor_split along dimension 2, into equal parts or at the given places."),
};

int dt_setup_splits(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
