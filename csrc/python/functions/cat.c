/* Tensors put together: cat, stack and their relatives. */
#include <limits.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"

static bool is_long(const dt_cat *join)
{
    /* The product may be nonsense: whether it is too large is for the core to say. */
    double numel = 1;
    for (int d = 0; d < join->ndim; d++)
        numel *= (double)join->shape[d];
    return numel > DT_LONG_NUMEL;
}

/* The join in the memory of the argument out. */
static PyObject *join_into(const dt_args *args, int out_at, const dt_cat *join)
{
    PyObject *out = args->slots[out_at];
    if (!dt_tensor_check(out)) {
        dt_argument_error(args, out_at);
        return NULL;
    }
    dt_tensor *target = dt_tensor_of(out);
    bool recording = dt_recording(target);
    for (int64_t i = 0; i < join->count && !recording; i++)
        recording = dt_recording(join->tensors[i]);
    if (recording) {
        dt_output_refuse(join->what);
        return NULL;
    }
    int status;
    if (dt_shape_equal(target->ndim, target->shape, join->ndim, join->shape)) {
        DT_RUN(status, is_long(join), dt_cat_into(target, join));
    } else if (target->numel) {
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        status = dt_fail(
            DT_ERROR_RUNTIME,
            "%s: out has shape %s and the result %s; give an out of that shape, or an "
            "empty one, torch.empty(0)",
            join->what, dt_shape_text(target->ndim, target->shape, has, sizeof has),
            dt_shape_text(join->ndim, join->shape, wants, sizeof wants));
    } else {
        dt_tensor fresh;
        status = dt_tensor_empty(join->what, &fresh, (dt_dtype)target->dtype,
                                 join->ndim, join->shape, dt_tensor_device(target));
        if (!status) {
            DT_RUN(status, is_long(join), dt_cat_into(&fresh, join));
            if (!status) {
                dt_tensor old = *target;
                *target = fresh;
                fresh = old;
            }
            dt_tensor_clear(&fresh);
        }
    }
    return status ? dt_raise() : Py_NewRef(out);
}

/* What the tensors make together; `status` of what was done before. */
static PyObject *join(const dt_args *args, int out_at, dt_cat *join, int64_t dim,
                      int status)
{
    if (status || dt_cat_measure(join, dim))
        return dt_raise();
    if (dt_given(args, out_at))
        return join_into(args, out_at, join);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, is_long(join), dt_recorded_cat(&out->tensor, join));
    return dt_tensor_result(out, status);
}

static int begin(dt_cat *join, const dt_args *args, const dt_tensor_list *list,
                 dt_error_code none)
{
    join->what = args->signature->name;
    join->tensors = list->items;
    join->count = list->count;
    join->stack = false;
    if (!list->count)
        return dt_fail(none, "%s: there are no tensors to join; give at least one",
                       join->what);
    if (list->count > INT_MAX)
        return dt_fail(DT_ERROR_RUNTIME, "%s: too many tensors; join them in groups",
                       join->what);
    return 0;
}

/* Along dim, which is argument 1. */
static PyObject *along(const dt_args *args, bool stack)
{
    dt_tensor_list list;
    dt_cat j;
    int64_t dim;
    if (dt_take_tensors(args, 0, &list) < 0)
        return NULL;
    PyObject *made = NULL;
    if (dt_take_int(args, 1, &dim) == 0) {
        int status = begin(&j, args, &list, stack ? DT_ERROR_RUNTIME : DT_ERROR_VALUE);
        j.stack = stack;
        made = join(args, 2, &j, dim, status);
    }
    dt_tensors_release(&list);
    return made;
}

