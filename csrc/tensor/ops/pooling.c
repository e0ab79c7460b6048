#include "tensor/ops/pooling.h"

#include <inttypes.h>
#include <string.h>

#include "device/pooling.h"
#include "device/stream.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/window.h"

/* The nodes are PyTorch's: pooling along one dimension is squeezed from two there. */
static const char *const max_nodes[2][DT_WINDOW_DIMS] = {
    {"SqueezeBackward1", "MaxPool2DWithIndicesBackward0",
     "MaxPool3DWithIndicesBackward0"},
    {"SqueezeBackward1", "AdaptiveMaxPool2DBackward0", "AdaptiveMaxPool3DBackward0"}};
static const char *const average_nodes[2][DT_WINDOW_DIMS] = {
    {"SqueezeBackward1", "AvgPool2DBackward0", "AvgPool3DBackward0"},
    {"SqueezeBackward1", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0"}};

/* The type that kernels take. */
static dt_dtype taken_type(dt_dtype dtype, dt_device device)
{
    const bool halves = dt_dtype_is_half(dtype) && dt_backend_of(device)->halves;
    return halves || dtype == DT_FLOAT64 ? dtype
           : dt_dtype_is_float(dtype)    ? DT_FLOAT32
                                         : DT_INT64;
}

static int check_input(const dt_call *c, const dt_tensor *x, int64_t ndim)
{
    if (ndim < 1 || ndim > DT_WINDOW_DIMS)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: windows of %" PRId64 " dimensions; give 1, 2 or 3", c->name,
                       ndim);
    if (x->ndim != ndim + 1 && x->ndim != ndim + 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input has %d dimensions; give one of %d or %d: maybe a "
                       "batch, channels, and %d that the window slides along",
                       c->name, x->ndim, (int)ndim + 1, (int)ndim + 2, (int)ndim);
    return dt_check_real(c->name, DT_ERROR_NOT_IMPLEMENTED, x);
}

/* The window of a call, with sizes of the last ndim dimensions. dilation, ceil_mode: NULL
 * and false where there is none. */
static int set_window(const dt_call *c, dt_window *w, int ndim, const int64_t *sizes,
                      const dt_value *dilations, bool ceil_mode)
{
    int64_t kernel[DT_WINDOW_DIMS], stride[DT_WINDOW_DIMS], padding[DT_WINDOW_DIMS],
        dilation[DT_WINDOW_DIMS];
    static const dt_value one = {.count = -1};
    dilations = dilations ? dilations : &one;
    if (dt_window_numbers(c->name, "kernel_size", &c->args[2], ndim, 1, 1, kernel) ||
        dt_window_numbers(c->name, "stride", &c->args[3], ndim, 1, 1, stride) ||
        dt_window_numbers(c->name, "padding", &c->args[4], ndim, 0, 0, padding) ||
        dt_window_numbers(c->name, "dilation", dilations, ndim, 1, 1, dilation))
        return -1;
    for (int d = 0; d < ndim; d++)
        /* More than half would leave windows in the padding alone. */
        if (padding[d] >
            (int64_t)(((double)(kernel[d] - 1) * (double)dilation[d] + 1) / 2))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the padding is %" PRId64 " for a window of %" PRId64
                           " elements and dilation %" PRId64
                           "; give at most half of what the window covers",
                           c->name, padding[d], kernel[d], dilation[d]);
    dt_window_set(w, ndim, sizes, kernel, c->args[3].count > 0 ? stride : kernel,
                  padding, dilation);
    return dt_window_slide(c->name, w, ceil_mode);
}

/* Windows that divide the input: kernel_size is their number. */
static int set_adaptive(const dt_call *c, dt_window *w, int ndim, const int64_t *sizes)
{
    static const int64_t ones[DT_WINDOW_DIMS] = {1, 1, 1};
    int64_t output[DT_WINDOW_DIMS];
    if (dt_window_numbers(c->name, "output_size", &c->args[2], ndim, 0, 1, output))
        return -1;
    dt_window_set(w, ndim, sizes, ones, ones, NULL, NULL);
    for (int d = 0; d < ndim; d++) {
        int to = d + DT_WINDOW_DIMS - ndim;
        w->output[to] = output[d];
        w->kernel[to] = output[d] ? sizes[d] / output[d] + 1 : 1;
    }
    return 0;
}

/* The call of planes of x, whose results are `results` and maybe an index, which are
 * made. */
