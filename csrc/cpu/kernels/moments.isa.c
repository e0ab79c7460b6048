/* Means and squared deviations of a few hundred elements at a time. They are read
 * twice, the second time from the cache: once for the mean, then for the deviations
 * from it, whose own sum, 0 but for rounding, takes the mean's error out again. */
#include "cpu/kernels/kernels.h"

/* Partial sums side by side, the same number for every instruction set. */
#define LANES 32

#define MOMENTS(T)                                                                     \
    static void run_##T(int64_t n, const void *from, dt_moments *out)                  \
    {                                                                                  \
        const T *x = from;                                                             \
        T sums[LANES] = {0}, squares[LANES] = {0}, offs[LANES] = {0};                  \
        int64_t i = 0;                                                                 \
        for (; i + LANES <= n; i += LANES)                                             \
            for (int j = 0; j < LANES; j++)                                            \
                sums[j] += x[i + j];                                                   \
        for (int j = 0; i + j < n; j++)                                                \
            sums[j] += x[i + j];                                                       \
        double sum = 0, square = 0, off = 0;                                           \
        for (int j = 0; j < LANES; j++)                                                \
            sum += (double)sums[j];                                                    \
        const double mean = sum / (double)n;                                           \
        const T near = (T)mean;                                                        \
        for (i = 0; i + LANES <= n; i += LANES)                                        \
            for (int j = 0; j < LANES; j++) {                                          \
                T d = x[i + j] - near;                                                 \
                offs[j] += d;                                                          \
                squares[j] += d * d;                                                   \
            }                                                                          \
        for (int j = 0; i + j < n; j++) {                                              \
            T d = x[i + j] - near;                                                     \
            offs[j] += d;                                                              \
            squares[j] += d * d;                                                       \
        }                                                                              \
        for (int j = 0; j < LANES; j++) {                                              \
            off += (double)offs[j];                                                    \
            square += (double)squares[j];                                              \
        }                                                                              \
        out->count = (double)n;                                                        \
        out->mean = (double)near + off / (double)n;                                    \
        out->square = square - off * off / (double)n;                                  \
    }                                                                                  \
    static void rows_##T(int64_t rows, int64_t row_stride, int64_t columns,            \
                         const void *from, dt_moments *out)                            \
    {                                                                                  \
        T near[DT_MOMENTS_COLUMNS], offs[DT_MOMENTS_COLUMNS];                          \
        T squares[DT_MOMENTS_COLUMNS];                                                 \
        for (int64_t j = 0; j < columns; j++)                                          \
            near[j] = offs[j] = squares[j] = 0;                                        \
        for (int64_t i = 0; i < rows; i++) {                                           \
            const T *x = (const T *)((const char *)from + i * row_stride);             \
            for (int64_t j = 0; j < columns; j++)                                      \
                near[j] += x[j];                                                       \
        }                                                                              \
        for (int64_t j = 0; j < columns; j++)                                          \
            near[j] /= (T)rows;                                                        \
        for (int64_t i = 0; i < rows; i++) {                                           \
            const T *x = (const T *)((const char *)from + i * row_stride);             \
            for (int64_t j = 0; j < columns; j++) {                                    \
                T d = x[j] - near[j];                                                  \
                offs[j] += d;                                                          \
                squares[j] += d * d;                                                   \
            }                                                                          \
        }                                                                              \
        for (int64_t j = 0; j < columns; j++) {                                        \
            double off = (double)offs[j], n = (double)rows;                            \
            out[j].count = n;                                                          \
            out[j].mean = (double)near[j] + off / n;                                   \
            out[j].square = (double)squares[j] - off * off / n;                        \
        }                                                                              \
    }

MOMENTS(float)
MOMENTS(double)

const dt_moments_kernels DT_ISA_NAME(dt_moments) = {
    .float32 = {run_float, rows_float},
    .float64 = {run_double, rows_double},
};
