/* Copies with conversion between all pairs of types, transposes, stores past the caches. */
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/typed.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* What x86 gives for a float outside of an integer's range, and so what PyTorch gives there:
 * the least integer, of 32 bits for types up to that size, wrapped to the target's. */
static inline int32_t float_to_32(double x)
{
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline int32_t float_to_32_narrow(float x)
{
    return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}
static inline int64_t float_to_64(double x)
{
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
/* uint8 goes by way of 64 bits; of a float32 beyond 32 bits the last eight are 0 anyway. */
#define FROM_FLOAT(T, x)                                                                   \
    _Generic((T)0, bool : (x) != 0,                                                        \
        uint8_t : (T)_Generic((x), float : float_to_32_narrow((float)(x)),                 \
                              default : float_to_64(x)),                                   \
        int64_t : float_to_64(x), float : (x), double : (x),                               \
        default : (T)_Generic((x), float : float_to_32_narrow((float)(x)),                 \
                              default : float_to_32(x)))
#define FROM_OTHER(T, x) _Generic((T)0, bool : (x) != 0, default : (T)(x))

#define DT_EACH_TYPE "cpu/convert.inc"
#include "cpu/types.inc"

/* --- transposes --- */

/* Tiles of whole cache lines of the source; within one, columns of the target in turn. */
#define TRANSPOSE(bits)                                                                    \
    static void transpose_##bits(int64_t rows, int64_t columns, char *target,              \
                                 int64_t target_row, const char *source,                   \
                                 int64_t source_row)                                       \
    {                                                                                      \
        enum { TILE = 8 * 64 / bits };                                                     \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                        \
            for (int64_t j0 = 0; j0 < columns; j0 += TILE) {                               \
                int64_t i1 = rows - i0 > TILE ? i0 + TILE : rows;                          \
                int64_t j1 = columns - j0 > TILE ? j0 + TILE : columns;                    \
                for (int64_t j = j0; j < j1; j++) {                                        \
                    uint##bits##_t *to = (uint##bits##_t *)(target + j * target_row);      \
                    const char *from = source + j * (bits / 8);                            \
                    for (int64_t i = i0; i < i1; i++)                                      \
                        to[i] = *(const uint##bits##_t *)(from + i * source_row);          \
                }                                                                          \
            }                                                                              \
    }
TRANSPOSE(8)
TRANSPOSE(16)
TRANSPOSE(32)
TRANSPOSE(64)

static void stream(char *target, const char *source, int64_t bytes)
{
#if defined(__AVX2__)
    for (int64_t i = 0; i < bytes; i += 64) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(source + i));
        __m256i b = _mm256_loadu_si256((const __m256i *)(source + i + 32));
        _mm256_stream_si256((__m256i *)(target + i), a);
        _mm256_stream_si256((__m256i *)(target + i + 32), b);
    }
#elif defined(__x86_64__)
    for (int64_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(target + i),
                         _mm_loadu_si128((const __m128i *)(source + i)));
#else
    memcpy(target, source, (size_t)bytes);
#endif
}

static void stream_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

const dt_copy_kernels DT_ISA_NAME(dt_copy) = {
    .convert = {
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = convert_##ID,
#include "ops/dtype.def"
    },
    .transpose = {transpose_8, transpose_16, transpose_32, transpose_64},
    .stream = stream,
    .stream_end = stream_end,
};
