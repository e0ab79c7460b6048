/* Copies with conversion between all pairs of types, transposes, stores past the
 * caches. */
#include <string.h>

#include "cpu/kernels/half.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/typed.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* What x86 gives for a float outside of an integer's range, and so what PyTorch gives
 * there: the least integer, of 32 bits for types up to that size, wrapped to the
 * target's. */
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
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x
                                                                    : INT64_MIN;
}
/* uint8 goes by way of 64 bits; of a float32 beyond 32 bits the last eight are 0
 * anyway. */
#define FROM_FLOAT(T, x)                                                               \
    _Generic((T)0,                                                                     \
        bool: (x) != 0,                                                                \
        uint8_t: (T) _Generic((x),                                                     \
            float: float_to_32_narrow((float)(x)),                                     \
            default: float_to_64(x)),                                                  \
        int64_t: float_to_64(x),                                                       \
        float: (x),                                                                    \
        double: (x),                                                                   \
        default: (T) _Generic((x),                                                     \
            float: float_to_32_narrow((float)(x)),                                     \
            default: float_to_32(x)))
#define FROM_OTHER(T, x) _Generic((T)0, bool: (x) != 0, default: (T)(x))

/* --- floats of 16 bits --- */

/* Eight at a time where the processor has instructions for it; the rest, and elements
 * that lie apart, one by one. */
