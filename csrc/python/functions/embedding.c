/* Rows chosen by number, and numbers as rows of ones and zeros. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/reduce.h"

static int check_embedding(const dt_tensor *weight, const dt_tensor *indices)
{
    char text[DT_SHAPE_TEXT];
    if (weight->ndim != 2)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "embedding: 'weight' must be 2-D, a row for each number, and has "
            "shape %s; reshape it",
            dt_shape_text(weight->ndim, weight->shape, text, sizeof text));
    if (indices->dtype != DT_INT64 && indices->dtype != DT_INT32)
        return dt_fail(DT_ERROR_RUNTIME,
                       "embedding: 'indices' holds %s, and int64 or int32 is expected; "
                       "use .long()",
                       dt_dtype_name((dt_dtype)indices->dtype));
    return dt_check_same_device("embedding", "weight", weight, "indices", indices);
}

DT_PUBLIC(embedding,
          "embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, "
          "scale_grad_by_freq: bool = False, sparse: bool = False)")
{
    dt_tensor *weight, *indices;
    int64_t padding;
    bool by_frequency, sparse;
    if (dt_take_tensor(args, 0, &weight) < 0 || dt_take_tensor(args, 1, &indices) < 0 ||
        dt_take_int(args, 2, &padding) < 0 ||
        dt_take_bool(args, 3, &by_frequency) < 0 || dt_take_bool(args, 4, &sparse) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status = check_embedding(weight, indices);
    if (!status && padding >= weight->shape[0])
        padding = -1;
    if (!status)
        DT_RUN(status,
               indices->numel > 256 ||
                   indices->numel * weight->shape[1] > DT_LONG_NUMEL,
               dt_recorded_embedding(&out->tensor, weight, indices, padding,
                                     by_frequency));
    return dt_tensor_result(out, status);
}

/* --- one_hot --- */

/* The greatest of x plus 1. Waits for a GPU. */
static int count_classes(const dt_tensor *x, int64_t *out)
{
    dt_tensor greatest;
    dt_scalar value;
    if (!x->numel)
        return dt_fail(DT_ERROR_RUNTIME,
                       "one_hot: no elements tell how many classes there are; give "
                       "num_classes");
    if (dt_reduce(DT_REDUCE_amax, &greatest, x, 0, NULL, false, -1, 0))
        return -1;
    int status = dt_item("one_hot", &greatest, &value);
    dt_tensor_clear(&greatest);
    if (!status)
        *out = value.i + 1;
    return status;
}

static int one_hot(dt_tensor *out, const dt_tensor *x, int64_t classes)
{
    dt_tensor column, one;
    dt_indexing choice = {
        .what = "one_hot",
        .code = DT_ERROR_RUNTIME,
        .form = DT_INDEXING_ALONG,
        .count = 1,
        .dims = {x->ndim},
        .indices = {&column},
    };
    int64_t shape[DT_MAX_NDIM];
    dt_device device = dt_tensor_device(x);
    out->storage = column.storage = one.storage = NULL;
    if (x->dtype != DT_INT64)
        return dt_fail(DT_ERROR_RUNTIME,
                       "one_hot is only applicable to index tensor of type LongTensor "
                       "(int64), and this one holds %s; use .long()",
                       dt_dtype_name((dt_dtype)x->dtype));
    if (x->ndim == DT_MAX_NDIM)
        return dt_fail(DT_ERROR_RUNTIME,
                       "one_hot: the tensor has %d dimensions, and the result would "
                       "have one more than the most there may be; flatten() it",
                       x->ndim);
    if (classes == -1 && count_classes(x, &classes))
        return -1;
    if (classes <= 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "one_hot: there are %lld classes (num_classes, or the greatest "
                       "element and 1); give num_classes of 1 or more and elements "
                       "from 0",
                       (long long)classes);
    for (int d = 0; d < x->ndim; d++)
        shape[d] = x->shape[d];
    shape[x->ndim] = classes;
    int status = -1;
    if (dt_full("one_hot", out, DT_INT64, x->ndim + 1, shape, device,
                dt_scalar_int(0)) ||
        dt_full("one_hot", &one, DT_INT64, 0, NULL, device, dt_scalar_int(1)) ||
        dt_view_unsqueeze(&column, x, -1))
        goto done;
    status = dt_index_write(DT_INDEX_WRITE, out, &choice, &one);
done:
    if (status)
        dt_tensor_clear(out);
    dt_tensor_clear(&column);
    dt_tensor_clear(&one);
    return status;
}

DT_PUBLIC(one_hot, "one_hot(tensor: Tensor, num_classes: int = -1)")
{
    dt_tensor *x;
    int64_t classes;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &classes) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, x->numel > 256 || classes == -1, one_hot(&out->tensor, x, classes));
    return dt_tensor_result(out, status);
}

static const dt_function rows[] = {
    DT_FUNCTION(
        embedding, "embedding",
        "The rows of weight (n, size) at indices (any shape, int64 or int32):\n"
        "(*indices.shape, size). The gradient of row padding_idx is zero; with\n"
        "scale_grad_by_freq each row's is divided by how often it was chosen. sparse\n"
        "changes nothing: gradients are dense. IndexError where an index is out of\n"
        "range; on a GPU the next wait raises AcceleratorError, and the device works\n"
        "on."),
    DT_FUNCTION(one_hot, "_one_hot",
                "A new last dimension of num_classes (-1: as many as the greatest\n"
                "element asks for), 1 at each element's number and 0 elsewhere."),
};

int dt_setup_embedding(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
