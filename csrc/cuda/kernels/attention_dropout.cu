/* Attention of 16 bits on the tensor cores of a warp with dropout: kernels of their own, since
 * drawing takes registers that the others do not have. */
#include "cuda/kernels/attention_mma.h"

int attention_with_dropout(dt_stream stream, TensorCoreTask &task)
{
    return start_forward<uint16_t, true>(stream, task);
}

int attention_gradients_with_dropout(dt_stream stream, TensorCoreTask &task)
{
    return start_gradients<uint16_t, true>(stream, task);
}

int take_attention_dropout(dt_stream stream, const dt_dropout_mask_call *mask,
                           Dropout *out)
{
    const dt_attention_dropout *given = &mask->dropout;
    const double words = ceil(given->kept * 4294967296.0);
    const int64_t side = DROPOUT_SIDE;
    *out = {};
    if (!given->start)
        return 0;
    out->on = true;
    out->last = words < 1 ? 0 : (uint32_t)(words - 1);
    out->factor = given->kept > 0 ? 1 / given->kept : 0;
    out->row_blocks = (mask->length + side - 1) / side;
    out->key_blocks = (mask->key_length + side - 1) / side;
    if (!given->generator) {
        out->start.state = (const uint64_t *)given->start;
        return 0;
    }
    out->leave = (uint64_t *)given->start;
    uint64_t blocks = (uint64_t)(mask->batch * out->row_blocks) * out->key_blocks;
    return graph_draw(stream, given->generator, blocks * side * side / 4, &out->start);
}
