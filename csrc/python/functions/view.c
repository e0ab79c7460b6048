/* Views, and the functions that copy only where no view will do. */
#include <string.h>

#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/size.h"
#include "autograd/recorded.h"
#include "tensor/ops/copy.h"
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

VIEW_OF_INTS(diagonal,
             "diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1)",
             3, dt_recorded_diagonal(&out->tensor, x, v[0], v[1], v[2]))
VIEW_OF_INTS(unfold, "unfold(input: Tensor, dimension: int, size: int, step: int)", 3,
             dt_recorded_unfold(&out->tensor, x, v[0], v[1], v[2]))
VIEW_OF_INTS(adjoint, "adjoint(input: Tensor)", 0, dt_recorded_mT(&out->tensor, x))

DT_PUBLIC(unflatten, "unflatten(input: Tensor, dim: int, sizes: Sizes)")
{
    dt_tensor *x;
    int64_t dim, sizes[DT_MAX_NDIM];
    int count;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_sizes(args, 2, &count, sizes) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out,
                            dt_recorded_unflatten(&out->tensor, x, dim, count, sizes));
}

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

static PyObject *move_dims(const dt_args *args)
{
    const char *what = args->signature->name;
    dt_tensor *x;
    int nfrom, nto;
    int64_t from[DT_MAX_NDIM], to[DT_MAX_NDIM], order[DT_MAX_NDIM];
    bool moved[DT_MAX_NDIM] = {false}, filled[DT_MAX_NDIM] = {false};
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &nfrom, from) < 0 ||
        dt_take_dims(args, 2, &nto, to) < 0)
        return NULL;
    if (nfrom != nto) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): source has %d dimensions and destination %d; give as many",
                     what, nfrom < 0 ? 0 : nfrom, nto < 0 ? 0 : nto);
        return NULL;
    }
    for (int i = 0; i < nfrom; i++) {
        int a = dt_shape_wrap_dim(what, from[i], x->ndim);
        int b = a < 0 ? -1 : dt_shape_wrap_dim(what, to[i], x->ndim);
        if (b < 0)
            return dt_raise();
        if (x->ndim && (moved[a] || filled[b])) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): a dimension is named twice; name each once", what);
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

DT_PUBLIC(movedim, "movedim(input: Tensor, source: Dims, destination: Dims)")
{
    return move_dims(args);
}
DT_PUBLIC(moveaxis, "moveaxis(input: Tensor, source: Dims, destination: Dims)")
{
    return move_dims(args);
}

/* The sizes, strides and offset of as_strided. -1 raised. */
static int take_strided(const dt_args *args, dt_tensor **x, int *ndim, int64_t *shape,
                        int64_t *strides, int64_t *offset)
{
    int nstrides;
    if (dt_take_tensor(args, 0, x) < 0 || dt_take_sizes(args, 1, ndim, shape) < 0 ||
        dt_take_sizes(args, 2, &nstrides, strides) < 0)
        return -1;
    *offset = (*x)->offset;
    if (dt_given(args, 3) && dt_take_int(args, 3, offset) < 0)
        return -1;
    if (*ndim == nstrides)
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): size has %d dimensions and stride %d; give as many",
                 args->signature->name, *ndim, nstrides);
    return -1;
}

DT_PUBLIC(as_strided, "as_strided(input: Tensor, size: Sizes, stride: Sizes, "
                      "storage_offset: int = None)")
{
    dt_tensor *x;
    int ndim;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM], offset;
    if (take_strided(args, &x, &ndim, shape, strides, &offset) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(
        out, dt_recorded_strided(&out->tensor, x, ndim, shape, strides, offset));
}

/* --- in place --- */

/* The tensor itself, made what view, which `status` says was made, shows of it. */
static PyObject *become(const dt_args *args, const char *node, dt_tensor *view,
                        int status)
{
    PyObject *self = args->slots[0];
    if (status < 0 || dt_recorded_become_steal(args->signature->name, node,
                                               dt_tensor_of(self), view) < 0)
        return dt_raise();
    return Py_NewRef(self);
}

