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

int take_attention_dropout(dt_stream stream, const dt_attention_call *c, Dropout *out)
{
    const double words = ceil(c->dropout.kept * 4294967296.0);
    const int64_t side = DROPOUT_SIDE;
    *out = {};
    if (!c->dropout.start)
        return 0;
    out->on = true;
    out->last = words < 1 ? 0 : (uint32_t)(words - 1);
    out->factor = c->dropout.kept > 0 ? 1 / c->dropout.kept : 0;
    out->row_blocks = (c->length + side - 1) / side;
    out->key_blocks = (c->key_length + side - 1) / side;
    if (!c->dropout.generator) {
        out->start.state = (const uint64_t *)c->dropout.start;
        return 0;
    }
    out->leave = (uint64_t *)c->dropout.start;
    uint64_t blocks =
        (uint64_t)(c->batch * c->heads * out->row_blocks) * out->key_blocks;
    return graph_draw(stream, c->dropout.generator, blocks * side * side / 4,
                      &out->start);
}
