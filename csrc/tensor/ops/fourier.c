/* Fourier transforms by a device's library. */
#include "device/fourier.h"

#include "device/backend.h"
#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

/* The call without its memory. */
static int describe(const dt_call *c, dt_fourier_call *call)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_dtype dtype = (dt_dtype)x->dtype;
    const int64_t n = c->args[3].i;
    const bool is_complex = dt_dtype_is_complex(dtype);
    call->kind = !is_complex ? DT_FOURIER_FROM_REAL
                 : n         ? DT_FOURIER_TO_REAL
                             : DT_FOURIER_COMPLEX;
    call->dtype = dt_dtype_to_complex(dtype);
    call->forward = c->args[2].b;
    call->ndim = (int)c->args[1].i;
    call->batch = 1;
    if (c->args[1].i < 1 || c->args[1].i > DT_FOURIER_DIMS || x->ndim < call->ndim ||
        (call->kind && call->ndim > 1) ||
        !(is_complex || dtype == DT_FLOAT32 || dtype == DT_FLOAT64) || n < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %lld dimensions of %s with %d; give 1 to 3 of complex "
                       "elements, or 1 of float32 or float64",
                       c->name, (long long)c->args[1].i, dt_dtype_name(dtype), x->ndim);
    for (int d = 0; d < x->ndim; d++) {
        const int at = d - x->ndim + call->ndim;
        if (at < 0)
            call->batch *= x->shape[d];
        else
            call->sizes[at] = x->shape[d];
    }
    if (call->kind == DT_FOURIER_TO_REAL) {
        if (call->sizes[0] != n / 2 + 1)
            return dt_fail(
                DT_ERROR_RUNTIME, "%s: %lld elements for %lld real ones; give %lld",
                c->name, (long long)call->sizes[0], (long long)n, (long long)n / 2 + 1);
        call->sizes[0] = n;
    }
    return 0;
}

int dt_fourier_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_device device = dt_tensor_device(x);
    const dt_backend *backend = dt_backend_of(device);
    dt_fourier_call call;
    dt_tensor input = {0};
    int64_t shape[DT_MAX_NDIM];
    int status = -1;
    if (!backend->fourier)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: input is on a device without a library of transforms; move "
                       "it to a GPU",
                       c->name);
    if (describe(c, &call))
        return -1;
    for (int d = 0; d < x->ndim; d++)
        shape[d] = x->shape[d];
    if (call.kind)
        shape[x->ndim - 1] =
            call.kind == DT_FOURIER_TO_REAL ? call.sizes[0] : call.sizes[0] / 2 + 1;
    const dt_dtype result =
        call.kind == DT_FOURIER_TO_REAL ? dt_dtype_part(call.dtype) : call.dtype;
    if (dt_tensor_empty(c->name, c->out[0], result, x->ndim, shape, device))
        return -1;
    if (!c->out[0]->numel || !x->numel)
        return 0;
    /* The library may overwrite the input of a transform to real elements. */
    if (call.kind != DT_FOURIER_TO_REAL)
        status = dt_contiguous(&input, x);
    else if (!dt_tensor_empty(c->name, &input, (dt_dtype)x->dtype, x->ndim, x->shape,
                              device))
        status = dt_copy_part(c->name, &input, x);
    if (!status && !(status = dt_tensor_use(&input)) &&
        !(status = dt_tensor_use(c->out[0]))) {
        call.x = dt_tensor_data(&input);
        call.y = dt_tensor_data(c->out[0]);
        status = backend->fourier(dt_stream_current(device), &call);
    }
    dt_tensor_clear(&input);
    return status;
}
