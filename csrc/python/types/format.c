#include "python/types/format.h"

#include "python/types/named.h"

static PyTypeObject *format_type, *layout_type;
static PyObject *strided;

int dt_setup_format_type(PyObject *module)
{
    format_type = dt_named_type(module, "pydevtensor.memory_format",
                                "The order of a tensor's dimensions in memory.\n\n"
                                ">>> torch.zeros(2, 3, 4, 5).contiguous("
                                "memory_format=torch.channels_last).stride()\n"
                                "(60, 1, 15, 3)",
                                NULL);
    layout_type = dt_named_type(module, "pydevtensor.layout",
                                "How a tensor stores its elements: always "
                                "torch.strided.\n\n"
                                ">>> torch.ones(2).layout\n"
                                "torch.strided",
                                NULL);
    strided = layout_type ? dt_named_new(module, layout_type, "strided", 0) : NULL;
    if (!format_type || !strided)
        return -1;
#define FORMAT(ID, name)                                                               \
    PyObject *name = dt_named_new(module, format_type, #name, DT_FORMAT_##ID);         \
    if (!name)                                                                         \
        return -1;                                                                     \
    Py_DECREF(name); /* the module holds a reference */
    DT_FORMATS(FORMAT)
#undef FORMAT
    return 0;
}

PyObject *dt_strided(void)
{
    return Py_NewRef(strided);
}

bool dt_layout_object_check(PyObject *value)
{
    return Py_TYPE(value) == layout_type;
}

bool dt_format_object_check(PyObject *value)
{
    return Py_TYPE(value) == format_type;
}

int dt_take_layout(const dt_args *args, int i)
{
    return dt_given(args, i) && !dt_layout_object_check(args->slots[i])
               ? dt_argument_error(args, i)
               : 0;
}

int dt_take_format(const dt_args *args, int i, dt_format *out)
{
    if (!dt_given(args, i))
        return 0;
    if (!dt_format_object_check(args->slots[i]))
        return dt_argument_error(args, i);
    *out = (dt_format)dt_named_value(args->slots[i]);
    return 0;
}

int dt_format_check(const char *function, dt_format format, int ndim)
{
    int wanted = format == DT_FORMAT_CHANNELS ? 4 : 5;
    if (format == DT_FORMAT_PRESERVE || format == DT_FORMAT_CONTIGUOUS ||
        ndim == wanted)
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): memory_format channels_last%s is for %d dimensions, and the "
                 "Tensor has %d; give it another format",
                 function, wanted == 5 ? "_3d" : "", wanted, ndim);
    return -1;
}

bool dt_format_is_of(dt_format format, const dt_tensor *x)
{
    if (format == DT_FORMAT_PRESERVE || format == DT_FORMAT_CONTIGUOUS)
        return x->contiguous;
    if (x->ndim != (format == DT_FORMAT_CHANNELS ? 4 : 5))
        return false;
    int64_t order[DT_MAX_NDIM], inverse[DT_MAX_NDIM], step = 1;
    dt_format_order(x->ndim, order, inverse);
    for (int i = x->ndim - 1; i >= 0; i--) {
        int64_t d = order[i];
        if (x->shape[d] != 1 && x->strides[d] != step)
            return false;
        step *= x->shape[d];
    }
    return true;
}

void dt_format_order(int ndim, int64_t *order, int64_t *inverse)
{
    order[0] = 0;
    for (int d = 1; d < ndim; d++)
        order[d] = d < ndim - 1 ? d + 1 : 1;
    for (int d = 0; d < ndim; d++)
        inverse[order[d]] = d;
}

void dt_format_strides(dt_format format, int ndim, const int64_t *shape,
                       int64_t *strides)
{
    int64_t order[DT_MAX_NDIM], inverse[DT_MAX_NDIM], step = 1;
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    if (format != DT_FORMAT_CONTIGUOUS)
        dt_format_order(ndim, order, inverse);
    for (int i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= shape[order[i]] > 1 ? shape[order[i]] : 1;
    }
}
