/* Interpolation and padding with a tensor's own elements: sums with weights along one
 * dimension, for which a table of indices and weights is made. The weights are
 * PyTorch's, computed in the type of the elements, at least float32. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/resample.h"
#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

typedef enum resampling {
    NEAREST,
    NEAREST_EXACT,
    LINEAR,
    CUBIC,
    LANCZOS,
    REFLECT,
    REPLICATE,
    CIRCULAR,
    MODES
} resampling;
static const char *const mode_names[MODES] = {"nearest",   "nearest-exact", "linear",
                                              "cubic",     "lanczos",       "reflect",
                                              "replicate", "circular"};

/* The inputs and weights of one element of the result. */
typedef struct rule {
    resampling mode;
    int64_t inputs, outputs;
    int64_t lead; /* elements that padding puts before the first one, or takes away */
    double scale; /* elements of the input for one of the output */
    bool corners; /* align_corners: the first elements coincide, and the last */
    bool smooth;  /* antialias: a filter as wide as the elements that it joins */
    bool single;  /* computed in float32 */
    int64_t most; /* taps of one element, at most */
} rule;

static double rounded(const rule *r, double value)
{
    return r->single ? (double)(float)value : value;
}

/* floor(value), from low to high; a NaN is low. */
static int64_t floor_within(double value, int64_t low, int64_t high)
{
    return !(value > (double)low)  ? low
           : value >= (double)high ? high
                                   : (int64_t)floor(value);
}

/* sin(pi x) / (pi x); exactly 0 at whole numbers, so that equal sizes change
 * nothing. */
static double sinc(double x)
{
    double angle = x * 3.14159265358979323846;
    return x == 0 ? 1 : x == floor(x) ? 0 : sin(angle) / angle;
}

/* How far the filters reach on each side. */
static const double reaches[MODES] = {[LINEAR] = 1, [CUBIC] = 2, [LANCZOS] = 3};

/* The filters: a triangle, Keys' cubic convolution (1981) with slope a, and Lanczos'
 * sinc in a window that is a wider sinc (Duchon 1979). */
