#include "tensor/ops/optim.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/plan.h"
#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "ops/optim_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"

/* How many names there are in a row's list of them. */
#define COUNT(...) COUNT_9(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_9(a, b, c, d, e, f, g, h, number, ...) number

const dt_optim_rule dt_optim_rules[DT_NOPTIM] = {
#define OPTIM(name, count, states, numbers, own, kept_count, kept, prepare, formula,   \
              doc)                                                                     \
    {#name, count, COUNT numbers, kept_count, #states, #numbers, #own, #kept},
#include "ops/optim.def"
#undef OPTIM
};

/* --- the numbers that a tensor has for itself --- */

static double as_kept(const dt_optim_kept *k, double value)
{
    return k->is_float32 ? (float)value : value;
}

#define N(name)              n[name]
#define O(name)              o[name]
#define K(name)              k[name].value
#define AS_KEPT(name, value) as_kept(&k[name], value)
#define KEEP(name, value)    (K(name) = AS_KEPT(name, value))
#define OPTIM(name, count, states, numbers, own, kept_count, kept, prepare, formula,   \
              doc)                                                                     \
    static void prepare_##name(const double *n, double STEP, double *o,                \
                               dt_optim_kept *k)                                       \
    {                                                                                  \
        enum { DT_OPTIM_NAMES numbers };                                               \
        enum { DT_OPTIM_NAMES own };                                                   \
        enum { DT_OPTIM_NAMES kept };                                                  \
        (void)n;                                                                       \
        (void)o;                                                                       \
        (void)k;                                                                       \
        prepare                                                                        \
    }
#include "ops/optim.def"
#undef OPTIM
#undef N
#undef O
#undef K
#undef AS_KEPT
#undef KEEP

typedef void (*prepare_fn)(const double *n, double step, double *o, dt_optim_kept *k);
static const prepare_fn prepares[DT_NOPTIM] = {
#define OPTIM(name, count, states, numbers, own, kept_count, kept, prepare, formula,   \
              doc)                                                                     \
    prepare_##name,
#include "ops/optim.def"
#undef OPTIM
};

static void prepare(const dt_optim_update *u, int64_t i, double *own)
{
    dt_optim_kept *kept = u->kept ? u->kept + i * dt_optim_rules[u->op].nkept : NULL;
    memset(own, 0, DT_OPTIM_OWN * sizeof *own);
    prepares[u->op](u->numbers, u->steps ? u->steps[i] : 1, own, kept);
}

void dt_optim_prepare(const dt_optim_update *u, double *table)
{
    for (int64_t i = 0; i < u->count; i++)
        prepare(u, i, table + i * DT_OPTIM_OWN);
}

/* The next name of a list "(a, b)", of *length; NULL at its end. */
static const char *next_name(const char *at, size_t *length)
{
    at += strspn(at, "(), ");
    *length = strcspn(at, "(), ");
    return *length ? at : NULL;
}

/* The number of a name in a list; -1 if the list lacks it. */
static int number_of(const char *names, const char *wanted)
{
    size_t length;
    int i = 0;
    for (const char *n = names; (n = next_name(n, &length)); n += length, i++)
        if (length == strlen(wanted) && !memcmp(n, wanted, length))
            return i;
    return -1;
}

static int check_rate(const char *op_name, const dt_optim_update *u)
{
    const dt_optim_rule *rule = &dt_optim_rules[u->op];
    const dt_tensor *t = u->rate;
    if (number_of(rule->numbers, "lr") < 0)
        return dt_fail(DT_ERROR_RUNTIME, "%s: %s has no rate that is a tensor", op_name,
                       rule->name);
    if (t->numel != 1 || (t->dtype != DT_FLOAT32 && t->dtype != DT_FLOAT64) ||
        dt_device_is_host(dt_tensor_device(t)))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the rate is not a tensor of one float32 or float64 on a GPU; "
            "give one",
            op_name);
    for (int64_t i = 0; i < u->count; i++)
        if (dt_check_same_device(op_name, "parameter", u->tensors[i], "rate", t))
            return -1;
    return dt_storage_use(t->storage);
}

