/* The quick way of elementwise calls. The whole way, dt_elementwise_whole in elementwise.c, asks
 * for the device, the element types, conversions, overlapping memory and the order of
 * dimensions. Most calls by far have plain answers to all of it: row-major tensors of
 * one shape, type and device, and, of floats, numbers. This file tests for that, and
 * then makes a plan of one dimension, which dt_iterate_plan would make too. It is safe,
 * since a call about which anything is in doubt returns 1 before anything is done, and
 * takes the whole way. */
#include "tensor/ops/elementwise.h"

#include <assert.h>

#include "device/stream.h"
#include "ops/elementwise_ops.h"

/* In place, the first input is the target. */
static inline __attribute__((always_inline)) int
run_quick(dt_elementwise_op op, dt_tensor *out, bool in_place, const dt_arg *args,
          const int arity)
{
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    const dt_class *class = &row->class_;
    const dt_tensor *t = args[0].tensor;
    if (!t || !t->contiguous || !t->numel || class->choice)
        return 1;
    dt_dtype dtype = (dt_dtype)t->dtype;
    dt_kind kind = dt_dtype_kind(dtype);
    if (!class->takes[kind] || (class->rule && kind != DT_KIND_FLOAT))
        return 1;
    if (in_place && (t != out || class->truth || out->storage->read_only))
        return 1;
    dt_device device = dt_tensor_device(t);
    for (int i = 1; i < arity; i++) {
        const dt_tensor *other = args[i].tensor;
        if (!other ? kind != DT_KIND_FLOAT || args[i].scalar.kind == DT_KIND_BOOL
                   : other->dtype != t->dtype || !other->contiguous ||
                         !dt_device_equal(dt_tensor_device(other), device) ||
                         !dt_shape_equal(t->ndim, t->shape, other->ndim, other->shape))
            return 1;
        /* Memory of the target that is read at another index may be written before. */
        if (in_place && other && other->storage == out->storage &&
            other->offset != out->offset)
            return 1;
    }
    if (in_place)
        dt_tensor_written(out);
    else if (dt_tensor_empty_like(row->name, out, class->truth ? DT_BOOL : dtype, t))
        return -1;
    dt_plan plan;
    plan.ndim = 1;
    plan.noperands = arity + 1;
    plan.numel = plan.shape[0] = t->numel;
    plan.contiguous = true;
    for (int i = 0; i <= arity; i++) {
        dt_operand *o = &plan.operands[i];
        const dt_tensor *tensor = i ? args[i - 1].tensor : out;
        o->scalar = !tensor;
        if (tensor) {
            o->data = dt_tensor_place(tensor);
            o->storage = tensor->storage;
            o->dtype = (dt_dtype)tensor->dtype;
            o->strides[0] = (int64_t)dt_dtype_size(o->dtype);
            if (i && dt_storage_use(tensor->storage))
                goto fail;
        } else {
            o->data = NULL;
            o->dtype = row->flags & DT_WIDE_NUMBERS ? dt_dtype_compute(dtype) : dtype;
            o->strides[0] = 0;
            o->value = dt_element_from_scalar(o->dtype, args[i - 1].scalar);
        }
    }
    if (!dt_backend_of(device)->elementwise(dt_stream_current(device), op, &plan))
        return 0;
fail:
    if (!in_place)
        dt_tensor_clear(out);
    return -1;
}

int dt_elementwise(dt_elementwise_op op, dt_tensor *out, const dt_arg *args)
{
    if (op == DT_OP_pow)
        op = dt_elementwise_power(args);
    const int arity = dt_elementwise_rows[op].arity;
    /* Loops over two inputs are unrolled. */
    out->storage = NULL;
    int status = arity == 2 ? run_quick(op, out, false, args, 2)
                            : run_quick(op, out, false, args, arity);
    return status > 0 ? dt_elementwise_whole(op, out, NULL, args) : status;
}

int dt_elementwise_into(dt_elementwise_op op, dt_tensor *target, const dt_arg *args)
{
    assert(target);
    if (op == DT_OP_pow)
        op = dt_elementwise_power(args);
    const int arity = dt_elementwise_rows[op].arity;
    int status = arity == 2 ? run_quick(op, target, true, args, 2)
                            : run_quick(op, target, true, args, arity);
    return status > 0 ? dt_elementwise_whole(op, target, target, args) : status;
}
