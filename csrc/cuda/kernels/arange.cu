#include "cuda/kernels/arange.h"

#include "cuda/kernels/compute.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/layout.h"

namespace {

/* Step is the type to compute in: 64-bit integers or doubles, so that each element is
 * rounded once. */
template <typename T, typename Step>
__global__ void progression_kernel(T *out, int64_t n, Step start, Step step, bool brain)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        store(out + i, (Compute<T>)(start + step * (Step)i), brain);
}

template <typename T, typename Step>
static int run(dt_stream stream, const dt_arange_call *p, Step start, Step step)
{
    CUDA_TRY("starting a progression",
             LAUNCH((progression_kernel<T, Step>), blocks_for(p->numel), BLOCK, 0,
                    (cudaStream_t)stream.handle, (T *)p->out, p->numel, start, step,
                    p->dtype == DT_BFLOAT16));
    return 0;
}

} // namespace

int arange_run(dt_stream stream, const dt_arange_call *p)
{
    if (device_use(stream.device))
        return -1;
    switch (p->dtype) {
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    case DT_##ID:                                                                      \
        return run<type>(stream, p, (int64_t)p->start.i, (int64_t)p->step.i);
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        return run<type>(stream, p, dt_scalar_as_double(p->start),                     \
                         dt_scalar_as_double(p->step));
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        return run<Bits16>(stream, p, dt_scalar_as_double(p->start),                   \
                           dt_scalar_as_double(p->step));
#define DT_DTYPE_BOOL(ID, name, alias, type, class)
#include "ops/dtype.def"
    default:
        return dt_fail(DT_ERROR_RUNTIME, "arange: not defined for the type %s",
                       dt_dtype_name(p->dtype));
    }
}
