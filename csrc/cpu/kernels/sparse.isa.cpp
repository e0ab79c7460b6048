/* Products with sparse matrices for this instruction set. */
#include <string.h>
#include <type_traits>

#include "cpu/kernels/kernels.h"

namespace {

/* Integers wrap. */
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

/* Columns whose sums are kept in registers. */
template <typename T>
constexpr int BLOCK = 256 / sizeof(T);
constexpr int LANES = 16; /* sums of a sampled product */
constexpr int AHEAD = 8;  /* entries whose rows of x are asked for early */

/* Bytes of a row of x, asked for before they are used: which rows come next is known, and
 * not guessed by the processor. */
DT_INLINE void fetch(const void *row, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const char *)row + at);
}

/* The sums of `width` columns from `column` on for one row; false where an index is out of
 * range. FULL: width is BLOCK. */
template <typename T, bool FULL>
DT_INLINE int64_t run_columns(const dt_sparse_call &c, int64_t row, int64_t begin,
                              int64_t end, int64_t column, int width)
{
    const T *x = (const T *)c.x + column, *values = (const T *)c.values;
    const int n = FULL ? BLOCK<T> : width;
    Sum<T> sum[BLOCK<T>] = {};
    int64_t wrong = -1;
    for (int64_t e = begin; e < end; e++) {
        const int64_t ahead = e + AHEAD < c.count ? c.columns[e + AHEAD] : 0;
        const int64_t from = c.columns[e];
        if ((uint64_t)ahead < (uint64_t)c.inner)
            fetch(x + ahead * c.n, (size_t)n * sizeof(T));
        if ((uint64_t)from >= (uint64_t)c.inner) {
            wrong = e;
            continue;
        }
        const T *a = x + from * c.n;
        const Sum<T> value = (Sum<T>)values[e];
        DT_VECTOR_LOOP
        for (int k = 0; k < n; k++)
            sum[k] += value * (Sum<T>)a[k];
    }
    T *y = (T *)c.y + row * c.n + column;
    for (int k = 0; k < n; k++)
        y[k] = (T)sum[k];
    return wrong;
}

/* The product with a vector. */
template <typename T>
DT_INLINE int64_t run_vector(const dt_sparse_call &c, int64_t row, int64_t begin,
                             int64_t end)
{
    const T *x = (const T *)c.x, *values = (const T *)c.values;
    Sum<T> sum = 0;
    int64_t wrong = -1;
    for (int64_t e = begin; e < end; e++) {
        const int64_t from = c.columns[e];
        if ((uint64_t)from < (uint64_t)c.inner)
            sum += (Sum<T>)values[e] * (Sum<T>)x[from];
        else
            wrong = e;
    }
    ((T *)c.y)[row] = (T)sum;
    return wrong;
}

template <typename T>
int64_t run_rows(const dt_sparse_call &c, int64_t first, int64_t last)
{
    int64_t wrong = -1;
    for (int64_t row = first; row < last; row++) {
        int64_t begin = c.starts[row], end = c.starts[row + 1];
        if (begin < 0 || end > c.count) {
            wrong = 0;
            begin = end = 0;
        }
        int64_t found = -1;
        if (c.n == 1)
            found = run_vector<T>(c, row, begin, end);
        for (int64_t k = 0; c.n > 1 && k < c.n; k += BLOCK<T>) {
            const int64_t left = c.n - k;
            int64_t here =
                left >= BLOCK<T>
                    ? run_columns<T, true>(c, row, begin, end, k, BLOCK<T>)
                    : run_columns<T, false>(c, row, begin, end, k, (int)left);
            found = here >= 0 ? here : found;
        }
        wrong = found >= 0 ? found : wrong;
    }
    return wrong;
}

template <typename T>
int64_t run_entries(const dt_sparse_call &c, int64_t first, int64_t last)
{
    int64_t wrong = -1;
    for (int64_t e = first; e < last; e++) {
        const int64_t row = c.row_of[e], column = c.columns[e];
        Sum<T> sum[LANES] = {}, all = 0;
        if ((uint64_t)row >= (uint64_t)c.rows ||
            (uint64_t)column >= (uint64_t)c.inner) {
            wrong = e;
        } else {
            const T *a = (const T *)c.y + row * c.n, *b = (const T *)c.x + column * c.n;
            int64_t k = 0;
            for (; k + LANES <= c.n; k += LANES) {
                DT_VECTOR_LOOP
                for (int l = 0; l < LANES; l++)
                    sum[l] += (Sum<T>)a[k + l] * (Sum<T>)b[k + l];
            }
            for (; k < c.n; k++)
                all += (Sum<T>)a[k] * (Sum<T>)b[k];
        }
        for (Sum<T> one : sum)
            all += one;
        ((T *)c.values)[e] = (T)all;
    }
    return wrong;
}

template <typename T>
int64_t run_type(const dt_sparse_call &c, int64_t begin, int64_t end)
{
    return c.row_of ? run_entries<T>(c, begin, end) : run_rows<T>(c, begin, end);
}

int64_t run_sparse(const dt_sparse_call *c, int64_t begin, int64_t end)
{
    return c->dtype == DT_FLOAT32   ? run_type<float>(*c, begin, end)
           : c->dtype == DT_FLOAT64 ? run_type<double>(*c, begin, end)
                                    : run_type<int64_t>(*c, begin, end);
}

} // namespace

const dt_sparse_kernels DT_ISA_NAME(dt_sparse) = {run_sparse};
