/* How kernels of chains (device/chain.h) read and write memory: EACH consecutive elements
 * at a time, converted to float. Chains with float64 or integers are called wide: they
 * convert to words of 64 bits. Such a word holds the bits of a float for float32 and
 * 16-bit floats, those of a double for float64, and an int64_t for integers and bools. */
#ifndef DT_CUDA_KERNELS_CHAIN_MEMORY_H
#define DT_CUDA_KERNELS_CHAIN_MEMORY_H

#include "base/half.h"
#include "cuda/kernels/divider.h"
#include "cuda/kernels/pack.h"

#define DT_FN static __device__ __forceinline__
#include "ops/convert.h"
#undef DT_FN

namespace {

enum { EACH = 4 }; /* elements of a group */
typedef Vector<float, EACH> Values;
typedef Vector<uint32_t, EACH> Words;
typedef Vector<uint64_t, EACH> WideWords; /* as stored, or as values */

/* The type of a stored number. Types from DOUBLES on occur in wide chains only. */
enum Type : uint8_t {
    FLOATS,
    HALVES,
    BRAINS,
    BOOLS,
    BYTES,
    DOUBLES,
    CHARS,
    SHORTS,
    INTS,
    LONGS,
    NO_TYPE
};
__host__ __device__ constexpr bool is_whole(Type type)
{
    return type == BOOLS || type == BYTES || type >= CHARS;
}
__host__ __device__ constexpr int bytes_of(Type type)
{
    return type == FLOATS || type == INTS                    ? 4
           : type == DOUBLES || type == LONGS                ? 8
           : type == BOOLS || type == BYTES || type == CHARS ? 1
                                                             : 2;
}

/* The elements of a group are consecutive, all the same one, or at strides. */
enum Way : uint8_t { TOGETHER, SINGLE, APART };
enum { NONE = 255 };
struct Memory {
    const char *data;
    Type type;
    Way way;
    uint8_t layout; /* NONE: contiguous */
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
           : type == BOOLS  ? (uint32_t)(number != 0)
                            : (uint32_t)dt_converted<uint8_t>(number);
}

/* Conversions between a word of a wide chain and a number: float, double or int64_t. */
template <typename T>
__device__ __forceinline__ T taken(uint64_t value)
{
    T number;
    Unsigned<sizeof(T)> bits = (Unsigned<sizeof(T)>)value;
    __builtin_memcpy(&number, &bits, sizeof number);
    return number;
}
template <typename T>
__device__ __forceinline__ uint64_t held(T number)
{
    Unsigned<sizeof(T)> bits;
    __builtin_memcpy(&bits, &number, sizeof bits);
    return bits;
}
__device__ __forceinline__ uint64_t wide_of(uint64_t word, Type type)
{
    switch (type) {
    case BOOLS:
        return word != 0;
    case CHARS:
        return (uint64_t)(int8_t)word;
    case SHORTS:
        return (uint64_t)(int16_t)word;
    case INTS:
        return (uint64_t)(int32_t)word;
    case HALVES:
    case BRAINS:
        return held(number_of((uint32_t)word, type));
    default:
        return word;
    }
}
/* Converts as dt_cuda_copy does: floats go through double. */
template <typename T>
__device__ __forceinline__ uint64_t wide_word_of(T number, Type type)
{
    typedef std::conditional_t<std::is_same_v<T, int64_t>, int64_t, double> Exact;
    switch (type) {
    case FLOATS:
    case HALVES:
    case BRAINS:
        return word_of((float)number, type);
    case BOOLS:
        return number != 0;
    case BYTES:
        return dt_converted<uint8_t>((Exact)number);
    case CHARS:
        return (uint8_t)dt_converted<int8_t>((Exact)number);
    case SHORTS:
        return (uint16_t)dt_converted<int16_t>((Exact)number);
    case INTS:
        return (uint32_t)dt_converted<int32_t>((Exact)number);
    case LONGS:
        return (uint64_t)dt_converted<int64_t>((Exact)number);
    default:
        return held((double)number);
    }
}
/* The word of a value of this type as a T; integers are converted. */
template <typename T>
__device__ __forceinline__ T taken_as(uint64_t value, Type type)
{
    return is_whole(type) ? (T)(int64_t)value : taken<T>(value);
}

/* Rounds values to a type. Returns the words to store. */
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
template <typename T>
__device__ __forceinline__ WideWords wide_rounded(WideWords *values, Type type)
{
    WideWords words;
    UNROLL
    for (int k = 0; k < EACH; k++) {
        words.v[k] = wide_word_of(taken<T>(values->v[k]), type);
        values->v[k] = wide_of(words.v[k], type);
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

/* The stored words of `count` elements from `first` on, `gap` apart. gap is 1 only where
 * EACH divides `first`, or for one element. */
template <typename Word, typename All = Words>
__device__ __forceinline__ All words_at(const Strides *layouts, const Memory &m,
                                        unsigned first, int count, unsigned gap)
{
    All words = {};
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
        const Word word = *(const Word *)place_of(layouts, m, sizeof(Word),
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

__device__ __forceinline__ WideWords wide_at(const Strides *layouts, const Memory &m,
                                             unsigned first, int count,
                                             unsigned gap = 1)
{
    const int bytes = bytes_of(m.type);
    WideWords words =
        bytes == 8   ? words_at<uint64_t, WideWords>(layouts, m, first, count, gap)
        : bytes == 4 ? words_at<uint32_t, WideWords>(layouts, m, first, count, gap)
        : bytes == 2 ? words_at<uint16_t, WideWords>(layouts, m, first, count, gap)
                     : words_at<uint8_t, WideWords>(layouts, m, first, count, gap);
    UNROLL
    for (int k = 0; k < EACH; k++)
        words.v[k] = wide_of(words.v[k], m.type);
    return words;
}

template <typename Word, typename All>
__device__ __forceinline__ void put_words(const Output &out, unsigned first, int count,
                                          const All &words, unsigned gap)
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
    else if (type >= BOOLS)
        put_words<uint8_t>(out, first, count, words, gap);
    else
        put_words<uint16_t>(out, first, count, words, gap);
}
__device__ __forceinline__ void put(const Output &out, Type type, unsigned first,
                                    int count, const WideWords &words, unsigned gap = 1)
{
    const int bytes = bytes_of(type);
    if (bytes == 8)
        put_words<uint64_t>(out, first, count, words, gap);
    else if (bytes == 4)
        put_words<uint32_t>(out, first, count, words, gap);
    else if (bytes == 2)
        put_words<uint16_t>(out, first, count, words, gap);
    else
        put_words<uint8_t>(out, first, count, words, gap);
}

/* How many elements of a group come before `end`. */
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
