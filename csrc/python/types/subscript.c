/* x[...] and x[...] = value: basic indexing by integers, slices, None and the
 * ellipsis gives views; advanced indexing by integer tensors, masks, lists and
 * arrays gathers and scatters elements. */
#include <string.h>

#include "python/overrides.h"
#include "python/arguments.h"
#include "python/types/tensor.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

/* Room for every item of a valid subscript, with an ellipsis and new axes. */
#define MAX_ITEMS (2 * DT_MAX_NDIM + 1)

/* A subscript: the items of a view, and the index tensors that then index this view.
 * Each index tensor has a full slice in its place among the items. */
typedef struct subscript {
    int count;
    dt_subscript items[MAX_ITEMS];
    int nchosen;
    dt_tensor chosen[DT_MAX_NDIM]; /* owned */
    int at[DT_MAX_NDIM];           /* its item */
    int64_t wanted[DT_MAX_NDIM];   /* size of the masked dimension; -1 if not from a
                                      mask */
    int nbools;
    int bools[MAX_ITEMS]; /* the items that were True or False */
} subscript;

static void release(subscript *s)
{
    for (int k = 0; k < s->nchosen; k++)
        dt_tensor_clear(&s->chosen[k]);
    s->nchosen = 0;
}

/* Declares a subscript that is released at the end of the block. */
#define LOCAL_SUBSCRIPT(name)                                                          \
    __attribute__((cleanup(release))) subscript name;                                  \
    (name).nchosen = 0

static int too_many(void)
{
    return DT_SET_ERROR(PyExc_IndexError,
                        "index: too many items; a tensor has at most %d dimensions",
                        DT_MAX_NDIM);
}

static int reject(PyObject *item)
{
    char text[DT_DESCRIBE_TEXT];
    dt_describe(item, text, sizeof text);
    return DT_SET_ERROR(
        dt_tensor_check(item) || PyFloat_Check(item) ? PyExc_IndexError
                                                     : PyExc_TypeError,
        "index: %s is not an index; use integers, slices, None or ... (and "
        "for floats, int() first)",
        text);
}

/* Reads a slice bound by __index__, clamped to 64 bits. */
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
        return DT_SET_ERROR(PyExc_TypeError,
                            "index: %s is not a slice bound; use integers or None",
                            dt_describe(value, text, sizeof text));
    }
    *out = PyNumber_AsSsize_t(value, NULL);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int take_slice(PyObject *key, dt_subscript *item)
{
    PySliceObject *slice = (PySliceObject *)key;
    item->kind = DT_SUBSCRIPT_SLICE;
    item->step = 1;
    item->has_start = slice->start != Py_None;
    item->has_stop = slice->stop != Py_None;
    if ((item->has_start && take_bound(slice->start, &item->start)) ||
        (item->has_stop && take_bound(slice->stop, &item->stop)) ||
        (slice->step != Py_None && take_bound(slice->step, &item->step)))
        return -1;
    return 0;
}

static int take_item(PyObject *key, dt_subscript *item)
{
    if (PySlice_Check(key))
        return take_slice(key, item);
    if (key == Py_None) {
        item->kind = DT_SUBSCRIPT_NEW_AXIS;
        item->stop = 1;
        return 0;
    }
    if (PyBool_Check(key)) { /* a new axis of size 1 or 0 */
        item->kind = DT_SUBSCRIPT_NEW_AXIS;
        item->stop = key == Py_True;
        return 0;
    }
    if (key == Py_Ellipsis) {
        item->kind = DT_SUBSCRIPT_ELLIPSIS;
        return 0;
    }
    item->kind = DT_SUBSCRIPT_INTEGER;
    int found = dt_int_from_python(key, &item->start);
    if (found > 0)
        return 0;
    return found < 0 ? -1 : reject(key);
}

/* --- advanced indexing --- */

