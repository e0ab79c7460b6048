#include "cpu/kernels/chain_end.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/backend.h"

static const dt_reduce_kernel *kernel_of(const dt_chain_end *end, dt_dtype *compute)
{
    const dt_reduction *r = &end->reduction;
    *compute = r->input_dtype;
    if (end->work == DT_WORK_moments)
        return r->input_dtype == DT_FLOAT32 ? &dt_cpu_kernels.reduce->moments_float32
                                            : &dt_cpu_kernels.reduce->moments_float64;
    return dt_cpu_reduce_kernel(end->op, r->input_dtype,
                                dt_dtype_compute(r->output_dtype), compute);
}

bool dt_cpu_chain_end(const struct dt_chain *chain, struct dt_chain_end *end)
{
    (void)chain;
    end->partials = NULL;
    if (end->work == DT_WORK_nn)
        return dt_cpu_nn_takes_rows(&end->rows, end->operand, &end->writes) &&
               end->rows.n * (int64_t)dt_dtype_size(end->rows.dtype) <= DT_CHAIN_ROW;
    dt_dtype compute;
    const dt_reduce_kernel *kernel = kernel_of(end, &compute);
    if (!kernel)
        return false;
    const int64_t row = end->reduction.reduced_numel;
    const int64_t blocks = (row + DT_CHAIN_BLOCK - 1) / DT_CHAIN_BLOCK;
    end->writes = 6;
    end->partials =
        malloc((size_t)(end->reduction.kept_numel * blocks) * kernel->partial);
    return end->partials;
}

dt_chain_sum dt_chain_sum_of(const dt_chain_end *end, int64_t row, int64_t block)
{
    dt_chain_sum sum = {.end = end,
                        .input = end->reduction.input_dtype,
                        .row = row,
                        .block = block,
                        .blocks = (row + block - 1) / block,
                        .parameter = end->reduction.parameter};
    sum.kernel = kernel_of(end, &sum.compute);
    return sum;
}

static void begin_part(const dt_chain_sum *sum, dt_chain_part *part)
{
    part->tree = (dt_reduce_tree){.kernel = sum->kernel,
                                  .columns = 1,
                                  .bytes = sum->kernel->partial,
                                  .levels = part->levels};
}

static void take_leaf(const dt_chain_sum *sum, dt_chain_part *part, int64_t n,
                      const char *x)
{
    _Alignas(64) char buffer[DT_REDUCE_LEAF * 8];
    if (sum->input != sum->compute) {
        dt_convert_dense(sum->compute, sum->input, n, buffer, x);
        x = buffer;
    }
    sum->kernel->run(n, x, sum->parameter, dt_reduce_tree_next(&part->tree));
    dt_reduce_tree_push(&part->tree);
}

void dt_chain_sum_take(const dt_chain_sum *sum, dt_chain_part *part, int64_t begin,
                       int64_t n, const char *x)
{
    const int64_t size = (int64_t)dt_dtype_size(sum->input);
    int64_t row = begin / sum->row, at = begin % sum->row;
    while (n > 0) {
        const int64_t block = at / sum->block, left = sum->row - block * sum->block;
        const int64_t stop =
            block * sum->block + (left < sum->block ? left : sum->block);
        if (at == block * sum->block)
            begin_part(sum, part);
        while (n > 0 && at < stop) {
            int64_t some = stop - at < DT_REDUCE_LEAF ? stop - at : DT_REDUCE_LEAF;
            take_leaf(sum, part, some, x);
            x += some * size;
            at += some;
            n -= some;
        }
        if (at == stop)
            memcpy((char *)sum->end->partials +
                       (size_t)(row * sum->blocks + block) * sum->kernel->partial,
                   dt_reduce_tree_finish(&part->tree), sum->kernel->partial);
        if (at == sum->row) {
            at = 0;
            row++;
        }
    }
}

/* One partial result for each row. */
static void join_blocks(const dt_chain_sum *sum, char *partials)
{
    const size_t bytes = sum->kernel->partial;
    const char *next = partials;
    dt_chain_part part;
    for (int64_t i = 0; i < sum->end->reduction.kept_numel; i++) {
        begin_part(sum, &part);
        for (int64_t b = 0; b < sum->blocks; b++, next += bytes) {
            memcpy(dt_reduce_tree_next(&part.tree), next, bytes);
            dt_reduce_tree_push(&part.tree);
        }
        memcpy(partials + (size_t)i * bytes, dt_reduce_tree_finish(&part.tree), bytes);
    }
}

void dt_chain_sum_finish(const dt_chain_sum *sum)
{
    const dt_chain_end *end = sum->end;
    const dt_reduction *r = &end->reduction;
    if (sum->blocks > 1)
        join_blocks(sum, end->partials);
    if (end->work == DT_WORK_moments) {
        dt_cpu_moments_store(r, end->mean, end->partials);
        return;
    }
    sum->kernel->finish(r->kept_numel, end->partials, r->reduced_numel, r->parameter);
    dt_convert_dense(r->output_dtype, dt_dtype_compute(r->output_dtype), r->kept_numel,
                     r->output, end->partials);
}
