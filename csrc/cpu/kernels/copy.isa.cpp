/* Copies with conversion between all pairs of types, transposes, stores past the
 * caches. */
#include <string.h>

#include "cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#define DT_FN static DT_INLINE
#include "ops/convert.h"

namespace {

/* --- conversions --- */

/* Converts the first elements of a run, and says how many: float16, eight at a time where
 * the processor has instructions for it. bfloat16's shifts and additions of integers
 * become vectors by themselves. */
template <typename To, typename From>
DT_INLINE int64_t convert_first(int64_t, To *, const From *)
{
    return 0;
}
#if defined(__F16C__)
DT_INLINE int64_t convert_first(int64_t n, float *out, const dt_float16 *x)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    return i;
}
DT_INLINE int64_t convert_first(int64_t n, dt_float16 *out, const float *x)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(
            (__m128i *)(out + i),
            _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#elif defined(__aarch64__)
DT_INLINE int64_t convert_first(int64_t n, float *out, const dt_float16 *x)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(
                               vld1_u16((const uint16_t *)(x + i)))));
    return i;
}
DT_INLINE int64_t convert_first(int64_t n, dt_float16 *out, const float *x)
{
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + 4 <= n; i += 4)
        vst1_u16((uint16_t *)(out + i),
                 vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    return i;
}
#endif

template <typename To, typename From>
void convert(int64_t n, char *const *data, const int64_t *strides)
{
    const int64_t os = strides[0], xs = strides[1], size = (int64_t)sizeof(To);
    char *out = data[0];
    const char *x = data[1];
    To *dense = (To *)out;
    const From *from = (const From *)x;
    if (os == size && xs == (int64_t)sizeof(From)) {
        int64_t done = convert_first(n, dense, from);
        DT_VECTOR_LOOP
        for (int64_t i = done; i < n; i++)
            dense[i] = dt_converted<To>(from[i]);
    } else if (sizeof(To) == sizeof(From) && os == size && xs == -size) {
        DT_VECTOR_LOOP /* backwards, as flip reads */
        for (int64_t i = 0; i < n; i++)
            dense[i] = dt_converted<To>(from[-i]);
    } else if (xs == 0 && os == size) {
        const To all = dt_converted<To>(*from);
        for (int64_t i = 0; i < n; i++)
            dense[i] = all;
    } else {
        for (int64_t i = 0; i < n; i++, out += os, x += xs)
            *(To *)out = dt_converted<To>(*(const From *)x);
    }
}

/* Types of 16 bits from and to others than float32: a block at a time. */
__attribute__((noinline)) void convert_blocks(dt_kernel *widen, dt_kernel *narrow,
                                              int64_t n, char *const *data,
                                              const int64_t *strides)
{
    constexpr int64_t block = 1024;
    float wide[block];
    char *out[] = {data[0], (char *)wide}, *x[] = {(char *)wide, data[1]};
    const int64_t out_strides[] = {strides[0], sizeof(float)};
    const int64_t x_strides[] = {sizeof(float), strides[1]};
    for (; n > 0; n -= block) {
        int64_t some = n < block ? n : block;
        widen(some, x, x_strides);
        narrow(some, out, out_strides);
        out[0] += some * strides[0];
        x[1] += some * strides[1];
    }
}
template <typename To, typename From>
void convert_by_float32(int64_t n, char *const *data, const int64_t *strides)
{
    convert_blocks(convert<float, From>, convert<To, float>, n, data, strides);
}

template <typename To, typename From>
constexpr dt_kernel *conversion()
{
    constexpr bool halves = is_half<To> || is_half<From>;
    if constexpr (halves && std::is_same_v<To, From>)
        return convert<int16_t, int16_t>;
    else if constexpr (std::is_same_v<To, dt_bool> && std::is_same_v<From, dt_bool>)
        return convert<uint8_t, uint8_t>;
    else if constexpr (halves && !std::is_same_v<To, float> &&
                       !std::is_same_v<From, float>)
        return convert_by_float32<To, From>;
    else
        return convert<To, From>;
}
template <typename To>
dt_kernel *const conversions[] = {
#define DT_DTYPE(ID, name, alias, type) conversion<To, type>(),
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
};

/* --- transposes: elements are moved as integers B of their size --- */

/* Blocks whose rows on both sides stay in the first cache: a few lines of each row. */
#define BLOCK_BYTES 256

