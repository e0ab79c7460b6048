/* Evenly spaced numbers, and the two triangles of a matrix. */
#include <inttypes.h>
#include <math.h>

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* PyTorch goes from both ends to the middle, rounding once. So do we, to the last bit.
 */
#define SPACED(type, FMA)                                                              \
    static void spaced_##type(type *out, type start, type end, int64_t steps)          \
    {                                                                                  \
        type step = steps > 1 ? (end - start) / (type)(steps - 1) : 0;                 \
        for (int64_t i = 0; i < steps; i++)                                            \
            out[i] = i < steps / 2 || steps == 1                                       \
                         ? FMA(step, (type)i, start)                                   \
                         : FMA(-step, (type)(steps - i - 1), end);                     \
    }
SPACED(float, fmaf)
SPACED(double, fma)

/* On a GPU, two progressions, each to the middle. */
static int spaced_there(dt_tensor *out, double start, double end)
{
    int64_t steps = out->numel, half = steps / 2;
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    dt_device device = dt_tensor_device(out);
    const dt_backend *backend = dt_backend_of(device);
    dt_dtype dtype = (dt_dtype)out->dtype;
    char *data = dt_tensor_data(out);
    dt_arange_call low = {dtype, data, half, dt_scalar_float(start),
                          dt_scalar_float(step)};
    dt_arange_call high = {
        dtype, data + half * (int64_t)dt_dtype_size(dtype), steps - half,
        dt_scalar_float(steps > 1 ? end - step * (double)(steps - half - 1) : start),
        dt_scalar_float(step)};
    if (dt_storage_use(out->storage) ||
        (half && backend->arange(dt_stream_current(device), &low)))
        return -1;
    return backend->arange(dt_stream_current(device), &high);
}

/* Where base is not NAN: base to the powers of the numbers. */
static int linspace(dt_call *c, double base, int first)
{
    const char *what = c->name;
    dt_tensor *out = c->out[0];
    double start = dt_scalar_as_double(c->args[0].scalar);
    double end = dt_scalar_as_double(c->args[1].scalar);
    int64_t steps = c->args[2].i;
    dt_dtype dtype = dt_factory_dtype(c, first, dt_default_dtype());
    dt_device device = c->args[first + 2].device;
    dt_tensor powers = {.storage = NULL};
    if (steps < 0)
        return dt_fail(DT_ERROR_RUNTIME, "%s: steps is %" PRId64 "; give 0 or more",
                       what, steps);
    if (dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: not defined for the type bool; use an integer or floating type", what);
    /* Integers are cut off from doubles, and lie between whole ends. */
    bool floats = dt_dtype_is_float(dtype);
    if (!floats) {
        start = trunc(start);
        end = trunc(end);
    }
    dt_dtype wide = floats ? dt_dtype_compute(dtype) : DT_FLOAT64;
    if (dt_tensor_empty(what, out, wide, 1, &steps, device))
        return -1;
    if (steps && device.type != DT_CPU) {
        if (spaced_there(out, start, end))
            goto fail;
    } else if (out->dtype == DT_FLOAT32) {
        spaced_float(dt_tensor_data(out), (float)start, (float)end, steps);
    } else {
        spaced_double(dt_tensor_data(out), start, end, steps);
    }
    if (!isnan(base)) {
        if (dt_elementwise(
                DT_OP_pow, &powers,
                DT_ARGS(dt_arg_scalar(dt_scalar_float(base)), dt_arg_tensor(out))))
            goto fail;
        dt_tensor_clear(out);
        *out = powers;
        powers.storage = NULL;
    }
    if (wide != dtype) {
        if (dt_to(&powers, out, dtype, device))
            goto fail;
        dt_tensor_clear(out);
        *out = powers;
    }
    return 0;
fail:
    dt_tensor_clear(out);
    return -1;
}

int dt_linspace_forward(dt_call *c)
{
    return linspace(c, NAN, 3);
}

int dt_logspace_forward(dt_call *c)
{
    return linspace(c, c->args[3].f, 4);
}

/* --- triangles of a matrix --- */

/* Bools, rows x columns: true on the diagonal and below it (lower), or above. Diagonal
 * k is k columns to the right of the main one. */
static int triangle_mask(const char *what, dt_tensor *out, int64_t rows,
                         int64_t columns, bool lower, int64_t diagonal,
                         dt_device device)
{
    dt_tensor row = {.storage = NULL}, column = {.storage = NULL},
              tall = {.storage = NULL};
    int status = -1;
    out->storage = NULL;
    /* Beyond the corners all diagonals are the same, and would overflow. */
    diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    if (dt_arange(&row, dt_scalar_int(0), dt_scalar_int(columns), dt_scalar_int(1),
                  DT_INT64, device) ||
        dt_arange(&column, dt_scalar_int(diagonal), dt_scalar_int(diagonal + rows),
                  dt_scalar_int(1), DT_INT64, device) ||
        dt_view_unsqueeze(&tall, &column, 1) ||
        dt_elementwise(lower ? DT_OP_le : DT_OP_ge, out,
                       DT_ARGS(dt_arg_tensor(&row), dt_arg_tensor(&tall)))) {
        dt_fail_prefix("%s: ", what);
        goto done;
    }
    status = 0;
done:
    dt_tensor_clear(&tall);
    dt_tensor_clear(&column);
    dt_tensor_clear(&row);
    return status;
}

static int triangle(dt_call *c, bool lower)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_tensor mask;
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: input has %d dimensions; give a matrix, or a batch of them",
                       c->name, x->ndim);
    if (triangle_mask(c->name, &mask, x->shape[x->ndim - 2], x->shape[x->ndim - 1],
                      lower, c->args[1].i, dt_tensor_device(x)))
        return -1;
    dt_scalar zero = x->dtype == DT_BOOL ? dt_scalar_bool(false) : dt_scalar_int(0);
    const dt_arg *args =
        DT_ARGS(dt_arg_tensor(&mask), dt_arg_tensor(x), dt_arg_scalar(zero));
    int status = c->in_place ? dt_elementwise_into(DT_OP_where, c->out[0], args)
                             : dt_elementwise(DT_OP_where, c->out[0], args);
    dt_tensor_clear(&mask);
    return status;
}

int dt_tril_forward(dt_call *c)
{
    return triangle(c, true);
}

int dt_triu_forward(dt_call *c)
{
    return triangle(c, false);
}
