/* Packs whose elements memory holds in the type that kernels compute in, or as 16-bit floats. */
#ifndef DT_CUDA_KERNELS_STORED_PACK_H
#define DT_CUDA_KERNELS_STORED_PACK_H

#include "cuda/kernels/compute.h"
#include "cuda/kernels/pack.h"

/* A pack of what kernels compute with as T, which memory holds as Stored or, for floats
 * with `half`, in 16 bits: these take the first registers. */
template <typename T, int N>
struct StoredPack {
    typedef std::conditional_t<std::is_same_v<T, bool>, dt_bool, T> Stored;
    typedef Pack<uint16_t, N> Halves;
    Pack<Stored, N> pack;

    /* In one access. */
    __device__ __forceinline__ void read(const char *at, Half half)
    {
        if constexpr (std::is_same_v<T, float>)
            if (half)
                return put({*(const decltype(Halves::words) *)at});
        pack.words = *(const decltype(pack.words) *)at;
    }
    __device__ __forceinline__ void write(char *at, Half half) const
    {
        if constexpr (std::is_same_v<T, float>)
            if (half) {
                *(decltype(Halves::words) *)at = halves().words;
                return;
            }
        *(decltype(pack.words) *)at = pack.words;
    }
    /* One by one. */
    __device__ __forceinline__ void read_each(const char *const (&at)[N], Half half)
    {
        pack = {};
        if constexpr (std::is_same_v<T, float>)
            if (half) {
                Halves halves = {};
                UNROLL_HERE
                for (int k = 0; k < N; k++)
                    halves.set(k, *(const uint16_t *)at[k]);
                return put(halves);
            }
        UNROLL_HERE
        for (int k = 0; k < N; k++)
            pack.set(k, *(const Stored *)at[k]);
    }
    __device__ __forceinline__ Vector<T, N> elements(Half half) const
    {
        if constexpr (std::is_same_v<T, bool>) {
            return tested(pack.elements());
        } else {
            if constexpr (std::is_same_v<T, float>)
                if (half)
                    return widened(halves().elements(), half == BRAIN16);
            return pack.elements();
        }
    }

  private:
    __device__ __forceinline__ Halves halves() const
    {
        Halves halves;
        UNROLL
        for (int w = 0; w < N / Halves::EACH; w++)
            halves.words.v[w] = pack.words.v[w];
        return halves;
    }
    __device__ __forceinline__ void put(Halves halves)
    {
        UNROLL
        for (int w = 0; w < N / Halves::EACH; w++)
            pack.words.v[w] = halves.words.v[w];
    }
};

#endif
