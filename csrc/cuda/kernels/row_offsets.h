/* The offsets of a thread's elements of a reduction, for kernels that load them one by one. */
#ifndef DT_CUDA_KERNELS_ROW_OFFSETS_H
#define DT_CUDA_KERNELS_ROW_OFFSETS_H

#include "cuda/kernels/reduce_plan.h"

/* Byte offsets of the elements first, first + step, ..., one after another, of rows such as the
 * pixels of each image of a batch. Divides once, and not for each element. */
struct RowOffsets {
    int64_t offset, hop,
        wrap; /* wrap: from the end of a row to the start of the next */
    unsigned column, columns, by;

    __device__ __forceinline__ RowOffsets(const Layout<1> &layout, int64_t first,
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

/* use(load(address)) of the elements first, first + step, ... below end of what starts at
 * `base`. A thread asks for four of two dimensions before it uses the first. */
template <class Load, class Use>
static __device__ __forceinline__ void
each_element(const Layout<1> &layout, const char *base, int64_t first, int64_t end,
             int64_t step, Load load, Use use)
{
    constexpr int EACH = 4;
    int64_t i = first;
    if (layout.ndim == 2) {
        RowOffsets walk(layout, first, step);
        ROLLED
        for (; i + (EACH - 1) * step < end; i += EACH * step) {
            decltype(load(base)) ahead[EACH];
            UNROLL
            for (int f = 0; f < EACH; f++)
                ahead[f] = load(base + walk.next());
            UNROLL
            for (int f = 0; f < EACH; f++)
                use(ahead[f]);
        }
    }
    ROLLED
    for (; i < end; i += step)
        use(load(base + offset_in(layout, i)));
}

#endif
