/* A thread's way through the elements of a reduction, for kernels that take them one by
 * one. */
#ifndef DT_CUDA_KERNELS_ROW_WALK_H
#define DT_CUDA_KERNELS_ROW_WALK_H

#include "cuda/kernels/reduce_plan.h"

/* Byte offsets of the elements first, first + step, ... in turn, of rows such as the pixels
 * of each image of a batch: without a division for each of them. */
struct RowWalk {
    int64_t offset, hop,
        wrap; /* wrap: from the end of a row to the start of the next */
    unsigned column, columns, by;

    __device__ __forceinline__ RowWalk(const Layout<1> &layout, int64_t first,
                                       int64_t step)
    {
        const int64_t *strides = layout.strides[0];
        unsigned row = divide((unsigned)first, layout.sizes[1]),
                 rows = divide((unsigned)step, layout.sizes[1]);
        columns = layout.sizes[1].divisor;
        column = (unsigned)first - row * columns;
        by = (unsigned)step - rows * columns;
        offset = row * strides[0] + column * strides[1];
        hop = rows * strides[0] + by * strides[1];
        wrap = strides[0] - columns * strides[1];
    }
    __device__ __forceinline__ int64_t next()
    {
        int64_t at = offset;
        offset += hop;
        column += by;
        if (column >= columns) {
            column -= columns;
            offset += wrap;
        }
        return at;
    }
};

/* use(load(address), i) of the elements i = first, first + step, ... below end of what
 * starts at `base`. Of one dimension, or with ROWS of two, four are asked for before the
 * first of them is used. */
template <bool ROWS, class Load, class Use>
static __device__ __forceinline__ void
each_element(const Layout<1> &layout, const char *base, int64_t first, int64_t end,
             int64_t step, Load load, Use use)
{
    constexpr int AHEAD = 4;
    int64_t i = first;
    auto rounds = [&](auto offset_of) {
        ROLLED
        for (; i + (AHEAD - 1) * step < end; i += AHEAD * step) {
            decltype(load(base)) ahead[AHEAD];
            UNROLL
            for (int f = 0; f < AHEAD; f++)
                ahead[f] = load(base + offset_of(i + f * step));
            UNROLL
            for (int f = 0; f < AHEAD; f++)
                use(ahead[f], i + f * step);
        }
    };
    if (layout.ndim == 1) {
        rounds([&](int64_t at) { return at * layout.strides[0][0]; });
    } else if (ROWS && layout.ndim == 2) {
        RowWalk walk(layout, first, step);
        rounds([&](int64_t) { return walk.next(); });
    }
    ROLLED
    for (; i < end; i += step)
        use(load(base + offset_in(layout, i)), i);
}

#endif