/* A method that changes the tensor's own shape: what VIEW_OF_INTS makes, in place. */
#define VIEW_IN_PLACE(NAME, TEXT, COUNT, NODE, CALL)                                   \
    DT_PUBLIC(NAME, TEXT)                                                              \
    {                                                                                  \
        dt_tensor *x, view;                                                            \
        int64_t v[(COUNT) + 1] = {0};                                                  \
        if (dt_take_tensor(args, 0, &x) < 0)                                           \
            return NULL;                                                               \
        for (int i = 0; i < (COUNT); i++)                                              \
            if (dt_take_int(args, i + 1, &v[i]) < 0)                                   \
                return NULL;                                                           \
        return become(args, NODE, &view, CALL);                                        \
    }
VIEW_IN_PLACE(transpose_, "transpose_(input: Tensor, dim0: int, dim1: int)", 2,
              "TransposeBackward1", dt_recorded_transpose(&view, x, v[0], v[1]))
VIEW_IN_PLACE(swapaxes_, "swapaxes_(input: Tensor, axis0: int, axis1: int)", 2,
              "TransposeBackward1", dt_recorded_transpose(&view, x, v[0], v[1]))
VIEW_IN_PLACE(swapdims_, "swapdims_(input: Tensor, dim0: int, dim1: int)", 2,
              "TransposeBackward1", dt_recorded_transpose(&view, x, v[0], v[1]))
VIEW_IN_PLACE(t_, "t_(input: Tensor)", 0, "TBackward1", dt_recorded_t(&view, x))
VIEW_IN_PLACE(unsqueeze_, "unsqueeze_(input: Tensor, dim: int)", 1,
              "UnsqueezeBackward1", dt_recorded_unsqueeze(&view, x, v[0]))

DT_PUBLIC(as_strided_, "as_strided_(input: Tensor, size: Sizes, stride: Sizes, "
                       "storage_offset: int = None)")
{
    dt_tensor *x, view;
    int ndim;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM], offset;
    if (take_strided(args, &x, &ndim, shape, strides, &offset) < 0)
        return NULL;
    return become(args, "AsStridedBackward1", &view,
                  dt_recorded_strided(&view, x, ndim, shape, strides, offset));
}

DT_PUBLIC(squeeze_, "squeeze_(input: Tensor, dim: Dims = None)")
{
    dt_tensor *x, view;
    int count;
    int64_t dims[DT_MAX_NDIM];
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_dims(args, 1, &count, dims) < 0)
        return NULL;
    return become(args,
                  count < 0    ? "SqueezeBackward3"
                  : count == 1 ? "SqueezeBackward4"
                               : "SqueezeBackward5",
                  &view, dt_recorded_squeeze(&view, x, count, dims));
}

/* What docstrings of functions and methods have in common. */
#define RESHAPES                                                                       \
    "\n\nOne size may be -1: what is left. RuntimeError where the sizes do not "       \
    "multiply to the number of elements."
#define PERMUTES                                                                       \
    "\n\ndims names every dimension once. RuntimeError where it does not, "            \
    "IndexError for one that is not there."
#define BROADCASTS                                                                     \
    "\n\n-1 keeps a size; new dimensions go in front. The elements share "             \
    "memory. RuntimeError where a size other than 1 would change."

