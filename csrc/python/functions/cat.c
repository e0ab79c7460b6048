/* Tensors put together: cat, stack and their relatives. */
#include <limits.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"

/* What cat of the tensors along dim gives, in the argument at out_at where given. */
static PyObject *join(const dt_args *args, int out_at, const dt_tensor *const *tensors,
                      Py_ssize_t count, int64_t dim)
{
    dt_value values[] = {{.tensors = tensors, .count = (int)count, .given = true},
                         dt_value_int(dim),
                         dt_value_none()};
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_call call = {.op = &dt_op_cat,
                    .name = args->signature->name,
                    .node = dt_op_cat.node,
                    .args = values,
                    .out = {&out->tensor}};
    int status;
    DT_RUN(status, true, dt_dispatch(&call));
    return dt_finish(args, out_at, out, status);
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
        int status = list.count ? 0
                                : dt_fail(DT_ERROR_RUNTIME,
                                          "%s: there are no tensors to concatenate; "
                                          "give at least one",
                                          args->signature->name);
        for (; !status && count < list.count; count++) {
            const dt_tensor *x = list.items[count];
            status = least ? dt_recorded_atleast(least, &views[count], x)
                           : as_column(&views[count], x);
            items[count] = &views[count];
            if (status)
                break;
        }
        /* hstack joins vectors along their only dimension. */
        if (!status && least == 1)
            dim = items[0]->ndim > 1;
        made = status ? dt_raise() : join(args, 1, items, list.count, dim);
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
