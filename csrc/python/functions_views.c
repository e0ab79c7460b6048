/* Views, and the functions that copy only where no view will do. */
#include <string.h>

#include "python/dtype_type.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/size_type.h"
#include "autograd/recorded.h"
#include "tensor/convert.h"
#include "tensor/view.h"

static PyObject *shaped(const dt_args *args, int (*view)(dt_tensor *, const dt_tensor *,
                                                         int, const int64_t *))
{
    dt_tensor *x;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &ndim, shape) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL && !x->contiguous,
           view(&out->tensor, x, ndim, shape));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(reshape, "reshape(input: Tensor, *shape: Sizes)")
{
    return shaped(args, dt_recorded_reshape);
}
DT_PUBLIC(reshape_to, "reshape(input: Tensor, shape: Sizes)")
{
    return shaped(args, dt_recorded_reshape);
}
DT_PUBLIC(permute_to, "permute(input: Tensor, dims: Sizes)")
{
    return shaped(args, dt_recorded_permute);
}
DT_PUBLIC(view_sized, "view(input: Tensor, *size: Sizes)")
{
    return shaped(args, dt_recorded_shape);
}
DT_PUBLIC(permute, "permute(input: Tensor, *dims: Sizes)")
{
    return shaped(args, dt_recorded_permute);
}

static int expand(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape)
{
    return dt_recorded_expand("expand", out, t, ndim, shape);
}
static int broadcast(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape)
{
    return dt_recorded_expand("broadcast_to", out, t, ndim, shape);
}
DT_PUBLIC(expand, "expand(input: Tensor, *size: Sizes)")
{
    return shaped(args, expand);
}
DT_PUBLIC(broadcast_to, "broadcast_to(input: Tensor, *size: Sizes)")
{
    return shaped(args, broadcast);
}
DT_PUBLIC(broadcast_to_size, "broadcast_to(input: Tensor, size: Sizes)")
{
    return shaped(args, broadcast);
}

/* The same bytes as elements of another type: of another size where the last dimension,
 * and all steps, can be counted in them. */
static PyObject *view_typed(PyObject *self, dt_dtype dtype)
{
    const dt_tensor *x = dt_tensor_of(self);
    int64_t from = (int64_t)dt_dtype_size((dt_dtype)x->dtype),
            to = (int64_t)dt_dtype_size(dtype);
    int last = x->ndim - 1;
    int64_t up = from > to ? from / to : 1, down = to > from ? to / from : 1;
    bool fits = from == to || (last >= 0 && x->strides[last] == 1);
    if (fits && down > 1) {
        fits = x->shape[last] % down == 0 && x->offset % down == 0 &&
               (uintptr_t)dt_tensor_data(x) % (uintptr_t)to == 0;
        for (int d = 0; d < last; d++)
            fits = fits && x->strides[d] % down == 0;
    }
    if (!fits) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(
            PyExc_RuntimeError,
            "view(): %s cannot be seen as elements of type %s, which have another "
            "size; "
            "its last dimension has to be dense, and its sizes to be multiples; see "
            ".contiguous() and .to()",
            dt_describe(self, text, sizeof text), dt_dtype_name(dtype));
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_tensor *t = &out->tensor;
    dt_tensor_alias(t, x);
    t->dtype = (unsigned char)dtype;
    t->offset = t->offset * up / down;
    t->numel = t->numel * up / down;
    for (int d = 0; d <= last; d++) {
        t->shape[d] = d == last ? t->shape[d] * up / down : t->shape[d];
        t->strides[d] = d == last && from != to ? 1 : t->strides[d] * up / down;
    }
    dt_tensor_update(t);
    return (PyObject *)out;
}

DT_PUBLIC(view_dtype, "view(input: Tensor, dtype: Dtype)")
{
    int dtype;
    if (dt_take_dtype(args, 1, &dtype) < 0)
        return NULL;
    return view_typed(args->slots[0], (dt_dtype)dtype);
}

static PyObject *view_method(DT_CALL_PARAMETERS)
{
    bool typed = count == 1 ? dt_dtype_check(values[0])
                            : kwnames && PyTuple_GET_SIZE(kwnames) == 1 &&
                                  PyUnicode_CompareWithASCIIString(
                                      PyTuple_GET_ITEM(kwnames, 0), "dtype") == 0;
    return typed ? view_dtype_method(self, values, count, kwnames)
                 : view_sized_method(self, values, count, kwnames);
}

/* As the shape of another tensor. */
static PyObject *shaped_as(const dt_args *args,
                           int (*view)(dt_tensor *, const dt_tensor *, int,
                                       const int64_t *))
{
    dt_tensor *x, *other;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &other) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out, view(&out->tensor, x, other->ndim, other->shape));
}

