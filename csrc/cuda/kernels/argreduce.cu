/* Where the greatest or least element is: reductions of pairs of value and place. */
#include "cuda/runtime/allocator.h"
#include "cuda/kernels/compute.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/reduce_plan.h"
#include "cuda/kernels/reduce.h"

template <typename T>
struct Found {
    T value;
    int64_t index; /* -1: nothing found yet */
};

/* Whether a goes before b: a NaN before all, then by size, then the earlier place. */
template <typename T>
static __device__ __forceinline__ bool goes_before(const Found<T> &a, const Found<T> &b,
                                                   bool greatest)
{
    if (a.index < 0 || b.index < 0)
        return b.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan)
        return a_nan;
    if (!a_nan && a.value != b.value)
        return greatest ? a.value > b.value : a.value < b.value;
    return a.index < b.index;
}

template <typename T>
static __device__ __forceinline__ Found<T> from_lane(const Found<T> &mine, int delta)
{
    Found<T> other;
    if constexpr (sizeof(T) < 4)
        other.value =
            (T)__shfl_down_sync(0xffffffffu, (int)mine.value, (unsigned)delta);
    else if constexpr (sizeof(T) == 8 && T(0.5) == T(0))
        other.value =
            (T)__shfl_down_sync(0xffffffffu, (long long)mine.value, (unsigned)delta);
    else
        other.value = __shfl_down_sync(0xffffffffu, mine.value, (unsigned)delta);
    other.index =
        (int64_t)__shfl_down_sync(0xffffffffu, (long long)mine.index, (unsigned)delta);
    return other;
}

/* places: where the elements of a second stage come from; NULL: an element's own
 * number. */
template <typename T>
__global__ void argreduce_kernel(T *values, int64_t *indices, const char *input,
                                 const int64_t *places, GRID_CONSTANT(Folding) f,
                                 bool greatest, bool brain)
{
    typedef Compute<T> C;
    Place p = place_of(f);
    Found<C> best = {C(), -1};
    if (p.live) {
        const char *base = input + offset_in(f.kept, p.result);
        ROLLED
        for (int64_t i = p.first; i < p.end; i += f.threads) {
            Found<C> next = {loaded((const T *)(base + offset_in(f.folded, i)), brain),
                             places ? places[p.result * f.elements + i] : i};
            if (goes_before(next, best, greatest))
                best = next;
        }
    }
    if (f.threads > 1) {
        ROLLED
        for (int delta = 16; delta; delta /= 2) {
            Found<C> other = from_lane(best, delta);
            if (goes_before(other, best, greatest))
                best = other;
        }
    }
    if (f.threads > 32) {
        __shared__ C warp_values[BLOCK / 32];
        __shared__ int64_t warp_indices[BLOCK / 32];
        if (threadIdx.x % 32 == 0) {
            warp_values[threadIdx.x / 32] = best.value;
            warp_indices[threadIdx.x / 32] = best.index;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            ROLLED
            for (int w = 1; w < BLOCK / 32; w++) {
                Found<C> other = {warp_values[w], warp_indices[w]};
                if (goes_before(other, best, greatest))
                    best = other;
            }
        }
    }
    if (p.live && threadIdx.x % (unsigned)f.threads == 0) {
        int64_t at = p.result * f.parts + p.part;
        if (values)
            store(values + at, best.value, brain);
        if (indices)
            indices[at] = best.index;
    }
}

template <typename T>
static int launch(dt_stream stream, T *values, int64_t *indices, const void *input,
                  const int64_t *places, Folding *f, bool greatest, bool brain)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    int64_t blocks = reduce_blocks(f);
    cudaError_t error =
        f->threads == 1
            ? LAUNCH((argreduce_kernel<T>), blocks, BLOCK, 0, handle, values, indices,
                     (const char *)input, places, *f, greatest, brain)
            : LAUNCH_BARRIERS((argreduce_kernel<T>), blocks, BLOCK, 0, handle, values,
                              indices, (const char *)input, places, *f, greatest,
                              brain);
    CUDA_TRY("starting a search for an extreme", error);
    return 0;
}

template <typename T>
static int run(dt_stream stream, bool greatest, const dt_reduction *call)
{
    Folding f;
    T *values = (T *)call->output;
    bool brain = call->input_dtype == DT_BFLOAT16;
    if (reduce_plan(call, &f))
        return -1;
    if (f.parts == 1)
        return launch(stream, values, call->index, call->input, nullptr, &f, greatest,
                      brain);
    void *partial = nullptr, *places = nullptr;
    size_t count = (size_t)(f.results * f.parts);
    int status = -1;
    if (!allocator_allocate(stream, count * sizeof(T), &partial) &&
        !allocator_allocate(stream, count * sizeof(int64_t), &places)) {
        Folding second = reduce_plan_parts(f.results, f.parts, sizeof(T));
        status = launch(stream, (T *)partial, (int64_t *)places, call->input, nullptr,
                        &f, greatest, brain);
        if (!status)
            status = launch(stream, values, call->index, partial,
                            (const int64_t *)places, &second, greatest, brain);
    }
    if (places)
        allocator_release(stream.device, places, count * sizeof(int64_t));
    if (partial)
        allocator_release(stream.device, partial, count * sizeof(T));
    return status;
}

int reduce_arg(dt_stream stream, bool greatest, const dt_reduction *call)
{
    if (device_use(stream.device))
        return -1;
    switch (call->input_dtype) {
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    case DT_##ID:                                                                      \
        return run<type>(stream, greatest, call);
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        return run<Bits16>(stream, greatest, call);
#include "ops/dtype.def"
    default:
        return dt_fail(DT_ERROR_RUNTIME,
                       "no search for an extreme in tensors of this type");
    }
}
