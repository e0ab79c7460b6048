#include <string.h>

#include "cpu/runtime/backend.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"
#include "cpu/runtime/pool.h"

int dt_cpu_fill(dt_stream stream, const dt_plan *plan)
{
    return dt_cpu_copy(stream, plan);
}

/* A copy in which the target is dense along one dimension and the source along another.
 */
typedef struct transposition {
    int ndim; /* of the other dimensions */
    int64_t shape[DT_MAX_NDIM], to_strides[DT_MAX_NDIM], from_strides[DT_MAX_NDIM];
    int64_t rows, columns; /* of the source */
    int64_t target_row, source_row;
    int64_t parts; /* pieces of one pair of dimensions, cut along the columns */
    int64_t width; /* columns of a piece */
    int64_t size;
    char *target;
    const char *source;
} transposition;

static void run_copy(void *context, int64_t begin, int64_t end)
{
    const transposition *t = context;
    int which = __builtin_ctzll((unsigned long long)t->size);
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % t->parts * t->width, rest = item / t->parts;
        int64_t columns = t->columns - first > t->width ? t->width : t->columns - first;
        char *target = t->target + first * t->target_row;
        const char *source = t->source + first * t->size;
        for (int d = t->ndim - 1; d >= 0; d--) {
            int64_t at = rest % t->shape[d];
            rest /= t->shape[d];
            target += at * t->to_strides[d];
            source += at * t->from_strides[d];
        }
        dt_cpu_kernels.copy->transpose[which](t->rows, columns, target, t->target_row,
                                              source, t->source_row);
    }
}

/* Whether the plan is such a copy, and then does it. */
static bool transpose(const dt_plan *plan, int *out_status)
{
    const dt_operand *to = &plan->operands[0], *from = &plan->operands[1];
    int last = plan->ndim - 1, dense = -1;
    int64_t size = (int64_t)dt_dtype_size(to->dtype);
    if (to->dtype != from->dtype || from->scalar || to->strides[last] != size)
        return false;
    for (int d = 0; d < last; d++)
        if (from->strides[d] == size)
            dense = d;
    if (dense < 0 || plan->shape[last] < 4 || plan->shape[dense] < 4)
        return false;
    transposition t = {
        .rows = plan->shape[last],
        .columns = plan->shape[dense],
        .target_row = to->strides[dense],
        .source_row = from->strides[last],
        .size = size,
        .target = to->data,
        .source = from->data,
    };
    int64_t items = 1;
    for (int d = 0; d < last; d++) {
        if (d == dense)
            continue;
        t.shape[t.ndim] = plan->shape[d];
        t.to_strides[t.ndim] = to->strides[d];
        t.from_strides[t.ndim++] = from->strides[d];
        items *= plan->shape[d];
    }
    /* Pieces some cache lines wide, which the processor then fetches ahead; narrower
     * ones only where there would not be enough for all threads. */
    int64_t line = 64 / size, width = DT_LOOP_GRAIN / t.rows + 1;
    int64_t share = t.columns * items / ((int64_t)dt_pool_threads() * 4);
    if (width < 4 * line)
        width = share < 4 * line ? share : 4 * line;
    t.width = width < line ? line : (width + line - 1) / line * line;
    t.parts = (t.columns + t.width - 1) / t.width;
    int64_t each = t.rows * (t.columns < t.width ? t.columns : t.width);
    *out_status =
        dt_pool_try(run_copy, &t, items * t.parts, (DT_LOOP_GRAIN + each - 1) / each);
    return true;
}

int dt_cpu_copy(dt_stream stream, const dt_plan *plan)
{
    (void)stream;
    dt_dtype to = plan->operands[0].dtype, from = plan->operands[1].dtype;
    int status;
    if (plan->ndim > 1 && transpose(plan, &status))
        return status;
    return dt_loop_run(dt_cpu_kernels.copy->convert[to][from], plan, 1, false);
}
