/* Functions that choose elements by index tensors and masks. */
#include <string.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/types/subscript.h"
#include "python/output.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"

static int choice_of(dt_indexing *c, const char *what, dt_indexing_form form,
                     dt_error_code code, const dt_tensor *x, int64_t dim,
                     const dt_tensor *index)
{
    c->what = what;
    c->form = form;
    c->code = code;
    c->wraps = form == DT_INDEXING_FLAT;
    c->count = 1;
    c->indices[0] = index;
    c->dims[0] = form == DT_INDEXING_FLAT ? 0 : dt_shape_wrap_dim(what, dim, x->ndim);
    if (c->dims[0] < 0)
        return -1;
    if (form == DT_INDEXING_INDEX && index->ndim > 1)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the index has %d dimensions; give one of 1, such as "
                       "index.flatten()",
                       what, index->ndim);
    if (form == DT_INDEXING_INDEX && !x->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the tensor has no dimension to choose along; give it one "
                       "with reshape(1)",
                       what);
    return 0;
}

/* One more dimension for an index without any, which stands for one element. */
static void as_row(dt_tensor *row, const dt_tensor *index)
{
    dt_tensor_alias(row, index);
    if (!row->ndim) {
        row->ndim = 1;
        row->shape[0] = row->strides[0] = 1;
    }
}

/* --- reading --- */

static PyObject *read_out(const dt_args *args, const char *node, int out_at,
                          const dt_tensor *x, const dt_indexing *c, int status)
{
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    if (!status)
        DT_RUN(status, c->indices[0]->numel > 256 || x->numel > DT_LONG_NUMEL,
               dt_recorded_index_read(node, &out->tensor, x, c));
    return dt_finish(args, out_at, out, status);
}

DT_PUBLIC(index_select,
          "index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor = None)")
{
    dt_tensor *x, *index, row;
    int64_t dim;
    dt_indexing c;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_tensor(args, 2, &index) < 0)
        return NULL;
    as_row(&row, index);
    int status =
        choice_of(&c, "index_select", DT_INDEXING_INDEX, DT_ERROR_INDEX, x, dim, &row);
    PyObject *made = read_out(args, "IndexSelectBackward0", 3, x, &c, status);
    dt_tensor_clear(&row);
    return made;
}

DT_PUBLIC(gather, "gather(input: Tensor, dim: int, index: Tensor, *, "
                  "sparse_grad: bool = False, out: Tensor = None)")
{
    dt_tensor *x, *index;
    int64_t dim;
    dt_indexing c;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_tensor(args, 2, &index) < 0)
        return NULL;
    int status =
        choice_of(&c, "gather", DT_INDEXING_ALONG, DT_ERROR_RUNTIME, x, dim, index);
    return read_out(args, "GatherBackward0", 4, x, &c, status);
}

DT_PUBLIC(take, "take(input: Tensor, index: Tensor, *, out: Tensor = None)")
{
    dt_tensor *x, *index;
    dt_indexing c;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &index) < 0)
        return NULL;
    int status = choice_of(&c, "take", DT_INDEXING_FLAT, DT_ERROR_INDEX, x, 0, index);
    return read_out(args, "TakeBackward0", 2, x, &c, status);
}

/* --- writing --- */

/* What is written: a tensor, or a number as one element of target's type. The caller
 * clears *own. NULL after dt_fail. */
static const dt_tensor *values_of(const char *what, dt_arg value, dt_tensor *own,
                                  const dt_tensor *target)
{
    own->storage = NULL;
    if (value.tensor)
        return value.tensor;
    return dt_full(what, own, (dt_dtype)target->dtype, 0, NULL,
                   dt_tensor_device(target), value.scalar)
               ? NULL
               : own;
}

/* target[choice] op= value, in target or in a copy of it. */
static PyObject *write_out(const dt_args *args, const char *node, dt_index_op op,
                           bool in_place, const dt_indexing *c, dt_arg value,
                           int status)
{
    dt_tensor *x = dt_tensor_of(args->slots[0]), *target = x, own;
    dt_tensor_object *made = NULL;
    own.storage = NULL;
    if (!in_place && !(made = dt_tensor_object_new()))
        return NULL;
    const dt_tensor *values = status ? NULL : values_of(c->what, value, &own, x);
    if (!values)
        status = -1;
    if (!status && made) {
        target = &made->tensor;
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_to(target, x, (dt_dtype)x->dtype, dt_tensor_device(x)));
    }
    if (!status) {
        DT_RUN(status, c->indices[0]->numel > 256 || values->numel > DT_LONG_NUMEL,
               dt_recorded_index_write(node, op, target, c, values));
        if (status && made)
            dt_tensor_clear(target);
    }
    dt_tensor_clear(&own);
    if (made)
        return dt_tensor_result(made, status);
    return status ? dt_raise() : Py_NewRef(args->slots[0]);
}

