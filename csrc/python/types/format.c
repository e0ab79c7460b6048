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
