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

typedef struct matrix {
    const char *data;
    int64_t rows, columns;
    void *packed; /* owned: for all steps, or NULL */
} matrix;

/* A layer's call. Sequences of a batch are sorted by length: step t has the first
 * sizes[t] of them. */
typedef struct layer {
    const char *op_name;
    dt_rnn_call step;
    dt_stream stream;
    const dt_backend *backend;
    char *operands[DT_RNN_OPERANDS];
    matrix weight;
    bool backward, adds; /* adds: add the product to the result */
    /* An LSTM may project its results; else projection.data is NULL. */
    matrix projection;
    char *results, *start; /* projected, of all steps and before the first one */
    int64_t before;        /* first row in `results` of the step before */
    int64_t before_rows;   /* how many it has */
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

static int open_matrix(const layer *l, matrix *m, const dt_tensor *t,
                       const dt_tensor *first, int64_t rows, int64_t columns)
{
    if (t->ndim != 2 || t->shape[0] != rows || t->shape[1] != columns)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: a weight has %d dimensions and %" PRId64
                       " elements; give one of shape [%" PRId64 ", %" PRId64 "]",
                       l->op_name, t->ndim, t->numel, rows, columns);
    *m = (matrix){dt_tensor_data(t), rows, columns, NULL};
    return check(l->op_name, t, first, rows * columns);
}

/* The operands of ops/rnn.def, then the weight; of an LSTM also the projection, the
 * projected results of all steps, and the projected state before the first one. Backward,
 * the last two are gradients: of the results, to which is added, and of the state. */
static int open_layer(layer *l, const dt_value *list, int64_t all, int64_t batch)
{
    const dt_tensor *const *t = list->tensors, *first = t[0];
    const dt_rnn_operand *row = dt_rnn_operands[l->step.op];
    int count = 0;
    while (count < DT_RNN_OPERANDS && row[count].width)
        count++;
    const bool lstm = l->step.op == DT_RNN_lstm || l->step.op == DT_RNN_lstm_backward;
    const bool projected = lstm && list->count == count + 4;
    if ((list->count != count + 1 && !projected) || t[count + projected]->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %d operands were given; give %d and a matrix", l->op_name,
                       list->count, count);
    l->step.dtype = (dt_dtype)first->dtype;
    dt_device device = dt_tensor_device(first);
    const dt_dtype stored = dt_stored_dtype(device, l->step.dtype);
    if (stored != l->step.dtype || !dt_dtype_is_float(stored))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for type %s; give float32 or float64",
                       l->op_name, dt_dtype_name(l->step.dtype));
    const int64_t *shape = t[count + projected]->shape, n = shape[1];
    const int64_t state = projected ? shape[0] : n;
    l->step.n = n;
    if (open_matrix(l, &l->weight, t[count], first, row[0].width * n, state))
        return -1;
    if (projected) {
        if (open_matrix(l, &l->projection, t[count + 1], first, state, n) ||
            check(l->op_name, t[count + 2], first, all * state) ||
            check(l->op_name, t[count + 3], first, batch * state))
            return -1;
        l->results = dt_tensor_data(t[count + 2]);
        l->start = dt_tensor_data(t[count + 3]);
    }
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
    return 0;
}

/* to = from @ w.T, or in a backward pass from @ w. */
static dt_gemm product_of(const layer *l, const matrix *w, int64_t rows,
                          const void *from, void *to, bool adds)
{
    dt_gemm gemm = {
        .dtype = l->step.dtype,
        .tf32 = dt_recurrent_tf32(),
        .batch = 1,
        .m = rows,
        .n = l->backward ? w->columns : w->rows,
        .k = l->backward ? w->rows : w->columns,
        .a = from,
        .a_col = 1,
        .b = w->data,
        .b_row = l->backward ? w->columns : 1,
        .b_col = l->backward ? 1 : w->columns,
        .c = to,
        .alpha = 1,
        .beta = adds,
        .packed = w->packed,
    };
    gemm.a_row = gemm.k;
    gemm.c_row = gemm.n;
    return gemm;
}

/* Steps of `rows` rows, the most that there are. */
static void pack(const layer *l, matrix *w, int64_t rows)
{
    dt_gemm gemm = product_of(l, w, rows, NULL, NULL, l->adds);
    w->packed = l->backend->gemm_pack ? l->backend->gemm_pack(&gemm) : NULL;
}

/* Multiplies `rows` rows of the step, from `row` on, with the weight. `state` has their
 * states. */
static int multiply(const layer *l, int64_t row, int64_t rows, char *state, bool adds)
{
    char *gates = (char *)l->step.operands[0] +
                  row * l->weight.rows * (int64_t)dt_dtype_size(l->step.dtype);
    dt_gemm gemm = product_of(l, &l->weight, rows, l->backward ? gates : state,
                              l->backward ? state : gates, adds);
    return rows ? l->backend->gemm(l->stream, &gemm) : 0;
}

/* The states before a step are the results of the step before it. Sequences that begin
 * here have theirs in `start`. */
static int multiply_states(const layer *l)
{
    const int64_t rows = l->step.rows;
    if (!l->projection.data)
        return multiply(l, 0, rows, l->step.operands[1], l->adds);
    const int64_t size = l->projection.rows * (int64_t)dt_dtype_size(l->step.dtype);
    const int64_t met = l->before_rows < rows ? l->before_rows : rows;
    return multiply(l, 0, met, l->results + l->before * size, true) ||
                   multiply(l, met, rows - met, l->start + met * size, !l->backward)
               ? -1
               : 0;
}

/* Projects y of the step to its results; backward, computes dy from their gradient. */
static int project(const layer *l, int64_t row)
{
    if (!l->projection.data)
        return 0;
    char *results =
        l->results + row * l->projection.rows * (int64_t)dt_dtype_size(l->step.dtype);
    void *own = l->step.operands[3];
    dt_gemm gemm =
        product_of(l, &l->projection, l->step.rows, l->backward ? results : own,
                   l->backward ? own : results, false);
    return l->backend->gemm(l->stream, &gemm);
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
    if (l->backward ? project(l, row) : multiply_states(l))
        return -1;
    if (l->backend->rnn(l->stream, step))
        return -1;
    return l->backward ? multiply_states(l) : project(l, row);
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
    if (count >= PACKED_STEPS && l.step.n) {
        pack(&l, &l.weight, sizes[0]);
        if (l.projection.data)
            pack(&l, &l.projection, sizes[0]);
    }
    const bool up = reverse == l.backward; /* the layer begins with step 0 */
    int64_t row = reverse ? all : 0;
    int status = 0;
    for (int i = 0; i < count && l.step.n && !status; i++) {
        const int t = reverse ? count - 1 - i : i, before = up ? t - 1 : t + 1;
        int64_t rows = sizes[t];
        row -= reverse ? rows : 0;
        l.before_rows = before >= 0 && before < count ? sizes[before] : 0;
        l.before = up ? row - l.before_rows : row + rows;
        status = dt_interrupt_check_rarely() || run_step(&l, row, rows) ? -1 : 0;
        row += reverse ? 0 : rows;
    }
    free(l.weight.packed);
    free(l.projection.packed);
    return status;
}