static int check_writable(const char *op_name, const char *name, const dt_tensor *t)
{
    if (t->storage->read_only)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the %s's memory is read-only; use a clone() of it", op_name,
                       name);
    if (dt_tensor_overlaps_itself(t))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: several elements of the %s share one place in memory; use "
                       "a clone() of it",
                       op_name, name);
    return 0;
}

static int check_found(const char *op_name, const dt_optim_update *u)
{
    const dt_tensor *t = u->found;
    if (t->numel != 1 || t->dtype != DT_FLOAT32)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the flag is not a tensor of one float32; give one",
                       op_name);
    for (int64_t i = 0; i < u->count; i++)
        if (dt_check_same_device(op_name, "parameter", u->tensors[i], "flag", t))
            return -1;
    return check_writable(op_name, "flag", t) || dt_storage_use(t->storage) ? -1 : 0;
}

/* Scales the numbers for a rate of 1 to the rate, by their names in ops/optim.def. */
static void give_rate(dt_optim_call *call, const dt_optim_update *u)
{
    const dt_optim_rule *rule = &dt_optim_rules[u->op];
    size_t length;
    int i = 0;
    call->rate = dt_tensor_data(u->rate);
    call->rate_is_wide = u->rate->dtype == DT_FLOAT64;
    call->rate_at = number_of(rule->numbers, "lr");
    call->shrink_at = number_of(rule->numbers, "shrink");
    call->decay = call->shrink_at < 0 ? 0 : 1 - u->numbers[call->shrink_at];
    for (const char *n = rule->own; (n = next_name(n, &length)); n += length, i++)
        if (!strncmp(n, "rate", 4))
            call->rates |= 1u << i;
}

/* --- layout --- */

/* A copy, in the parameter's layout, of something with another layout. */
typedef struct copied {
    dt_tensor tensor;
    dt_tensor *target; /* what it is written back to; NULL: it is only read */
    struct copied *next;
} copied;

typedef struct batch {
    const char *op_name;
    copied *copies; /* the last one first */
} batch;

/* Whether t is laid out as strides say for its shape. */
static bool has_layout(const dt_tensor *t, const int64_t *strides)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] != 1 && t->strides[d] != strides[d])
            return false;
    return true;
}

/* The address of t's elements, or of a copy of them, of dtype and laid out by strides.
 * NULL after dt_fail. */
static void *placed(batch *b, const dt_tensor *t, dt_tensor *target, dt_dtype dtype,
                    const int64_t *strides)
{
    if (dt_storage_use(t->storage))
        return NULL;
    if (t->dtype == dtype && has_layout(t, strides))
        return dt_tensor_data(t);
    copied *c = malloc(sizeof *c);
    if (!c) {
        dt_fail(DT_ERROR_HOST_MEMORY, "%s: no memory is left; free some", b->op_name);
        return NULL;
    }
    if (dt_tensor_empty_strided(b->op_name, &c->tensor, dtype, t->ndim, t->shape,
                                strides, dt_tensor_device(t))) {
        free(c);
        return NULL;
    }
    c->target = target;
    c->next = b->copies;
    b->copies = c;
    return dt_copy_into(b->op_name, &c->tensor, t) ? NULL : dt_tensor_data(&c->tensor);
}

/* Frees the copies, after writing them back where all went well (status 0). Gives the
 * status then. */
static int drop_copies(batch *b, int status)
{
    while (b->copies) {
        copied *c = b->copies;
        b->copies = c->next;
        if (!status && c->target)
            status = dt_copy_into(b->op_name, c->target, &c->tensor);
        dt_tensor_clear(&c->tensor);
        free(c);
    }
    return status;
}