static double filter(resampling mode, double a, double x)
{
    x = fabs(x);
    if (mode == LINEAR)
        return x < 1 ? 1 - x : 0;
    if (mode == LANCZOS)
        return x < 3 ? sinc(x) * sinc(x / 3) : 0;
    return x < 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* A filter stretched over the elements that one of the result stands for; its weights
 * add up to 1. */
static int64_t smooth_taps(const rule *r, int64_t o, dt_tap *taps)
{
    double half = reaches[r->mode], total = 0;
    double wide = r->scale >= 1 ? r->scale : 1, support = rounded(r, half * wide);
    double center = rounded(r, r->scale * ((double)o + 0.5));
    int64_t first = floor_within(rounded(r, center - support + 0.5), 0, r->inputs);
    int64_t end = floor_within(rounded(r, center + support + 0.5), 0, r->inputs), n;
    for (n = 0; n < end - first && n < r->most; n++) {
        double x = rounded(r, ((double)(first + n) - center + 0.5) / wide);
        taps[n] = (dt_tap){first + n, rounded(r, filter(r->mode, -0.5, x))};
        total += taps[n].weight;
    }
    for (int64_t i = 0; i < n && total != 0; i++)
        taps[i].weight = rounded(r, taps[i].weight / total);
    return n;
}

static int64_t taps_of(const rule *r, int64_t o, dt_tap *taps)
{
    const int64_t last = r->inputs - 1, i = o - r->lead;
    double at = (double)o, place;
    taps[0].weight = 1;
    switch (r->mode) {
    case NEAREST:
    case NEAREST_EXACT:
        at += r->mode == NEAREST ? 0 : 0.5;
        taps[0].index = floor_within((float)(at * r->scale), 0, last);
        return 1;
    case REFLECT:
    case REPLICATE:
    case CIRCULAR:
        taps[0].index = i >= 0 && i <= last    ? i
                        : r->mode == REPLICATE ? (i < 0 ? 0 : last)
                        : r->mode == REFLECT   ? (i < 0 ? -i : 2 * last - i)
                                               : (i < 0 ? i + last + 1 : i - last - 1);
        return 1;
    default:
        /* Equal sizes change nothing, but for the cubic filter without antialias. */
        if (r->inputs == r->outputs && (r->mode == LINEAR || r->smooth)) {
            taps[0].index = o;
            return 1;
        }
        if (r->smooth)
            return smooth_taps(r, o, taps);
    }
    at = r->corners ? rounded(r, r->scale * at)
                    : rounded(r, rounded(r, r->scale * (at + 0.5)) - 0.5);
    at = r->mode == LINEAR && at < 0 ? 0 : at;
    int64_t below = floor_within(at, -2, last);
    place = rounded(r, at - (double)below);
    place = !(place > 0) ? 0 : place > 1 ? 1 : place;
    for (int t = 0; t < r->most; t++) {
        int64_t index = below + t - (r->mode == CUBIC);
        double away = r->mode == CUBIC ? (double)(t - 1) - place : (double)t - place;
        taps[t].index = index < 0 ? 0 : index > last ? last : index;
        taps[t].weight = rounded(r, filter(r->mode, -0.75, away));
    }
    return r->most;
}

typedef struct table {
    int64_t *starts;
    dt_tap *taps;
} table;

static void clear(table *t)
{
    free(t->starts);
    free(t->taps);
}

static int allocate(const char *op_name, table *t, int64_t rows, int64_t taps)
{
    t->starts = calloc((size_t)rows + 1, sizeof *t->starts);
    t->taps = calloc((size_t)taps + 1, sizeof *t->taps);
    return t->starts && t->taps
               ? 0
               : dt_fail(DT_ERROR_HOST_MEMORY,
                         "%s: no memory is left for a table of %" PRId64
                         " weights; free some, or give a smaller size",
                         op_name, taps);
}

static int make(const char *op_name, table *t, const rule *r)
{
    if (allocate(op_name, t, r->outputs, r->outputs * r->most))
        return -1;
    for (int64_t o = 0; o < r->outputs; o++)
        t->starts[o + 1] = t->starts[o] + taps_of(r, o, t->taps + t->starts[o]);
    return 0;
}

/* The table of the gradient: which elements of the result each element went into. */
static int transpose(const char *op_name, table *t, const rule *r)
{
    table turned;
    assert(t->starts);
    int64_t count = t->starts[r->outputs];
    int status = allocate(op_name, &turned, r->inputs, count);
    for (int64_t n = 0; n < count && !status; n++)
        turned.starts[t->taps[n].index + 1]++;
    for (int64_t i = 0; i < r->inputs && !status; i++)
        turned.starts[i + 1] += turned.starts[i];
    for (int64_t o = r->outputs - 1; o >= 0 && !status; o--)
        for (int64_t n = t->starts[o + 1] - 1; n >= t->starts[o]; n--)
            /* In descending order, so that each row's end becomes its start. */
            turned.taps[--turned.starts[t->taps[n].index + 1]] =
                (dt_tap){o, t->taps[n].weight};
    if (!status)
        memmove(turned.starts, turned.starts + 1,
                (size_t)r->inputs * sizeof *turned.starts);
    if (!status)
        turned.starts[r->inputs] = count;
    table old = *t;
    *t = turned;
    clear(&old);
    return status;
}

/* r, from the arguments of the call, the sizes that it has and what the size is
 * multiplied by. */
static int set_rule(dt_call *c, rule *r, double factor)
{
    const char *name = c->args[3].text;
    int m = 0;
    while (m < MODES && strcmp(name, mode_names[m]) != 0)
        m++;
    r->mode = (resampling)m;
    r->corners = c->args[5].b;
    r->smooth = c->args[6].b || m == LANCZOS; /* which is used for that alone */
    r->lead = c->args[7].i;
    if (m == MODES)
        return dt_fail(DT_ERROR_VALUE,
                       "%s: there is no mode '%s'; give 'nearest', 'linear', 'cubic', "
                       "'lanczos', 'reflect', 'replicate' or 'circular'",
                       c->name, name);
    if (r->outputs && !r->inputs)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: a dimension of size 0 cannot become one of size %" PRId64
                       "; give elements",
                       c->name, r->outputs);
    bool pads = m >= REFLECT;
    int64_t room = r->mode == REFLECT    ? r->inputs - 1
                   : r->mode == CIRCULAR ? r->inputs
                                         : INT64_MAX / 4;
    if (pads && (r->lead < -INT64_MAX / 4 || r->lead > room ||
                 r->outputs - r->lead - r->inputs > room))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: '%s' cannot pad %" PRId64 " elements to %" PRId64
                       " with %" PRId64 " before them; give a smaller padding",
                       c->name, name, r->inputs, r->outputs, r->lead);
    double sizes =
        rounded(r, (double)r->inputs / (double)(r->outputs ? r->outputs : 1));
    r->scale = factor > 0 ? rounded(r, 1 / factor) : sizes;
    if (m < LINEAR)
        r->scale = (double)(float)r->scale;
    else if (r->corners)
        r->scale = r->outputs > 1
                       ? rounded(r, (double)(r->inputs - 1) / (double)(r->outputs - 1))
                       : 0;
    double wide = r->scale > 1 ? r->scale : 1;
    r->most = m < LINEAR || pads ? 1 : (int64_t)(2 * reaches[m]);
    if (r->smooth && !pads)
        r->most = floor_within(ceil((double)r->most / 2 * wide) * 2 + 1, 1, r->inputs);
    return 0;
}

/* A dimension: `from` elements of x become `to`. */
typedef struct side {
    int64_t from, to;
    rule rule;
    table table;
} side;

static dt_taps taps_along(const side *s)
{
    return (dt_taps){s->from, s->to, s->table.starts, s->table.taps};
}

/* Up to so many products a fused sum over two dimensions costs less than a tensor between. */
#define MOST_PRODUCTS 16

static bool in_one_call(const dt_resample_call *call, dt_device device)
{
    const dt_taps *a = &call->along, *b = &call->above;
    return !dt_device_is_cpu(device) && call->inner == 1 &&
           (double)a->starts[a->outputs] * (double)b->starts[b->outputs] <=
               MOST_PRODUCTS * (double)a->outputs * (double)b->outputs;
}

