#include "cuda/kernels/compute.h"

namespace {

/* Step is the type to compute in: 64-bit integers or doubles, so that each element is
 * rounded once. */
template <typename T, typename Step>
__global__ void arange_kernel(T *out, int64_t n, Step start, Step step)
{
    int64_t i = thread_number();
    if (i < n)
        out[i] = (T)(Compute<T>)(start + step * (Step)i);
}

template <typename T, typename Step>
int run_arange(dt_stream stream, const dt_arange_call *p, Step start, Step step)
{
    return START("starting a progression", stream, (arange_kernel<T, Step>), p->numel,
                 (T *)p->out, p->numel, start, step);
}

} // namespace

int dt_cuda_arange(dt_stream stream, const dt_arange_call *p)
{
    return with_type(p->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if constexpr (dt_kind_of<T> == DT_KIND_INTEGER)
            return run_arange<T>(stream, p, (int64_t)p->start.i, (int64_t)p->step.i);
        else if constexpr (dt_kind_of<T> == DT_KIND_FLOAT)
            return run_arange<T>(stream, p, dt_scalar_as_double(p->start),
                                 dt_scalar_as_double(p->step));
        else
            return dt_fail(DT_ERROR_RUNTIME, "arange: not defined for the type %s",
                           dt_dtype_name(p->dtype));
    });
}
