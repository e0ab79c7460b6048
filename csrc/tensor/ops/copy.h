/* Conversions from one device, type or layout to another, and of single elements to numbers. */
#ifndef DT_TENSOR_OPS_COPY_H
#define DT_TENSOR_OPS_COPY_H

#include "device/activity.h"
#include "tensor/format.h"
#include "tensor/tensor.h"

/* t with another type on another device. Always copies; where neither changes it is a
 * clone. A row-major result, or where t is dense in another order of dimensions, that
 * order. Waits when the target is the CPU and t is not. */
int dt_to(dt_tensor *out, const dt_tensor *t, dt_dtype dtype, dt_device device);

/* As dt_to, in a memory format. non_blocking: a copy of page-locked memory to a GPU, in
 * one piece and of one type, does not wait: t is to stay as it is until it is over. */
int dt_to_format(dt_tensor *out, const dt_tensor *t, dt_dtype dtype, dt_device device,
                 dt_format format, bool non_blocking);

/* t itself, as an alias, where it is row-major already; else a row-major copy. */
int dt_contiguous(dt_tensor *out, const dt_tensor *t);
/* The same of a dtype and on a device. Waits as dt_to. */
int dt_contiguous_as(dt_tensor *out, const dt_tensor *t, dt_dtype dtype,
                     dt_device device);

/* Converts t itself to dtype, in new memory, unless it has it. */
int dt_retype(dt_tensor *t, dt_dtype dtype);

/* target[...] = source, broadcasting, converting, across devices. Waits as dt_to. */
int dt_copy_into(const char *op_name, dt_tensor *target, const dt_tensor *source);

/* target = source, both of one shape on one device, converting: for parts of a new
 * tensor. Both may be structs that only describe a part; steps of the source may be
 * negative. */
int dt_copy_part(const char *op_name, dt_tensor *target, const dt_tensor *source);

/* The only element of t. Waits for the device. `op_name` is item, __bool__, ... */
int dt_item(const char *op_name, const dt_tensor *t, dt_scalar *out);

/* Tells observers that the host reads t's memory itself. -1 if one forbids it. */
int dt_host_use(const char *op_name, const dt_tensor *t);
/* Only pinned memory is used by streams too. */
static inline int dt_tensor_used_by_host(const char *op_name, const dt_tensor *t)
{
    return t->storage->pinned && dt_observers ? dt_host_use(op_name, t) : 0;
}

#endif
