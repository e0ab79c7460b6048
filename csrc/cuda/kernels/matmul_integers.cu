/* Matrix products of integers, which cuBLAS does not have. They wrap as sums of
 * integers do. */
#include "cuda/kernels/compute.h"

NO_POINTERS(dt_gemm)

/* The matrices go as arguments of their own: pointers inside g are not followed. */
template <typename T>
__global__ void integer_gemm(T *c, const T *a, const T *b, int64_t alpha, int64_t beta,
                             dt_gemm g)
{
    int64_t i = thread_number();
    if (i >= g.batch * g.m * g.n)
        return;
    int64_t column = i % g.n, row = i / g.n % g.m, batch = i / g.n / g.m;
    const T *x = a + batch * g.a_batch + row * g.a_row;
    const T *y = b + batch * g.b_batch + column * g.b_col;
    uint64_t sum = 0;
    for (int64_t k = 0; k < g.k; k++)
        sum += (uint64_t)(int64_t)x[k * g.a_col] * (uint64_t)(int64_t)y[k * g.b_row];
    T *out = c + batch * g.c_batch + row * g.c_row + column;
    uint64_t old = beta ? (uint64_t)beta * (uint64_t)(int64_t)*out : 0;
    *out = (T)(int64_t)((uint64_t)alpha * sum + old);
}

template <typename T>
static int run_integers(dt_stream stream, const dt_gemm *g)
{
    return START("multiplying matrices", stream, (integer_gemm<T>),
                 g->batch * g->m * g->n, (T *)g->c, (const T *)g->a, (const T *)g->b,
                 (int64_t)g->alpha, (int64_t)g->beta, *g);
}

int matmul_integers(dt_stream stream, const dt_gemm *g)
{
    return with_type(g->dtype, [&](auto zero) {
        if constexpr (dt_kind_of<decltype(zero)> == DT_KIND_INTEGER)
            return run_integers<decltype(zero)>(stream, g);
        return dt_fail(DT_ERROR_RUNTIME,
                       "a matrix product of type %s does not exist; convert "
                       "the matrices first",
                       dt_dtype_name(g->dtype));
    });
}
