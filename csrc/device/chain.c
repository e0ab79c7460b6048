#include "device/chain.h"

static int64_t layout_bytes(const dt_chain_layout *layout, dt_dtype dtype)
{
    int64_t bytes = (int64_t)dt_dtype_size(dtype);
    for (int d = 0; d < layout->ndim; d++)
        bytes *= layout->strides[d] ? layout->shape[d] : 1;
    return bytes;
}

static void add_bytes(void *bytes, const dt_extent *extent)
{
    int64_t own = extent->item;
    for (int d = 0; d < extent->ndim; d++)
        own *= extent->strides[d] ? extent->shape[d] : 1;
    *(int64_t *)bytes += own;
}

int64_t dt_chain_end_bytes(const dt_chain *chain, const dt_chain_end *end)
{
    int64_t bytes =
        -chain->numel * (int64_t)dt_dtype_size(chain->steps[end->step].result);
    dt_extents(end->work, "", &end->reduction, add_bytes, &bytes);
    return bytes;
}

int64_t dt_chain_bytes(const dt_chain *chain)
{
    int64_t bytes = 0;
    for (int e = 0; e < chain->nends; e++)
        bytes += chain->ends[e].wanted ? dt_chain_end_bytes(chain, &chain->ends[e]) : 0;
    const char *seen[DT_CHAIN_STEPS * DT_MAX_INPUTS];
    int nseen = 0;
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step *step = &chain->steps[s];
        if (step->out)
            bytes += chain->numel * (int64_t)dt_dtype_size(step->result);
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
            bytes += input->layout < 0
                         ? chain->numel * (int64_t)dt_dtype_size(input->dtype)
                         : layout_bytes(&chain->layouts[input->layout], input->dtype);
        }
    }
    return bytes;
}