template <typename B>
DT_INLINE void transpose_plain(int64_t rows, int64_t columns, char *target,
                               int64_t target_row, const char *source,
                               int64_t source_row)
{
    typedef B Element __attribute__((may_alias));
    for (int64_t j = 0; j < columns; j++) {
        Element *to = (Element *)(target + j * target_row);
        const char *from = source + j * (int64_t)sizeof(B);
        for (int64_t i = 0; i < rows; i++)
            to[i] = *(const Element *)(from + i * source_row);
    }
}

/* A square of `tile` rows through registers; 0: there is no such function. */
template <typename B>
constexpr int tile = 0;
template <typename B>
DT_INLINE void transpose_tile(char *, int64_t, const char *, int64_t)
{
}
#if defined(__AVX2__)
template <>
constexpr int tile<uint32_t> = 8;
template <>
DT_INLINE void transpose_tile<uint32_t>(char *target, int64_t target_row,
                                        const char *source, int64_t source_row)
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
template <>
constexpr int tile<uint64_t> = 4;
template <>
DT_INLINE void transpose_tile<uint64_t>(char *target, int64_t target_row,
                                        const char *source, int64_t source_row)
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
#else
/* In vectors of 16 bytes, which x86-64 and aarch64 always have. */
template <>
constexpr int tile<uint32_t> = 4;
template <>
DT_INLINE void transpose_tile<uint32_t>(char *target, int64_t target_row,
                                        const char *source, int64_t source_row)
{
    typedef uint32_t V __attribute__((vector_size(16), aligned(4), may_alias));
    V r[4], t[4];
    for (int i = 0; i < 4; i++)
        r[i] = *(const V *)(source + i * source_row);
    for (int i = 0; i < 2; i++) {
        t[i] = __builtin_shufflevector(r[i], r[i + 2], 0, 4, 1, 5);
        t[i + 2] = __builtin_shufflevector(r[i], r[i + 2], 2, 6, 3, 7);
    }
    for (int i = 0; i < 4; i += 2) {
        const V *pair = t + i;
        *(V *)(target + i * target_row) =
            __builtin_shufflevector(pair[0], pair[1], 0, 4, 1, 5);
        *(V *)(target + (i + 1) * target_row) =
            __builtin_shufflevector(pair[0], pair[1], 2, 6, 3, 7);
    }
}
template <>
constexpr int tile<uint64_t> = 2;
template <>
DT_INLINE void transpose_tile<uint64_t>(char *target, int64_t target_row,
                                        const char *source, int64_t source_row)
{
    typedef uint64_t V __attribute__((vector_size(16), aligned(8), may_alias));
    V a = *(const V *)source, b = *(const V *)(source + source_row);
    *(V *)target = __builtin_shufflevector(a, b, 0, 2);
    *(V *)(target + target_row) = __builtin_shufflevector(a, b, 1, 3);
}
#endif

template <typename B>
void transpose(int64_t rows, int64_t columns, char *target, int64_t target_row,
               const char *source, int64_t source_row)
{
    constexpr int64_t size = sizeof(B), block = BLOCK_BYTES / size;
    for (int64_t i0 = 0; i0 < rows; i0 += block)
        for (int64_t j0 = 0; j0 < columns; j0 += block) {
            int64_t m = rows - i0 > block ? block : rows - i0;
            int64_t n = columns - j0 > block ? block : columns - j0;
            char *to = target + j0 * target_row + i0 * size;
            const char *from = source + i0 * source_row + j0 * size;
            int64_t i = 0;
            for (; tile<B> && i + tile<B> <= m; i += tile<B>) {
                int64_t j = 0;
                for (; j + tile<B> <= n; j += tile<B>)
                    transpose_tile<B>(to + j * target_row + i * size, target_row,
                                      from + i * source_row + j * size, source_row);
                transpose_plain<B>(tile<B>, n - j, to + j * target_row + i * size,
                                   target_row, from + i * source_row + j * size,
                                   source_row);
            }
            transpose_plain<B>(m - i, n, to + i * size, target_row,
                               from + i * source_row, source_row);
        }
}

/* --- stores past the caches --- */

void stream(char *target, const char *source, int64_t bytes)
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

void stream_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

} // namespace

const dt_copy_kernels DT_ISA_NAME(dt_copy) = {
    {
#define DT_DTYPE(ID, name, alias, type) conversions<type>,
#define DT_DTYPE_COMPLEX(...)           nullptr,
#include "ops/dtype.def"
    },
    {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>},
    stream,
    stream_end,
};
