#include "tensor/ops/window.h"

#include <inttypes.h>

int dt_window_numbers(const char *op_name, const char *name, const dt_value *value,
                      int ndim, int64_t least, int64_t otherwise, int64_t *out)
{
    if (value->count > 1 && value->count != ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %s has %d numbers; give one, or %d: one for each dimension "
                       "that the window slides along",
                       op_name, name, value->count, ndim);
    for (int d = 0; d < ndim; d++) {
        out[d] = value->count <= 0   ? otherwise
                 : value->count == 1 ? value->ints[0]
                                     : value->ints[d];
        if (out[d] < least)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: %s is %" PRId64 "; it has to be %" PRId64 " or more",
                           op_name, name, out[d], least);
    }
    return 0;
}

void dt_window_set(dt_window *w, int ndim, const int64_t *input, const int64_t *kernel,
                   const int64_t *stride, const int64_t *padding,
                   const int64_t *dilation)
{
    w->ndim = ndim;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        int from = d - (DT_WINDOW_DIMS - ndim);
        w->input[d] = from < 0 ? 1 : input[from];
        w->kernel[d] = from < 0 ? 1 : kernel[from];
        w->stride[d] = from < 0 ? 1 : stride[from];
        w->padding[d] = from < 0 || !padding ? 0 : padding[from];
        w->dilation[d] = from < 0 || !dilation ? 1 : dilation[from];
        w->output[d] = 1;
    }
}

int dt_window_slide(const char *op_name, dt_window *w, bool ceil_mode)
{
    for (int d = DT_WINDOW_DIMS - w->ndim; d < DT_WINDOW_DIMS; d++) {
        /* Numbers of a program may be anything, so sums are checked. */
        int64_t padded, covered, step = w->stride[d];
        if (__builtin_mul_overflow(w->padding[d], 2, &padded) ||
            __builtin_add_overflow(padded, w->input[d], &padded) ||
            __builtin_mul_overflow(w->kernel[d] - 1, w->dilation[d], &covered) ||
            __builtin_add_overflow(covered, 1, &covered) ||
            __builtin_add_overflow(padded, step, &step) || padded > INT64_MAX / 4)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the window is too large to count its elements",
                           op_name);
        int64_t room = padded - covered;
        /* The first window of ceil_mode may end behind the input. */
        if (room < 0 && (!ceil_mode || room <= -w->stride[d]))
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: the kernel covers %" PRId64
                " elements in dimension %d of those it slides along, but the "
                "input, of size %" PRId64 ", has %" PRId64
                " with its padding; give a smaller kernel or dilation, or "
                "more padding",
                op_name, covered, d - (DT_WINDOW_DIMS - w->ndim), w->input[d], padded);
        w->output[d] = room / w->stride[d] + 1;
        if (ceil_mode && room > 0 && room % w->stride[d] &&
            w->output[d] * w->stride[d] < w->input[d] + w->padding[d])
            w->output[d]++;
    }
    return 0;
}
