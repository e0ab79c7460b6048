/* The backends that are in dt_backends while somebody observes kernels: each function
 * reports its call to the observers and calls the real backend. */
#include "device/works.h"

#include <math.h>

#include "device/activity.h"
#include "device/attention.h"
#include "device/collective.h"
#include "device/convolution.h"
#include "device/fourier.h"
#include "device/module.h"
#include "device/lapack.h"
#include "device/nn.h"
#include "device/pooling.h"
#include "device/resample.h"
#include "device/rnn_ops.h"

/* The real backends, which return to dt_backends when the last observer leaves. */
static const dt_backend *real[DT_MAX_DEVICE_TYPES];
static dt_backend observing[DT_MAX_DEVICE_TYPES];

/* --- names and costs for the rows of works.def --- */

static const char *const elementwise_names[] = {
#define KERNEL(name, ...) #name,
#include "ops/elementwise_kernels.def"
};
static const char *const reduce_names[] = {
#define REDUCE(name, ...) #name,
#include "ops/reduce.def"
#undef REDUCE
};
static const char *const optim_names[] = {
#define OPTIM(name, ...) #name,
#include "ops/optim.def"
#undef OPTIM
};
static const char *const nn_names[] = {
#define NN_OP(name, ...) #name,
#include "ops/nn.def"
};
static const char *const lapack_names[] = {
#define LAPACK_OP(name, ...) #name,
#include "ops/lapack.def"
};
static const char *const rnn_names[DT_NRNN] = {
#define RNN_OP(name, ...) [DT_RNN_##name] = "rnn_" #name,
#include "ops/rnn.def"
};
static const char *const convolution_names[] = {
    [DT_CONVOLUTION_OUTPUT] = "convolution",
    [DT_CONVOLUTION_INPUT] = "convolution_input",
    [DT_CONVOLUTION_WEIGHT] = "convolution_weight",
};
static const char *const index_names[] = {"index_read", "index_write", "index_add",
                                          "index_multiply"};
static const char *const scan_names[] = {"cumsum", "cumprod", "logcumsumexp", "cummax",
                                         "cummin"};
static const char *const pooling_names[] = {"max_pool", "avg_pool", "avg_pool_backward",
                                            "max_pool_backward"};
static const char *const collective_names[] = {
#define COLLECTIVE(name) #name,
    DT_COLLECTIVES(COLLECTIVE)
#undef COLLECTIVE
};
static const char *const random_names[] = {"uniform", "normal", "random_integers",
                                           "bernoulli", "dropout"};

static dt_dtype plan_dtype(const dt_plan *plan)
{
    return plan->operands[0].dtype;
}

/* Bytes that a plan's operands have: a dimension of stride 0 is read once. */
static int64_t plan_bytes(const dt_plan *plan)
{
    int64_t bytes = 0;
    for (int i = 0; i < plan->noperands; i++) {
        const dt_operand *operand = &plan->operands[i];
        int64_t own = operand->scalar ? 0 : (int64_t)dt_dtype_size(operand->dtype);
        for (int d = 0; d < plan->ndim; d++)
            own *= operand->strides[d] || operand->scalar ? plan->shape[d] : 1;
        bytes += own;
    }
    return bytes;
}

static int64_t sized(dt_dtype dtype, int64_t numel)
{
    return numel * (int64_t)dt_dtype_size(dtype);
}

static int64_t reduction_bytes(const dt_reduction *r)
{
    return sized(r->input_dtype, r->kept_numel * r->reduced_numel) +
           sized(r->output_dtype, r->kept_numel);
}

static int64_t gemm_bytes(const dt_gemm *g)
{
    return sized(g->dtype,
                 (g->a_batch ? g->batch : 1) * g->m * g->k +
                     (g->b_batch ? g->batch : 1) * g->k * g->n +
                     g->batch * g->m * g->n * (g->beta == 0 || g->row ? 1 : 2) +
                     (g->row ? g->n : 0));
}

/* 5 n log2(n) of n elements, as is usual for any algorithm. */
static double fourier_flops(const dt_fourier_call *c)
{
    const double numel = (double)dt_fourier_numel(c, false);
    return (c->kind ? 2.5 : 5) * (double)c->batch * numel * log2(numel);
}

static double gemm_flops(const dt_gemm *g)
{
    return 2.0 * (double)g->batch * (double)g->m * (double)g->n * (double)g->k;
}

