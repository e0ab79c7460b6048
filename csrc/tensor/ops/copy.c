#include "tensor/ops/copy.h"

#include <inttypes.h>
#include <string.h>

#include "device/activity.h"
#include "device/released.h"
#include "device/stream.h"
#include "device/transfer.h"
#include "tensor/call.h"
#include "tensor/iterate.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/ops.h"

/* Copies source into target on their one device, converting and broadcasting. The
 * target may hold nothing: then it is made with dtype. */
static int copy_here(const char *op_name, dt_tensor *target, dt_dtype dtype,
                     const dt_tensor *source)
{
    dt_plan plan;
    dt_device device = dt_tensor_device(source);
    dt_input input = {.tensor = source, .dtype = (dt_dtype)source->dtype};
    bool given = target->storage;
    int status = dt_iterate_plan(&plan, op_name, target, dtype, device, &input, 1);
    if (!status &&
        (dt_storage_use(target->storage) || dt_storage_use(source->storage) ||
         dt_run_copy(op_name, device, &plan)))
        status = -1;
    if (status < 0 && !given)
        dt_tensor_clear(target);
    return status < 0 ? -1 : 0;
}

int dt_copy_part(const char *op_name, dt_tensor *target, const dt_tensor *source)
{
    dt_device device = dt_tensor_device(target);
    if (!target->contiguous || !source->contiguous || target->storage->read_only)
        return copy_here(op_name, target, (dt_dtype)target->dtype, source);
    /* One run to one run: there is nothing to plan. */
    dt_plan plan;
    if (!target->numel)
        return 0;
    if (dt_storage_use(target->storage) || dt_storage_use(source->storage))
        return -1;
    dt_tensor_written(target);
    plan.ndim = 1;
    plan.noperands = 2;
    plan.contiguous = true;
    plan.numel = plan.shape[0] = target->numel;
    const dt_tensor *tensors[] = {target, source};
    for (int i = 0; i < 2; i++) {
        dt_operand *operand = &plan.operands[i];
        operand->data = dt_tensor_place(tensors[i]);
        operand->storage = tensors[i]->storage;
        operand->dtype = (dt_dtype)tensors[i]->dtype;
        operand->strides[0] = (int64_t)dt_dtype_size(operand->dtype);
        operand->scalar = false;
    }
    return dt_run_copy(op_name, device, &plan);
}

/* Copies the bytes of source, in one piece, to another device. later: does not wait,
 * one of them being in pinned memory. */
static int transfer(const dt_tensor *target, const dt_tensor *source, bool later)
{
    size_t bytes = (size_t)source->numel * dt_dtype_size((dt_dtype)source->dtype);
    if (!bytes)
        return 0;
    dt_device to = dt_tensor_device(target), from = dt_tensor_device(source);
    if ((!later && dt_tensor_used_by_host("copy", source)) ||
        dt_storage_use(target->storage) || dt_storage_use(source->storage) ||
        (later && (dt_device_is_host(to) ? dt_storage_use_pinned(target->storage, from)
                                         : dt_storage_use_pinned(source->storage, to))))
        return -1;
    return (later ? dt_transfer_pinned : dt_transfer)(
        to, dt_tensor_data(target), from, dt_tensor_data(source), bytes, source);
}

/* A copy of t on another device, dense in the way that t is. */
static int copy_across(dt_tensor *out, const dt_tensor *t, dt_device device, bool later)
{
    if (dt_tensor_empty_strided("to", out, (dt_dtype)t->dtype, t->ndim, t->shape,
                                t->strides, device))
        return -1;
    if (!transfer(out, t, later))
        return 0;
    dt_tensor_clear(out);
    return -1;
}

int dt_to(dt_tensor *out, const dt_tensor *t, dt_dtype dtype, dt_device device)
{
    out->storage = NULL;
    if (dt_device_equal(device, dt_tensor_device(t)))
        return copy_here("copy", out, dtype, t);
    /* The narrower of the two types crosses over. */
    DT_LOCAL(here);
    DT_LOCAL(there);
    bool before = dt_dtype_size(dtype) < dt_dtype_size((dt_dtype)t->dtype);
    if (!before && dt_tensor_is_non_overlapping_and_dense(t))
        dt_tensor_alias(&here, t);
    else if (copy_here("to", &here, before ? dtype : (dt_dtype)t->dtype, t))
        return -1;
    if (!dt_tensor_is_non_overlapping_and_dense(&here)) {
        DT_LOCAL(row_major);
        if (dt_contiguous(&row_major, &here))
            return -1;
        dt_tensor_move(&here, &row_major);
    }
    if (copy_across(&there, &here, device, false))
        return -1;
    if (there.dtype != dtype)
        return copy_here("to", out, dtype, &there);
    dt_tensor_move(out, &there);
    return 0;
}