static PyObject *scatter(const dt_args *args, const char *what, bool adds,
                         bool in_place)
{
    dt_tensor *x, *index, *source;
    int64_t dim;
    dt_arg value;
    dt_indexing c;
    const char *reduce = NULL;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_tensor(args, 2, &index) < 0)
        return NULL;
    if (adds) {
        if (dt_take_tensor(args, 3, &source) < 0)
            return NULL;
        value = dt_arg_tensor(source);
    } else if (dt_take_value(args, 3, &value) < 0 ||
               (dt_given(args, 4) && dt_take_str(args, 4, &reduce) < 0)) {
        return NULL;
    }
    dt_index_op op = adds ? DT_INDEX_ADD : DT_INDEX_WRITE;
    if (reduce) {
        op = !strcmp(reduce, "add") ? DT_INDEX_ADD : DT_INDEX_MULTIPLY;
        if (op == DT_INDEX_MULTIPLY && strcmp(reduce, "multiply")) {
            PyErr_Format(PyExc_RuntimeError,
                         "%s(): reduce is '%s'; give 'add' or 'multiply'", what,
                         reduce);
            return NULL;
        }
    }
    int status =
        choice_of(&c, what, DT_INDEXING_ALONG, DT_ERROR_RUNTIME, x, dim, index);
    return write_out(args, adds ? "ScatterAddBackward0" : "ScatterBackward0", op,
                     in_place, &c, value, status);
}

#define SCATTER(name, in_place)                                                        \
    DT_PUBLIC(name, #name "(input: Tensor, dim: int, index: Tensor, src: Value, *, "   \
                          "reduce: str = None) | " #name                               \
                          "(input: Tensor, dim: int, index: Tensor, value: Value, *, " \
                          "reduce: str = None)")                                       \
    {                                                                                  \
        return scatter(args, #name, false, in_place);                                  \
    }                                                                                  \
    DT_PUBLIC(scatter_add##in_place##_,                                                \
              "scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor)")      \
    {                                                                                  \
        return scatter(args, "scatter_add", true, in_place);                           \
    }
SCATTER(scatter, 0)
SCATTER(scatter_, 1)

/* index_add, index_copy and index_fill: along one dimension. */
static PyObject *index_write(const dt_args *args, const char *what, const char *node,
                             dt_index_op op, bool in_place)
{
    dt_tensor *x, *index, *source = NULL, row, scaled;
    int64_t dim;
    dt_arg value;
    dt_indexing c;
    bool fills = !strcmp(what, "index_fill");
    scaled.storage = NULL;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_tensor(args, 2, &index) < 0)
        return NULL;
    if (fills ? dt_take_value(args, 3, &value) < 0
              : dt_take_tensor(args, 3, &source) < 0)
        return NULL;
    if (!fills)
        value = dt_arg_tensor(source);
    as_row(&row, index);
    int status = choice_of(&c, what, DT_INDEXING_INDEX, DT_ERROR_INDEX, x, dim, &row);
    for (int d = 0; !status && source && (d < x->ndim || d < source->ndim); d++) {
        int64_t wanted = d == c.dims[0] ? row.numel : d < x->ndim ? x->shape[d] : -1;
        if (source->ndim != x->ndim || source->shape[d] != wanted) {
            char have[DT_SHAPE_TEXT], want[DT_SHAPE_TEXT];
            status = dt_fail(
                DT_ERROR_RUNTIME,
                "%s: the source has shape %s and the tensor %s; give a source of the "
                "tensor's sizes, but as long as the index in dimension %d",
                what, dt_shape_text(source->ndim, source->shape, have, sizeof have),
                dt_shape_text(x->ndim, x->shape, want, sizeof want), c.dims[0]);
        }
    }
    if (!status && op == DT_INDEX_ADD && dt_given(args, 4)) {
        dt_scalar alpha;
        if (dt_take_number(args, 4, &alpha) < 0) {
            dt_tensor_clear(&row);
            return NULL;
        }
        if (dt_scalar_as_double(alpha) != 1) {
            status =
                dt_recorded_binary(DT_BINARY_mul, &scaled, value, dt_arg_scalar(alpha));
            value = dt_arg_tensor(&scaled);
        }
    }
    PyObject *made = write_out(args, node, op, in_place, &c, value, status);
    dt_tensor_clear(&scaled);
    dt_tensor_clear(&row);
    return made;
}

