/* A matrix product as its own kernels take it: matmul.c and matmul_packed.c. */
#ifndef DT_CPU_KERNELS_MATMUL_H
#define DT_CPU_KERNELS_MATMUL_H

#include "cpu/kernels/kernels.h"

/* The kernels of float32 or float64; NULL for other types. */
static inline const dt_gemm_floats *dt_gemm_floats_of(dt_dtype dtype)
{
    return dtype == DT_FLOAT32   ? &dt_cpu_kernels.gemm->float32
           : dtype == DT_FLOAT64 ? &dt_cpu_kernels.gemm->float64
                                 : NULL;
}

/* One product; the batch is the caller's. */
static inline dt_gemm_args dt_gemm_args_of(const dt_gemm *g, void *scratch)
{
    return (dt_gemm_args){
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .a = g->a,
        .a_row = g->a_row,
        .a_col = g->a_col,
        .b = g->packed ? g->packed : g->b,
        .b_row = g->b_row,
        .b_col = g->b_col,
        .c = g->c,
        .c_row = g->c_row,
        .alpha = g->alpha,
        .packed_n = g->n,
        .packed_k = g->k,
        .fresh = g->beta == 0,
        .scratch = scratch,
    };
}

/* The product of two vectors; is_dot: whether it is one. */
bool dt_cpu_gemm_is_dot(const dt_gemm *g);
int dt_cpu_gemm_dot(const dt_gemm *g);

#endif