static int64_t nn_bytes(const dt_nn_call *c)
{
    int64_t rows = c->outer * c->inner, operands = 0;
    for (int i = 0; i < DT_NN_OPERANDS; i++)
        operands += c->operands[i] != NULL;
    return sized(c->stored, rows * c->n * (operands < 3 ? operands : 3));
}

static int64_t attention_bytes(const dt_attention_call *c)
{
    int64_t queries = c->heads * c->length, keys = c->key_heads * c->key_length;
    return sized(c->dtype, c->batch * (queries + keys) * (c->size + c->value_size));
}

static double attention_flops(const dt_attention_call *c)
{
    return 2.0 * (double)(c->batch * c->heads * c->length) * (double)c->key_length *
           (double)(c->size + c->value_size) / (c->causal ? 2 : 1);
}

static int64_t pooling_bytes(const dt_pooling_call *c)
{
    const dt_window *w = &c->window;
    return sized(c->dtype, c->planes * (dt_window_volume(w->input) +
                                        dt_window_volume(w->output)));
}

static int64_t collective_bytes(const dt_collective_call *c)
{
    int64_t bytes = 0;
    for (int i = 0; i < c->count; i++)
        bytes += sized(c->items[i].dtype,
                       dt_collective_sent(&c->items[i], c->ranks) +
                           dt_collective_received(&c->items[i], c->ranks));
    return bytes;
}

static double pooling_flops(const dt_pooling_call *c)
{
    const dt_window *w = &c->window;
    return (double)(c->planes * dt_window_volume(w->output)) *
           (double)dt_window_volume(w->kernel);
}

static int64_t lapack_bytes(const dt_lapack_call *c)
{
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    int64_t bytes = 0;
    for (int i = dt_lapack_operands(c, operands); i--;)
        bytes += sized(operands[i].dtype, operands[i].size);
    return c->batch * bytes;
}

/* An estimate, of one product: the true number depends on the values. */
static double lapack_flops(const dt_lapack_call *c)
{
    return (dt_dtype_is_complex(c->dtype) ? 8.0 : 2.0) *
           (double)(c->batch * c->m * c->n) * (double)(c->m < c->n ? c->m : c->n);
}

static int64_t rnn_bytes(const dt_rnn_call *c)
{
    int64_t width = 0;
    for (int k = 0; k < DT_RNN_OPERANDS; k++)
        width += dt_rnn_row(c, k);
    return sized(c->dtype, c->rows * width);
}

static int64_t convolution_bytes(const dt_convolution *c)
{
    int64_t input = c->in * dt_window_volume(c->window.input),
            output = c->out * dt_window_volume(c->window.output),
            weight = c->in * c->out * dt_window_volume(c->window.kernel);
    return sized(c->dtype, c->groups * (c->batch * (input + output) + weight));
}

static double convolution_flops(const dt_convolution *c)
{
    return 2.0 * (double)(c->batch * c->groups * c->in * c->out) *
           (double)dt_window_volume(c->window.output) *
           (double)dt_window_volume(c->window.kernel);
}

static double reduction_numel(const dt_reduction *r)
{
    return (double)(r->kept_numel * r->reduced_numel);
}

static int64_t scan_numel(const dt_scan *s)
{
    return s->outer * s->n * s->inner;
}

static int64_t optim_numel(const dt_optim_call *c)
{
    const dt_optim_entry *last = &c->entries[c->count - 1];
    return last->first + last->numel;
}

static int64_t foreach_norm_bytes(const dt_foreach_norm_call *c)
{
    const dt_foreach_norm_entry *last = &c->entries[c->count - 1];
    return sized(c->stored, last->first * (int64_t)DT_FOREACH_NORM_CHUNK + last->numel);
}

/* --- functions of each observed backend, since a stream does not say whose it is --- */

static dt_activity kernel(const char *name, dt_device device, void *stream,
                          dt_dtype dtype, int64_t bytes, double flops, const void *call,
                          dt_work work)
{
    return (dt_activity){.kind = DT_ACTIVITY_KERNEL,
                         .name = name,
                         .device = device,
                         .stream = stream,
                         .bytes = bytes,
                         .flops = flops,
                         .dtype = dtype,
                         .call = call,
                         .work = work};
}

