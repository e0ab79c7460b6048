/* Kernels that work on many tensors at once: a table in the parameters says of each what
 * its blocks have to know, so that no launch waits for a table to be copied. Parameters
 * have 4 KB, and 32 KB where the driver is of CUDA 12.1 or later; more tensors take several
 * launches. */
#ifndef DT_CUDA_KERNELS_TENSOR_TABLE_H
#define DT_CUDA_KERNELS_TENSOR_TABLE_H

#include "cuda/kernels/layout.h"

/* They leave room for the other parameters. Builds of CUDA 12 run on older drivers, which
 * refuse all kernels of a file if one of them takes more than 4 KB. */
#define SMALL_TABLE 3200
#if CUDART_VERSION >= 13000
#define LARGE_TABLE 31800
#else
#define LARGE_TABLE SMALL_TABLE
#endif

template <class Row, int Bytes>
struct TensorTable {
    static constexpr int capacity = (Bytes - 8) / sizeof(Row);
    int64_t count;
    Row rows[capacity];
};
template <class Row, int Bytes, class F>
void each_pointer(TensorTable<Row, Bytes> &table, F f)
{
    for (int64_t i = 0; i < table.count; i++)
        each_pointer(table.rows[i], f);
}

/* The row of this block's tensor: the last whose `first` block is not after this one. */
template <class Row, int Bytes>
static __device__ __forceinline__ const Row &
row_of_block(const TensorTable<Row, Bytes> &table)
{
    int64_t low = 0, high = table.count - 1;
    ROLLED
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (table.rows[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    return table.rows[low];
}

template <class Row, int Bytes, class Fill, class Start>
int for_tables_of(int64_t count, Fill fill, Start start)
{
    TensorTable<Row, Bytes> table;
    for (int64_t begin = 0; begin < count; begin += table.count) {
        int64_t left = count - begin, blocks = 0;
        table.count = left < table.capacity ? left : table.capacity;
        for (int64_t i = 0; i < table.count; i++) {
            int64_t own = fill(begin + i, table.rows[i]);
            table.rows[i].first = blocks;
            blocks += own;
        }
        if (start(table, begin, blocks))
            return -1;
    }
    return 0;
}

/* Calls start(table, begin, blocks) for tables of entries begin, begin + 1, ... of
 * `count`: fill(i, row) writes the row of entry i, all but `first`, and gives the number
 * of its blocks. */
template <class Row, class Fill, class Start>
int for_tables(int64_t count, Fill fill, Start start)
{
    return count <= TensorTable<Row, SMALL_TABLE>::capacity
               ? for_tables_of<Row, SMALL_TABLE>(count, fill, start)
               : for_tables_of<Row, LARGE_TABLE>(count, fill, start);
}

#endif
