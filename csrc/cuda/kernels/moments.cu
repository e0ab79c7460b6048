/* Variances and means: reductions of count, mean and sum of squared deviations. */
#include "cuda/runtime/allocator.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/reduce_plan.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/scan.h"

/* One by one after Welford (1962), two sets as Chan, Golub and LeVeque (1979) join
 * them. */
template <typename T>
struct Moments {
    T count, mean, square;
};
template <typename T>
LONG Moments<T> joined(Moments<T> a, Moments<T> b)
{
    if (b.count == T(0))
        return a;
    if (a.count == T(0))
        return b;
    T count = a.count + b.count, off = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + off * share,
            a.square + b.square + off * off * (a.count * share)};
}
template <typename T>
static __device__ __forceinline__ Moments<T> from_lane(const Moments<T> &mine,
                                                       int delta)
{
    return {__shfl_down_sync(0xffffffffu, mine.count, (unsigned)delta),
            __shfl_down_sync(0xffffffffu, mine.mean, (unsigned)delta),
            __shfl_down_sync(0xffffffffu, mine.square, (unsigned)delta)};
}

/* First: the input is elements; else it is Moments. Where there is one part the results
 * are finished, else they are written to parts, [result][part]. */
template <typename T, bool First>
__global__ void moments_kernel(T *variances, T *means, Moments<T> *parts,
                               const char *input, GRID_CONSTANT(Folding) f,
                               double divisor)
{
    Place p = place_of(f);
    Moments<T> all = {0, 0, 0};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        ROLLED
        for (int64_t i = p.first; i < p.end; i += f.threads) {
            const char *at = base + offset_in(f.folded, i);
            if constexpr (First) {
                T x = *(const T *)at;
                all.count += T(1);
                T off = x - all.mean;
                all.mean += off / all.count;
                all.square += off * (x - all.mean);
            } else {
                all = joined(all, *(const Moments<T> *)at);
            }
        }
    }
    if (f.threads > 1) {
        ROLLED
        for (int delta = 16; delta; delta /= 2)
            all = joined(all, from_lane(all, delta));
    }
    if (f.threads > 32) {
        __shared__ T shared[3][BLOCK / 32];
        unsigned warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) {
            shared[0][warp] = all.count;
            shared[1][warp] = all.mean;
            shared[2][warp] = all.square;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            ROLLED
            for (int w = 1; w < BLOCK / 32; w++)
                all = joined(all, Moments<T>{shared[0][w], shared[1][w], shared[2][w]});
        }
    }
    if (!p.live || threadIdx.x % (unsigned)f.threads)
        return;
    if (parts) {
        parts[p.result * f.parts + p.part] = all;
        return;
    }
    T none = T(0) / T(0);
    variances[p.result] = all.count == T(0) ? none : (T)(all.square / (T)divisor);
    if (means)
        means[p.result] = all.count == T(0) ? none : all.mean;
}

template <typename T, bool First>
static int launch(dt_stream stream, T *variances, T *means, Moments<T> *parts,
                  const void *input, Folding *f, double divisor)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    int64_t blocks = reduce_blocks(f);
    cudaError_t error =
        f->threads == 1
            ? LAUNCH((moments_kernel<T, First>), blocks, BLOCK, 0, handle, variances,
                     means, parts, (const char *)input, *f, divisor)
            : LAUNCH_BARRIERS((moments_kernel<T, First>), blocks, BLOCK, 0, handle,
                              variances, means, parts, (const char *)input, *f,
                              divisor);
    CUDA_TRY("starting a variance", error);
    return 0;
}

template <typename T>
static int run(dt_stream stream, void *mean, const dt_reduction *call)
{
    Folding f;
    double divisor = (double)call->folded_numel - call->parameter;
    divisor = divisor > 0 ? divisor : 0;
    if (reduce_plan(call, &f))
        return -1;
    T *variances = (T *)call->output, *means = (T *)mean;
    if (f.parts == 1)
        return launch<T, true>(stream, variances, means, (Moments<T> *)nullptr,
                               call->input, &f, divisor);
    void *parts = nullptr;
    size_t bytes = (size_t)(f.results * f.parts) * sizeof(Moments<T>);
    if (allocator_allocate(stream, bytes, &parts))
        return -1;
    Folding second = reduce_plan_parts(f.results, f.parts, sizeof(Moments<T>));
    int status = launch<T, true>(stream, (T *)nullptr, (T *)nullptr,
                                 (Moments<T> *)parts, call->input, &f, divisor);
    if (!status)
        status = launch<T, false>(stream, variances, means, (Moments<T> *)nullptr,
                                  parts, &second, divisor);
    allocator_release(stream.device, parts, bytes);
    return status;
}

int moments_run(dt_stream stream, void *mean, const dt_reduction *call)
{
    if (device_use(stream.device))
        return -1;
    return call->input_dtype == DT_FLOAT32 ? run<float>(stream, mean, call)
                                           : run<double>(stream, mean, call);
}