/* Takes over *index. -1 with an exception set. */
static int add_chosen(subscript *s, dt_tensor *index, int64_t wanted)
{
    if (s->nchosen == DT_MAX_NDIM || s->count == MAX_ITEMS) {
        dt_tensor_clear(index);
        return too_many();
    }
    dt_subscript *item = &s->items[s->count];
    memset(item, 0, sizeof *item);
    item->kind = DT_SUBSCRIPT_SLICE;
    item->step = 1;
    s->at[s->nchosen] = s->count++;
    s->wanted[s->nchosen] = wanted;
    s->chosen[s->nchosen++] = *index;
    return 0;
}

/* Converts a mask to the positions of its true elements, one index tensor per
 * dimension. */
static int add_mask(subscript *s, const dt_tensor *mask)
{
    dt_tensor column;
    DT_LOCAL(positions);
    int status;
    DT_RUN(status,
           mask->numel > DT_LONG_NUMEL || dt_device_has_streams(dt_tensor_device(mask)),
           dt_nonzero(&positions, mask), &mask);
    for (int d = 0; d < mask->ndim && !status; d++) {
        status = dt_view_select(&column, &positions, 1, d);
        if (!status && add_chosen(s, &column, mask->shape[d]))
            return -1;
    }
    return status ? dt_raise_status() : 0;
}

static int add_tensor(subscript *s, const dt_tensor *t)
{
    dt_tensor index;
    if (t->dtype == DT_BOOL || t->dtype == DT_UINT8)
        return add_mask(s, t);
    if (dt_dtype_is_inexact((dt_dtype)t->dtype))
        return DT_SET_ERROR(
            PyExc_IndexError,
            "index: a tensor of type %s is not an index; give integers or "
            "bools, such as index.long() or x > 0",
            dt_dtype_name((dt_dtype)t->dtype));
    dt_tensor_alias(&index, t);
    return add_chosen(s, &index, -1);
}

/* Converts a list, a range or an array to a CPU tensor; an empty list has no integers. */
static int add_sequence(subscript *s, PyObject *key)
{
    PyObject *made = dt_tensor_from_data("index", key, -1, dt_device_make(DT_CPU, 0));
    if (!made)
        return -1;
    const dt_tensor *t = dt_tensor_of(made);
    int status;
    if (!t->numel && !dt_numpy_is_array(key) && dt_dtype_is_float((dt_dtype)t->dtype)) {
        dt_tensor none;
        status = dt_to(&none, t, DT_INT64, dt_tensor_device(t))
                     ? dt_raise_status()
                     : add_chosen(s, &none, -1);
    } else {
        status = add_tensor(s, t);
    }
    Py_DECREF(made);
    return status;
}

static int add_item(subscript *s, PyObject *key)
{
    if (dt_tensor_check(key) && dt_tensor_of(key)->ndim)
        return add_tensor(s, dt_tensor_of(key));
    if (PyList_Check(key) || PyTuple_Check(key) || PyRange_Check(key) ||
        dt_numpy_is_array(key))
        return add_sequence(s, key);
    if (!PySlice_Check(key) && !PyIndex_Check(key) && dt_is_foreign_array(key)) {
        DT_REF made = dt_adopt_array("index", key);
        return made ? add_tensor(s, dt_tensor_of(made)) : -1;
    }
    if (s->count == MAX_ITEMS)
        return too_many();
    if (dt_tensor_check(key) && dt_tensor_of(key)->dtype == DT_BOOL) {
        dt_scalar truth; /* like bool(tensor); synchronizes with a GPU */
        if (dt_item("index", dt_tensor_of(key), &truth))
            return dt_raise_status();
        key = truth.i ? Py_True : Py_False;
    }
    if (take_item(key, &s->items[s->count]))
        return -1;
    if (PyBool_Check(key))
        s->bools[s->nbools++] = s->count;
    s->count++;
    return 0;
}

/* True and False are 0-dim masks that broadcast with the other index tensors. A
 * single one that is written through acts like a new axis of size 1 or 0. */
