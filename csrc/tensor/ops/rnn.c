/* The steps of a recurrent layer, one after the other: ops/rnn.def. */
#include "device/rnn.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/interrupt.h"
#include "device/rnn_ops.h"
#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/convolution.h"
#include "tensor/ops/ops.h"

#define PACKED_STEPS 3 /* so many use a packed weight often enough */

/* A layer's call. Sequences of a batch are sorted by length: step t has the first
 * sizes[t] of them. */
typedef struct layer {
    const char *op_name;
    dt_rnn_call step;
    dt_stream stream;
    const dt_backend *backend;
    char *operands[DT_RNN_OPERANDS], *weight;
    void *packed;        /* owned: the weight for all steps, or NULL */
    int64_t wide;        /* rows of the weight */
    bool backward, adds; /* adds: add the product to the result */
} layer;

static int check(const char *op_name, const dt_tensor *t, const dt_tensor *first,
                 int64_t numel)
{
    if (t->dtype == first->dtype && t->contiguous && t->numel == numel)
        return dt_check_same_device(op_name, "first", first, "other", t) ||
                       dt_tensor_use(t)
                   ? -1
                   : 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: an operand has %" PRId64 " elements of type %s; give %" PRId64
                   " of type %s, contiguous",
                   op_name, t->numel, dt_dtype_name((dt_dtype)t->dtype), numel,
                   dt_dtype_name((dt_dtype)first->dtype));
}

/* The operands of ops/rnn.def, then the weight. */
static int open_layer(layer *l, const dt_value *list, int64_t all, int64_t batch)
{
    const dt_tensor *const *t = list->tensors, *first = t[0], *weight;
    const dt_rnn_operand *row = dt_rnn_operands[l->step.op];
    int count = 0;
    while (count < DT_RNN_OPERANDS && row[count].width)
        count++;
    if (list->count != count + 1 || t[count]->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %d operands were given; give %d and a matrix", l->op_name,
                       list->count, count);
    weight = t[count];
    l->step.dtype = (dt_dtype)first->dtype;
    dt_device device = dt_tensor_device(first);
    const dt_dtype stored = dt_stored_dtype(device, l->step.dtype);
    if (stored != l->step.dtype || !dt_dtype_is_float(stored))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for type %s; give float32 or float64",
                       l->op_name, dt_dtype_name(l->step.dtype));
    l->step.n = weight->shape[1];
    l->wide = row[0].width * l->step.n;
    l->weight = dt_tensor_data(weight);
    l->stream = dt_stream_current(device);
    l->backend = dt_backend_of(device);
    for (int k = 0; k < DT_RNN_OPERANDS; k++)
        l->operands[k] = NULL;
    for (int k = 0; k < count; k++) {
        int64_t rows = row[k].each ? all : row[k].shared ? 1 : batch;
        if (check(l->op_name, t[k], first, rows * row[k].width * l->step.n))
            return -1;
        l->operands[k] = dt_tensor_data(t[k]);
    }
    return check(l->op_name, weight, first, l->wide * l->step.n);
}

/* first = h @ weight.T, or dh = first @ weight. */
static dt_gemm product_of(const layer *l)
{
    const dt_rnn_call *step = &l->step;
    dt_gemm gemm = {
        .dtype = step->dtype,
        .tf32 = dt_recurrent_tf32(),
        .batch = 1,
        .m = step->rows,
        .n = l->backward ? step->n : l->wide,
        .k = l->backward ? l->wide : step->n,
        .a = step->operands[!l->backward],
        .a_col = 1,
        .b = l->weight,
        .b_row = l->backward ? step->n : 1,
        .b_col = l->backward ? 1 : step->n,
        .c = step->operands[l->backward],
        .alpha = 1,
        .beta = l->adds,
        .packed = l->packed,
    };
    gemm.a_row = gemm.k;
    gemm.c_row = gemm.n;
    return gemm;
}
static int multiply_layer(const layer *l)
{
    dt_gemm gemm = product_of(l);
    return l->backend->gemm(l->stream, &gemm);
}

/* Steps of `rows` rows, the most that there are. */
static void pack_weight(layer *l, int64_t rows)
{
    l->step.rows = rows;
    dt_gemm gemm = product_of(l);
    l->packed = l->backend->gemm_pack ? l->backend->gemm_pack(&gemm) : NULL;
}

/* The step whose first row is `row` of all. */
static int run_step(layer *l, int64_t row, int64_t rows)
{
    dt_rnn_call *step = &l->step;
    int64_t size = (int64_t)dt_dtype_size(step->dtype);
    step->rows = rows;
    for (int k = 0; k < DT_RNN_OPERANDS; k++) {
        bool each = dt_rnn_operands[step->op][k].each;
        step->operands[k] = l->operands[k];
        if (each)
            step->operands[k] = l->operands[k] + row * dt_rnn_row(step, k) * size;
    }
    if (!l->backward && multiply_layer(l))
        return -1;
    if (l->backend->rnn(l->stream, step))
        return -1;
    return l->backward ? multiply_layer(l) : 0;
}

int dt_rnn_steps_forward(dt_call *c)
{
    const dt_value *list = &c->args[1];
    const int64_t *sizes = c->args[2].ints;
    int count = c->args[2].count;
    bool reverse = c->args[3].b;
    int64_t all = 0;
    layer l = {.op_name = c->name};
    if (c->args[0].i < 0 || c->args[0].i >= DT_NRNN || list->count < 1 || count < 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: operation %" PRId64 " on %d tensors and %d steps; give an "
                       "operation of ops/rnn.def, its operands and the sizes of steps",
                       c->name, c->args[0].i, list->count, count);
    for (int t = 0; t < count; t++) {
        if (sizes[t] < 1 || sizes[t] > INT32_MAX || (t && sizes[t] > sizes[t - 1]))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: step %d has %" PRId64 " sequences; give positive sizes "
                           "that do not grow",
                           c->name, t, sizes[t]);
        all += sizes[t];
    }
    l.step.op = (dt_rnn_op)c->args[0].i;
    l.backward = l.step.op >= DT_RNN_tanh_backward;
    l.adds = l.backward ? l.step.op == DT_RNN_gru_backward : l.step.op != DT_RNN_gru;
    if (open_layer(&l, list, all, sizes[0]))
        return -1;
    dt_tensor_alias(c->out[0], list->tensors[0]);
    if (count >= PACKED_STEPS && l.step.n)
        pack_weight(&l, sizes[0]);
    int64_t row = reverse ? all : 0;
    int status = 0;
    for (int i = 0; i < count && l.step.n && !status; i++) {
        int64_t rows = sizes[reverse ? count - 1 - i : i];
        row -= reverse ? rows : 0;
        status = dt_interrupt_check_rarely() || run_step(&l, row, rows) ? -1 : 0;
        row += reverse ? 0 : rows;
    }
    free(l.packed);
    return status;
}
