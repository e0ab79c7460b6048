/* as_strided. */
#include "autograd/recorded.h"
#include "python/functions.h"

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

static const dt_function rows[] = {
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