static int place_bools(subscript *s, bool reads)
{
    if (!s->nbools || (!reads && s->nbools == 1 && !s->nchosen))
        return 0;
    for (int b = 0; b < s->nbools; b++) {
        dt_subscript *item = &s->items[s->bools[b]];
        int64_t count = item->stop; /* 1 or 0 positions, all 0 */
        int k = s->nchosen;
        dt_tensor index;
        if (k == DT_MAX_NDIM)
            return too_many();
        if (dt_full("index", &index, DT_INT64, 1, &count, dt_device_make(DT_CPU, 0),
                    dt_scalar_int(0)))
            return dt_raise_status();
        for (; k && s->at[k - 1] > s->bools[b]; k--) {
            s->chosen[k] = s->chosen[k - 1];
            s->at[k] = s->at[k - 1];
            s->wanted[k] = s->wanted[k - 1];
        }
        s->chosen[k] = index;
        s->at[k] = s->bools[b];
        s->wanted[k] = -1;
        s->nchosen++;
        item->stop = 1;
    }
    return 0;
}

/* Parses a subscript for reading or writing; -1 with an exception set. */
static int take_items(PyObject *key, subscript *s, bool reads)
{
    int status = 0;
    s->count = s->nchosen = s->nbools = 0;
    if (!PyTuple_Check(key)) {
        status = add_item(s, key);
    } else if (PyTuple_GET_SIZE(key) > MAX_ITEMS) {
        PyErr_Format(PyExc_IndexError,
                     "index: too many items (%zd); a tensor has at most %d dimensions",
                     PyTuple_GET_SIZE(key), DT_MAX_NDIM);
        status = -1;
    } else {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key) && !status; i++)
            status = add_item(s, PyTuple_GET_ITEM(key, i));
    }
    return status ? status : place_bools(s, reads);
}

/* The index tensors, and the dimensions of a view that they index. */
typedef struct advanced {
    const dt_tensor *indices[MAX_ITEMS];
    int64_t dims[MAX_ITEMS];
} advanced;

/* Plans the advanced indexing of view, which the items made of whole. -1 after
 * dt_fail. */
static int plan_advanced(advanced *a, const subscript *s, const dt_tensor *whole,
                         const dt_tensor *view)
{
    int dims[MAX_ITEMS], dim = 0, consumed = 0;
    bool skipped = false;
    for (int i = 0; i < s->count; i++)
        consumed += s->items[i].kind == DT_SUBSCRIPT_INTEGER ||
                    s->items[i].kind == DT_SUBSCRIPT_SLICE;
    for (int i = 0; i < s->count; i++) {
        dims[i] = dim;
        if (s->items[i].kind == DT_SUBSCRIPT_ELLIPSIS) {
            dim += skipped ? 0 : whole->ndim - consumed;
            skipped = true;
        } else {
            dim += s->items[i].kind != DT_SUBSCRIPT_INTEGER;
        }
    }
    for (int k = 0; k < s->nchosen; k++) {
        int at = dims[s->at[k]];
        a->dims[k] = at;
        a->indices[k] = &s->chosen[k];
        if (s->wanted[k] >= 0 && s->wanted[k] != view->shape[at])
            return dt_fail(DT_ERROR_INDEX,
                           "index: the mask has size %lld where the tensor's dimension "
                           "%d has size %lld; give a mask of the same size",
                           (long long)s->wanted[k], at, (long long)view->shape[at]);
    }
    return 0;
}

/* --- reading --- */

static int read_chosen(dt_tensor *out, const dt_tensor *whole, const subscript *s)
{
    DT_LOCAL(view);
    advanced a;
    if (dt_recorded_index(&view, whole, s->items, s->count) ||
        plan_advanced(&a, s, whole, &view))
        return -1;
    return DT_CALL(index, out, dt_value_tensor(&view),
                   dt_value_tensors(s->nchosen, a.indices),
                   dt_value_ints(s->nchosen, a.dims));
}

