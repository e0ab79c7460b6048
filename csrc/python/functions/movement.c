/* Elements in another order, or several times, in new memory; diagonals. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/movement.h"

/* --- other orders --- */

static PyObject *flip(const dt_args *args, int count, const int64_t *dims, int least)
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    if (x->ndim < least) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s(): the Tensor has %d dimension%s; give one of at least %d",
                     args->signature->name, x->ndim, x->ndim == 1 ? "" : "s", least);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_flip(&out->tensor, x, count, dims));
    return dt_tensor_result(out, status);
}

static PyObject *flip_given(const dt_args *args)
{
    int count;
    int64_t dims[DT_MAX_NDIM];
    if (dt_take_sizes(args, 1, &count, dims) < 0)
        return NULL;
    return flip(args, count, dims, 0);
}

DT_PUBLIC(flip_dims, "flip(input: Tensor, dims: Sizes)")
{
    return flip_given(args);
}
DT_PUBLIC(flip_of, "flip(input: Tensor, *dims: Sizes)")
{
    return flip_given(args);
}
DT_PUBLIC(fliplr, "fliplr(input: Tensor)")
{
    const int64_t dim = 1;
    return flip(args, 1, &dim, 2);
}
DT_PUBLIC(flipud, "flipud(input: Tensor)")
{
    const int64_t dim = 0;
    return flip(args, 1, &dim, 1);
}

DT_PUBLIC(roll, "roll(input: Tensor, shifts: Dims, dims: Dims = None)")
{
    dt_tensor *x;
    int nshifts, ndims;
    int64_t shifts[DT_MAX_NDIM], dims[DT_MAX_NDIM];
    if (dt_take_tensor(args, 0, &x) < 0 ||
        dt_take_dims(args, 1, &nshifts, shifts) < 0 ||
        dt_take_dims(args, 2, &ndims, dims) < 0)
        return NULL;
    if (nshifts < 0) {
        dt_argument_error(args, 1);
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_roll(&out->tensor, x, nshifts, shifts, ndims < 0 ? 0 : ndims,
                            dims));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(rot90, "rot90(input: Tensor, k: int = 1, dims: Sizes = None)")
{
    dt_tensor *x;
    int count = 2;
    int64_t k, dims[DT_MAX_NDIM] = {0, 1};
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &k) < 0 ||
        (dt_given(args, 2) && dt_take_sizes(args, 2, &count, dims) < 0))
        return NULL;
    if (count != 2) {
        PyErr_Format(PyExc_RuntimeError,
                     "rot90(): dims names %d dimension%s; give 2, from one towards the "
                     "other",
                     count, count == 1 ? "" : "s");
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > DT_LONG_NUMEL,
           dt_recorded_rot90(&out->tensor, x, k, dims));
    return dt_tensor_result(out, status);
}

/* --- several times --- */

/* `extends`: fewer repeats than dimensions stand for the last ones. */
static PyObject *repeat(const dt_args *args, bool extends)
{
    dt_tensor *x;
    int count;
    int64_t repeats[DT_MAX_NDIM];
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_sizes(args, 1, &count, repeats) < 0)
        return NULL;
    if (extends && count < x->ndim) {
        int more = x->ndim - count;
        for (int d = x->ndim - 1; d >= 0; d--)
            repeats[d] = d < more ? 1 : repeats[d - more];
        count = x->ndim;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    double numel = (double)x->numel;
    for (int d = 0; d < count; d++)
        numel *= (double)repeats[d];
    int status;
    DT_RUN(status, numel > DT_LONG_NUMEL,
           dt_recorded_repeat(args->signature->name, &out->tensor, x, count, repeats));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(repeat_of, "repeat(input: Tensor, *repeats: Sizes)")
{
    return repeat(args, false);
}
DT_PUBLIC(tile_dims, "tile(input: Tensor, dims: Sizes)")
{
    return repeat(args, true);
}
DT_PUBLIC(tile_of, "tile(input: Tensor, *dims: Sizes)")
{
    return repeat(args, true);
}

/* x flattened where no dimension is named; the caller clears *own. */
static const dt_tensor *row_of(dt_tensor *own, const dt_tensor *x, bool flat)
{
    own->storage = NULL;
    if (!flat)
        return x;
    return dt_recorded_flatten(own, x, 0, -1) < 0 ? NULL : own;
}

DT_PUBLIC(repeat_interleave,
          "repeat_interleave(input: Tensor, repeats: Tensor, dim: int = None, *, "
          "output_size: int = None) | "
          "repeat_interleave(input: Tensor, repeats: int, dim: int = None, *, "
          "output_size: int = None) | "
          "repeat_interleave(repeats: Tensor, *, output_size: int = None)")
{
    dt_tensor *x, *counts = NULL, own;
    int64_t repeats = 0, dim = 0, output_size = -1;
    bool alone = args->form == 2;
    int size_at = alone ? 1 : 3;
    if (dt_take_tensor(args, 0, &x) < 0 ||
        (dt_given(args, size_at) && dt_take_int(args, size_at, &output_size) < 0))
        return NULL;
    if (alone) {
        counts = x;
    } else if ((args->form == 0 ? dt_take_tensor(args, 1, &counts)
                                : dt_take_int(args, 1, &repeats)) < 0 ||
               (dt_given(args, 2) && dt_take_int(args, 2, &dim) < 0)) {
        return NULL;
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status = -1;
    own.storage = NULL;
    if (alone) {
        if (x->ndim != 1)
            status = dt_fail(DT_ERROR_RUNTIME,
                             "repeat_interleave: the repeats have %d dimensions; give "
                             "one, such as repeats.reshape(-1)",
                             x->ndim);
        else
            DT_RUN(status, true,
                   dt_repeat_index(&out->tensor, x, x->numel, output_size));
        return dt_tensor_result(out, status);
    }
    const dt_tensor *row = row_of(&own, x, !dt_given(args, 2));
    if (row && counts) {
        DT_RUN(status, true,
               dt_recorded_repeat_interleave_by(&out->tensor, row, counts, dim,
                                                output_size));
    } else if (row) {
        DT_RUN(status, (double)row->numel * (double)repeats > DT_LONG_NUMEL,
               dt_recorded_repeat_interleave(&out->tensor, row, repeats, dim));
        int at = (int)(dim < 0 ? dim + row->ndim : dim);
        if (!status && output_size >= 0 && out->tensor.shape[at] != output_size) {
            status = dt_fail(DT_ERROR_RUNTIME,
                             "repeat_interleave: output_size is %lld, and the repeats "
                             "make %lld; leave it out, or give that",
                             (long long)output_size, (long long)out->tensor.shape[at]);
            dt_tensor_clear(&out->tensor);
        }
    }
    dt_tensor_clear(&own);
    return dt_tensor_result(out, status);
}

/* --- diagonals --- */

DT_PUBLIC(diag, "diag(input: Tensor, diagonal: int = 0, *, out: Tensor = None)")
{
    dt_tensor *x;
    int64_t offset;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &offset) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->ndim == 1 && (double)x->numel * (double)x->numel > DT_LONG_NUMEL,
           dt_recorded_diag(&out->tensor, x, offset));
    return dt_finish(args, 2, out, status);
}

