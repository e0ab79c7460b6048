/* Products with sparse matrices. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/warp.h"
#include "cuda/runtime/kernel_errors.h"

namespace {

struct Sparse {
    const char *what; /* in the host's memory */
    int64_t rows, inner, n, count;
    const int64_t *starts, *row_of, *columns;
    LongDivider by_n;
    KernelReport *report;
};
POINTERS_OF(Sparse, f(s.starts); f(s.row_of); f(s.columns); f(s.report);)

/* Whether an index of dimension dim is one; reports it else. */
static __device__ __forceinline__ bool is_in_range(const Sparse &s, int64_t index,
                                                   int64_t size, int dim)
{
    if ((uint64_t)index < (uint64_t)size)
        return true;
    report_range(s.report, s.what, index, 0, size, dim);
    return false;
}

/* A thread has an element of y, and its neighbours have those of the row beside it: rows
 * of x are read together. */
template <typename T, typename Sum>
__global__ void product_kernel(T *y, const T *values, const T *x,
                               GRID_CONSTANT(Sparse) s)
{
    const int64_t i = thread_number();
    if (i >= s.rows * s.n)
        return;
    const int64_t row = divide(i, s.by_n), column = i - row * s.n;
    int64_t begin = s.starts[row], end = s.starts[row + 1];
    Sum sum = 0;
    if (!is_in_range(s, begin, s.count + 1, 0) || !is_in_range(s, end, s.count + 1, 0))
        end = begin;
    for (int64_t e = begin; e < end; e++) {
        const int64_t from = s.columns[e];
        if (is_in_range(s, from, s.inner, 1))
            sum += (Sum)values[e] * (Sum)x[from * s.n + column];
    }
    y[i] = (T)sum;
}

/* A warp has an entry. */
template <typename T, typename Sum>
__global__ void sampled_kernel(T *values, const T *y, const T *x,
                               GRID_CONSTANT(Sparse) s)
{
    const int64_t e = thread_number() / 32;
    const int64_t row = e < s.count ? s.row_of[e] : 0;
    const int64_t column = e < s.count ? s.columns[e] : 0;
    Sum sum = 0;
    if (e < s.count && is_in_range(s, row, s.rows, 0) &&
        is_in_range(s, column, s.inner, 1))
        for (int64_t k = threadIdx.x % 32; k < s.n; k += 32)
            sum += (Sum)y[row * s.n + k] * (Sum)x[column * s.n + k];
    sum = reduce_group<false>(sum, 32, [](Sum a, Sum b) { return a + b; });
    if (e < s.count && threadIdx.x % 32 == 0)
        values[e] = (T)sum;
}

template <typename T, typename Sum>
int start_product(dt_stream stream, const dt_sparse_call *c)
{
    const Sparse s = {"sparse product",
                      c->rows,
                      c->inner,
                      c->n,
                      c->count,
                      c->starts,
                      c->row_of,
                      c->columns,
                      long_divider_for(c->n),
                      report_of(stream.device)};
    if (!s.report)
        return -1;
    if (!c->row_of)
        return START("starting a sparse product", stream, (product_kernel<T, Sum>),
                     c->rows * c->n, (T *)c->y, (const T *)c->values, (const T *)c->x,
                     s);
    return START_BARRIERS("starting a sampled product", stream,
                          (sampled_kernel<T, Sum>),
                          (c->count + BLOCK / 32 - 1) / (BLOCK / 32), (T *)c->values,
                          (const T *)c->y, (const T *)c->x, s);
}

} // namespace

int dt_cuda_sparse(dt_stream stream, const dt_sparse_call *c)
{
    return c->dtype == DT_FLOAT32   ? start_product<float, float>(stream, c)
           : c->dtype == DT_FLOAT64 ? start_product<double, double>(stream, c)
                                    : start_product<int64_t, uint64_t>(stream, c);
}
