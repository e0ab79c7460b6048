#include "tensor/format.h"

int dt_format_check(const char *function, dt_format format, int ndim)
{
    int wanted = format == DT_FORMAT_CHANNELS ? 4 : 5;
    if (format == DT_FORMAT_PRESERVE || format == DT_FORMAT_CONTIGUOUS ||
        ndim == wanted)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s(): memory_format channels_last%s is for %d dimensions, and the "
                   "Tensor has %d; give it another format",
                   function, wanted == 5 ? "_3d" : "", wanted, ndim);
}

/* The memory order of dimensions, outermost first; channels-last only. */
static void memory_order(int ndim, int64_t *order)
{
    order[0] = 0;
    for (int d = 1; d < ndim; d++)
        order[d] = d < ndim - 1 ? d + 1 : 1;
}

bool dt_format_is_of(dt_format format, const dt_tensor *x)
{
    if (format == DT_FORMAT_PRESERVE || format == DT_FORMAT_CONTIGUOUS)
        return x->contiguous;
    if (x->ndim != (format == DT_FORMAT_CHANNELS ? 4 : 5))
        return false;
    int64_t order[DT_MAX_NDIM], step = 1;
    memory_order(x->ndim, order);
    for (int i = x->ndim - 1; i >= 0; i--) {
        int64_t d = order[i];
        if (x->shape[d] != 1 && x->strides[d] != step)
            return false;
        step *= x->shape[d];
    }
    return true;
}

void dt_format_strides(dt_format format, int ndim, const int64_t *shape,
                       int64_t *strides)
{
    int64_t order[DT_MAX_NDIM], step = 1;
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    if (format != DT_FORMAT_CONTIGUOUS)
        memory_order(ndim, order);
    for (int i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= shape[order[i]] > 1 ? shape[order[i]] : 1;
    }
}
