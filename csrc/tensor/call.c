#include "tensor/call.h"

#include <stdlib.h>

#include "tensor/ops/complex.h"

int dt_call_make_list(dt_call *call, int64_t count)
{
    /* calloc checks the product, and touches no memory before it is used. */
    call->list = calloc((size_t)(count ? count : 1), sizeof *call->list);
    if (!call->list)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): there is no memory for %lld parts; ask for fewer",
                       call->name, (long long)count);
    call->list_count = count;
    return 0;
}

void dt_call_free_list(dt_call *call)
{
    for (int64_t i = 0; call->list && i < call->list_count; i++)
        dt_tensor_clear(&call->list[i]);
    free(call->list);
    call->list = NULL;
}

int dt_call_number(const dt_call *c, int i, dt_dtype dtype, dt_tensor *number,
                   dt_arg *out)
{
    const dt_value *v = &c->args[i];
    *out = dt_arg_scalar(v->scalar);
    if (v->scalar.kind != DT_KIND_COMPLEX)
        return 0;
    if (dt_complex_number(c->name, number, DT_COMPLEX128, v->scalar.f, v->imag) ||
        dt_check_imag(c->name, dtype, number))
        return -1;
    *out = dt_dtype_is_complex(dtype) ? dt_arg_tensor(number)
                                      : dt_arg_scalar(dt_scalar_float(v->scalar.f));
    return 0;
}
