/* Weighted sums along a dimension, or along two at once. A thread has a column of the
 * result and some rows of it, for which it reads the column's taps once; neighbouring
 * threads have neighbouring columns, so their reads and writes are coalesced. */
#include "cuda/kernels/layout.h"

#include <stdlib.h>

#include "base/half.h"
#include "device/resample.h"

namespace {

enum {
    ROWS = 4, /* of a thread */
    KEPT = 4  /* taps of a column that it keeps */
};

/* Sums of elements that are stored as T. Integers wrap. */
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t,
                               std::conditional_t<is_half<T>, float, T>>;

template <typename T>
struct alignas(2 * sizeof(Sum<T>)) Tap {
    Sum<T> weight;
    int32_t index;
};

/* Where the taps of an element are. Without starts each element has one, its number;
 * without taps it is one element, index[o]. */
struct Side {
    const int32_t *starts, *index;
    const void *taps;
    int32_t inputs, outputs;
};

struct Resampling {
    const void *x;
    void *y;
    Side columns, rows;                /* rows: of the dimension above the columns */
    LongDivider by_columns, by_groups; /* groups of ROWS rows */
    int64_t numel;                     /* threads */
};
POINTERS_OF(Resampling, f(s.x); f(s.y); f(s.columns.starts); f(s.columns.index);
            f(s.columns.taps); f(s.rows.starts); f(s.rows.index); f(s.rows.taps);)

/* A thread's column of y, its first row, and the number of its plane. */
struct Place {
    int64_t plane;
    int32_t column, first;