static int check_belongs(const char *op_name, const char *name, const dt_tensor *p,
                         const dt_tensor *t)
{
    char is[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (dt_check_same_device(op_name, "parameter", p, name, t))
        return -1;
    if (!dt_shape_equal(p->ndim, p->shape, t->ndim, t->shape))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the %s has shape %s, and its parameter has shape %s; they "
                       "have to agree",
                       op_name, name, dt_shape_text(t->ndim, t->shape, is, sizeof is),
                       dt_shape_text(p->ndim, p->shape, wants, sizeof wants));
    if (!dt_dtype_is_float((dt_dtype)t->dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the %s is of type %s; only floating types can be updated, "
                       "convert it first, for example with .float()",
                       op_name, name, dt_dtype_name((dt_dtype)t->dtype));
    return 0;
}

/* The tensors of each parameter in u->tensors, in order. */
enum { PARAMETER, GRADIENT, STATES };

static dt_tensor *tensor_of(const dt_optim_update *u, int which, int64_t i)
{
    return (dt_tensor *)u->tensors[which * u->count + i];
}

static int tensors_each(const dt_optim_update *u)
{
    return STATES + dt_optim_rules[u->op].nstates;
}

static int check(const char *op_name, const dt_optim_update *u, int64_t i)
{
    static const char *const names[] = {"parameter", "gradient", "state"};
    for (int k = 0; k < tensors_each(u); k++) {
        const char *name = names[k < STATES ? k : STATES];
        const dt_tensor *t = tensor_of(u, k, i);
        if (check_belongs(op_name, name, tensor_of(u, PARAMETER, i), t) ||
            (k != GRADIENT && check_writable(op_name, name, t)))
            return -1;
    }
    return 0;
}

static int check_own(const char *op_name, const dt_optim_update *u)
{
    if (u->own->dtype != DT_FLOAT64 || !u->own->contiguous ||
        u->own->numel != u->count * DT_OPTIM_OWN)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the table of the parameters' own numbers must be a contiguous "
            "float64 tensor of shape [%" PRId64 ", %d]",
            op_name, u->count, DT_OPTIM_OWN);
    for (int64_t i = 0; i < u->count; i++)
        if (dt_check_same_device(op_name, "parameter", tensor_of(u, PARAMETER, i),
                                 "table", u->own))
            return -1;
    return dt_storage_use(u->own->storage);
}

static int fill_entry(batch *b, dt_optim_entry *e, const dt_optim_update *u, int64_t i,
                      dt_dtype dtype)
{
    const dt_tensor *p = tensor_of(u, PARAMETER, i);
    int64_t row_major[DT_MAX_NDIM];
    const int64_t *strides = p->strides;
    if (!dt_tensor_is_non_overlapping_and_dense(p)) {
        dt_shape_strides(p->ndim, p->shape, row_major);
        strides = row_major;
    }
    void *data[STATES + DT_OPTIM_STATES] = {NULL};
    for (int k = 0; k < tensors_each(u); k++) {
        dt_tensor *t = tensor_of(u, k, i);
        data[k] = placed(b, t, k == GRADIENT ? NULL : t, dtype, strides);
        if (!data[k])
            return -1;
    }
    e->numel = p->numel;
    e->parameter = data[PARAMETER];
    e->gradient = data[GRADIENT];
    memcpy(e->states, data + STATES, sizeof e->states);
    prepare(u, i, e->own);
    e->own_there =
        u->own ? (const double *)dt_tensor_data(u->own) + i * DT_OPTIM_OWN : NULL;
    return 0;
}

/* --- the call --- */

static bool goes_with(const dt_tensor *a, const dt_tensor *b)
{
    return a->dtype == b->dtype &&
           dt_device_equal(dt_tensor_device(a), dt_tensor_device(b));
}

/* Whether all that belongs to the parameters that go with `head` has its type.
 * States may be wider than a parameter of 16 bits: then all are updated in copies of
 * float32. */