DT_PUBLIC(reshape_as, "reshape_as(input: Tensor, other: Tensor)")
{
    return shaped_as(args, dt_recorded_reshape);
}
DT_PUBLIC(view_as, "view_as(input: Tensor, other: Tensor)")
{
    return shaped_as(args, dt_recorded_shape);
}
DT_PUBLIC(expand_as, "expand_as(input: Tensor, other: Tensor)")
{
    return shaped_as(args, expand);
}

/* A function of a tensor and `count` ints: what `call` makes of them. */
#define VIEW_OF_INTS(NAME, TEXT, COUNT, CALL)                                          \
    DT_PUBLIC(NAME, TEXT)                                                              \
    {                                                                                  \
        dt_tensor *x;                                                                  \
        int64_t v[(COUNT) + 1] = {0};                                                  \
        if (dt_take_tensor(args, 0, &x) < 0)                                           \
            return NULL;                                                               \
        for (int i = 0; i < (COUNT); i++)                                              \
            if (dt_take_int(args, i + 1, &v[i]) < 0)                                   \
                return NULL;                                                           \
        dt_tensor_object *out = dt_tensor_object_new();                                \
        if (!out)                                                                      \
            return NULL;                                                               \
        return dt_tensor_result(out, CALL);                                            \
    }
VIEW_OF_INTS(transpose, "transpose(input: Tensor, dim0: int, dim1: int)", 2,
             dt_recorded_transpose(&out->tensor, x, v[0], v[1]))
VIEW_OF_INTS(swapaxes, "swapaxes(input: Tensor, axis0: int, axis1: int)", 2,
             dt_recorded_transpose(&out->tensor, x, v[0], v[1]))
VIEW_OF_INTS(swapdims, "swapdims(input: Tensor, dim0: int, dim1: int)", 2,
             dt_recorded_transpose(&out->tensor, x, v[0], v[1]))
VIEW_OF_INTS(t, "t(input: Tensor)", 0, dt_recorded_t(&out->tensor, x))
VIEW_OF_INTS(unsqueeze, "unsqueeze(input: Tensor, dim: int)", 1,
             dt_recorded_unsqueeze(&out->tensor, x, v[0]))
VIEW_OF_INTS(flatten, "flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1)",
             2, dt_recorded_flatten(&out->tensor, x, v[0], v[1]))
VIEW_OF_INTS(ravel, "ravel(input: Tensor)", 0,
             dt_recorded_flatten(&out->tensor, x, 0, -1))
VIEW_OF_INTS(narrow, "narrow(input: Tensor, dim: int, start: int, length: int)", 3,
             dt_recorded_narrow("SliceBackward0", &out->tensor, x, v[0], v[1], v[2]))
VIEW_OF_INTS(select, "select(input: Tensor, dim: int, index: int)", 2,
             dt_recorded_select("SelectBackward0", &out->tensor, x, v[0], v[1]))

DT_PUBLIC(squeeze, "squeeze(input: Tensor, dim: Dims = None)")
{
    dt_tensor *x;
    int count;
    int64_t dims[DT_MAX_NDIM];
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &count, dims) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out, dt_recorded_squeeze(&out->tensor, x, count, dims));
}

DT_PUBLIC(movedim, "movedim(input: Tensor, source: Dims, destination: Dims)")
{
    dt_tensor *x;
    int nfrom, nto;
    int64_t from[DT_MAX_NDIM], to[DT_MAX_NDIM], order[DT_MAX_NDIM];
    bool moved[DT_MAX_NDIM] = {false}, filled[DT_MAX_NDIM] = {false};
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &nfrom, from) < 0 ||
        dt_take_dims(args, 2, &nto, to) < 0)
        return NULL;
    if (nfrom != nto) {
        PyErr_Format(
            PyExc_RuntimeError,
            "movedim(): source has %d dimensions and destination %d; give as many",
            nfrom < 0 ? 0 : nfrom, nto < 0 ? 0 : nto);
        return NULL;
    }
    for (int i = 0; i < nfrom; i++) {
        int a = dt_shape_wrap_dim("movedim", from[i], x->ndim);
        int b = a < 0 ? -1 : dt_shape_wrap_dim("movedim", to[i], x->ndim);
        if (b < 0)
            return dt_raise();
        if (x->ndim && (moved[a] || filled[b])) {
            PyErr_SetString(PyExc_RuntimeError,
                            "movedim(): a dimension is named twice; name "
                            "each once");
            return NULL;
        }
        moved[a] = filled[b] = true;
        order[b] = a;
    }
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (filled[d])
            continue;
        while (moved[next])
            next++;
        order[d] = next++;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out, dt_recorded_permute(&out->tensor, x, x->ndim, order));
}

DT_PUBLIC(as_strided, "as_strided(input: Tensor, size: Sizes, stride: Sizes, "
                      "storage_offset: int = None)")
{
    dt_tensor *x;
    int ndim, nstrides;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM], offset = 0;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &ndim, shape) < 0 ||
        dt_take_sizes(args, 2, &nstrides, strides) < 0)
        return NULL;
    offset = x->offset;
    if (dt_given(args, 3) && dt_take_int(args, 3, &offset) < 0)
        return NULL;
    if (ndim != nstrides) {
        PyErr_Format(PyExc_RuntimeError,
                     "as_strided(): size has %d dimensions and stride %d; give as many",
                     ndim, nstrides);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(
        out, dt_recorded_strided(&out->tensor, x, ndim, shape, strides, offset));
}

