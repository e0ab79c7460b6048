/* x[...] and x[...] = value for what makes views: integers, slices, None and the
 * ellipsis. */
#include "autograd/recorded.h"
#include "python/arguments.h"
#include "python/numpy.h"
#include "autograd/recorded.h"
#include "tensor/convert.h"
#include "tensor/create.h"
#include "tensor/view.h"

/* Room for every item that a legal subscript can have: an ellipsis and new axes
 * included. */
#define MAX_ITEMS (2 * DT_MAX_NDIM + 1)

static int reject(PyObject *item)
{
    char text[DT_DESCRIBE_TEXT];
    dt_describe(item, text, sizeof text);
    bool selects = dt_tensor_check(item) &&
                   !(dt_dtype_is_float((dt_dtype)dt_tensor_of(item)->dtype));
    if (selects || PyBool_Check(item) || PyList_Check(item) ||
        dt_numpy_is_array(item)) {
        PyErr_Format(
            PyExc_NotImplementedError,
            "index: %s selects elements one by one, which pydevtensor does not do yet; "
            "use integers, slices, None and ..., or index .numpy()",
            text);
        return -1;
    }
    PyErr_Format(
        dt_tensor_check(item) || PyFloat_Check(item) ? PyExc_IndexError
                                                     : PyExc_TypeError,
        "index: %s is no index; use integers, slices, None or ... (and for floats, "
        "int() first)",
        text);
    return -1;
}

/* A bound of a slice: what has __index__. Integers beyond 64 bits are as good as the
 * nearest. */
static int take_bound(PyObject *value, int64_t *out)
{
    if (dt_tensor_check(value)) {
        int found = dt_int_from_python(value, out);
        if (!found)
            reject(value);
        return found > 0 ? 0 : -1;
    }
    if (!PyIndex_Check(value)) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(PyExc_TypeError,
                     "index: %s stands in a slice; use integers or None there",
                     dt_describe(value, text, sizeof text));
        return -1;
    }
    *out = PyNumber_AsSsize_t(value, NULL);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int take_slice(PyObject *key, dt_index *item)
{
    PySliceObject *slice = (PySliceObject *)key;
    item->kind = DT_INDEX_SLICE;
    item->step = 1;
    item->has_start = slice->start != Py_None;
    item->has_stop = slice->stop != Py_None;
    if ((item->has_start && take_bound(slice->start, &item->start)) ||
        (item->has_stop && take_bound(slice->stop, &item->stop)) ||
        (slice->step != Py_None && take_bound(slice->step, &item->step)))
        return -1;
    return 0;
}

static int take_item(PyObject *key, dt_index *item)
{
    if (PySlice_Check(key))
        return take_slice(key, item);
    if (key == Py_None) {
        item->kind = DT_INDEX_NEW_AXIS;
        item->stop = 1;
        return 0;
    }
    if (PyBool_Check(
            key)) { /* all of the tensor, or nothing of it, along a new dimension */
        item->kind = DT_INDEX_NEW_AXIS;
        item->stop = key == Py_True;
        return 0;
    }
    if (key == Py_Ellipsis) {
        item->kind = DT_INDEX_ELLIPSIS;
        return 0;
    }
    item->kind = DT_INDEX_INTEGER;
    int found = dt_int_from_python(key, &item->start);
    if (found > 0)
        return 0;
    return found < 0 ? -1 : reject(key);
}

/* The items of a subscript; -1 with an exception set. */
static int take_items(PyObject *key, dt_index *items)
{
    if (!PyTuple_Check(key))
        return take_item(key, items) ? -1 : 1;
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    if (count > MAX_ITEMS) {
        PyErr_Format(PyExc_IndexError,
                     "index: %zd items were given; a tensor has at most %d dimensions",
                     count, DT_MAX_NDIM);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (take_item(PyTuple_GET_ITEM(key, i), &items[i]))
            return -1;
    return (int)count;
}

PyObject *dt_tensor_subscript(PyObject *self, PyObject *key)
{
    dt_index items[MAX_ITEMS];
    int count = take_items(key, items);
    if (count < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(
        out, dt_recorded_index(&out->tensor, dt_tensor_of(self), items, count));
}

/* PyTorch lets a value have more dimensions than its place, where the first ones have
 * size 1. */
static int drop_leading_ones(dt_tensor *out, const dt_tensor *value, int ndim)
{
    int64_t dims[DT_MAX_NDIM];
    int count = 0;
    while (value->ndim - count > ndim && value->shape[count] == 1) {
        dims[count] = count;
        count++;
    }
    return dt_recorded_squeeze(out, value, count, dims);
}

int dt_tensor_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    dt_index items[MAX_ITEMS];
    dt_tensor place, source;
    dt_scalar number;
    int status;
    if (!value) {
        PyErr_SetString(
            PyExc_TypeError,
            "del x[...]: elements of a tensor cannot be deleted; make a new tensor "
            "of those that stay");
        return -1;
    }
    int count = take_items(key, items);
    if (count < 0)
        return -1;
    int is_number = dt_tensor_check(value) ? 0 : dt_scalar_from_python(value, &number);
    if (is_number < 0)
        return -1;
    if (!is_number && !dt_tensor_check(value)) {
        char text[DT_DESCRIBE_TEXT];
        PyErr_Format(
            PyExc_TypeError,
            "x[...] = value: the value is %s; give a number or a Tensor, such as "
            "torch.tensor(value)",
            dt_describe(value, text, sizeof text));
        return -1;
    }
    dt_tensor *whole = dt_tensor_of(self);
    if (dt_view_index(&place, whole, items, count))
        return dt_raise_status();
    /* A write that is recorded changes the history of the whole. */
    bool recorded =
        dt_grad_enabled &&
        (whole->history || (!is_number && dt_recording(dt_tensor_of(value))));
    if (recorded && (dt_in_place_check("x[...] = value", whole) < 0 ||
                     dt_variable_set_part(&place, whole) < 0)) {
        dt_tensor_clear(&place);
        return dt_raise_status();
    }
    if (is_number) {
        DT_RUN(status, place.numel > DT_LONG_NUMEL,
               dt_recorded_fill_into("x[...] = value", &place, number));
    } else {
        status = drop_leading_ones(&source, dt_tensor_of(value), place.ndim);
        if (!status) {
            bool long_run =
                place.numel > DT_LONG_NUMEL ||
                !dt_device_equal(dt_tensor_device(&place), dt_tensor_device(&source));
            DT_RUN(status, long_run,
                   dt_recorded_copy_into("x[...] = value", &place, &source));
            dt_tensor_clear(&source);
        }
    }
    dt_tensor_clear(&place);
    return status ? dt_raise_status() : 0;
}