static bool is_of_one_type(const dt_optim_update *u, const dt_tensor *head)
{
    for (int64_t i = 0; i < u->count; i++)
        for (int k = 0; k < tensors_each(u); k++)
            if (tensor_of(u, k, i)->dtype != head->dtype &&
                goes_with(tensor_of(u, PARAMETER, i), head))
                return false;
    return true;
}

/* Updates the parameters from the first one on that have its type and device. */
static int run_group(const char *op_name, const dt_optim_update *u, int64_t first,
                     dt_optim_entry *entries)
{
    const dt_tensor *head = tensor_of(u, PARAMETER, first);
    dt_device device = dt_tensor_device(head);
    DT_LOCAL(factor);
    batch b = {op_name, NULL};
    dt_dtype dtype = dt_dtype_compute((dt_dtype)head->dtype);
    dt_dtype stored = dt_stored_dtype(device, (dt_dtype)head->dtype);
    if (stored != dtype && !is_of_one_type(u, head))
        stored = dtype;
    dt_optim_call call = {
        .op = u->op, .dtype = dtype, .stored = stored, .entries = entries};
    int64_t total = 0;
    int status = -1;
    for (int64_t i = first; i < u->count; i++) {
        const dt_tensor *p = tensor_of(u, PARAMETER, i);
        if (!goes_with(p, head))
            continue;
        if (!p->numel) {
            double own[DT_OPTIM_OWN];
            prepare(u, i, own);
            continue;
        }
        dt_optim_entry *e = &entries[call.count++];
        e->first = total;
        total += p->numel;
        if (fill_entry(&b, e, u, i, stored))
            goto done;
    }
    if (!call.count)
        return 0;
    if (u->scale) {
        if (goes_with(u->scale, head) && u->scale->dtype == call.dtype)
            dt_tensor_alias(&factor, u->scale);
        else if (dt_to(&factor, u->scale, call.dtype, device))
            goto done;
        if (dt_storage_use(factor.storage))
            goto done;
        call.scale = dt_tensor_data(&factor);
    }
    memcpy(call.numbers, u->numbers, sizeof call.numbers);
    call.found = u->found ? dt_tensor_data(u->found) : NULL;
    if (u->rate)
        give_rate(&call, u);
    status = dt_backend_of(device)->optim_step(dt_stream_current(device), &call);
done:
    return drop_copies(&b, status);
}

/* Whether a parameter before number `at` goes with it, so that it has been updated. */
static bool is_done(const dt_optim_update *u, int64_t at)
{
    /* Most often all go with the first. */
    for (int64_t i = 0; i < at; i++)
        if (goes_with(tensor_of(u, PARAMETER, i), tensor_of(u, PARAMETER, at)))
            return true;
    return false;
}

int dt_optim_step(const char *op_name, const dt_optim_update *u)
{
    dt_optim_entry few[8], *entries = few;
    int status = 0;
    for (int64_t i = 0; i < u->count; i++)
        if (check(op_name, u, i))
            return -1;
    if ((u->own && check_own(op_name, u)) || (u->rate && check_rate(op_name, u)) ||
        (u->found && check_found(op_name, u)))
        return -1;
    if (u->scale && u->scale->numel != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the scale has %" PRId64 " elements; give a tensor of one",
                       op_name, u->scale->numel);
    if (u->count > (int64_t)(sizeof few / sizeof *few)) {
        entries = malloc((size_t)u->count * sizeof *entries);
        if (!entries)
            return dt_fail(DT_ERROR_HOST_MEMORY, "%s: no memory is left; free some",
                           op_name);
    }
    for (int64_t i = 0; i < u->count && !status; i++)
        if (!is_done(u, i))
            status = run_group(op_name, u, i, entries);
    for (int k = 0; k < tensors_each(u) && !status; k++)
        for (int64_t i = 0; i < u->count && k != GRADIENT; i++)
            dt_tensor_written(tensor_of(u, k, i));
    if (u->found && !status)
        dt_tensor_written((dt_tensor *)u->found);
    if (entries != few)
        free(entries);
    return status;
}

