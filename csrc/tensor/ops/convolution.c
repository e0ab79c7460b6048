#include "tensor/ops/convolution.h"

#include <inttypes.h>
#include <string.h>

#include "device/convolution.h"
#include "device/device.h"
#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/window.h"
#include "tensor/view.h"

/* --- arguments --- */

static const char *shape_of(const dt_tensor *t, char *text)
{
    return dt_shape_text(t->ndim, t->shape, text, DT_SHAPE_TEXT);
}

static int check_types(const char *op_name, const dt_convolution_args *a)
{
    const dt_tensor *others[] = {a->weight, a->bias};
    static const char *const names[] = {"weight", "bias"};
    for (int i = 0; i < 2; i++)
        if (others[i] && others[i]->dtype != a->input->dtype)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: the input holds %s and the %s %s; they have to be of one "
                "type, convert one with .to()",
                op_name, dt_dtype_name((dt_dtype)a->input->dtype), names[i],
                dt_dtype_name((dt_dtype)others[i]->dtype));
    if (a->input->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for tensors of type bool; convert them first, "
                       "e.g. with .float()",
                       op_name);
    return 0;
}

static int check_channels(const char *op_name, const dt_convolution_args *a)
{
    const dt_tensor *x = a->input, *w = a->weight;
    char xs[DT_SHAPE_TEXT], ws[DT_SHAPE_TEXT], bs[DT_SHAPE_TEXT];
    int64_t per_group = w->shape[1], all = w->shape[0];
    if (a->groups < 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: groups is %" PRId64 "; it has to be 1 or more", op_name,
                       a->groups);
    if (all < a->groups || all % a->groups)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the weight has shape %s; with groups=%" PRId64
                       " its first size has to be a multiple of %" PRId64
                       ", and at least that",
                       op_name, shape_of(w, ws), a->groups, a->groups);
    int64_t expected = a->transposed ? all : per_group * a->groups;
    int64_t made = a->transposed ? per_group * a->groups : all;
    if (x->shape[1] != expected)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input of shape %s has %" PRId64
                       " channels; with a weight of shape %s and groups=%" PRId64
                       " it has to have %" PRId64,
                       op_name, shape_of(x, xs), x->shape[1], shape_of(w, ws),
                       a->groups, expected);
    if (a->bias && (a->bias->ndim != 1 || a->bias->shape[0] != made))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the bias has shape %s; with a weight of shape %s it has to "
                       "have %" PRId64 " elements, one for each channel of the result",
                       op_name, shape_of(a->bias, bs), shape_of(w, ws), made);
    return 0;
}

static int check_overflow(const char *op_name, bool overflow)
{
    return overflow ? dt_fail(DT_ERROR_RUNTIME,
                              "%s: the sizes are too large to compute the result's; "
                              "give smaller numbers",
                              op_name)
                    : 0;
}

/* 'same': as many windows as elements. Where an odd number of elements is added, the last
 * one is behind. */
static int pad_by_name(const char *op_name, const dt_convolution_args *a,
                       dt_convolution_sizes *out)
{
    bool same = !strcmp(a->padding_text, "same");
    if (!same && strcmp(a->padding_text, "valid") != 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: padding is '%s'; give numbers, 'same' or 'valid'", op_name,
                       a->padding_text);
    for (int d = 0; d < out->ndim; d++) {
        int64_t covered;
        out->padding[d] = 0;
        if (!same)
            continue;
        if (out->stride[d] != 1)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: padding='same' is not supported for strided "
                           "convolutions, and stride is %" PRId64
                           "; give padding as numbers",
                           op_name, out->stride[d]);
        if (check_overflow(op_name, __builtin_mul_overflow(a->weight->shape[2 + d] - 1,
                                                           out->dilation[d], &covered)))
            return -1;
        out->padding[d] = covered / 2;
        out->size[d] = a->input->shape[2 + d];
    }
    return 0;
}

static int transposed_sizes(const char *op_name, const dt_convolution_args *a,
                            dt_convolution_sizes *out)
{
    int64_t more[DT_WINDOW_DIMS];
    const dt_value none = dt_value_none();
    if (dt_window_numbers(op_name, "output_padding",
                          a->output_padding ? a->output_padding : &none, out->ndim, 0,
                          0, more))
        return -1;
    for (int d = 0; d < out->ndim; d++) {
        int64_t steps, covered, padded = 0;
        if (more[d] >= out->stride[d] && more[d] >= out->dilation[d])
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: output_padding is %" PRId64
                           "; it has to be smaller than stride, %" PRId64
                           ", or dilation, %" PRId64,
                           op_name, more[d], out->stride[d], out->dilation[d]);
        if (check_overflow(op_name,
                           __builtin_mul_overflow(a->input->shape[2 + d] - 1,
                                                  out->stride[d], &steps) ||
                               __builtin_mul_overflow(a->weight->shape[2 + d] - 1,
                                                      out->dilation[d], &covered) ||
                               __builtin_add_overflow(steps, covered, &steps) ||
                               __builtin_add_overflow(steps, more[d] + 1, &steps) ||
                               __builtin_mul_overflow(out->padding[d], 2, &padded)))
            return -1;
        out->size[d] = steps - padded;
        if (out->size[d] < 0)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the result would have size %" PRId64
                           " in dimension %d of those the kernel slides along; give a "
                           "smaller padding than %" PRId64,
                           op_name, out->size[d], d, out->padding[d]);
    }
    return 0;
}