    __device__ __forceinline__ explicit Place(const Resampling &r)
    {
        const int64_t number = thread_number(), above = divide(number, r.by_columns);
        plane = divide(above, r.by_groups);
        column = (int32_t)(number - above * r.columns.outputs);
        first = (int32_t)(above - plane * r.by_groups.divisor) * ROWS;
    }
    template <typename T>
    __device__ __forceinline__ const T *in_x(const Resampling &r) const
    {
        return (const T *)r.x + plane * r.rows.inputs * r.columns.inputs;
    }
    template <typename T>
    __device__ __forceinline__ T *in_y(const Resampling &r) const
    {
        return (T *)r.y + (plane * r.rows.outputs + first) * r.columns.outputs + column;
    }
};

/* Each element of y is one of x. */
template <typename T>
__global__ void pick_kernel(GRID_CONSTANT(Resampling) r)
{
    if (thread_number() >= r.numel)
        return;
    const Place place(r);
    const int32_t column = place.column, first = place.first;
    const T *from =
        place.in_x<T>(r) + (r.columns.index ? r.columns.index[column] : column);
    T *to = place.in_y<T>(r);
    T picked[ROWS] = {};
    UNROLL
    for (int k = 0; k < ROWS; k++) {
        const int32_t row = first + k;
        if (row < r.rows.outputs)
            picked[k] = from[(int64_t)(r.rows.index ? r.rows.index[row] : row) *
                             r.columns.inputs];
    }
    UNROLL
    for (int k = 0; k < ROWS; k++)
        if (first + k < r.rows.outputs)
            to[(int64_t)k * r.columns.outputs] = picked[k];
}

template <typename T>
__global__ void resample_kernel(GRID_CONSTANT(Resampling) r)
{
    if (thread_number() >= r.numel)
        return;
    const Place place(r);
    const int32_t column = place.column, first = place.first;
    const T *plane = place.in_x<T>(r);
    T *to = place.in_y<T>(r);
    Tap<T> kept[KEPT] = {{1, column}};
    int32_t count = 1;
    const Tap<T> *taps = nullptr;
    if (r.columns.starts) {
        const int32_t start = r.columns.starts[column];
        count = r.columns.starts[column + 1] - start;
        taps = (const Tap<T> *)r.columns.taps + start;
        UNROLL
        for (int t = 0; t < KEPT; t++)
            if (t < count)
                kept[t] = taps[t];
    }
    ROLLED
    for (int32_t row = first; row < first + ROWS && row < r.rows.outputs; row++) {
        Sum<T> sum = 0;
        int32_t tap = 0, end = 1;
        if (r.rows.starts) {
            tap = r.rows.starts[row];
            end = r.rows.starts[row + 1];
        }
        ROLLED
        for (; tap < end; tap++) {
            const Tap<T> of_row =
                r.rows.starts ? ((const Tap<T> *)r.rows.taps)[tap] : Tap<T>{1, row};
            const T *line = plane + (int64_t)of_row.index * r.columns.inputs;
            T there[KEPT];
            Sum<T> part = 0;
            UNROLL
            for (int t = 0; t < KEPT; t++)
                if (t < count)
                    there[t] = line[kept[t].index];
            UNROLL
            for (int t = 0; t < KEPT; t++)
                if (t < count)
                    part += kept[t].weight * (Sum<T>)there[t];
            ROLLED
            for (int32_t t = KEPT; t < count; t++)
                part += taps[t].weight * (Sum<T>)line[taps[t].index];
            sum += of_row.weight * part;
        }
        *to = (T)sum;
        to += r.columns.outputs;
    }
}

/* --- the tables, in one piece of the host's memory and then of the device's --- */

static bool picks(const dt_taps &t)
{
    bool ones = true;
    for (int64_t o = 0; o < t.outputs && ones && t.starts; o++)
        ones = t.starts[o + 1] == o + 1 && t.taps[o].weight == 1;
    return ones;
}

static bool fits(const dt_taps &t)
{
    const int64_t most = t.inputs > t.outputs ? t.inputs : t.outputs;
    return most < INT32_MAX - ROWS && (!t.starts || t.starts[t.outputs] < INT32_MAX);
}

static size_t rounded(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}
template <typename T>
static size_t bytes_of(const dt_taps &t, bool picked)
{
    if (!t.starts)
        return 0;
    return picked ? rounded((size_t)t.outputs * sizeof(int32_t))
                  : rounded((size_t)(t.outputs + 1) * sizeof(int32_t)) +
                        rounded((size_t)t.starts[t.outputs] * sizeof(Tap<T>));
}

/* Writes the table to `host`; s will find it at `device`. */
template <typename T>
static void lay_out(const dt_taps &t, bool picked, char *host, char *device, Side *s)
{
    *s = {nullptr, nullptr, nullptr, (int32_t)t.inputs, (int32_t)t.outputs};
    if (!t.starts)
        return;
    if (picked) {
        for (int64_t o = 0; o < t.outputs; o++)
            ((int32_t *)host)[o] = (int32_t)t.taps[o].index;
        s->index = (const int32_t *)device;
        return;
    }
    const size_t starts = rounded((size_t)(t.outputs + 1) * sizeof(int32_t));
    for (int64_t o = 0; o <= t.outputs; o++)
        ((int32_t *)host)[o] = (int32_t)t.starts[o];
    for (int64_t i = 0; i < t.starts[t.outputs]; i++)
        ((Tap<T> *)(host + starts))[i] = {(Sum<T>)t.taps[i].weight,
                                          (int32_t)t.taps[i].index};
    s->starts = (const int32_t *)device;
    s->taps = device + starts;
}

template <typename T>
int run_resample(dt_stream stream, const dt_resample_call *c)
{
    /* Columns are the dimension or the inner ones; rows are the dimension or the outer
     * ones. */
    const bool is_row = c->inner > 1, has_above = c->above.starts;
    const int64_t folded =
                      is_row || has_above || c->outer >= INT32_MAX / 2 ? 1 : c->outer,
                  outer = c->outer / folded;
    const dt_taps below = {c->inner, c->inner, nullptr, nullptr},
                  all = {folded, folded, nullptr, nullptr};
    const dt_taps &columns = is_row ? below : c->along, &rows = is_row      ? c->along
                                                                : has_above ? c->above
                                                                            : all;
    if ((is_row && has_above) || !fits(columns) || !fits(rows))
        return dt_fail(DT_ERROR_RUNTIME,
                       "a GPU resamples fewer than 2**31 elements along a dimension; "
                       "compute this on the CPU, or in parts");
    const bool picked = picks(columns) && picks(rows);
    const size_t first = bytes_of<T>(columns, picked),
                 bytes = first + bytes_of<T>(rows, picked);
    Scratch scratch(stream, bytes);
    char *host = (char *)malloc(bytes);
    if (!scratch.data || !host) {
        free(host);
        return scratch.data ? dt_fail(DT_ERROR_HOST_MEMORY,
                                      "interpolation: no memory is left for a table; "
                                      "free some, or give a smaller size")
                            : -1;
    }
    const int64_t groups = (rows.outputs + ROWS - 1) / ROWS;
    Resampling r = {c->x,
                    c->y,
                    {},
                    {},
                    long_divider_for(columns.outputs),
                    long_divider_for(groups),
                    outer * groups * columns.outputs};
    lay_out<T>(columns, picked, host, (char *)scratch.data, &r.columns);
    lay_out<T>(rows, picked, host + first, (char *)scratch.data + first, &r.rows);
    const int copied = dt_cuda_copy_to_device(stream, scratch.data, host, bytes);
    free(host);
    if (copied)
        return -1;
    typedef std::conditional_t<is_half<T>, uint16_t, T> Word;
    return picked
               ? START("starting a resampling", stream, pick_kernel<Word>, r.numel, r)
               : START("starting a resampling", stream, resample_kernel<T>, r.numel, r);
}

} // namespace

int dt_cuda_resample(dt_stream stream, const dt_resample_call *call)
{
    switch (call->dtype) {
    case DT_FLOAT16:
        return run_resample<dt_float16>(stream, call);
    case DT_BFLOAT16:
        return run_resample<dt_bfloat16>(stream, call);
    case DT_FLOAT32:
        return run_resample<float>(stream, call);
    case DT_FLOAT64:
        return run_resample<double>(stream, call);
    default:
        return run_resample<int64_t>(stream, call);
    }
}