/* --- norms --- */

/* Reduces partial results of a norm into it. */
static int join_norm(dt_tensor *out, const dt_tensor *partials, dt_reduce_op op,
                     double p)
{
    dt_reduce_op join = op == DT_REDUCE_norm_max   ? DT_REDUCE_amax
                        : op == DT_REDUCE_norm_min ? DT_REDUCE_amin
                                                   : DT_REDUCE_sum;
    DT_LOCAL(sum);
    if (dt_reduce(join, &sum, partials, 0, NULL, false, -1, 0))
        return -1;
    if (op == DT_REDUCE_norm_2)
        return dt_elementwise(DT_OP_sqrt, out, DT_ARGS(dt_arg_tensor(&sum)));
    if (op == DT_REDUCE_norm_p) {
        dt_arg power = dt_arg_scalar(dt_scalar_float(1 / p));
        return dt_elementwise(DT_OP_pow, out, DT_ARGS(dt_arg_tensor(&sum), power));
    }
    dt_tensor_move(out, &sum);
    return 0;
}

int dt_total_norm_forward(dt_call *c)
{
    static const char op_name[] = "get_total_norm";
    const dt_tensor *const *tensors = c->args[0].tensors;
    dt_tensor *out = c->out[0];
    int count = c->args[0].count;
    double p = c->args[1].f;
    dt_reduce_op op = dt_norm_row(p);
    const dt_tensor *head = count ? tensors[0] : NULL;
    dt_foreach_norm_call call = {.parameter = p};
    DT_LOCAL(partials);
    batch b = {op_name, NULL};
    int64_t chunks = 0;
    int status = -1;
    out->storage = NULL;
    if (!head || op == DT_REDUCE_norm_0)
        return dt_fail(DT_ERROR_RUNTIME, "%s: give tensors, and a norm other than 0",
                       op_name);
    dt_device device = dt_tensor_device(head);
    call.dtype = dt_dtype_compute((dt_dtype)head->dtype);
    call.stored = dt_stored_dtype(device, (dt_dtype)head->dtype);
    dt_foreach_norm_entry *entries = malloc((size_t)count * sizeof *entries);
    if (!entries)
        return dt_fail(DT_ERROR_HOST_MEMORY, "%s: no memory is left; free some",
                       op_name);
    for (int i = 0; i < count; i++) {
        const dt_tensor *t = tensors[i];
        if (!dt_dtype_is_float((dt_dtype)t->dtype) || !goes_with(t, head)) {
            dt_fail(DT_ERROR_RUNTIME,
                    "%s: the tensors have to be of one floating type, on one device",
                    op_name);
            goto done;
        }
        if (!t->numel)
            continue;
        int64_t row_major[DT_MAX_NDIM];
        const int64_t *strides = t->strides;
        if (!dt_tensor_is_non_overlapping_and_dense(t)) {
            dt_shape_strides(t->ndim, t->shape, row_major);
            strides = row_major;
        }
        dt_foreach_norm_entry *e = &entries[call.count++];
        e->data = placed(&b, t, NULL, call.stored, strides);
        e->numel = t->numel;
        e->first = chunks;
        chunks += (t->numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
        if (!e->data)
            goto done;
    }
    call.entries = entries;
    if (!call.count) {
        status = dt_full(op_name, out, (dt_dtype)head->dtype, 0, NULL, device,
                         dt_scalar_float(0));
        goto done;
    }
    if (dt_tensor_empty(op_name, &partials, call.dtype, 1, &chunks, device))
        goto done;
    call.partials = dt_tensor_data(&partials);
    status = dt_backend_of(device)->foreach_norm(dt_stream_current(device), op, &call);
    if (!status)
        status = join_norm(out, &partials, op, p);
    if (!status)
        status = dt_retype(out, (dt_dtype)head->dtype);
done:
    drop_copies(&b, status);
    free(entries);
    return status;
}
