/* Kernels that work on many tensors at once: a table in device memory says of each what
 * its blocks have to know. */
#ifndef DT_CUDA_KERNELS_TENSOR_TABLE_H
#define DT_CUDA_KERNELS_TENSOR_TABLE_H

#include <stdlib.h>

#include "cuda/kernels/layout.h"

/* The row of this block's tensor: the last whose `first` block is not after this one. */
template <class Row>
static __device__ __forceinline__ const Row &row_of_block(const Row *rows,
                                                          int64_t count)
{
    int64_t low = 0, high = count - 1;
    ROLLED
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (rows[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    return rows[low];
}

/* Makes a table of `count` rows: fill(rows, pointers) writes zeroed rows and lists all
 * `each` * count pointers in them, start(table, pointers) queues the kernel, which is
 * passed FOLLOWED(pointers, ...). */
template <class Row, class Fill, class Start>
int with_table(dt_stream stream, const char *op_name, int64_t count, int each,
               Fill fill, Start start)
{
    Row *rows = (Row *)calloc((size_t)count, sizeof(Row));
    void **pointers = (void **)malloc((size_t)(count * each) * sizeof(void *));
    int status = -1;
    if (rows && pointers) {
        Scratch table(stream, (size_t)count * sizeof(Row));
        fill(rows, pointers);
        if (table.data && !copy_to_device_staged(stream, table.data, rows, table.bytes))
            status = start((const Row *)table.data, pointers);
    } else {
        dt_fail(DT_ERROR_HOST_MEMORY, "%s: no memory is left; free some", op_name);
    }
    free(pointers);
    free(rows);
    return status;
}

#endif
