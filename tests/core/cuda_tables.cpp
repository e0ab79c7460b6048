/* Tables of tensors in a kernel's parameters, as nvcc 12 builds them: 4 KB, which is what
 * drivers before CUDA 12.1 take. */
#include <cuda_runtime.h>
#undef CUDART_VERSION
#define CUDART_VERSION 12090
#include "cuda/kernels/tensor_table.h"
#include "sim_check.h"

struct Row {
    int64_t number, first, rest[5];
};
static_assert(sizeof(TensorTable<Row, LARGE_TABLE>) <= 4096 - 512,
              "a build of CUDA 12 runs on drivers that refuse larger parameters");

int main()
{
    for (int64_t count : {1, 57, 58, 1000}) {
        int64_t seen = 0, launches = 0;
        auto fill = [](int64_t i, Row &row) { return row.number = i; };
        auto start = [&](const auto &table, int64_t begin, int64_t blocks) {
            EQUAL(begin, seen);
            launches++;
            for (int64_t i = 0; i < table.count; i++)
                EQUAL(table.rows[i].number, seen++);
            const Row &last = table.rows[table.count - 1];
            EQUAL(last.first + last.number, blocks);
            return 0;
        };
        EQUAL(for_tables<Row>(count, fill, start), 0);
        EQUAL(seen, count);
        EQUAL(launches, (count + 56) / 57);
    }
    return finish();
}
