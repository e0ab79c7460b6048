/* Functions that put elements in order, and those that search in order. */
#include <math.h>
#include <string.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/results.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/sort.h"

/* --- sorting --- */

static PyObject *sorted_pair(const dt_args *args, dt_pair_type type, const char *node,
                             int out_at, dt_tensor *x, int64_t k, int64_t dim,
                             bool descending)
{
    dt_tensor_object *values = dt_tensor_object_new();
    dt_tensor_object *indices = dt_tensor_object_new();
    int status = 0;
    if (values && indices)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_sort(args->signature->name, node, &values->tensor,
                                &indices->tensor, x, k, dim, descending));
    return dt_finish_pair(args, out_at, type, values, indices, status);
}

/* Forms: dim, descending; or *, stable, dim, descending. Every sort is stable. */
DT_PUBLIC(sort, "sort(input: Tensor, dim: int = -1, descending: bool = False, *, "
                "stable: bool = False, out: Any = None)")
{
    dt_tensor *x;
    int64_t dim;
    bool descending, stable;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_bool(args, 2, &descending) < 0 ||
        (dt_given(args, 3) && dt_take_bool(args, 3, &stable) < 0))
        return NULL;
    return sorted_pair(args, DT_RESULT_sort, "SortBackward0", 4, x, -1, dim,
                       descending);
}

DT_PUBLIC(argsort, "argsort(input: Tensor, dim: int = -1, descending: bool = False, "
                   "stable: bool = False, *, out: Tensor = None)")
{
    dt_tensor *x;
    int64_t dim;
    bool descending, stable;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &dim) < 0 ||
        dt_take_bool(args, 2, &descending) < 0 || dt_take_bool(args, 3, &stable) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_sort("argsort", NULL, &out->tensor, x, -1, dim, descending));
    return dt_finish(args, 4, out, status);
}

DT_PUBLIC(msort, "msort(input: Tensor, *, out: Tensor = None)")
{
    dt_tensor *x, indices;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_sort("msort", "SortBackward0", &out->tensor, &indices, x, -1, 0,
                            false));
    if (!status)
        dt_tensor_clear(&indices);
    return dt_finish(args, 1, out, status);
}

DT_PUBLIC(topk, "topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, "
                "sorted: bool = True, *, out: Any = None)")
{
    dt_tensor *x;
    int64_t k, dim;
    bool largest, in_order;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &k) < 0 ||
        dt_take_int(args, 2, &dim) < 0 || dt_take_bool(args, 3, &largest) < 0 ||
        dt_take_bool(args, 4, &in_order) < 0)
        return NULL;
    /* -1 stands for all below; out of range is what it is. */
    return sorted_pair(args, DT_RESULT_topk, "TopkBackward0", 5, x, k == -1 ? -2 : k,
                       dim, largest);
}

/* --- one of each row --- */

DT_PUBLIC(kthvalue, "kthvalue(input: Tensor, k: int, dim: int = -1, "
                    "keepdim: bool = False, *, out: Any = None)")
{
    dt_tensor *x;
    int64_t k, dim;
    bool keepdim;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &k) < 0 ||
        dt_take_int(args, 2, &dim) < 0 || dt_take_bool(args, 3, &keepdim) < 0)
        return NULL;
    dt_tensor_object *values = dt_tensor_object_new();
    dt_tensor_object *indices = dt_tensor_object_new();
    int status = 0;
    if (values && indices)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_kth(&values->tensor, &indices->tensor, x, k, dim, keepdim));
    return dt_finish_pair(args, 4, DT_RESULT_kthvalue, values, indices, status);
}

/* The median of all elements; NaN, or the least integer, where there is none. */
static int median_of_all(const char *what, const char *node, dt_tensor *out,
                         const dt_tensor *x, bool skips)
{
    dt_tensor flat, indices;
    int64_t numel = x->numel;
    if (!numel) {
        bool floats = dt_dtype_is_float((dt_dtype)x->dtype);
        int bits = 8 * (int)dt_dtype_size((dt_dtype)x->dtype);
        int64_t least = x->dtype == DT_UINT8 || x->dtype == DT_BOOL
                            ? 0
                            : (int64_t)(~(uint64_t)0 << (bits - 1));
        return dt_full(what, out, (dt_dtype)x->dtype, 0, NULL, dt_tensor_device(x),
                       floats ? dt_scalar_float((double)NAN) : dt_scalar_int(least));
    }
    if (dt_recorded_reshape(&flat, x, 1, &numel) < 0)
        return -1;
    int status = dt_recorded_median(what, node, out, &indices, &flat, 0, false, skips);
    if (!status)
        dt_tensor_clear(&indices);
    dt_tensor_clear(&flat);
    return status;
}

