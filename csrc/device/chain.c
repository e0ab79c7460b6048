#include "device/chain.h"

#include "ops/reduce_ops.h"

const char *dt_chain_end_name(const dt_chain_end *end)
{
    static const char *const reductions[DT_NREDUCE] = {
#define REDUCE(name, ...) #name,
#include "ops/reduce.def"
#undef REDUCE
    };
    return end->work == DT_WORK_nn       ? end->rows.op_name
           : end->work == DT_WORK_reduce ? reductions[end->op]
                                         : "var";
}

/* Who visits the operands of an end, but for the result of the chain. */
typedef struct others {
    dt_extent_visitor visit;
    void *context;
    const char *result;
} others;

static void visit_other(void *context, const dt_extent *extent)
{
    const others *to = context;
    if (extent->data != to->result)
        to->visit(to->context, extent);
}

static void visit_end(const dt_chain_end *end, dt_extent_visitor visit, void *context)
{
    others to = {visit, context, NULL};
    to.result = end->work == DT_WORK_nn ? end->rows.operands[end->operand]
                                        : end->reduction.input;
    dt_extents((int)end->work, "", &end->reduction, visit_other, &to);
}

static void visit_input(const dt_chain *chain, const dt_chain_input *input,
                        dt_extent_visitor visit, void *context)
{
    dt_extent extent = {.data = input->data,
                        .item = (int64_t)dt_dtype_size(input->dtype),
                        .ndim = 1,
                        .reads = true};
    extent.shape[0] = chain->numel;
    extent.strides[0] = extent.item;
    if (input->layout >= 0) {
        const dt_chain_layout *layout = &chain->layouts[input->layout];
        extent.ndim = layout->ndim;
        for (int d = 0; d < layout->ndim; d++) {
            extent.shape[d] = layout->shape[d];
            extent.strides[d] = layout->strides[d];
        }
    }
    visit(context, &extent);
}

void dt_chain_visit(const dt_chain *chain, dt_extent_visitor visit, void *context)
{
    const char *seen[DT_CHAIN_STEPS * DT_MAX_INPUTS];
    int nseen = 0;
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step *step = &chain->steps[s];
        for (int i = 0; step->wanted && i < step->ninputs; i++) {
            const dt_chain_input *input = &step->inputs[i];
            int k = 0;
            if (!input->data)
                continue;
            while (k < nseen && seen[k] != input->data)
                k++;
            if (k < nseen)
                continue;
            seen[nseen++] = input->data;
            visit_input(chain, input, visit, context);
        }
        const dt_extent out = {.data = step->out,
                               .item = (int64_t)dt_dtype_size(step->result),
                               .ndim = 1,
                               .shape = {chain->numel},
                               .strides = {(int64_t)dt_dtype_size(step->result)},
                               .writes = true};
        if (out.data)
            visit(context, &out);
    }
    for (int e = 0; e < chain->nends; e++)
        if (chain->ends[e].wanted)
            visit_end(&chain->ends[e], visit, context);
}

static void add_bytes(void *bytes, const dt_extent *extent)
{
    int64_t own = extent->item;
    for (int d = 0; d < extent->ndim; d++)
        own *= extent->strides[d] ? extent->shape[d] : 1;
    *(int64_t *)bytes += own;
}

int64_t dt_chain_end_bytes(const dt_chain_end *end)
{
    int64_t bytes = 0;
    visit_end(end, add_bytes, &bytes);
    return bytes;
}

int64_t dt_chain_bytes(const dt_chain *chain)
{
    int64_t bytes = 0;
    dt_chain_visit(chain, add_bytes, &bytes);
    return bytes;
}