DT_PUBLIC(diag_embed, "diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, "
                      "dim2: int = -1)")
{
    dt_tensor *x;
    int64_t offset, dim1, dim2;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &offset) < 0 ||
        dt_take_int(args, 2, &dim1) < 0 || dt_take_int(args, 3, &dim2) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int64_t side = x->ndim ? x->shape[x->ndim - 1] : 1;
    int status;
    DT_RUN(status, (double)x->numel * (double)side > DT_LONG_NUMEL,
           dt_recorded_diag_embed("diag_embed", &out->tensor, x, offset, dim1, dim2));
    return dt_tensor_result(out, status);
}

DT_PUBLIC(diagflat, "diagflat(input: Tensor, offset: int = 0)")
{
    dt_tensor *x, own;
    int64_t offset;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &offset) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    const dt_tensor *row = row_of(&own, x, true);
    int status = -1;
    if (row)
        DT_RUN(status, (double)x->numel * (double)x->numel > DT_LONG_NUMEL,
               dt_recorded_diag_embed("diagflat", &out->tensor, row, offset, 0, 1));
    dt_tensor_clear(&own);
    return dt_tensor_result(out, status);
}

DT_PUBLIC(trace, "trace(input: Tensor)")
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out, dt_recorded_trace(&out->tensor, x));
}

static const dt_function rows[] = {
    DT_FUNCTION(flip_dims, "flip",
                "A copy with the elements backwards along each of dims."),
    DT_METHOD(flip_of, "flip",
              "A copy with the elements backwards along each of dims."),
    DT_BOTH(fliplr, "fliplr", "A copy backwards along dimension 1."),
    DT_BOTH(flipud, "flipud", "A copy backwards along dimension 0."),
    DT_BOTH(roll, "roll",
            "A copy moved on by shifts along dims; what leaves at the end comes in at\n"
            "the front. Without dims: as one row. One shift for each of dims."),
    DT_BOTH(rot90, "rot90",
            "A copy turned by k right angles in the plane of two dimensions, [0, 1]\n"
            "unless said, from the first towards the second."),
    DT_METHOD(repeat_of, "repeat",
              "Copies side by side: so many along each dimension, counted from the "
              "last;\nmore repeats than dimensions add dimensions in front."),
    DT_FUNCTION(tile_dims, "tile",
                "As Tensor.repeat; fewer repeats than dimensions stand for the last "
                "ones."),
    DT_METHOD(tile_of, "tile",
              "As repeat; fewer repeats than dimensions stand for the last ones."),
    DT_BOTH(
        repeat_interleave, "repeat_interleave",
        "Each element repeats times along dim, or, without dim, of the flattened\n"
        "Tensor. repeats: an int, or a Tensor of int32 or int64 with one for each\n"
        "element, which is read on the CPU, so that a GPU is waited for. Of repeats\n"
        "alone: the number i, repeats[i] times. output_size is only checked."),
    DT_BOTH(
        diag, "diag",
        "A square matrix with the vector input on its diagonal, or, of a matrix, a\n"
        "copy of its diagonal; above the main one for diagonal > 0."),
    DT_BOTH(diag_embed, "diag_embed",
            "Zeros with the last dimension of input on the diagonals of the new\n"
            "dimensions dim1 and dim2."),
    DT_BOTH(diagflat, "diagflat", "diag of the flattened Tensor."),
    DT_BOTH(trace, "trace",
            "The sum of the diagonal of a matrix; of integers in int64.\n\n"
            "RuntimeError for anything but a matrix."),
};

int dt_setup_rearrangements(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
