/* Weighted sums along a dimension for this instruction set. */
#include <string.h>
#include <type_traits>

#include "cpu/kernels/kernels.h"

namespace {

/* Integers wrap. */
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

constexpr int ROWS = 4; /* that share a reading of the taps */

/* Whether each element of y is one of x. */
bool picks(const dt_resample_call &c)
{
    bool ones = true;
    for (int64_t o = 0; o < c.along.outputs && ones; o++)
        ones = c.along.starts[o + 1] == o + 1 && c.along.taps[o].weight == 1;
    return ones;
}

template <typename T>
void pick_row(const dt_resample_call &c, int64_t number)
{
    const T *x = (const T *)c.x + number * c.along.inputs;
    T *y = (T *)c.y + number * c.along.outputs;
    for (int64_t o = 0; o < c.along.outputs; o++)
        y[o] = x[c.along.taps[o].index];
}

/* The dimension is the last one. */
template <typename T, int rows>
void run_rows(const dt_resample_call &c, int64_t first)
{
    const T *x = (const T *)c.x + first * c.along.inputs;
    T *y = (T *)c.y + first * c.along.outputs;
    const dt_tap *tap = c.along.taps;
    for (int64_t o = 0; o < c.along.outputs; o++) {
        const dt_tap *const end = c.along.taps + c.along.starts[o + 1];
        Sum<T> sum[rows] = {};
        for (; tap < end; tap++) {
            const Sum<T> weight = (Sum<T>)tap->weight;
            for (int r = 0; r < rows; r++)
                sum[r] += weight * (Sum<T>)x[r * c.along.inputs + tap->index];
        }
        for (int r = 0; r < rows; r++)
            y[r * c.along.outputs + o] = (T)sum[r];
    }
}

/* y = the first two products, or y += one. */
template <typename T>
DT_INLINE void start_run(T *y, const T *a, Sum<T> p, const T *b, Sum<T> q, int64_t n)
{
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] = (T)(p * (Sum<T>)a[i] + q * (Sum<T>)b[i]);
}
template <typename T>
DT_INLINE void add_run(T *y, const T *a, Sum<T> p, int64_t n)
{
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        y[i] = (T)((Sum<T>)y[i] + p * (Sum<T>)a[i]);
}

/* Element `number` along the dimension, counted through all outer ones. */
template <typename T>
void run_inner(const dt_resample_call &c, int64_t number)
{
    const int64_t o = number % c.along.outputs, n = c.inner;
    const T *x = (const T *)c.x + number / c.along.outputs * c.along.inputs * n;
    T *y = (T *)c.y + number * n;
    const dt_tap *tap = c.along.taps + c.along.starts[o];
    const dt_tap *const end = c.along.taps + c.along.starts[o + 1];
    if (end == tap) {
        memset(y, 0, (size_t)n * sizeof(T));
    } else if (end == tap + 1 && tap->weight == 1) {
        memcpy(y, x + tap->index * n, (size_t)n * sizeof(T));
    } else if (end == tap + 1) {
        const Sum<T> weight = (Sum<T>)tap->weight;
        const T *a = x + tap->index * n;
        for (int64_t i = 0; i < n; i++)
            y[i] = (T)(weight * (Sum<T>)a[i]);
    } else {
        start_run(y, x + tap[0].index * n, (Sum<T>)tap[0].weight, x + tap[1].index * n,
                  (Sum<T>)tap[1].weight, n);
        for (tap += 2; tap < end; tap++)
            add_run(y, x + tap->index * n, (Sum<T>)tap->weight, n);
    }
}

template <typename T>
void run_type(const dt_resample_call &c, int64_t begin, int64_t end)
{
    int64_t number = begin;
    if (c.inner == 1 && picks(c))
        for (; number < end; number++)
            pick_row<T>(c, number);
    for (; c.inner == 1 && number + ROWS <= end; number += ROWS)
        run_rows<T, ROWS>(c, number);
    for (; number < end; number++)
        if (c.inner == 1)
            run_rows<T, 1>(c, number);
        else
            run_inner<T>(c, number);
}

void run_resample(const dt_resample_call *c, int64_t begin, int64_t end)
{
    if (c->dtype == DT_FLOAT32)
        run_type<float>(*c, begin, end);
    else if (c->dtype == DT_FLOAT64)
        run_type<double>(*c, begin, end);
    else
        run_type<int64_t>(*c, begin, end);
}

} // namespace

const dt_resample_kernels DT_ISA_NAME(dt_resample) = {run_resample};
