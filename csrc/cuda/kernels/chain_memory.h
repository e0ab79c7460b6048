/* How kernels of chains (device/chain.h) read and write memory: groups of elements that
 * follow one another, as floats. */
#ifndef DT_CUDA_KERNELS_CHAIN_MEMORY_H
#define DT_CUDA_KERNELS_CHAIN_MEMORY_H

#include "base/half.h"
#include "cuda/kernels/divider.h"
#include "cuda/kernels/pack.h"

namespace {

enum { EACH = 4 }; /* elements of a group */
typedef Vector<float, EACH> Values;
typedef Vector<uint32_t, EACH> Words;

/* How memory has a number. */
enum Type : uint8_t { FLOATS, HALVES, BRAINS, BOOLS, BYTES, NO_TYPE };

/* The elements of a group lie together, are one, or are apart. */
enum Way : uint8_t { TOGETHER, SINGLE, APART };
enum { NONE = 255 };
struct Memory {
    const char *data;
    Type type;
    Way way;
    uint8_t layout; /* NONE: one element after the other */
    uint8_t slot;
};
struct Output {
    char *data;
    bool together;
};
enum { DIMS = 5 };
struct Strides {
    int ndim;
    Divider sizes[DIMS];
    int64_t strides[DIMS]; /* in bytes */
};

/* --- numbers --- */

__device__ __forceinline__ float number_of(uint32_t word, Type type)
{
    float number;
    dt_float16 half;
    dt_bfloat16 brain;
    __builtin_memcpy(&number, &word, sizeof number);
    half.bits = brain.bits = (uint16_t)word;
    return type == FLOATS   ? number
           : type == HALVES ? (float)half
           : type == BRAINS ? (float)brain
           : type == BOOLS  ? (float)(word != 0)
                            : (float)word;
}

__device__ __forceinline__ uint32_t word_of(float number, Type type)
{
    uint32_t word;
    __builtin_memcpy(&word, &number, sizeof word);
    return type == FLOATS   ? word
           : type == HALVES ? dt_float16(number).bits
           : type == BRAINS ? dt_bfloat16(number).bits
                            : (uint32_t)(number != 0);
}

/* Rounds results to a type, which has them as `words`. */
__device__ __forceinline__ Words rounded(Values *values, Type type)
{
    Words words;
    UNROLL
    for (int k = 0; k < EACH; k++) {
        words.v[k] = word_of(values->v[k], type);
        values->v[k] = number_of(words.v[k], type);
    }
    return words;
}

/* --- memory --- */

/* The address of element `index`. */
__device__ __forceinline__ const char *place_of(const Strides *layouts, const Memory &m,
                                                int size, unsigned index)
{
    if (m.layout == NONE)
        return m.data + (int64_t)index * size;
    const Strides &l = layouts[m.layout];
    const char *at = m.data;
    ROLLED
    for (int d = l.ndim - 1; d > 0; d--) {
        const unsigned outer = divide(index, l.sizes[d]);
        at += (index - outer * l.sizes[d].divisor) * l.strides[d];
        index = outer;
    }
    return at + index * l.strides[0];
}

/* `count` elements from `first` on, as they are stored. gap: from each to the next; 1 only
 * where EACH divides `first`, or for one element. */
template <typename Word>
__device__ __forceinline__ Words words_at(const Strides *layouts, const Memory &m,
                                          unsigned first, int count, unsigned gap)
{
    Words words = {};
    const bool single = gap == 1 && m.way == SINGLE;
    if (gap == 1 && m.way == TOGETHER && count == EACH) {
        Pack<Word, EACH> pack;
        pack.words =
            *(const decltype(pack.words) *)place_of(layouts, m, sizeof(Word), first);
        UNROLL
        for (int k = 0; k < EACH; k++)
            words.v[k] = pack.get(k);
        return words;
    }
    ROLLED
    for (int k = 0; k < count; k++) {
        const uint32_t word = *(const Word *)place_of(layouts, m, sizeof(Word),
                                                      first + (unsigned)k * gap);
        UNROLL
        for (int j = 0; j < EACH; j++)
            if (j == k || single)
                words.v[j] = word;
        if (single)
            break;
    }
    return words;
}

__device__ __forceinline__ Values values_at(const Strides *layouts, const Memory &m,
                                            unsigned first, int count, unsigned gap = 1)
{
    const Words words =
        m.type == FLOATS  ? words_at<uint32_t>(layouts, m, first, count, gap)
        : m.type >= BOOLS ? words_at<uint8_t>(layouts, m, first, count, gap)
                          : words_at<uint16_t>(layouts, m, first, count, gap);
    Values values;
    UNROLL
    for (int k = 0; k < EACH; k++)
        values.v[k] = number_of(words.v[k], m.type);
    return values;
}

template <typename Word>
__device__ __forceinline__ void put_words(const Output &out, unsigned first, int count,
                                          const Words &words, unsigned gap)
{
    Word *at = (Word *)out.data + first;
    if (gap == 1 && out.together && count == EACH) {
        Pack<Word, EACH> pack = {};
        UNROLL
        for (int k = 0; k < EACH; k++)
            pack.set(k, (Word)words.v[k]);
        *(decltype(pack.words) *)at = pack.words;
        return;
    }
    UNROLL
    for (int k = 0; k < EACH; k++)
        if (k < count)
            at[(unsigned)k * gap] = (Word)words.v[k];
}

__device__ __forceinline__ void put(const Output &out, Type type, unsigned first,
                                    int count, const Words &words, unsigned gap = 1)
{
    if (type == FLOATS)
        put_words<uint32_t>(out, first, count, words, gap);
    else if (type == BOOLS)
        put_words<uint8_t>(out, first, count, words, gap);
    else
        put_words<uint16_t>(out, first, count, words, gap);
}

/* Elements of a group that there are: those before `end`. */
__device__ __forceinline__ int count_from(unsigned end, unsigned first,
                                          unsigned gap = 1)
{
    if (gap == 1)
        return end - first < EACH ? (int)(end - first) : EACH;
    int count = 0;
    UNROLL
    for (int k = 0; k < EACH; k++)
        count += first + (unsigned)k * gap < end;
    return count;
}

} // namespace

#endif
