/* Complex tensors. Backends compute with complex numbers in elementwise calls alone: what
 * moves or adds elements takes them as pairs of real ones. */
#ifndef DT_TENSOR_OPS_COMPLEX_H
#define DT_TENSOR_OPS_COMPLEX_H

#include "device/stream.h"
#include "ops/ops.h"
#include "tensor/tensor.h"
#include "tensor/ops/elementwise.h"

/* The real (which is 0) or imaginary parts (1) of a complex tensor, a view. Cannot fail. */
void dt_complex_part(dt_tensor *view, const dt_tensor *t, int which);

/* A complex tensor as one of real numbers with a last dimension of 2 more, a view; and
 * back. RuntimeError where t has no such view. */
int dt_complex_pairs(const char *op_name, dt_tensor *view, const dt_tensor *t);
int dt_complex_of_pairs(const char *op_name, dt_tensor *view, const dt_tensor *t);

/* A complex number as a tensor without dimensions, on the CPU. */
int dt_complex_number(const char *op_name, dt_tensor *out, dt_dtype dtype, double real,
                      double imag);

/* The functions of dt_backend for complex types, by those for real ones. They change what
 * describes the call. */
int dt_complex_copy(const char *op_name, dt_device device, dt_plan *plan);
int dt_complex_fill(dt_device device, dt_plan *plan);
int dt_complex_index(dt_device device, dt_index_op op, dt_index_call *call);

/* The functions of dt_backend, for all types. */
static inline int dt_run_copy(const char *op_name, dt_device device, dt_plan *plan)
{
    return dt_dtype_is_complex(plan->operands[0].dtype) ||
                   dt_dtype_is_complex(plan->operands[1].dtype)
               ? dt_complex_copy(op_name, device, plan)
               : dt_backend_of(device)->copy(dt_stream_current(device), plan);
}
static inline int dt_run_fill(dt_device device, dt_plan *plan)
{
    return dt_dtype_is_complex(plan->operands[0].dtype)
               ? dt_complex_fill(device, plan)
               : dt_backend_of(device)->fill(dt_stream_current(device), plan);
}
static inline int dt_run_index(dt_device device, dt_index_op op, dt_index_call *call)
{
    return dt_dtype_is_complex(call->dtype)
               ? dt_complex_index(device, op, call)
               : dt_backend_of(device)->index(dt_stream_current(device), op, call);
}

/* abs, angle, sign, isreal, lerp, logaddexp, silu and sinc of complex tensors; an error for
 * another row. target and out are as in dt_elementwise_whole. */
int dt_complex_elementwise(dt_elementwise_op op, dt_tensor *out, dt_tensor *target,
                           const dt_arg *args);

/* Fails where `number`, a tensor without dimensions, has an imaginary part that dtype
 * cannot hold. One on a GPU is not looked at, since the host would wait for it. */
int dt_check_imag(const char *op_name, dt_dtype dtype, const dt_tensor *number);

/* Fails for a complex tensor. */
int dt_check_real(const char *op_name, dt_error_code code, const dt_tensor *t);

#endif