/* The sums along the dimension, and then along the one above it. */
static int run_in_turn(const char *op_name, dt_resample_call call, dt_device device)
{
    const dt_taps along = call.along, above = call.above;
    const int64_t numel = call.outer * above.inputs * along.outputs * call.inner;
    const dt_backend *backend = dt_backend_of(device);
    const dt_stream stream = dt_stream_current(device);
    void *const y = call.y;
    DT_LOCAL(between);
    if (dt_tensor_empty(op_name, &between, call.dtype, 1, &numel, device) ||
        dt_tensor_use(&between))
        return -1;
    call.above = (dt_taps){1, 1, NULL, NULL};
    call.outer *= above.inputs;
    call.y = dt_tensor_data(&between);
    if (backend->resample(stream, &call))
        return -1;
    call.outer /= above.inputs;
    call.inner *= along.outputs;
    call.x = call.y;
    call.y = y;
    call.along = above;
    return backend->resample(stream, &call);
}

static int resample(dt_call *c, dt_tensor *out, const dt_tensor *x, int dim)
{
    int64_t shape[DT_MAX_NDIM];
    bool transposed = c->args[8].b;
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_dtype compute = dtype == DT_FLOAT64        ? DT_FLOAT64
                       : dt_dtype_is_float(dtype) ? DT_FLOAT32
                                                  : DT_INT64;
    dt_device device = dt_tensor_device(x);
    /* The dimension and, if wanted, the one above it. */
    side sides[2] = {{.to = c->args[2].i}, {.to = c->args[9].i}};
    const double factors[] = {c->args[4].f, c->args[10].f};
    int count = sides[1].to >= 0 ? 2 : 1, status = -1;
    DT_LOCAL(input);
    DT_LOCAL(wide);
    if (x->ndim < count || sides[0].to < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the size is %" PRId64
                       " for a Tensor of %d dimensions; give "
                       "0 or more, for one of at least %d",
                       c->name, sides[0].to, x->ndim, count);
    if (dim < count - 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: there is no dimension above the first one; give another "
                       "dim, or no size above",
                       c->name);
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    for (int i = 0; i < count; i++) {
        side *s = &sides[i];
        s->from = x->shape[dim - i];
        shape[dim - i] = s->to;
        s->rule.inputs = transposed ? s->to : s->from;
        s->rule.outputs = transposed ? s->from : s->to;
        s->rule.single = compute != DT_FLOAT64;
        if (set_rule(c, &s->rule, factors[i]))
            return -1;
    }
    if (dt_tensor_empty(c->name, out, dtype, x->ndim, shape, device))
        return -1;
    if (!out->numel || !x->numel)
        return dt_fill_into(c->name, out, dt_scalar_int(0));
    dt_resample_call call = {.outer = 1, .inner = 1, .above = {1, 1, NULL, NULL}};
    for (int d = 0; d < x->ndim; d++)
        if (d > dim || d <= dim - count)
            *(d < dim ? &call.outer : &call.inner) *= x->shape[d];
    for (int i = 0; i < count; i++) {
        table *t = &sides[i].table;
        if (make(c->name, t, &sides[i].rule) ||
            (transposed && transpose(c->name, t, &sides[i].rule)))
            goto end;
    }
    call.along = taps_along(&sides[0]);
    if (count == 2)
        call.above = taps_along(&sides[1]);
    const bool at_once = count == 1 || in_one_call(&call, device);
    /* Halves between two calls would be rounded twice. */
    if (at_once && dt_dtype_is_half(dtype) && dt_backend_of(device)->halves)
        compute = dtype;
    dt_tensor *to = compute == dtype ? out : &wide;
    if (dt_contiguous_as(&input, x, compute, device) ||
        (to == &wide &&
         dt_tensor_empty(c->name, to, compute, x->ndim, shape, device)) ||
        dt_tensor_use(&input) || dt_tensor_use(to))
        goto end;
    call.dtype = compute;
    call.x = dt_tensor_data(&input);
    call.y = dt_tensor_data(to);
    if (at_once ? dt_backend_of(device)->resample(dt_stream_current(device), &call)
                : run_in_turn(c->name, call, device))
        goto end;
    status = dt_retype(to, dtype);
    if (!status && to == &wide)
        dt_tensor_move(out, to);
end:
    clear(&sides[0].table);
    clear(&sides[1].table);
    return status;
}

int dt_resample_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const int dim = dt_shape_wrap_dim(c->name, c->args[1].i, x->ndim);
    DT_LOCAL(pairs);
    DT_LOCAL(parts);
    if (dim < 0)
        return -1;
    if (!dt_dtype_is_complex((dt_dtype)x->dtype))
        return resample(c, c->out[0], x, dim);
    /* The parts of a complex number are adjacent. */
    return dt_complex_pairs(c->name, &pairs, x) || resample(c, &parts, &pairs, dim) ||
                   dt_complex_of_pairs(c->name, c->out[0], &parts)
               ? -1
               : 0;
}
