/* Embeddings and one-hot vectors: rows chosen by index, and indices as rows. */
#include <inttypes.h>
#include <string.h>

#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

int dt_embedding_forward(dt_call *c)
{
    const dt_tensor *weight = c->args[0].tensor, *indices = c->args[1].tensor;
    char text[DT_SHAPE_TEXT];
    if (weight->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "embedding: 'weight' must be 2-D, a row for each index, and has "
                       "shape %s; reshape it",
                       dt_shape_text(weight->ndim, weight->shape, text, sizeof text));
    if (indices->dtype != DT_INT64 && indices->dtype != DT_INT32)
        return dt_fail(DT_ERROR_RUNTIME,
                       "embedding: 'indices' holds %s, and int64 or int32 is expected; "
                       "use .long()",
                       dt_dtype_name((dt_dtype)indices->dtype));
    dt_indexing indexing = dt_indexing_along(c->name, DT_INDEXING_ADVANCED, 0, indices);
    return dt_index_read(c->out[0], weight, &indexing);
}

int dt_embedding_dense_backward_forward(dt_call *c)
{
    const dt_tensor *grad = c->args[0].tensor;
    dt_tensor *out = c->out[0];
    DT_LOCAL(row);
    int64_t padding = c->args[3].i;
    int64_t shape[] = {c->args[2].i, grad->shape[grad->ndim - 1]};
    dt_indexing indexing =
        dt_indexing_along(c->name, DT_INDEXING_ADVANCED, 0, c->args[1].tensor);
    if (dt_full(c->name, out, (dt_dtype)grad->dtype, 2, shape, dt_tensor_device(grad),
                dt_scalar_float(0)))
        return -1;
    if (dt_index_write(DT_INDEX_ADD, out, &indexing, grad))
        return -1;
    if (padding < 0 || padding >= shape[0])
        return 0;
    return dt_view_select(&row, out, 0, padding)
               ? -1
               : dt_fill_into(c->name, &row, dt_scalar_float(0));
}

/* The largest element of x plus 1. Synchronizes with a GPU. */
static int count_classes(const dt_tensor *x, int64_t *out)
{
    DT_LOCAL(largest);
    dt_scalar value;
    if (!x->numel)
        return dt_fail(DT_ERROR_RUNTIME,
                       "one_hot: no elements tell how many classes there are; give "
                       "num_classes");
    if (dt_reduce(DT_REDUCE_amax, &largest, x, 0, NULL, false, -1, 0) ||
        dt_item("one_hot", &largest, &value))
        return -1;
    *out = value.i + 1;
    return 0;
}

int dt_one_hot_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t classes = c->args[1].i, shape[DT_MAX_NDIM];
    DT_LOCAL(column);
    DT_LOCAL(one);
    dt_indexing indexing =
        dt_indexing_along("one_hot", DT_INDEXING_GATHER, x->ndim, &column);
    dt_device device = dt_tensor_device(x);
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
                       "one_hot: there are %" PRId64 " classes (num_classes, or the "
                       "largest element and 1); give num_classes of 1 or more and "
                       "elements from 0",
                       classes);
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    shape[x->ndim] = classes;
    return dt_full("one_hot", c->out[0], DT_INT64, x->ndim + 1, shape, device,
                   dt_scalar_int(0)) ||
                   dt_full("one_hot", &one, DT_INT64, 0, NULL, device,
                           dt_scalar_int(1)) ||
                   dt_view_unsqueeze(&column, x, -1) ||
                   dt_index_write(DT_INDEX_WRITE, c->out[0], &indexing, &one)
               ? -1
               : 0;
}