/* --- several views
 * ------------------------------------------------------------------------------ */

/* A tuple of parts along dim, `sizes[i]` long each; count of them. name: of the node.
 */
static PyObject *parts(const char *name, const dt_tensor *x, int dim, Py_ssize_t count,
                       int64_t (*size_of)(const void *, Py_ssize_t),
                       const void *context)
{
    PyObject *tuple = PyTuple_New(count);
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

/* Sizes of a tuple or list, for PyMem_Free; they add up to total. */
static int64_t *listed_sizes(PyObject *list, int64_t total, Py_ssize_t *out_count)
{
    PyObject *items = PySequence_Tuple(list);
    if (!items)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    int64_t *sizes = PyMem_New(int64_t, count ? count : 1);
    int64_t sum = 0;
    bool sound = true;
    if (!sizes)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; sizes && i < count; i++) {
        int status = dt_int_from_python(PyTuple_GET_ITEM(items, i), &sizes[i]);
        if (status <= 0) {
            if (!status)
                PyErr_SetString(PyExc_TypeError, "split(): the sizes have to be ints");
            PyMem_Free(sizes);
            sizes = NULL;
            break;
        }
        sound = sound && sizes[i] >= 0 && !__builtin_add_overflow(sum, sizes[i], &sum);
    }
    Py_DECREF(items);
    if (sizes && (!sound || sum != total)) {
        PyErr_Format(
            PyExc_RuntimeError,
            "split(): the sizes have to be 0 or more and to add up to %lld, the size "
            "of the dimension",
            (long long)total);
        PyMem_Free(sizes);
        return NULL;
    }
    *out_count = count;
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
    if (PyTuple_Check(how) || PyList_Check(how)) {
        Py_ssize_t count;
        int64_t *sizes = listed_sizes(how, total, &count);
        PyObject *tuple =
            sizes ? parts("SplitWithSizesBackward0", x, dim, count, listed_size, sizes)
                  : NULL;
        PyMem_Free(sizes);
        return tuple;
    }
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

static const dt_row rows[] = {
    DT_FUNCTION(reshape_to, "reshape",
                "The elements in another shape, copied where necessary."),
    DT_METHOD(reshape, "reshape",
              "The elements in another shape, copied only where necessary."),
    {"view", &view_sized_signature, NULL, view_method,
     "The same memory in another shape; or, given a dtype, as elements of that type."},
    DT_FUNCTION(permute_to, "permute",
                "The same memory with its dimensions reordered."),
    DT_METHOD(permute, "permute",
              "The same memory with its dimensions in another order."),
    DT_METHOD(expand, "expand", "Dimensions of size 1 repeated, without a copy."),
    DT_FUNCTION(broadcast_to_size, "broadcast_to", "input broadcast, without a copy."),
    DT_METHOD(broadcast_to, "broadcast_to",
              "input broadcast to a shape, without a copy."),
    DT_METHOD(reshape_as, "reshape_as", "The elements in the shape of other."),
    DT_METHOD(view_as, "view_as", "The same memory in the shape of other."),
    DT_METHOD(expand_as, "expand_as",
              "Dimensions of size 1 repeated to the shape of other."),
    DT_BOTH(transpose, "transpose", "The same memory with two dimensions exchanged."),
    DT_BOTH(swapaxes, "swapaxes", "The same as transpose."),
    DT_BOTH(swapdims, "swapdims", "The same as transpose."),
    DT_BOTH(t, "t", "A matrix transposed; vectors and single elements as they are."),
    DT_BOTH(unsqueeze, "unsqueeze", "A dimension of size 1 added at dim."),
    DT_BOTH(flatten, "flatten", "The dimensions from start_dim to end_dim as one."),
    DT_BOTH(ravel, "ravel", "All dimensions as one."),
    DT_BOTH(narrow, "narrow", "The part of a dimension from start on, length long."),
    DT_BOTH(select, "select", "One index of a dimension, which is gone then."),
    DT_BOTH(squeeze, "squeeze", "Without dimensions of size 1: all, or those of dim."),
    DT_BOTH(movedim, "movedim", "Dimensions moved to other places."),
    DT_BOTH(as_strided, "as_strided", "The same memory under any sizes and strides."),
    DT_BOTH(split, "split", "A tuple of parts, of one size or of the sizes given."),
    DT_BOTH(chunk, "chunk", "A tuple of at most that many parts."),
    DT_BOTH(unbind, "unbind", "A tuple of the slices along a dimension."),
};

int dt_setup_views(PyObject *module)
{
    return DT_ADD_ROWS(module, rows);
}