static PyObject *median_of(const dt_args *args, dt_pair_type type,
                           const char *const *nodes, bool skips)
{
    dt_tensor *x;
    int64_t dim;
    bool keepdim;
    int status = 0;
    const char *what = args->signature->name;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *values = dt_tensor_object_new();
    if (!values)
        return NULL;
    if (args->form == 0) {
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               median_of_all(what, nodes[0], &values->tensor, x, skips));
        return dt_finish(args, 1, values, status);
    }
    if (dt_take_int(args, 1, &dim) < 0 || dt_take_bool(args, 2, &keepdim) < 0) {
        Py_DECREF((PyObject *)values);
        return NULL;
    }
    dt_tensor_object *indices = dt_tensor_object_new();
    if (indices)
        DT_RUN(status, x->numel > DT_LONG_NUMEL,
               dt_recorded_median(what, nodes[1], &values->tensor, &indices->tensor, x,
                                  dim, keepdim, skips));
    return dt_finish_pair(args, 3, type, values, indices, status);
}

#define MEDIAN(name, node, skips)                                                      \
    DT_PUBLIC(name, #name "(input: Tensor, *, out: Tensor = None) | " #name            \
                          "(input: Tensor, dim: int, keepdim: bool = False, *, "       \
                          "out: Any = None)")                                          \
    {                                                                                  \
        static const char *const nodes[] = {node "0", node "1"};                       \
        return median_of(args, DT_RESULT_##name, nodes, skips);                        \
    }
MEDIAN(median, "MedianBackward", false)
MEDIAN(nanmedian, "NanmedianBackward", true)

/* --- what differs --- */

static PyObject *unique_of(const dt_args *args, bool wants_inverse, bool wants_counts,
                           int dim_at, bool consecutive)
{
    dt_tensor *x;
    int64_t dim = 0;
    bool has_dim = dt_given(args, dim_at);
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (has_dim && dt_take_int(args, dim_at, &dim) < 0))
        return NULL;
    dt_tensor_object *parts[3] = {NULL, NULL, NULL};
    bool wanted[3] = {true, wants_inverse, wants_counts};
    PyObject *result = NULL;
    Py_ssize_t count = 0;
    for (int i = 0; i < 3; i++)
        if (wanted[i] && !(parts[i] = dt_tensor_object_new()))
            goto done;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL || !dt_device_is_cpu(dt_tensor_device(x)),
           dt_recorded_unique(args->signature->name, &parts[0]->tensor,
                              parts[1] ? &parts[1]->tensor : NULL,
                              parts[2] ? &parts[2]->tensor : NULL, x, has_dim, dim,
                              consecutive));
    if (status < 0) {
        dt_raise();
        goto done;
    }
    if (!wants_inverse && !wants_counts) {
        result = Py_NewRef((PyObject *)parts[0]);
        goto done;
    }
    result = PyTuple_New(1 + wants_inverse + wants_counts);
    for (int i = 0; i < 3 && result; i++)
        if (parts[i])
            PyTuple_SET_ITEM(result, count++, Py_NewRef((PyObject *)parts[i]));
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF((PyObject *)parts[i]);
    return result;
}

DT_PUBLIC(unique,
          "unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, "
          "return_counts: bool = False, dim: int = None)")
{
    bool in_order, inverse, counts;
    if (dt_take_bool(args, 1, &in_order) < 0 || dt_take_bool(args, 2, &inverse) < 0 ||
        dt_take_bool(args, 3, &counts) < 0)
        return NULL;
    return unique_of(args, inverse, counts, 4, false);
}

DT_PUBLIC(unique_consecutive,
          "unique_consecutive(input: Tensor, return_inverse: bool = False, "
          "return_counts: bool = False, dim: int = None)")
{
    bool inverse, counts;
    if (dt_take_bool(args, 1, &inverse) < 0 || dt_take_bool(args, 2, &counts) < 0)
        return NULL;
    return unique_of(args, inverse, counts, 3, true);
}

/* --- searching --- */

/* The argument at i as a tensor; a number becomes one without dimensions, of the
 * sequence's type where that holds it. The caller clears *own. */
static int take_values(const dt_args *args, int i, const dt_tensor *sequence,
                       dt_tensor *own, const dt_tensor **out)
{
    dt_arg value;
    own->storage = NULL;
    if (dt_take_value(args, i, &value) < 0)
        return -1;
    *out = value.tensor ? value.tensor : own;
    if (value.tensor)
        return 0;
    dt_dtype dtype = dt_dtype_is_float((dt_dtype)sequence->dtype)
                         ? (dt_dtype)sequence->dtype
                     : value.scalar.kind == DT_KIND_FLOAT ? DT_FLOAT64
                                                          : DT_INT64;
    return dt_full(args->signature->name, own, dtype, 0, NULL,
                   dt_tensor_device(sequence), value.scalar) < 0
               ? dt_raise_status()
               : 0;
}

static PyObject *search(const dt_args *args, const dt_tensor *sequence,
                        const dt_tensor *values, const dt_tensor *sorter, bool right,
                        bool narrow, int out_at)
{
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, values->numel > DT_LONG_NUMEL / 8,
           dt_search_in(args->signature->name, &out->tensor, sequence, values, sorter,
                        right));
    if (!status && narrow) {
        dt_tensor wide = out->tensor;
        out->tensor.storage = NULL;
        status = dt_to(&out->tensor, &wide, DT_INT32, dt_tensor_device(&wide));
        dt_tensor_clear(&wide);
    }
    return dt_finish(args, out_at, out, status);
}