static const dt_function rows[] = {
    DT_FUNCTION(reshape_to, "reshape",
                "The elements in another shape, copied where necessary." RESHAPES),
    DT_METHOD(reshape, "reshape",
              "The elements in another shape, copied only where necessary." RESHAPES),
    {"view", &view_sized_signature, NULL, view_method,
     "The same memory in another shape; or, given a dtype, as elements of that "
     "type.\n\n"
     "One size may be -1: what is left. RuntimeError where the shape does not fit the "
     "elements, or their strides: reshape() copies then."},
    DT_FUNCTION(permute_to, "permute",
                "The same memory with its dimensions reordered." PERMUTES),
    DT_METHOD(permute, "permute",
              "The same memory with its dimensions in another order." PERMUTES),
    DT_METHOD(expand, "expand",
              "Dimensions of size 1 repeated, without a copy." BROADCASTS),
    DT_FUNCTION(broadcast_to_size, "broadcast_to",
                "input broadcast, without a copy." BROADCASTS),
    DT_METHOD(broadcast_to, "broadcast_to",
              "input broadcast to a shape, without a copy." BROADCASTS),
    DT_METHOD(reshape_as, "reshape_as", "The elements in the shape of other."),
    DT_METHOD(view_as, "view_as", "The same memory in the shape of other."),
    DT_METHOD(expand_as, "expand_as",
              "Dimensions of size 1 repeated to the shape of other."),
    DT_BOTH(transpose, "transpose",
            "The same memory with two dimensions exchanged.\n\n"
            "IndexError for a dimension that is not there."),
    DT_BOTH(swapaxes, "swapaxes", "The same as transpose."),
    DT_BOTH(swapdims, "swapdims", "The same as transpose."),
    DT_BOTH(t, "t",
            "A matrix transposed; vectors and single elements as they are.\n\n"
            "RuntimeError for more than two dimensions."),
    DT_BOTH(unsqueeze, "unsqueeze",
            "A dimension of size 1 added at dim.\n\n"
            "dim counts in the result. IndexError for one that is not there."),
    DT_BOTH(flatten, "flatten",
            "The dimensions from start_dim to end_dim as one.\n\n"
            "A view where memory allows it, else a copy. IndexError for a dimension "
            "that is not there."),
    DT_BOTH(ravel, "ravel", "All dimensions as one."),
    DT_BOTH(narrow, "narrow",
            "The part of a dimension from start on, length long.\n\n"
            "A view. IndexError or RuntimeError where the part goes beyond the "
            "dimension."),
    DT_BOTH(select, "select",
            "One index of a dimension, which is gone then.\n\n"
            "A view. IndexError for an index or a dimension that is not there."),
    DT_BOTH(squeeze, "squeeze",
            "Without dimensions of size 1: all, or those of dim.\n\n"
            "A view. IndexError for a dimension that is not there; others than of "
            "size 1 stay."),
    DT_BOTH(movedim, "movedim",
            "Dimensions moved to other places.\n\n"
            "A view. IndexError for a dimension that is not there."),
    DT_BOTH(moveaxis, "moveaxis", "The same as movedim."),
    DT_BOTH(adjoint, "adjoint", "The last two dimensions exchanged."),
    DT_BOTH(diagonal, "diagonal",
            "The elements i, i + offset of dimensions dim1 and dim2, as a last "
            "dimension:\na view. RuntimeError where both are the same dimension."),
    DT_METHOD(unfold, "unfold",
              "Windows of a size along a dimension, one every step: a view, in which\n"
              "windows may share memory. The place within a window is a last "
              "dimension."),
    DT_BOTH(unflatten, "unflatten",
            "One dimension as several of the given sizes, one of which may be -1: a\n"
            "view. RuntimeError where they do not multiply to its size."),
    DT_METHOD(transpose_, "transpose_", "transpose() in place: no element moves."),
    DT_METHOD(swapaxes_, "swapaxes_", "The same as transpose_."),
    DT_METHOD(swapdims_, "swapdims_", "The same as transpose_."),
    DT_METHOD(t_, "t_", "t() in place: no element moves."),
    DT_METHOD(unsqueeze_, "unsqueeze_", "unsqueeze() in place."),
    DT_METHOD(squeeze_, "squeeze_", "squeeze() in place."),
    DT_BOTH(as_strided_, "as_strided_", "as_strided() in place."),
    DT_BOTH(as_strided, "as_strided",
            "The same memory under any sizes and strides.\n\n"
            "A view, counted in elements from storage_offset. RuntimeError beyond "
            "the memory and for negative strides."),
};

int dt_setup_views(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