#define INDEX_WRITE(name, base, node, op, last, in_place)                              \
    DT_PUBLIC(name, #name "(input: Tensor, dim: int, index: Tensor, " last ")")        \
    {                                                                                  \
        return index_write(args, #base, node, op, in_place);                           \
    }
#define BOTH_WAYS(name, node, op, last)                                                \
    INDEX_WRITE(name, name, node, op, last, false)                                     \
    INDEX_WRITE(name##_, name, node, op, last, true)
BOTH_WAYS(index_add, "IndexAddBackward0", DT_INDEX_ADD,
          "source: Tensor, *, alpha: Number = 1")
BOTH_WAYS(index_copy, "IndexCopyBackward0", DT_INDEX_WRITE, "source: Tensor")
BOTH_WAYS(index_fill, "IndexFillBackward0", DT_INDEX_WRITE, "value: Value")

/* --- masks --- */

/* where(condition) alone: as nonzero(as_tuple=True). */
DT_PUBLIC(where, "where(condition: Tensor, input: Value, other: Value, *, "
                 "out: Tensor = None) | where(condition: Tensor)")
{
    dt_tensor *condition;
    dt_arg a, b;
    if (dt_take_tensor(args, 0, &condition) < 0)
        return NULL;
    if (args->form == 1)
        return dt_nonzero_tuple(condition);
    if (dt_take_value(args, 1, &a) < 0 || dt_take_value(args, 2, &b) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, condition->numel > DT_LONG_NUMEL,
           dt_recorded_where(&out->tensor, condition, a, b));
    return dt_finish(args, 3, out, status);
}

/* x.where(condition, other) */
DT_PUBLIC(where_of, "where(input: Tensor, condition: Tensor, other: Value)")
{
    dt_tensor *x, *condition;
    dt_arg b;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &condition) < 0 ||
        dt_take_value(args, 2, &b) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, condition->numel > DT_LONG_NUMEL,
           dt_recorded_where(&out->tensor, condition, dt_arg_tensor(x), b));
    return dt_tensor_result(out, status);
}

static int check_mask(const char *what, const dt_tensor *mask)
{
    return mask->dtype == DT_BOOL
               ? 0
               : dt_fail(DT_ERROR_RUNTIME,
                         "%s: the mask is of type %s; give a tensor of bools, such as "
                         "x > 0",
                         what, dt_dtype_name((dt_dtype)mask->dtype));
}

/* x with value where mask holds, in the type of x, whatever type the value has. */
static int fill_masked(dt_tensor *out, const dt_tensor *x, const dt_tensor *mask,
                       dt_arg value)
{
    dt_tensor own;
    own.storage = out->storage = NULL;
    if (check_mask("masked_fill", mask))
        return -1;
    if (value.tensor && value.tensor->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "masked_fill: the value has %d dimensions; give a number or a "
                       "tensor without dimensions, or use where()",
                       value.tensor->ndim);
    int status = 0;
    if (value.tensor)
        status =
            dt_recorded_to(&own, value.tensor, (dt_dtype)x->dtype, dt_tensor_device(x));
    else
        status = dt_full("masked_fill", &own, (dt_dtype)x->dtype, 0, NULL,
                         dt_tensor_device(x), value.scalar);
    if (!status)
        status = dt_recorded_where(out, mask, dt_arg_tensor(&own), dt_arg_tensor(x));
    dt_tensor_clear(&own);
    return status;
}

DT_PUBLIC(masked_fill, "masked_fill(input: Tensor, mask: Tensor, value: Value)")
{
    dt_tensor *x, *mask;
    dt_arg value;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &mask) < 0 ||
        dt_take_value(args, 2, &value) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL, fill_masked(&out->tensor, x, mask, value));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(masked_fill_, "masked_fill_(input: Tensor, mask: Tensor, value: Value)")
{
    dt_tensor *x, *mask, made;
    dt_arg value;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &mask) < 0 ||
        dt_take_value(args, 2, &value) < 0)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL, fill_masked(&made, x, mask, value));
    if (!status) {
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_copy_into("masked_fill_", x, &made));
        dt_tensor_clear(&made);
    }
    return status ? dt_raise() : Py_NewRef(args->slots[0]);
}