int dt_convolution_check(const char *op_name, const dt_convolution_args *a,
                         dt_convolution_sizes *out)
{
    const dt_tensor *w = a->weight;
    char text[DT_SHAPE_TEXT];
    int ndim = out->ndim = w->ndim - 2;
    dt_window window;
    for (int d = 2; d < w->ndim; d++)
        if (!w->shape[d])
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the weight has shape %s; its kernel has to have an "
                           "element",
                           op_name, shape_of(w, text));
    if (dt_window_numbers(op_name, "stride", a->stride, ndim, 1, 1, out->stride) ||
        dt_window_numbers(op_name, "dilation", a->dilation, ndim, 1, 1,
                          out->dilation) ||
        (!a->padding_text &&
         dt_window_numbers(op_name, "padding", a->padding, ndim, 0, 0, out->padding)) ||
        check_types(op_name, a) || check_channels(op_name, a) ||
        (a->padding_text && pad_by_name(op_name, a, out)))
        return -1;
    if (a->transposed)
        return transposed_sizes(op_name, a, out);
    if (a->padding_text && !strcmp(a->padding_text, "same"))
        return 0;
    dt_window_set(&window, ndim, a->input->shape + 2, w->shape + 2, out->stride,
                  out->padding, out->dilation);
    if (dt_window_slide(op_name, &window, false))
        return -1;
    memcpy(out->size, window.output + DT_WINDOW_DIMS - ndim,
           (size_t)ndim * sizeof *out->size);
    return 0;
}

/* --- the three parts --- */

bool dt_convolution_tf32 = true;
bool dt_cudnn_enabled = true, dt_cudnn_deterministic = false;

/* Halves are computed in float32 where the backend does not take them, and integers in
 * float64. */
static dt_dtype computed(dt_dtype dtype, dt_device device)
{
    return dt_dtype_is_half(dtype)
               ? (dt_backend_of(device)->halves ? dtype : DT_FLOAT32)
           : dt_dtype_is_float(dtype) ? dtype
                                      : DT_FLOAT64;
}

/* The result of an empty input: the bias, or zeros. */
static int without_input(dt_tensor *out, const dt_tensor *bias)
{
    DT_LOCAL(wide);
    if (!bias)
        return dt_fill_into("convolution", out, dt_scalar_float(0));
    dt_tensor_alias(&wide, bias);
    for (int d = 1; d < out->ndim - 1; d++) {
        wide.shape[d] = 1;
        wide.strides[d] = 0;
    }
    wide.ndim = (unsigned char)(out->ndim - 1);
    return dt_copy_into("convolution", out, &wide);
}

static int run_convolution(const dt_call *c, dt_convolution *call, int ndim,
                           const int64_t *shape, const dt_tensor *a, const dt_tensor *b,
                           const dt_tensor *bias, int64_t first);

/* The same of complex tensors, by four convolutions of their parts. */
static int convolve_parts(const dt_call *c, const dt_convolution *call, int ndim,
                          const int64_t *shape, const dt_tensor *a, const dt_tensor *b,
                          const dt_tensor *bias, int64_t first)
{
    dt_tensor *out = c->out[0];
    if (dt_tensor_empty(c->name, out, (dt_dtype)a->dtype, ndim, shape,
                        dt_tensor_device(a)))
        return -1;
    for (int part = 0; part < 2; part++) {
        DT_LOCAL(of_real);
        DT_LOCAL(of_imag);
        DT_LOCAL(target);
        for (int p = 0; p < 2; p++) {
            DT_LOCAL(x);
            DT_LOCAL(y);
            DT_LOCAL(start);
            dt_call inner = *c;
            dt_convolution of_parts = *call;
            inner.out[0] = p ? &of_imag : &of_real;
            dt_complex_part(&x, a, p);
            dt_complex_part(&y, b, p ^ part);
            if (bias && !p)
                dt_complex_part(&start, bias, part);
            if (run_convolution(&inner, &of_parts, ndim, shape, &x, &y,
                                bias && !p ? &start : NULL, first))
                return -1;
        }
        dt_complex_part(&target, out, part);
        if (dt_elementwise_into(
                part ? DT_OP_add : DT_OP_sub, &target,
                DT_ARGS(dt_arg_tensor(&of_real), dt_arg_tensor(&of_imag))))
            return -1;
    }
    return 0;
}