#define CAT(NAME)                                                                      \
    DT_PUBLIC(NAME, #NAME "(tensors: Tensors, dim: int = 0, *, out: Tensor = None)")   \
    {                                                                                  \
        return along(args, false);                                                     \
    }
CAT(cat)
CAT(concat)
CAT(concatenate)

DT_PUBLIC(stack, "stack(tensors: Tensors, dim: int = 0, *, out: Tensor = None)")
{
    return along(args, true);
}

/* A column for a vector or a single element. */
static int as_column(dt_tensor *out, const dt_tensor *x)
{
    const int64_t column[] = {x->numel, 1};
    if (x->ndim <= 1)
        return dt_recorded_reshape(out, x, 2, column);
    dt_variable_alias(out, x);
    return 0;
}

/* Along dim, after each tensor was given `least` dimensions (0: made a column). */
static PyObject *along_fixed(const dt_args *args, int least, int dim)
{
    dt_tensor_list list;
    dt_cat j;
    if (dt_take_tensors(args, 0, &list) < 0)
        return NULL;
    size_t room = list.count ? (size_t)list.count : 1;
    dt_tensor *views = PyMem_New(dt_tensor, room);
    const dt_tensor **items = PyMem_New(const dt_tensor *, room);
    PyObject *made = NULL;
    Py_ssize_t count = 0;
    if (!views || !items) {
        PyErr_NoMemory();
    } else {
        int status = begin(&j, args, &list, DT_ERROR_RUNTIME);
        for (; !status && count < list.count; count++) {
            const dt_tensor *x = list.items[count];
            status = least ? dt_recorded_atleast(least, &views[count], x)
                           : as_column(&views[count], x);
            items[count] = &views[count];
            if (status)
                break;
        }
        j.tensors = items;
        /* hstack joins vectors along their only dimension. */
        if (!status && least == 1)
            dim = items[0]->ndim > 1;
        made = join(args, 1, &j, dim, status);
    }
    while (count)
        dt_tensor_clear(&views[--count]);
    PyMem_Free(items);
    PyMem_Free(views);
    dt_tensors_release(&list);
    return made;
}

#define FIXED(NAME, least, dim)                                                        \
    DT_PUBLIC(NAME, #NAME "(tensors: Tensors, *, out: Tensor = None)")                 \
    {                                                                                  \
        return along_fixed(args, least, dim);                                          \
    }
FIXED(hstack, 1, 1)
FIXED(vstack, 2, 0)
FIXED(row_stack, 2, 0)
FIXED(dstack, 3, 2)
FIXED(column_stack, 0, 1)

/* --- dimensions of size 1 --- */

static PyObject *atleast_one(int n, PyObject *object)
{
    const dt_tensor *x = dt_tensor_of(object);
    if (x->ndim >= n)
        return Py_NewRef(object);
    dt_tensor_object *out = dt_tensor_object_new();
    return out ? dt_tensor_result(out, dt_recorded_atleast(n, &out->tensor, x)) : NULL;
}

/* One Tensor for one that was given as such, else a tuple of them. */
static PyObject *atleast(const dt_args *args, int n)
{
    if (args->nrest == 1 && dt_tensor_check(args->rest[0]))
        return atleast_one(n, args->rest[0]);
    dt_tensor_list list;
    if (dt_take_tensors(args, 0, &list) < 0)
        return NULL;
    PyObject *tuple = PyTuple_New(list.count);
    for (Py_ssize_t i = 0; tuple && i < list.count; i++) {
        PyObject *one = atleast_one(n, list.objects[i]);
        if (one)
            PyTuple_SET_ITEM(tuple, i, one);
        else
            Py_CLEAR(tuple);
    }
    dt_tensors_release(&list);
    return tuple;
}

#define ATLEAST(n)                                                                     \
    DT_PUBLIC(atleast_##n##d, "atleast_" #n "d(*tensors: Tensors)")                    \
    {                                                                                  \
        return atleast(args, n);                                                       \
    }
ATLEAST(1)
ATLEAST(2)
ATLEAST(3)

DT_PUBLIC(broadcast_tensors, "broadcast_tensors(*tensors: Tensors)")
{
    dt_tensor_list list;
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0;
    if (dt_take_tensors(args, 0, &list) < 0)
        return NULL;
    PyObject *tuple = PyTuple_New(list.count);
    for (Py_ssize_t i = 0; tuple && i < list.count; i++) {
        const dt_tensor *t = list.items[i];
        if (dt_shape_broadcast("broadcast_tensors", ndim, shape, t->ndim, t->shape,
                               &ndim, shape)) {
            Py_CLEAR(tuple);
            dt_raise();
        }
    }
    for (Py_ssize_t i = 0; tuple && i < list.count; i++) {
        const dt_tensor *t = list.items[i];
        dt_tensor_object *out = dt_tensor_object_new();
        PyObject *one = out ? dt_tensor_result(
                                  out, dt_recorded_expand("broadcast_tensors",
                                                          &out->tensor, t, ndim, shape))
                            : NULL;
        if (one)
            PyTuple_SET_ITEM(tuple, i, one);
        else
            Py_CLEAR(tuple);
    }
    dt_tensors_release(&list);
    return tuple;
}

static const dt_function rows[] = {
    DT_FUNCTION(
        cat, "cat",
        "The Tensors one after another along dim, in new memory.\n\n"
        "All have one shape but for the size along dim (Tensors of shape [0] are left\n"
        "out) and are on one device; the result has the dtype in which theirs meet.\n"
        "ValueError for none at all, RuntimeError for shapes or devices that differ,\n"
        "IndexError for a dim that is not there."),
    DT_FUNCTION(concat, "concat", "The same as cat."),
    DT_FUNCTION(concatenate, "concatenate", "The same as cat."),
    DT_FUNCTION(
        stack, "stack",
        "The Tensors, all of one shape, along a new dimension dim, in new memory.\n\n"
        "RuntimeError for none at all, and for shapes or devices that differ;\n"
        "IndexError for a dim that the result does not have."),
    DT_FUNCTION(hstack, "hstack",
                "The Tensors side by side: cat along dimension 1, of vectors along 0."),
    DT_FUNCTION(
        vstack, "vstack",
        "The Tensors below each other: cat along dimension 0, vectors as rows."),
    DT_FUNCTION(row_stack, "row_stack", "The same as vstack."),
    DT_FUNCTION(dstack, "dstack",
                "The Tensors behind each other: cat of atleast_3d along dimension 2."),
    DT_FUNCTION(column_stack, "column_stack",
                "The Tensors side by side, vectors as columns."),
    DT_FUNCTION(atleast_1d, "atleast_1d",
                "The Tensor, or a tuple of several, viewed with 1 dimension or more."),
    DT_FUNCTION(atleast_2d, "atleast_2d",
                "The Tensor, or a tuple of several, viewed with 2 dimensions or more:\n"
                "a vector is a row."),
    DT_FUNCTION(atleast_3d, "atleast_3d",
                "The Tensor, or a tuple of several, viewed with 3 dimensions or more:\n"
                "[n] becomes [1, n, 1] and [n, m] [n, m, 1]."),
    DT_FUNCTION(
        broadcast_tensors, "broadcast_tensors",
        "A tuple of views of the Tensors, all broadcast to one shape, without a copy.\n"
        "RuntimeError where their shapes do not broadcast."),
};

int dt_setup_joins(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
