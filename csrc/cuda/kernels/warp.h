/* The values of a group of threads, reduced to one. */
#ifndef DT_CUDA_KERNELS_WARP_H
#define DT_CUDA_KERNELS_WARP_H

#include "cuda/kernels/layout.h"
#ifdef SIM_CUDA
#include "sim/reductions.h"
#endif

/* A value of any type from another lane of the warp, by shuffle(word), which moves words
 * of 4 and 8 bytes. */
template <typename T, class Shuffle>
static __device__ __forceinline__ T from_lane(const T &mine, Shuffle shuffle)
{
    typedef std::conditional_t<sizeof(T) % 8 == 0, long long, int> Word;
    constexpr int N = (sizeof(T) + sizeof(Word) - 1) / sizeof(Word);
    Word words[N] = {};
    T other;
    __builtin_memcpy(words, &mine, sizeof mine);
    UNROLL
    for (int k = 0; k < N; k++)
        words[k] = shuffle(words[k]);
    __builtin_memcpy(&other, words, sizeof other);
    return other;
}

/* combine(a, b) over each LANES neighbours of a warp, a power of two: all of them have the
 * result. */
template <int LANES, typename T, class Combine>
static __device__ __forceinline__ T reduce_lanes(const T &given, Combine combine)
{
    T value = given;
#ifdef SIM_CUDA
    if (sim::groups_meet) {
        sim::reduce_lanes(value, LANES, combine);
        return value;
    }
#endif
    UNROLL
    for (int lanes = LANES / 2; lanes; lanes /= 2)
        value = combine(value, from_lane(value, [&](auto word) {
                            return __shfl_xor_sync(0xffffffffu, word, lanes);
                        }));
    return value;
}

/* combine(a, b) over the threads of a group: the result of the first of 1 or 32 threads
 * or of a block's, a power of two, or with EVERYONE of each of more than one. */
template <bool EVERYONE, typename T, class Combine>
static __device__ __forceinline__ T reduce_group(T value, int threads, Combine combine)
{
    if (!EVERYONE && threads == 1)
        return value;
#ifdef SIM_CUDA
    if (sim::groups_meet) {
        sim::reduce<EVERYONE>(value, threads, combine);
        return value;
    }
#endif
    STATIC_SHARED(T[32], warps);
    int lanes = 16;
    for (bool meets = threads == 32;; meets = true) {
        ROLLED
        for (; lanes; lanes /= 2)
            value = combine(value, from_lane(value, [&](auto word) {
                                return __shfl_xor_sync(0xffffffffu, word, lanes);
                            }));
        if (meets)
            break;
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = value;
        __syncthreads();
        if (!EVERYONE && threadIdx.x >= 32)
            return value;
        lanes = threads / 64;
        value = warps[threadIdx.x % (unsigned)(threads / 32)];
        if (EVERYONE)
            __syncthreads(); /* before the next reduction writes there */
    }
    return value;
}

/* combine(a, b), with a before b, over `lead` and the threads of a block before this one;
 * in *total over all of them. `warps` is shared memory that no thread uses meanwhile. */
template <typename T, class Combine>
static __device__ __forceinline__ T before_in_block(T mine, const T &lead, T *total,
                                                    T *warps, Combine combine)
{
#ifdef SIM_CUDA
    if (sim::groups_meet)
        return sim::before(mine, lead, total, BLOCK, combine);
#endif
    auto from_below = [](const T &value, unsigned delta) {
        return from_lane(
            value, [&](auto word) { return __shfl_up_sync(0xffffffffu, word, delta); });
    };
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    ROLLED
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        T left = from_below(mine, delta);
        if (lane >= delta)
            mine = combine(left, mine);
    }
    T left = from_below(mine, 1);
    __syncthreads(); /* what the last call left there has been read */
    if (lane == 31)
        warps[warp] = mine;
    __syncthreads();
    T sum = lead;
    ROLLED
    for (unsigned w = 0; w < warp; w++)
        sum = combine(sum, warps[w]);
    T all = sum;
    ROLLED
    for (unsigned w = warp; w < BLOCK / 32; w++)
        all = combine(all, warps[w]);
    *total = all;
    return lane ? combine(sum, left) : sum;
}

#endif