#define OBSERVED(type, member, parameters, arguments, extents, name, dtype_of, bytes,  \
                 flops)                                                                \
    static int member##_##type parameters                                              \
    {                                                                                  \
        const dt_activity activity =                                                   \
            kernel(name, dt_device_make((dt_device_type)type, stream.device),          \
                   stream.handle, dtype_of, bytes, flops, c, DT_WORK_##member);        \
        dt_observed observed;                                                          \
        if (dt_activity_begin(&observed, &activity))                                   \
            return -1;                                                                 \
        return dt_activity_end(&observed, &activity, real[type]->member arguments);    \
    }
#define MEMORY(type)                                                                   \
    static int allocate_##type(dt_stream stream, size_t bytes, void **out)             \
    {                                                                                  \
        return allocate(dt_device_make((dt_device_type)type, stream.device), stream,   \
                        bytes, out);                                                   \
    }                                                                                  \
    static void release_##type(int device, void *data, size_t bytes)                   \
    {                                                                                  \
        release(dt_device_make((dt_device_type)type, device), data, bytes);            \
    }

static int allocate(dt_device device, dt_stream stream, size_t bytes, void **out)
{
    dt_activity activity = {.kind = DT_ACTIVITY_ALLOCATE,
                            .name = "allocate",
                            .device = device,
                            .stream = stream.handle,
                            .bytes = (int64_t)bytes};
    dt_observed observed;
    if (dt_activity_begin(&observed, &activity))
        return -1;
    int status = real[(int)device.type]->allocate(stream, bytes, out);
    activity.data = status ? NULL : *out;
    return dt_activity_end(&observed, &activity, status);
}

static void release(dt_device device, void *data, size_t bytes)
{
    const dt_activity activity = {.kind = DT_ACTIVITY_FREE,
                                  .name = "free",
                                  .device = device,
                                  .bytes = (int64_t)bytes,
                                  .data = data};
    dt_observed observed;
    (void)dt_activity_begin(&observed, &activity);
    real[(int)device.type]->release(device.index, data, bytes);
    dt_activity_end(&observed, &activity, 0);
}

/* One for each type of device, by number. */
#define WORK(...)                                                                      \
    OBSERVED(0, __VA_ARGS__)                                                           \
    OBSERVED(1, __VA_ARGS__)                                                           \
    OBSERVED(2, __VA_ARGS__) OBSERVED(3, __VA_ARGS__) OBSERVED(4, __VA_ARGS__)
#include "device/works.def"
MEMORY(0)
MEMORY(1)
MEMORY(2)
MEMORY(3)
MEMORY(4)
_Static_assert(DT_MAX_BACKENDS == 5, "add functions for the types that were added");
#define OF_EACH_TYPE(member)                                                           \
    {member##_0, member##_1, member##_2, member##_3, member##_4}

/* Makes a backend report its calls: of the functions that it has. */
static void wrap(dt_backend *own, int type)
{
    int (*const allocates[])(dt_stream, size_t, void **) = OF_EACH_TYPE(allocate);
    void (*const releases[])(int, void *, size_t) = OF_EACH_TYPE(release);
    own->allocate = allocates[type];
    own->release = releases[type];
#define WORK(member, parameters, ...)                                                  \
    if (own->member) {                                                                 \
        static int(*const of_type[]) parameters = OF_EACH_TYPE(member);                \
        own->member = of_type[type];                                                   \
    }
#include "device/works.def"
}

void dt_works_observe(void)
{
    for (int type = 0; type < DT_MAX_BACKENDS && dt_device_rows[type]; type++) {
        dt_device_count((dt_device_type)type); /* opens a backend that is not yet */
        real[type] = dt_backends[type];
        if (!real[type] || dt_device_rows[type]->no_data) /* no work to report */
            continue;
        observing[type] = *real[type];
        wrap(&observing[type], type);
        dt_backends[type] = &observing[type];
    }
}

void dt_works_restore(void)
{
    for (int type = 0; type < DT_MAX_BACKENDS; type++)
        if (real[type])
            dt_backends[type] = real[type];
}

const dt_backend *dt_works_real(dt_device_type type)
{
    return dt_backend_unobserved(type);
}

void dt_works_replace(dt_device_type type, const dt_backend *backend)
{
    if (dt_backends[type] != &observing[type]) {
        dt_backends[type] = backend;
        return;
    }
    real[type] = backend;
    observing[type] = *backend;
    wrap(&observing[type], type);
}

const dt_backend *dt_backend_unobserved(dt_device_type type)
{
    return dt_backends[type] == &observing[type] ? real[type] : dt_backends[type];
}