DT_PUBLIC(nonzero, "nonzero(input: Tensor, *, as_tuple: bool = False)")
{
    dt_tensor *x;
    bool as_tuple;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_bool(args, 1, &as_tuple) < 0)
        return NULL;
    if (as_tuple)
        return dt_nonzero_tuple(x);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL || !dt_device_is_cpu(dt_tensor_device(x)),
           dt_nonzero(&out->tensor, x));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(index_put_in_place, "index_put_(input: Tensor, indices: Any, values: Tensor, "
                              "accumulate: bool = False)")
{
    dt_tensor *x, *values;
    bool accumulate;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 2, &values) < 0 ||
        dt_take_bool(args, 3, &accumulate) < 0 ||
        dt_tensor_index_put(args->slots[0], args->slots[1], args->slots[2],
                            accumulate) < 0)
        return NULL;
    return Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    DT_BOTH(
        index_select, "index_select",
        "The elements at the positions index along a dimension. index: a tensor of\n"
        "integers of one dimension. IndexError where one is out of range; on a GPU\n"
        "the next wait raises AcceleratorError instead, and the device works on."),
    DT_BOTH(
        gather, "gather",
        "out[i, j] = input[index[i, j], j] for dim 0, and so on: of index's shape.\n"
        "RuntimeError where an index is out of range; on a GPU the next wait raises\n"
        "AcceleratorError."),
    DT_BOTH(
        take, "take",
        "The elements at positions counted in row-major order; negative ones count\n"
        "from the end. IndexError where one is out of range."),
    DT_BOTH(
        scatter, "scatter",
        "A copy of input with out[index[i, j], j] = src[i, j] for dim 0, and so on.\n"
        "src may be a number; reduce: 'add' or 'multiply' instead of writing."),
    DT_METHOD(scatter_, "scatter_", "scatter() in place."),
    DT_BOTH(scatter_add0_, "scatter_add",
            "A copy of input with src added: out[index[i, j], j] += src[i, j] for dim "
            "0.\nOn a GPU, floats of one place are added in no certain order."),
    DT_METHOD(scatter_add1_, "scatter_add_", "scatter_add() in place."),
    DT_BOTH(
        index_add, "index_add",
        "A copy of input to whose parts at index along dim the parts of source are\n"
        "added, times alpha."),
    DT_METHOD(index_add_, "index_add_", "index_add() in place."),
    DT_BOTH(index_copy, "index_copy",
            "A copy of input whose parts at index along dim are the parts of source."),
    DT_METHOD(index_copy_, "index_copy_", "index_copy() in place."),
    DT_BOTH(index_fill, "index_fill",
            "A copy of input whose parts at index along dim are value."),
    DT_METHOD(index_fill_, "index_fill_", "index_fill() in place."),
    DT_FUNCTION(where, "where",
                "input where condition holds, else other, broadcast. With condition "
                "alone:\nits nonzero(as_tuple=True).\n\n"
                "RuntimeError where the shapes do not broadcast."),
    DT_METHOD(where_of, "where",
              "self where condition holds, else other.\n\n"
              "RuntimeError where the shapes do not broadcast."),
    DT_BOTH(masked_fill, "masked_fill",
            "A copy with value wherever mask holds.\n\n"
            "mask: bools that broadcast with input (RuntimeError where not); value: "
            "a number or a Tensor without dimensions."),
    DT_METHOD(masked_fill_, "masked_fill_", "Write value wherever mask holds."),
    DT_BOTH(
        nonzero, "nonzero",
        "The positions of elements that are not 0: int64 of shape [n, input.ndim];\n"
        "with as_tuple one tensor for each dimension. Waits for a GPU."),
    DT_BOTH(index_put_in_place, "index_put_", "In place: index_put."),
};

int dt_setup_indexing(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
