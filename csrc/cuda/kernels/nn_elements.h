/* The elements of an operand of ops/nn.def that a thread reads, in vectors with the slots
 * 0, 1 ...
 *
 * It asks for a vector of each operand, and then gets them as numbers, so that none is
 * widened from 16 bits before all are on their way. at(i) is element i of the row, and
 * loose(i) that of the thread: see CudaRow. */
#ifndef DT_CUDA_KERNELS_NN_ELEMENTS_H
#define DT_CUDA_KERNELS_NN_ELEMENTS_H

#include "cuda/kernels/stored_pack.h"

namespace {

/* The address of element i of a stored operand. */
template <typename T, typename Byte>
static __device__ __forceinline__ Byte *stored_at(Byte *data, int64_t i, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half)
            return data + i * 2;
    return data + i * (int64_t)sizeof(T);
}
template <typename T>
static __device__ __forceinline__ T stored(const T *data, int64_t i, Half half)
{
    return element_at<T>(stored_at<T>((const char *)data, i, half), half);
}

/* Calls ask(the width of elements, as a constant). So its loops have no branch by width, at
 * whose end the compiler would wait for the loads. */
template <typename T, class Ask>
static __device__ __forceinline__ void by_width(Half half, Ask ask)
{
    if constexpr (std::is_same_v<T, float>)
        if (half) {
            ask(std::integral_constant<Half, HALF16>());
            return;
        }
    ask(std::integral_constant<Half, WHOLE>());
}

/* f(an element of each vector) */
template <typename T, int N, class F, class... V>
static __device__ __forceinline__ Vector<T, N> each_element(F f, const V &...v)
{
    Vector<T, N> made;
    UNROLL
    for (int j = 0; j < N; j++)
        made.v[j] = f(v.v[j]...);
    return made;
}

/* Where a thread has the elements that it needs again: in so many registers, or for
 * IN_SHARED in shared memory, as many as there is room for; with NOWHERE it reads them
 * each time. */
enum { NOWHERE = 0, IN_SHARED = -1 };

template <typename T, int KEPT, int N>
struct Elements {
    const char *data, *mine; /* of the row, and of slot 0 */
    int64_t stride, hop;     /* from an element, and from a slot, to the next */
    Half half;
    Vector<T, N> kept[KEPT > 0 ? KEPT / N : 1];
    const char *near; /* IN_SHARED: the first `room` slots */
    int near_hop, room;
    T single; /* the loose element, unless NOWHERE */

    __device__ __forceinline__ StoredPack<T, N> ask(int slot) const
    {
        StoredPack<T, N> asked = {};
        if constexpr (KEPT == IN_SHARED) {
            if (slot < room)
                asked.read(near + slot * near_hop, half);
            else
                asked.read(mine + slot * hop, half);
        } else if constexpr (KEPT == NOWHERE) {
            asked.read(mine + slot * hop, half);
        }
        return asked;
    }
    __device__ __forceinline__ Vector<T, N> got(const StoredPack<T, N> &asked,
                                                int slot) const
    {
        if constexpr (KEPT > 0)
            return kept[slot];
        else
            return asked.elements(half);
    }
    __device__ __forceinline__ T loose(int64_t i) const
    {
        return KEPT == NOWHERE ? at(i) : single;
    }
    __device__ __forceinline__ T at(int64_t i) const
    {
        return element_at<T>(stored_at<T>(data, i * stride, half), half);
    }
};

template <typename T, int N>
static __device__ __forceinline__ Vector<T, N> filled(T value)
{
    Vector<T, N> same;
    UNROLL
    for (int j = 0; j < N; j++)
        same.v[j] = value;
    return same;
}

template <typename T, int N>
struct SharedElements {
    const char *data, *mine;
    int hop;
    T missing;
    Half half;
    bool aligned;

    __device__ __forceinline__ StoredPack<T, N> ask(int slot) const
    {
        StoredPack<T, N> asked = {};
        const char *from = mine + slot * (int64_t)hop, *each[N];
        if (data && aligned) {
            asked.read(from, half);
        } else if (data) {
            UNROLL
            for (int k = 0; k < N; k++)
                each[k] = stored_at<T>(from, k, half);
            asked.read_each(each, half);
        }
        return asked;
    }
    __device__ __forceinline__ Vector<T, N> got(const StoredPack<T, N> &asked,
                                                int) const
    {
        return data ? asked.elements(half) : filled<T, N>(missing);
    }
    __device__ __forceinline__ T loose(int64_t i) const { return at(i); }
    __device__ __forceinline__ T at(int64_t i) const
    {
        return data ? element_at<T>(stored_at<T>(data, i, half), half) : missing;
    }
};

/* f of each element, computed when it is read. */
template <typename T, int N, class F, class E>
struct Mapped {
    F f;
    E elements;
    __device__ __forceinline__ StoredPack<T, N> ask(int slot) const
    {
        return elements.ask(slot);
    }
    __device__ __forceinline__ Vector<T, N> got(const StoredPack<T, N> &asked,
                                                int slot) const
    {
        return each_element<T, N>(f, elements.got(asked, slot));
    }
    __device__ __forceinline__ T loose(int64_t i) const { return f(elements.loose(i)); }
};

} // namespace

#endif
