#include <inttypes.h>

#include "cuda/kernels/reduce_kernels.h"

static void set_layout(Layout<1> *layout, int ndim, const int64_t *shape,
                       const int64_t *strides)
{
    layout->ndim = ndim ? ndim : 1;
    layout->strides[0][0] = 0;
    layout->sizes[0] = divider_for(1);
    for (int d = 0; d < ndim; d++) {
        /* A single dimension is not divided, so that it may be of any size; nor is one
         * without elements, through which nobody goes. */
        layout->sizes[d] = divider_for(ndim > 1 && shape[d] ? (unsigned)shape[d] : 1);
        layout->strides[0][d] = strides[d];
    }
}

/* Threads and warps that fill a large GPU. The same for all: of a number that fits the
 * card, sums would have other digits on each. */
static const int64_t kThreads = 1 << 18, kWarps = 1 << 11;
/* Elements that one thread adds up before partial sums meet. */
static const int64_t kRun = 32;

static void set_blocks(ReductionPlan *f)
{
    f->each = BLOCK / f->threads;
    f->blocks = (f->results + f->each - 1) / f->each;
}

static void cut(ReductionPlan *f, bool along_results, int64_t spread)
{
    /* A warp meets without a barrier. */
    bool warps = f->elements <= 32 * 8 || f->results >= kWarps;
    f->threads = along_results ? 1 : warps ? 32 : BLOCK;
    int64_t busy = f->results * f->threads;
    int64_t wanted = busy < kThreads ? spread * kThreads / busy : 1;
    int64_t most = f->elements / (f->threads * kRun);
    f->parts = wanted < most ? wanted : most;
    if (f->parts < 1)
        f->parts = 1;
    /* Whole vectors, so that each part starts where one may. */
    f->part = ((f->elements + f->parts - 1) / f->parts + 3) / 4 * 4;
    f->parts = f->part ? (f->elements + f->part - 1) / f->part : 1;
    if (f->parts < 1)
        f->parts = 1;
    set_blocks(f);
}

int reduce_plan(const dt_reduction *call, ReductionPlan *f, int64_t spread)
{
    if ((call->kept_ndim > 1 && call->kept_numel >= MAX_LAYOUT_NUMEL) ||
        (call->reduced_ndim > 1 && call->reduced_numel >= MAX_LAYOUT_NUMEL))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "a reduction over %" PRId64 " results of %" PRId64 " elements that do not "
            "follow one another is too large for a GPU kernel; call contiguous() first",
            call->kept_numel, call->reduced_numel);
    f->results = call->kept_numel;
    f->elements = call->reduced_numel;
    set_layout(&f->kept, call->kept_ndim, call->kept_shape, call->kept_strides);
    set_layout(&f->reduced, call->reduced_ndim, call->reduced_shape,
               call->reduced_strides);
    /* Neighbouring threads read neighbouring memory: along the results where their
     * stride is smaller. */
    int64_t kept =
        call->kept_ndim ? call->kept_strides[call->kept_ndim - 1] : INT64_MAX;
    int64_t reduced =
        call->reduced_ndim ? call->reduced_strides[call->reduced_ndim - 1] : INT64_MAX;
    cut(f, call->reduced_numel < 8 || (kept < reduced && call->kept_numel >= 32),
        spread);
    return 0;
}

ReductionPlan reduce_plan_parts(int64_t results, int64_t parts, size_t item)
{
    ReductionPlan f;
    int64_t kept_stride = parts * (int64_t)item, stride = (int64_t)item;
    f.results = results;
    f.elements = parts;
    set_layout(&f.kept, 1, &results, &kept_stride);
    set_layout(&f.reduced, 1, &parts, &stride);
    f.threads = parts <= 32 * 8 ? 32 : BLOCK;
    f.parts = 1;
    f.part = parts;
    set_blocks(&f);
    return f;
}

/* The rows: their names, and their classes. */
static const struct {
    const char *name;
    reduce_class columns;
} rows[] = {
#define REDUCE(name, class, ...) {#name, CLASS_##class},
#include "ops/reduce.def"
#undef REDUCE
};
/* The kernels for each input type, by what a row accumulates it as. */
typedef int (*reduce_fn)(dt_stream stream, const Reduction *call);
static const reduce_fn kernels[DT_NDTYPES][NACCUMULATES] = {
#define DT_DTYPE(ID, name, alias, type)                                                \
    {reduce_start<Taken<type>, Taken<type>>, reduce_start<Taken<type>, Taken<type>>,   \
     reduce_start<Taken<type>, bool>},
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
};
static_assert(AS_ITSELF == 0 && AS_TOTAL == 1 && AS_TRUTH == 2, "the order of kernels");

static int first_of_memory(dt_stream stream, const Reduction *call, const void *)
{
    return kernels[call->from.dtype][rows[call->op].columns.accumulates](stream, call);
}

reduce_class reduce_class_of(dt_reduce_op op)
{
    return rows[op].columns;
}

int dt_cuda_reduce(dt_stream stream, dt_reduce_op op, const dt_reduction *call)
{
    return reduce_by(stream, op, call, first_of_memory, nullptr);
}

int reduce_by(dt_stream stream, dt_reduce_op op, const dt_reduction *call,
              reduce_first first, const void *with)
{
    const reduce_class &row = rows[op].columns;
    dt_dtype in = call->input_dtype;
    if (row.floats && !dt_dtype_is_float(in))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: not defined for tensors of type %s on a GPU; convert them first",
            rows[op].name, dt_dtype_name(in));
    Reduction c = {};
    if (reduce_plan(call, &c.f, 32))
        return -1;
    c.input = (const char *)call->input;
    c.out = call->output;
    c.parameter = call->parameter;
    c.count = call->reduced_numel;
    c.op = op;
    c.mapped = c.finished = true;
    c.starts = row.starts;
    c.from = stored_as(in);
    c.to = stored_as(call->output_dtype);
    if (c.f.parts == 1)
        return first(stream, &c, with);

    dt_dtype partial = c.to.half ? DT_FLOAT32 : call->output_dtype;
    int64_t results = c.f.results, parts = c.f.parts;
    size_t item = dt_dtype_size(partial);
    Scratch memory(stream, (size_t)(results * parts) * item);
    c.out = memory.data;
    c.finished = false;
    c.to = stored_as(partial);
    if (!memory.data || first(stream, &c, with))
        return -1;
    c.input = (const char *)memory.data;
    c.out = call->output;
    c.mapped = false;
    c.from = c.to;
    c.to = stored_as(call->output_dtype);
    c.finished = true;
    c.f = reduce_plan_parts(results, parts, item);
    return kernels[partial][row.accumulates](stream, &c);
}