/* A copy of t on its device, of another type, in a format other than PRESERVE. */
static int copy_in_format(const char *op_name, dt_tensor *out, const dt_tensor *t,
                          dt_dtype dtype, dt_format format)
{
    int64_t strides[DT_MAX_NDIM];
    dt_device device = dt_tensor_device(t);
    if (format > DT_FORMAT_CONTIGUOUS)
        dt_format_strides(format, t->ndim, t->shape, strides);
    if (format > DT_FORMAT_CONTIGUOUS
            ? dt_tensor_empty_strided(op_name, out, dtype, t->ndim, t->shape, strides,
                                      device)
            : dt_tensor_empty(op_name, out, dtype, t->ndim, t->shape, device))
        return -1;
    if (copy_here(op_name, out, dtype, t)) {
        dt_tensor_clear(out);
        return -1;
    }
    return 0;
}

int dt_to_format(dt_tensor *out, const dt_tensor *t, dt_dtype dtype, dt_device device,
                 dt_format format, bool non_blocking)
{
    bool stays = dt_device_equal(device, dt_tensor_device(t));
    if (stays && format != DT_FORMAT_PRESERVE)
        return copy_in_format("copy", out, t, dtype, format);
    bool later = non_blocking && !stays && dtype == (dt_dtype)t->dtype &&
                 t->storage->pinned && dt_device_has_streams(device) &&
                 dt_tensor_is_non_overlapping_and_dense(t);
    bool before = dt_transfer_ask(true);
    int status =
        later ? copy_across(out, t, device, true) : dt_to(out, t, dtype, device);
    dt_transfer_ask(before);
    if (status)
        return -1;
    if (format == DT_FORMAT_PRESERVE || dt_format_is_of(format, out))
        return 0;
    DT_LOCAL(arrived);
    dt_tensor_move(&arrived, out);
    return copy_in_format("to", out, &arrived, dtype, format);
}

int dt_to_copy_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_dtype dtype = (dt_dtype)c->args[1].dtype;
    dt_device device = c->args[2].device;
    if (dtype == x->dtype && dt_device_equal(device, dt_tensor_device(x)))
        c->node = "CloneBackward0";
    return dt_to_format(c->out[0], x, dtype, device, (dt_format)c->args[4].i,
                        c->args[3].b);
}

int dt_pin_forward(dt_call *c)
{
    const dt_tensor *t = c->args[0].tensor;
    dt_tensor *out = c->out[0];
    if (dt_device_check_memory(dt_tensor_device(t)))
        return -1;
    if (!dt_device_is_host(dt_tensor_device(t))) {
        char text[DT_DEVICE_TEXT];
        return dt_fail(
            DT_ERROR_RUNTIME,
            "pin_memory: the tensor is on %s, and only memory of the CPU can "
            "be pinned; use .cpu() first",
            dt_device_text(dt_tensor_device(t), text));
    }
    if (t->storage->pinned) {
        dt_tensor_alias(out, t);
        return 0;
    }
    dt_tensor_alias(out, t);
    dt_storage_release(out->storage);
    out->storage = dt_storage_new_pinned(
        (int)c->args[1].i, (size_t)t->numel * dt_dtype_size((dt_dtype)t->dtype));
    if (!out->storage)
        return dt_fail_prefix("pin_memory: ");
    out->unversioned = false;
    out->offset = 0;
    if (!dt_tensor_is_non_overlapping_and_dense(t))
        dt_shape_strides(out->ndim, out->shape, out->strides);
    dt_tensor_update(out);
    return copy_here("pin_memory", out, (dt_dtype)t->dtype, t);
}

int dt_contiguous(dt_tensor *out, const dt_tensor *t)
{
    return dt_contiguous_as(out, t, (dt_dtype)t->dtype, dt_tensor_device(t));
}

int dt_contiguous_as(dt_tensor *out, const dt_tensor *t, dt_dtype dtype,
                     dt_device device)
{
    out->storage = NULL;
    if (!dt_device_equal(device, dt_tensor_device(t))) {
        DT_LOCAL(moved);
        return dt_to(&moved, t, dtype, device) ? -1 : dt_contiguous(out, &moved);
    }
    if (t->contiguous && t->dtype == dtype) {
        dt_tensor_alias(out, t);
        return 0;
    }
    return copy_in_format("contiguous", out, t, dtype, DT_FORMAT_CONTIGUOUS);
}