static int run_pooling(dt_call *c, dt_pooling_call *call, int ndim,
                       const int64_t *sizes, bool indexed)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_tensor *out = c->out[0];
    dt_device device = dt_tensor_device(x);
    dt_dtype dtype = (dt_dtype)x->dtype;
    int64_t shape[DT_MAX_NDIM];
    int before = x->ndim - ndim;
    DT_LOCAL(input);
    for (int d = x->ndim - ndim - 1; d < x->ndim; d++)
        if ((d >= before || !call->adaptive) && !x->shape[d])
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d of the input has size 0; only the batch "
                           "may be empty",
                           c->name, d);
    memcpy(shape, x->shape, (size_t)before * sizeof *shape);
    memcpy(shape + before, sizes + DT_WINDOW_DIMS - ndim, (size_t)ndim * sizeof *shape);
    call->dtype = taken_type(dtype, device);
    call->planes = 1;
    for (int d = 0; d < before; d++)
        call->planes *= x->shape[d];
    if (dt_contiguous_as(&input, x, call->dtype, device) ||
        dt_tensor_empty(c->name, out, call->dtype, x->ndim, shape, device) ||
        (indexed &&
         dt_tensor_empty(c->name, c->out[1], DT_INT64, x->ndim, shape, device)))
        return -1;
    call->x = dt_tensor_data(&input);
    call->y = dt_tensor_data(out);
    if (!dt_pooling_is_backward(call->op))
        call->index = indexed ? dt_tensor_data(c->out[1]) : NULL;
    if (out->numel && (dt_tensor_use(&input) || dt_tensor_use(out) ||
                       (indexed && dt_tensor_use(c->out[1])) ||
                       dt_backend_of(device)->pooling(dt_stream_current(device), call)))
        return -1;
    return dt_retype(out, dtype);
}

static int refuse_type(const dt_call *c, const char *types)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "%s: not defined for tensors of type %s; convert it to %s first, "
                   "e.g. with .float()",
                   c->name, dt_dtype_name((dt_dtype)c->args[0].tensor->dtype), types);
}

int dt_max_pool(dt_call *c, bool indexed)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t ndim = c->args[1].i;
    dt_pooling_call call = {.op = DT_POOLING_MAX, .adaptive = c->args[7].b};
    if (check_input(c, x, ndim))
        return -1;
    if (x->dtype == DT_BOOL ||
        (call.adaptive && !dt_dtype_is_float((dt_dtype)x->dtype)))
        return refuse_type(c, call.adaptive ? "floats" : "numbers");
    const int64_t *sizes = x->shape + x->ndim - ndim;
    if (call.adaptive
            ? set_adaptive(c, &call.window, (int)ndim, sizes)
            : set_window(c, &call.window, (int)ndim, sizes, &c->args[5], c->args[6].b))
        return -1;
    c->node = max_nodes[call.adaptive][ndim - 1];
    return run_pooling(c, &call, (int)ndim, call.window.output, indexed);
}

/* The sizes of the planes of a backward pass, whose input has as many windows as the call
 * has then. */
static int check_planes(const dt_call *c, const dt_value *size, int64_t ndim)
{
    if (size->count != ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: size has %d numbers; give one for each of %d dimensions",
                       c->name, size->count, (int)ndim);
    for (int d = 0; d < ndim; d++)
        if (size->ints[d] < 1)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: size has %" PRId64 "; give sizes of at least 1",
                           c->name, size->ints[d]);
    return 0;
}

static int run_backward(dt_call *c, dt_pooling_call *call, int ndim)
{
    const dt_tensor *x = c->args[0].tensor;
    if (!dt_shape_equal(ndim, x->shape + x->ndim - ndim, ndim,
                        call->window.output + DT_WINDOW_DIMS - ndim))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input's last sizes are not those of the results of "
                       "planes of size",
                       c->name);
    return run_pooling(c, call, ndim, call->window.input, false);
}

int dt_max_pool_backward_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *given = c->args[9].tensor;
    const int64_t ndim = c->args[1].i, *size = c->args[8].ints;
    dt_pooling_call call = {.op = DT_POOLING_MAX_BACKWARD, .adaptive = c->args[7].b};
    DT_LOCAL(index);
    if (check_input(c, x, ndim) || check_planes(c, &c->args[8], ndim))
        return -1;
    if (call.adaptive
            ? set_adaptive(c, &call.window, (int)ndim, size)
            : set_window(c, &call.window, (int)ndim, size, &c->args[5], c->args[6].b))
        return -1;
    if (!dt_shape_equal(x->ndim, x->shape, given->ndim, given->shape))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the indices do not have the input's shape", c->name);
    if (dt_contiguous_as(&index, given, DT_INT64, dt_tensor_device(x)) ||
        dt_tensor_use(&index))
        return -1;
    call.index = dt_tensor_data(&index);
    return run_backward(c, &call, (int)ndim);
}

int dt_avg_pool_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *size = &c->args[9];
    int64_t ndim = c->args[1].i;
    dt_pooling_call call = {.op = DT_POOLING_AVERAGE,
                            .adaptive = c->args[8].b,
                            .counts_padding = c->args[6].b,
                            .divisor = c->args[7].i};
    if (check_input(c, x, ndim))
        return -1;
    if (!dt_dtype_is_float((dt_dtype)x->dtype) &&
        (call.adaptive || x->dtype != DT_INT64))
        return refuse_type(c, call.adaptive ? "floats" : "floats or int64");
    bool backward = size->count > 0;
    const int64_t *sizes = backward ? size->ints : x->shape + x->ndim - ndim;
    if (backward && check_planes(c, size, ndim))
        return -1;
    if (call.adaptive
            ? set_adaptive(c, &call.window, (int)ndim, sizes)
            : set_window(c, &call.window, (int)ndim, sizes, NULL, c->args[5].b))
        return -1;
    c->node = average_nodes[call.adaptive][ndim - 1];
    if (!backward)
        return run_pooling(c, &call, (int)ndim, call.window.output, false);
    call.op = DT_POOLING_AVERAGE_BACKWARD;
    return run_backward(c, &call, (int)ndim);
}