#if defined(__F16C__)
static inline int64_t widen_float16(int64_t n, float *out, const uint16_t *x)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    return i;
}
static inline int64_t narrow_float16(int64_t n, uint16_t *out, const float *x)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(
            (__m128i *)(out + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#else
#define widen_float16(n, out, x)  0
#define narrow_float16(n, out, x) 0
#endif
/* Shifts and additions of integers, which compilers make vectors of. */
#define widen_bfloat16(n, out, x)  0
#define narrow_bfloat16(n, out, x) 0

/* `some` converts the first elements of runs, and says how many; `one` converts one. */
#define HALF_KERNEL(function, To, From, some, one)                                     \
    static void function(int64_t n, char *const *data, const int64_t *strides)         \
    {                                                                                  \
        const int64_t os = strides[0], xs = strides[1];                                \
        if (os == (int64_t)sizeof(To) && xs == (int64_t)sizeof(From)) {                \
            To *out = (To *)data[0];                                                   \
            const From *x = (const From *)data[1];                                     \
            int64_t done = some(n, out, x);                                            \
            DT_VECTOR_LOOP                                                             \
            for (int64_t i = done; i < n; i++)                                         \
                out[i] = one(x[i]);                                                    \
            return;                                                                    \
        }                                                                              \
        for (int64_t i = 0; i < n; i++)                                                \
            *(To *)(data[0] + i * os) = one(*(const From *)(data[1] + i * xs));        \
    }
#define HALF(ID, name)                                                                 \
    HALF_KERNEL(from_##ID##_FLOAT32, float, uint16_t, widen_##name, dt_##name##_widen) \
    HALF_KERNEL(from_FLOAT32_##ID, uint16_t, float, narrow_##name, dt_##name##_narrow)
HALF(FLOAT16, float16)
HALF(BFLOAT16, bfloat16)

/* Through float32 from and to the other types (cpu/kernels/half.c). */
#define dt_half_from_FLOAT16_FLOAT32  from_FLOAT16_FLOAT32
#define dt_half_from_BFLOAT16_FLOAT32 from_BFLOAT16_FLOAT32

#define DT_EACH_TYPE "cpu/kernels/convert.inc"
#include "cpu/kernels/types.inc"

#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = dt_half_from_##ID##_FLOAT16,
static dt_kernel *const convert_FLOAT16[DT_NDTYPES] = {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class) [DT_##ID] = TO_FLOAT16_##ID,
#define TO_FLOAT16_FLOAT32                           from_FLOAT32_FLOAT16
#define TO_FLOAT16_FLOAT64                           dt_half_from_FLOAT64_FLOAT16
#define DT_DTYPE_HALF                                DT_DTYPE
#include "ops/dtype.def"
};
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = dt_half_from_##ID##_BFLOAT16,
static dt_kernel *const convert_BFLOAT16[DT_NDTYPES] = {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class) [DT_##ID] = TO_BFLOAT16_##ID,
#define TO_BFLOAT16_FLOAT32                          from_FLOAT32_BFLOAT16
#define TO_BFLOAT16_FLOAT64                          dt_half_from_FLOAT64_BFLOAT16
#define DT_DTYPE_HALF                                DT_DTYPE
#include "ops/dtype.def"
};

/* --- transposes --- */

/* Elements are moved as integers of their size, whatever their type is. */
typedef uint8_t element_8 __attribute__((may_alias));
typedef uint16_t element_16 __attribute__((may_alias));
typedef uint32_t element_32 __attribute__((may_alias));
typedef uint64_t element_64 __attribute__((may_alias));

/* Blocks whose rows on both sides stay in the first cache: a few lines of each row. */
#define BLOCK_BYTES 256

#define TRANSPOSE_PLAIN(bits)                                                          \
    static inline void plain_##bits(int64_t rows, int64_t columns, char *target,       \
                                    int64_t target_row, const char *source,            \
                                    int64_t source_row)                                \
    {                                                                                  \
        for (int64_t j = 0; j < columns; j++) {                                        \
            element_##bits *to = (element_##bits *)(target + j * target_row);          \
            const char *from = source + j * (bits / 8);                                \
            for (int64_t i = 0; i < rows; i++)                                         \
                to[i] = *(const element_##bits *)(from + i * source_row);              \
        }                                                                              \
    }
TRANSPOSE_PLAIN(8)
TRANSPOSE_PLAIN(16)
TRANSPOSE_PLAIN(32)
TRANSPOSE_PLAIN(64)

#if defined(__AVX2__)
/* Eight rows of eight, or four of four, through registers. */
static inline void tile_32(char *target, int64_t target_row, const char *source,
                           int64_t source_row)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++)
        r[i] = _mm256_loadu_ps((const float *)(source + i * source_row));
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps((float *)(target + i * target_row),
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps((float *)(target + (i + 4) * target_row),
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}
static inline void tile_64(char *target, int64_t target_row, const char *source,
                           int64_t source_row)
{
    __m256d r[4], t[4];
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_loadu_pd((const double *)(source + i * source_row));
    for (int i = 0; i < 4; i += 2) {
        t[i] = _mm256_unpacklo_pd(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd((double *)(target + i * target_row),
                         _mm256_permute2f128_pd(t[i], t[i + 2], 0x20));
        _mm256_storeu_pd((double *)(target + (i + 2) * target_row),
                         _mm256_permute2f128_pd(t[i], t[i + 2], 0x31));
    }
}
#define TILE_32 8
#define TILE_64 4
#else
#define TILE_32 0
#define TILE_64 0
static inline void tile_32(char *target, int64_t target_row, const char *source,
                           int64_t source_row)
{
    (void)target, (void)target_row, (void)source, (void)source_row;
}
#define tile_64 tile_32
#endif
#define TILE_8  0
#define TILE_16 0
#define tile_8  tile_32
#define tile_16 tile_32

#define TRANSPOSE(bits)                                                                \
    static void transpose_##bits(int64_t rows, int64_t columns, char *target,          \
                                 int64_t target_row, const char *source,               \
                                 int64_t source_row)                                   \
    {                                                                                  \
        enum { BLOCK = BLOCK_BYTES * 8 / bits, TILE = TILE_##bits, SIZE = bits / 8 };  \
        for (int64_t i0 = 0; i0 < rows; i0 += BLOCK)                                   \
            for (int64_t j0 = 0; j0 < columns; j0 += BLOCK) {                          \
                int64_t m = rows - i0 > BLOCK ? BLOCK : rows - i0;                     \
                int64_t n = columns - j0 > BLOCK ? BLOCK : columns - j0;               \
                char *to = target + j0 * target_row + i0 * SIZE;                       \
                const char *from = source + i0 * source_row + j0 * SIZE;               \
                int64_t i = 0;                                                         \
                for (; TILE && i + TILE <= m; i += TILE) {                             \
                    int64_t j = 0;                                                     \
                    for (; j + TILE <= n; j += TILE)                                   \
                        tile_##bits(to + j * target_row + i * SIZE, target_row,        \
                                    from + i * source_row + j * SIZE, source_row);     \
                    plain_##bits(TILE, n - j, to + j * target_row + i * SIZE,          \
                                 target_row, from + i * source_row + j * SIZE,         \
                                 source_row);                                          \
                }                                                                      \
                plain_##bits(m - i, n, to + i * SIZE, target_row,                      \
                             from + i * source_row, source_row);                       \
            }                                                                          \
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
    .convert =
        {
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = convert_##ID,
#include "ops/dtype.def"
        },
    .move_16 = from_INT16_INT16,
    .transpose = {transpose_8, transpose_16, transpose_32, transpose_64},
    .stream = stream,
    .stream_end = stream_end,
};