int dt_retype(dt_tensor *t, dt_dtype dtype)
{
    DT_LOCAL(converted);
    if (t->dtype == dtype)
        return 0;
    if (dt_to(&converted, t, dtype, dt_tensor_device(t)))
        return -1;
    dt_tensor_move(t, &converted);
    return 0;
}

/* Whether the bytes of source, in one piece, are what target is to hold. */
static bool is_one_piece(const dt_tensor *target, const dt_tensor *source)
{
    return target->contiguous && source->contiguous && target->dtype == source->dtype &&
           !target->storage->read_only &&
           dt_shape_equal(target->ndim, target->shape, source->ndim, source->shape);
}

/* non_blocking: a copy between a GPU and page-locked memory, in one piece, does not
 * wait: source is to stay as it is until the copy is over. */
static int copy_into(const char *op_name, dt_tensor *target, const dt_tensor *source,
                     bool non_blocking)
{
    DT_LOCAL(copy);
    dt_device to = dt_tensor_device(target), from = dt_tensor_device(source);
    bool crosses = !dt_device_equal(to, from);
    if (crosses && is_one_piece(target, source)) {
        const bool to_host = dt_device_is_host(to);
        const dt_tensor *host = to_host ? target : source;
        if (target->numel)
            dt_tensor_written(target);
        return transfer(target, source,
                        non_blocking && host->storage->pinned &&
                            dt_device_has_streams(to_host ? from : to));
    }
    if (crosses || dt_iterate_partly_overlaps(target, source)) {
        if (dt_to(&copy, source, (dt_dtype)source->dtype, to))
            return -1;
        source = &copy;
    }
    return copy_here(op_name, target, (dt_dtype)target->dtype, source);
}

int dt_copy_into(const char *op_name, dt_tensor *target, const dt_tensor *source)
{
    return copy_into(op_name, target, source, false);
}

int dt_copy_forward(dt_call *c)
{
    dt_tensor *target = c->out[0];
    const dt_tensor *source = c->args[1].tensor;
    if (!source)
        return dt_fill_into(c->name, target, c->args[1].scalar);
    bool before = dt_transfer_ask(true);
    int status = copy_into(c->name, target, source, c->args[2].b);
    dt_transfer_ask(before);
    return status;
}

int dt_host_use(const char *op_name, const dt_tensor *t)
{
    dt_extent extent = {.data = dt_tensor_data(t),
                        .item = (int64_t)dt_dtype_size((dt_dtype)t->dtype),
                        .ndim = t->ndim,
                        .reads = true};
    for (int d = 0; d < t->ndim; d++) {
        extent.shape[d] = t->shape[d];
        extent.strides[d] = t->strides[d] * extent.item;
    }
    const dt_activity activity = {.kind = DT_ACTIVITY_HOST_USE,
                                  .name = op_name,
                                  .device = dt_tensor_device(t),
                                  .call = &extent,
                                  .work = DT_WORK_HOST_USE};
    dt_observed observed;
    return dt_activity_begin(&observed, &activity)
               ? -1
               : dt_activity_end(&observed, &activity, 0);
}

int dt_item(const char *op_name, const dt_tensor *t, dt_scalar *out)
{
    if (t->numel != 1) {
        char text[DT_SHAPE_TEXT];
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: a tensor of shape %s has %" PRId64 " elements; only one element "
            "becomes a Python number, index it or reduce it first",
            op_name, dt_shape_text(t->ndim, t->shape, text, sizeof text), t->numel);
    }
    dt_element element;
    const void *data = dt_tensor_data(t);
    if (dt_tensor_used_by_host(op_name, t))
        return -1;
    if (!dt_device_is_host(dt_tensor_device(t))) {
        if (dt_storage_use(t->storage) ||
            dt_transfer(dt_device_make(DT_CPU, 0), &element, dt_tensor_device(t), data,
                        dt_dtype_size((dt_dtype)t->dtype), t))
            return -1;
        data = &element;
    }
    *out = dt_element_to_scalar((dt_dtype)t->dtype, data);
    return dt_element_imag((dt_dtype)t->dtype, data) != 0
               ? dt_fail(
                     DT_ERROR_RUNTIME,
                     "%s: the number has an imaginary part, and a real one is needed "
                     "here; take .real or .abs() first",
                     op_name)
               : 0;
}