/* x[i], the most frequent subscript. */
static PyObject *subscript_int(const dt_tensor *x, PyObject *key)
{
    dt_subscript item = {.kind = DT_SUBSCRIPT_INTEGER};
    if (!dt_small_int(key, &item.start) && dt_int_from_python(key, &item.start) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    return out ? dt_tensor_result(out, dt_recorded_index(&out->tensor, x, &item, 1))
               : NULL;
}

PyObject *dt_tensor_subscript(PyObject *self, PyObject *key)
{
    DT_OVERRIDE(dt_override_operator("__getitem__", self, key, NULL));
    if (PyLong_CheckExact(key))
        return subscript_int(dt_tensor_of(self), key);
    LOCAL_SUBSCRIPT(s);
    if (take_items(key, &s, true))
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    const dt_tensor *whole = dt_tensor_of(self);
    if (!s.nchosen)
        return dt_tensor_result(
            out, dt_recorded_index(&out->tensor, whole, s.items, s.count));
    int status;
    DT_RUN(status, s.chosen[0].numel > 256 || whole->numel > DT_LONG_NUMEL,
           read_chosen(&out->tensor, whole, &s), &whole);
    return dt_tensor_result(out, status);
}

/* --- writing --- */

static bool chosen_by_masks(const subscript *s)
{
    for (int k = 0; k < s->nchosen; k++)
        if (s->wanted[k] < 0)
            return false;
    return true;
}

/* place[chosen] = value, or += value, which may be on another device, and of another type
 * if it is one element for a mask. */
static int write_chosen(bool accumulate, dt_tensor *place, const dt_tensor *whole,
                        const subscript *s, const dt_tensor *value, dt_scalar number)
{
    DT_LOCAL(own);
    advanced a;
    dt_device device = dt_tensor_device(place);
    if (plan_advanced(&a, s, whole, place))
        return -1;
    dt_dtype dtype = value ? (dt_dtype)value->dtype : DT_BOOL;
    if (value && value->numel == 1 && !accumulate && chosen_by_masks(s))
        dtype = (dt_dtype)place->dtype;
    if (value &&
        (dtype != value->dtype || !dt_device_equal(dt_tensor_device(value), device))) {
        if (dt_recorded_to(&own, value, dtype, device))
            return -1;
        value = &own;
    }
    return DT_CALL_INTO(index_put, place, dt_value_tensors(s->nchosen, a.indices),
                        dt_value_ints(s->nchosen, a.dims),
                        value ? dt_value_tensor(value) : dt_value_scalar(number),
                        dt_value_bool(accumulate));
}

/* PyTorch allows a value with extra leading dimensions of size 1. */
static int drop_leading_ones(dt_tensor *out, const dt_tensor *value, int ndim)
{
    int64_t dims[DT_MAX_NDIM];
    int count = 0;
    while (value->ndim - count > ndim && value->shape[count] == 1) {
        dims[count] = count;
        count++;
    }
    return DT_CALL(squeeze, out, dt_value_tensor(value), dt_value_ints(count, dims));
}

/* Gives place, a view of whole that is to be written, autograd metadata: whole's own where
 * it has the same elements in the same shape, so that nothing is left of the history. */
static int join_history(dt_tensor *place, dt_tensor *whole)
{
    if (place->offset != whole->offset ||
        !dt_shape_equal(place->ndim, place->shape, whole->ndim, whole->shape) ||
        !dt_shape_equal(place->ndim, place->strides, whole->ndim, whole->strides))
        return dt_variable_set_part(place, whole);
    if (!dt_variable_ensure(whole))
        return -1;
    dt_tensor_clear(place);
    dt_variable_alias(place, whole);
    return 0;
}

static int assign(bool accumulate, PyObject *self, PyObject *key, PyObject *value)
{
    DT_REF complex = NULL;
    LOCAL_SUBSCRIPT(s);
    DT_LOCAL(place);
    DT_LOCAL(source);
    dt_scalar number;
    int status;
    if (!value)
        return DT_SET_ERROR(
            PyExc_TypeError,
            "del x[...]: elements of a tensor cannot be deleted; index those to keep");
    if (dt_is_complex_number(value)) {
        const dt_tensor *target = dt_tensor_of(self);
        complex = dt_complex_from_python(value, dt_complex_type_beside(target));
        if (!complex)
            return -1;
        if (dt_check_imag("x[...] = value", (dt_dtype)target->dtype,
                          dt_tensor_of(complex)))
            return dt_raise_status();
        value = complex;
    }
    number = dt_scalar_int(0);
    int is_number = dt_tensor_check(value) ? 0 : dt_scalar_from_python(value, &number);
    if (is_number < 0)
        return -1;
    if (!is_number && !dt_tensor_check(value)) {
        char text[DT_DESCRIBE_TEXT];
        return DT_SET_ERROR(
            PyExc_TypeError,
            "x[...] = value: the value is %s; give a number or a Tensor, such as "
            "torch.tensor(value)",
            dt_describe(value, text, sizeof text));
    }
    if (take_items(key, &s, false))
        return -1;
    const dt_tensor *whole = dt_tensor_of(self);
    const dt_tensor *given = is_number ? NULL : dt_tensor_of(value);
    if (dt_view_index(&place, whole, s.items, s.count))
        return dt_raise_status();
    /* A differentiable write changes the whole tensor's autograd metadata. */
    bool recorded =
        dt_grad_enabled && (dt_requires_grad(whole) || (given && dt_recording(given)));
    if (recorded && (dt_in_place_check("x[...] = value", whole) < 0 ||
                     join_history(&place, (dt_tensor *)whole) < 0))
        return dt_raise_status();
    if (s.nchosen) {
        DT_RUN(status, s.chosen[0].numel > 256 || whole->numel > DT_LONG_NUMEL,
               write_chosen(accumulate, &place, whole, &s, given, number), &whole,
               &given);
    } else if (is_number) {
        DT_RUN(status, place.numel > DT_LONG_NUMEL,
               dt_call_into(DT_RECORD(fill), "x[...] = value", &place, 2,
                            (const dt_value[]){dt_value_tensor(&place),
                                               dt_value_scalar(number)}),
               NULL);
    } else {
        status = drop_leading_ones(&source, given, place.ndim);
        if (!status) {
            bool long_run =
                place.numel > DT_LONG_NUMEL ||
                !dt_device_equal(dt_tensor_device(&place), dt_tensor_device(&source));
            DT_RUN(status, long_run,
                   dt_recorded_copy_into("x[...] = value", &place, &source), NULL);
        }
    }
    return status ? dt_raise_status() : 0;
}

int dt_tensor_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    if (__builtin_expect(dt_overrides, 0) && value) {
        PyObject *made = dt_override_operator("__setitem__", self, key, value);
        if (made != Py_NotImplemented) {
            Py_XDECREF(made);
            return made ? 0 : -1;
        }
    }
    return assign(false, self, key, value);
}

int dt_tensor_index_put(PyObject *self, PyObject *indices, PyObject *values,
                        bool accumulate)
{
    bool chooses = false;
    if (!PyTuple_Check(indices) && !PyList_Check(indices))
        return DT_SET_ERROR(
            PyExc_TypeError,
            "index_put_(): indices is a %.100s; give a tuple of Tensors",
            Py_TYPE(indices)->tp_name);
    DT_REF key = PySequence_Tuple(indices);
    if (!key)
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        PyObject *item = PyTuple_GET_ITEM(key, i);
        if (!dt_tensor_check(item))
            return DT_SET_ERROR(
                PyExc_TypeError,
                "index_put_(): item %zd of indices is a %.100s; give Tensors", i,
                Py_TYPE(item)->tp_name);
        chooses |= dt_tensor_of(item)->ndim > 0;
    }
    if (accumulate && !chooses)
        return DT_SET_ERROR(PyExc_IndexError,
                            "index_put_(): all index Tensors are 0-dim, so there is "
                            "nothing to accumulate; use add_()");
    return assign(accumulate, self, key, values);
}