/* Computes out from a and b, in the roles that the part gives them: x, w and y. */
static int run_convolution(const dt_call *c, dt_convolution *call, int ndim,
                           const int64_t *shape, const dt_tensor *a, const dt_tensor *b,
                           const dt_tensor *bias, int64_t first)
{
    const dt_value *v = c->args + first;
    dt_tensor *out = c->out[0];
    dt_dtype dtype = (dt_dtype)a->dtype;
    dt_device device = dt_tensor_device(a);
    const bool of_weight = call->part == DT_CONVOLUTION_WEIGHT;
    const bool transposed = call->part == DT_CONVOLUTION_INPUT;
    const dt_tensor *x = transposed ? NULL : a, *y = of_weight    ? b
                                                     : transposed ? a
                                                                  : NULL;
    const int64_t *weight = of_weight ? shape : b->shape;
    dt_window *w = &call->window;
    DT_LOCAL(own_a);
    DT_LOCAL(own_b);
    DT_LOCAL(own_bias);
    if (dt_dtype_is_complex(dtype))
        return convolve_parts(c, call, ndim, shape, a, b, bias, first);
    call->dtype = computed(dtype, device);
    call->tf32 = dt_convolution_tf32;
    call->library = dt_cudnn_enabled;
    call->deterministic = dt_cudnn_deterministic || dt_deterministic;
    dt_window_set(w, ndim - 2, (x ? x->shape : shape) + 2, weight + 2, v[0].ints,
                  v[1].ints, v[2].ints);
    memcpy(w->output + DT_WINDOW_DIMS - w->ndim, (y ? y->shape : shape) + 2,
           (size_t)w->ndim * sizeof *w->output);
    call->batch = a->shape[0];
    call->out = weight[0] / call->groups;
    call->in = weight[1];
    if (dt_tensor_empty(c->name, out, call->dtype, ndim, shape, device))
        return -1;
    if (!out->numel || !a->numel || !b->numel)
        return (out->numel && without_input(out, bias)) || dt_retype(out, dtype) ? -1
                                                                                 : 0;
    if (dt_contiguous_as(&own_a, a, call->dtype, device) ||
        dt_contiguous_as(&own_b, b, call->dtype, device) ||
        (bias && dt_contiguous_as(&own_bias, bias, call->dtype, device)))
        return -1;
    void *from = dt_tensor_data(&own_a), *with = dt_tensor_data(&own_b),
         *to = dt_tensor_data(out);
    call->x = transposed ? to : from;
    call->w = of_weight ? to : with;
    call->y = of_weight ? with : transposed ? from : to;
    call->bias = bias ? dt_tensor_data(&own_bias) : NULL;
    return dt_storage_use(own_a.storage) || dt_storage_use(own_b.storage) ||
                   dt_storage_use(out->storage) ||
                   (bias && dt_storage_use(own_bias.storage)) ||
                   dt_backend_of(device)->convolution(dt_stream_current(device),
                                                      call) ||
                   dt_retype(out, dtype)
               ? -1
               : 0;
}

int dt_convolve_forward(dt_call *c)
{
    const dt_tensor *input = c->args[0].tensor, *weight = c->args[1].tensor;
    bool transposed = c->args[6].b;
    int64_t shape[DT_MAX_NDIM];
    dt_convolution call = {.part = transposed ? DT_CONVOLUTION_INPUT
                                              : DT_CONVOLUTION_OUTPUT,
                           .groups = c->args[7].i};
    shape[0] = input->shape[0];
    shape[1] = transposed ? weight->shape[1] * call.groups : weight->shape[0];
    memcpy(shape + 2, c->args[2].ints, (size_t)c->args[2].count * sizeof *shape);
    return run_convolution(c, &call, input->ndim, shape, input, weight,
                           c->args[8].tensor, 3);
}

int dt_convolve_weight_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *y = c->args[1].tensor;
    int64_t shape[DT_MAX_NDIM];
    dt_convolution call = {.part = DT_CONVOLUTION_WEIGHT, .groups = c->args[6].i};
    shape[0] = y->shape[1];
    shape[1] = x->shape[1] / call.groups;
    memcpy(shape + 2, c->args[2].ints, (size_t)c->args[2].count * sizeof *shape);
    return run_convolution(c, &call, x->ndim, shape, x, y, NULL, 3);
}
