/* Variances and means: reductions of count, mean and sum of squared deviations. */
#include "cuda/runtime/allocator.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/reduce_plan.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/scan.h"

#define MOMENTS_FN LONG
#include "ops/moments.h"

namespace {

/* A run of elements one by one, in their own type (Welford, 1962); runs are joined in
 * double. */
template <typename T>
struct MomentsRun {
    T count, mean, square;
    __device__ __forceinline__ void add(T x)
    {
        T off = x - mean;
        count += T(1);
        mean += off / count;
        square += off * (x - mean);
    }
    __device__ __forceinline__ dt_moments take()
    {
        dt_moments run = {(double)count, (double)mean, (double)square};
        count = mean = square = 0;
        return run;
    }
};
static __device__ __forceinline__ dt_moments from_lane_above(const dt_moments &mine,
                                                             int delta)
{
    return {__shfl_down_sync(0xffffffffu, mine.count, (unsigned)delta),
            __shfl_down_sync(0xffffffffu, mine.mean, (unsigned)delta),
            __shfl_down_sync(0xffffffffu, mine.square, (unsigned)delta)};
}

/* First: the input is elements; else it is moments. Where there is one part the results
 * are finished, else they are written to parts, [result][part]. */
template <typename T, bool First>
__global__ void moments_kernel(T *variances, T *means, dt_moments *parts,
                               const char *input, GRID_CONSTANT(Folding) f,
                               double divisor)
{
    Place p = place_of(f);
    dt_moments all = {0, 0, 0};
    MomentsRun<T> run = {0, 0, 0};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        ROLLED
        for (int64_t i = p.first; i < p.end; i += f.threads) {
            const char *at = base + offset_in(f.folded, i);
            if constexpr (First) {
                run.add(*(const T *)at);
                if (run.count == T(32))
                    all = dt_moments_join(all, run.take());
            } else {
                all = dt_moments_join(all, *(const dt_moments *)at);
            }
        }
    }
    if (First)
        all = dt_moments_join(all, run.take());
    if (f.threads > 1) {
        ROLLED
        for (int delta = 16; delta; delta /= 2)
            all = dt_moments_join(all, from_lane_above(all, delta));
    }
    if (f.threads > 32) {
        __shared__ double shared[3][BLOCK / 32];
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
                all = dt_moments_join(all, {shared[0][w], shared[1][w], shared[2][w]});
        }
    }
    if (!p.live || threadIdx.x % (unsigned)f.threads)
        return;
    if (parts) {
        parts[p.result * f.parts + p.part] = all;
        return;
    }
    T none = T(0) / T(0);
    variances[p.result] = all.count == 0 ? none : (T)(all.square / divisor);
    if (means)
        means[p.result] = all.count == 0 ? none : (T)all.mean;
}

template <typename T, bool First>
static int launch(dt_stream stream, T *variances, T *means, dt_moments *parts,
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
        return launch<T, true>(stream, variances, means, (dt_moments *)nullptr,
                               call->input, &f, divisor);
    void *parts = nullptr;
    size_t bytes = (size_t)(f.results * f.parts) * sizeof(dt_moments);
    if (allocator_allocate(stream, bytes, &parts))
        return -1;
    Folding second = reduce_plan_parts(f.results, f.parts, sizeof(dt_moments));
    int status = launch<T, true>(stream, (T *)nullptr, (T *)nullptr,
                                 (dt_moments *)parts, call->input, &f, divisor);
    if (!status)
        status = launch<T, false>(stream, variances, means, (dt_moments *)nullptr,
                                  parts, &second, divisor);
    allocator_release(stream.device, parts, bytes);
    return status;
}

} // namespace

int moments_run(dt_stream stream, void *mean, const dt_reduction *call)
{
    if (device_use(stream.device))
        return -1;
    return call->input_dtype == DT_FLOAT32 ? run<float>(stream, mean, call)
                                           : run<double>(stream, mean, call);
}
