/* Weighted sums along a dimension: a thread for each of them. */
#include "cuda/kernels/layout.h"

#include "device/resample.h"

namespace {

struct Sizes {
    LongDivider outputs, inner;
    int64_t inputs, numel;
};
NO_POINTERS(Sizes)

template <typename T>
__global__ void resample_kernel(T *y, const T *x, const int64_t *starts,
                                const dt_tap *taps, GRID_CONSTANT(Sizes) s)
{
    typedef std::conditional_t<std::is_integral_v<T>, uint64_t, T> Sum;
    const int64_t number = thread_number();
    if (number >= s.numel)
        return;
    const int64_t above = divide(number, s.inner), n = s.inner.divisor;
    const int64_t outer = divide(above, s.outputs),
                  o = above - outer * s.outputs.divisor;
    const T *column = x + outer * s.inputs * n + (number - above * n);
    Sum sum = 0;
    const int64_t end = starts[o + 1];
    for (int64_t t = starts[o]; t < end; t++)
        sum += (Sum)taps[t].weight * (Sum)column[taps[t].index * n];
    y[number] = (T)sum;
}

template <typename T>
int run_resample(dt_stream stream, const dt_resample_call *c)
{
    const size_t starts_bytes = (size_t)(c->outputs + 1) * sizeof(int64_t);
    const size_t taps_bytes = (size_t)c->starts[c->outputs] * sizeof(dt_tap);
    Scratch starts(stream, starts_bytes), taps(stream, taps_bytes ? taps_bytes : 1);
    if (!starts.data || !taps.data ||
        dt_cuda_copy_to_device(stream, starts.data, c->starts, starts_bytes) ||
        dt_cuda_copy_to_device(stream, taps.data, c->taps, taps_bytes))
        return -1;
    Sizes s = {long_divider_for(c->outputs), long_divider_for(c->inner), c->inputs,
               c->outer * c->outputs * c->inner};
    return START("starting a resampling", stream, (resample_kernel<T>), s.numel,
                 (T *)c->y, (const T *)c->x, (const int64_t *)starts.data,
                 (const dt_tap *)taps.data, s);
}

} // namespace

int dt_cuda_resample(dt_stream stream, const dt_resample_call *call)
{
    return call->dtype == DT_FLOAT32   ? run_resample<float>(stream, call)
           : call->dtype == DT_FLOAT64 ? run_resample<double>(stream, call)
                                       : run_resample<int64_t>(stream, call);
}