DT_PUBLIC(searchsorted,
          "searchsorted(sorted_sequence: Tensor, input: Value, *, "
          "out_int32: bool = False, right: bool = False, side: str = None, "
          "sorter: Tensor = None, out: Tensor = None)")
{
    dt_tensor *sequence, *sorter = NULL, own;
    const dt_tensor *values;
    bool narrow, right;
    const char *side = NULL;
    if (dt_take_tensor(args, 0, &sequence) < 0 || dt_take_bool(args, 2, &narrow) < 0 ||
        dt_take_bool(args, 3, &right) < 0 ||
        (dt_given(args, 4) && dt_take_str(args, 4, &side) < 0) ||
        (dt_given(args, 5) && dt_take_tensor(args, 5, &sorter) < 0))
        return NULL;
    if (side && strcmp(side, "left") && strcmp(side, "right")) {
        PyErr_Format(PyExc_RuntimeError,
                     "searchsorted(): side is '%s'; give 'left' or 'right'", side);
        return NULL;
    }
    if (side && !strcmp(side, "left") && right) {
        PyErr_SetString(PyExc_RuntimeError,
                        "searchsorted(): side='left' and right=True contradict each "
                        "other; give one of them");
        return NULL;
    }
    if (take_values(args, 1, sequence, &own, &values) < 0)
        return NULL;
    PyObject *found = search(args, sequence, values, sorter,
                             right || (side && !strcmp(side, "right")), narrow, 6);
    dt_tensor_clear(&own);
    return found;
}

DT_PUBLIC(bucketize,
          "bucketize(input: Value, boundaries: Tensor, *, "
          "out_int32: bool = False, right: bool = False, out: Tensor = None)")
{
    dt_tensor *boundaries, own;
    const dt_tensor *values;
    bool narrow, right;
    if (dt_take_tensor(args, 1, &boundaries) < 0 ||
        dt_take_bool(args, 2, &narrow) < 0 || dt_take_bool(args, 3, &right) < 0)
        return NULL;
    if (boundaries->ndim != 1) {
        PyErr_Format(PyExc_RuntimeError,
                     "bucketize(): the boundaries have %d dimensions; give them as one",
                     (int)boundaries->ndim);
        return NULL;
    }
    if (take_values(args, 0, boundaries, &own, &values) < 0)
        return NULL;
    PyObject *found = search(args, boundaries, values, NULL, right, narrow, 4);
    dt_tensor_clear(&own);
    return found;
}

static const dt_function rows[] = {
    DT_BOTH(sort, "sort",
            "The elements along a dimension in order, and where they were: a tuple\n"
            "(values, indices), both of input's shape. Equal elements always stay as\n"
            "they were. A NaN is greater than all others: last, or first where\n"
            "descending. IndexError where there is no such dimension."),
    DT_BOTH(
        argsort, "argsort",
        "Where the elements along a dimension are in order: the indices of sort()."),
    DT_BOTH(msort, "msort", "The elements along dimension 0 in order."),
    DT_BOTH(topk, "topk",
            "The k greatest (largest=False: least) elements along a dimension, in\n"
            "order, and where they are: a tuple (values, indices). Of equal elements\n"
            "the first are taken. A NaN is the greatest. RuntimeError where there are\n"
            "fewer than k."),
    DT_BOTH(kthvalue, "kthvalue",
            "The k-th least element along a dimension, counted from 1, and where it\n"
            "is: a tuple (values, indices)."),
    DT_BOTH(median, "median",
            "The median of all elements; along dim a tuple (values, indices). Of an\n"
            "even number the lower of the two in the middle. NaN where one is there."),
    DT_BOTH(nanmedian, "nanmedian",
            "The median of the elements that are no NaN; along dim a tuple (values,\n"
            "indices). NaN where there is nothing else."),
    DT_BOTH(
        unique, "unique",
        "The elements that differ, in order, of one dimension; with dim, the parts\n"
        "along it that differ. With return_inverse also where each element is\n"
        "among them, with return_counts also how often each is there. NaNs differ\n"
        "from each other. Waits for a GPU."),
    DT_BOTH(unique_consecutive, "unique_consecutive",
            "The elements that differ from the one before; otherwise as unique()."),
    DT_FUNCTION(
        searchsorted, "searchsorted",
        "Where each value of input goes in a sequence in order, so that it stays in\n"
        "order: before elements equal to it, or with right=True (side='right') behind\n"
        "them. sorted_sequence: of one dimension, or of input's sizes but in the\n"
        "last. sorter: what argsort() gave, where the sequence is not in order.\n"
        "int64 of input's shape; with out_int32, int32."),
    DT_BOTH(bucketize, "bucketize",
            "Which interval between boundaries, of one dimension and in order, each\n"
            "element is in: the number of boundaries below it, or with right=True\n"
            "below or equal to it. int64 of input's shape; with out_int32, int32."),
};

int dt_setup_sorting(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
