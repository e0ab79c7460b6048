/* Packs: elements of which a thread starts all loads before it uses the first. */
#ifndef DT_CUDA_KERNELS_PACK_H
#define DT_CUDA_KERNELS_PACK_H

#include <type_traits>

#include "cuda/kernels/vector.h"

/* 16 bytes that are moved. */
struct alignas(16) Long {
    uint64_t low, high;
};

/* The unsigned integer of a number of bytes, or 16 of them. */
template <int SIZE>
using Unsigned = std::conditional_t<
    SIZE == 1, uint8_t,
    std::conditional_t<
        SIZE == 2, uint16_t,
        std::conditional_t<SIZE == 4, uint32_t,
                           std::conditional_t<SIZE == 8, uint64_t, Long>>>>;

/* Elements of a pack in registers, as stored. Small ones share a register, so
 * that nothing is done with them while other packs are on their way. */
template <typename T, int N>
struct Pack {
    static constexpr int SIZE = (int)sizeof(T);
    static constexpr int EACH = SIZE >= 4 ? 1 : SIZE * N < 4 ? N : 4 / SIZE;
    typedef Unsigned<SIZE> Bits;
    typedef Unsigned<SIZE * EACH> Word;
    Vector<Word, N / EACH> words;

    __device__ __forceinline__ void set(int k, T element)
    {
        Bits bits;
        __builtin_memcpy(&bits, &element, sizeof bits);
        if constexpr (SIZE > 8)
            words.v[k] = bits;
        else
            words.v[k / EACH] |= (Word)((Word)bits << k % EACH * SIZE * 8);
    }
    __device__ __forceinline__ T get(int k) const
    {
        T element;
        Bits bits;
        if constexpr (SIZE > 8)
            bits = words.v[k];
        else
            bits = (Bits)(words.v[k / EACH] >> k % EACH * SIZE * 8);
        __builtin_memcpy(&element, &bits, sizeof element);
        return element;
    }
    __device__ __forceinline__ Vector<T, N> elements() const
    {
        Vector<T, N> vector;
        UNROLL
        for (int k = 0; k < N; k++)
            vector.v[k] = get(k);
        return vector;
    }
};
template <typename T, int N>
static __device__ __forceinline__ Pack<T, N> packed(const Vector<T, N> &vector)
{
    Pack<T, N> pack = {};
    UNROLL
    for (int k = 0; k < N; k++)
        pack.set(k, vector.v[k]);
    return pack;
}

#endif
