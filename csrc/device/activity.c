#include "device/activity.h"

#include "device/attention.h"
#include "device/convolution.h"
#include "device/lapack.h"
#include "device/nn.h"
#include "device/pooling.h"
#include "device/resample.h"
#include "device/rnn.h"

int dt_observers, dt_observers_of_places;
_Thread_local int dt_activity_node = DT_NO_NODE;

static struct {
    const dt_observer *observers[DT_OBSERVERS];
    /* What lies in dt_backends while nobody observes kernels. */
    const dt_backend *real[DT_NDEVICE_TYPES];
    int of_kernels; /* how many observe kernels */
} observed;

static int (*place_now)(void);
static char *(*place_name)(int place, char text[DT_PLACE_TEXT]);

void dt_activity_place_set(int (*place)(void),
                           char *(*name)(int place, char text[DT_PLACE_TEXT]))
{
    place_now = place;
    place_name = name;
}

int dt_activity_place(void)
{
    return place_now ? place_now() : -1;
}

char *dt_activity_place_name(int place, char text[DT_PLACE_TEXT])
{
    *text = 0;
    return place_name && place >= 0 ? place_name(place, text) : text;
}

const dt_backend *dt_backend_unobserved(dt_device_type type)
{
    return observed.of_kernels ? observed.real[type] : dt_backends[type];
}

/* --- telling the observers --- */

static bool through_backend(dt_activity_kind kind)
{
    return kind == DT_ACTIVITY_KERNEL || kind >= DT_ACTIVITY_ALLOCATE;
}

int dt_activity_begin_observed(dt_observed *told, const dt_activity *activity)
{
    for (int i = 0; i < DT_OBSERVERS; i++) {
        const dt_observer *observer =
            __atomic_load_n(&observed.observers[i], __ATOMIC_ACQUIRE);
        if (!observer || (!observer->kernels && through_backend(activity->kind)))
            continue;
        void *mark = NULL;
        if (observer->begin(activity, &mark)) {
            dt_activity_end_observed(told, activity, -1);
            told->count = 0;
            return -1;
        }
        told->by[told->count] = observer;
        told->marks[told->count++] = mark;
    }
    return 0;
}

void dt_activity_end_observed(const dt_observed *told, const dt_activity *activity,
                              int status)
{
    for (int i = told->count; i--;)
        if (told->by[i]->end)
            told->by[i]->end(activity, told->marks[i], status);
}

/* --- what the calls of a backend are --- */

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
static const char *const pooling_names[] = {"max_pool", "avg_pool",
                                            "avg_pool_backward"};
static const char *const random_names[] = {"uniform", "normal", "random_integers",
                                           "bernoulli"};

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

static double pooling_flops(const dt_pooling_call *c)
{
    const dt_window *w = &c->window;
    return (double)(c->planes * dt_window_volume(w->output)) *
           (double)dt_window_volume(w->kernel);
}

static int64_t lapack_bytes(const dt_lapack_call *c)
{
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    int64_t numel = 0;
    for (int i = dt_lapack_operands(c, operands); i--;)
        numel += operands[i].size;
    return sized(c->dtype, c->batch * numel);
}

/* As if it were one product: the true number depends on the values. */
static double lapack_flops(const dt_lapack_call *c)
{
    return 2.0 * (double)(c->batch * c->m * c->n) * (double)(c->m < c->n ? c->m : c->n);
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

static int64_t optim_numel(const dt_optim_call *c)
{
    const dt_optim_entry *last = &c->entries[c->count - 1];
    return last->first + last->numel;
}

/* WORK(member, parameters, arguments, name, dtype, bytes, flops): a function of dt_backend
 * that is a kernel; `stream` is among the parameters. */
#define WORKS(WORK)                                                                    \
    WORK(fill, (dt_stream stream, const dt_plan *p), (stream, p), "fill",              \
         plan_dtype(p), plan_bytes(p), 0)                                              \
    WORK(copy, (dt_stream stream, const dt_plan *p), (stream, p), "copy",              \
         plan_dtype(p), plan_bytes(p), 0)                                              \
    WORK(elementwise, (dt_stream stream, dt_elementwise_op op, const dt_plan *p),      \
         (stream, op, p), elementwise_names[op], plan_dtype(p), plan_bytes(p),         \
         (double)p->numel)                                                             \
    WORK(reduce, (dt_stream stream, dt_reduce_op op, const dt_reduction *r),           \
         (stream, op, r), reduce_names[op], r->input_dtype, reduction_bytes(r),        \
         (double)(r->kept_numel * r->reduced_numel))                                   \
    WORK(argreduce, (dt_stream stream, bool greatest, const dt_reduction *r),          \
         (stream, greatest, r), greatest ? "argmax" : "argmin", r->input_dtype,        \
         reduction_bytes(r), (double)(r->kept_numel * r->reduced_numel))               \
    WORK(gemm, (dt_stream stream, const dt_gemm *g), (stream, g), "matmul", g->dtype,  \
         gemm_bytes(g), gemm_flops(g))                                                 \
    WORK(arange, (dt_stream stream, const dt_arange_call *c), (stream, c), "arange",   \
         c->dtype, sized(c->dtype, c->numel), 0)                                       \
    WORK(random,                                                                       \
         (dt_stream stream, struct dt_generator * generator, const dt_random_call *c), \
         (stream, generator, c), random_names[c->distribution], c->dtype,              \
         sized(c->dtype, c->numel), 0)                                                 \
    WORK(index, (dt_stream stream, dt_index_op op, const dt_index_call *c),            \
         (stream, op, c), index_names[op], c->dtype, 2 * sized(c->dtype, c->numel), 0) \
    WORK(optim_step, (dt_stream stream, const dt_optim_call *c), (stream, c),          \
         optim_names[c->op], c->stored, 5 * sized(c->stored, optim_numel(c)),          \
         10 * (double)optim_numel(c))                                                  \
    WORK(nonzero_count, (dt_stream stream, const dt_nonzero_call *c), (stream, c),     \
         "nonzero", DT_BOOL, c->numel, 0)                                              \
    WORK(nonzero_write, (dt_stream stream, const dt_nonzero_call *c), (stream, c),     \
         "nonzero", DT_BOOL, c->numel, 0)                                              \
    WORK(scan, (dt_stream stream, dt_scan_op op, const dt_scan *s), (stream, op, s),   \
         scan_names[op], s->dtype, 2 * sized(s->dtype, s->outer * s->n * s->inner),    \
         (double)(s->outer * s->n * s->inner))                                         \
    WORK(moments, (dt_stream stream, void *mean, const dt_reduction *r),               \
         (stream, mean, r), "moments", r->input_dtype, reduction_bytes(r),             \
         4 * (double)(r->kept_numel * r->reduced_numel))                               \
    WORK(sort, (dt_stream stream, const dt_sorting *s), (stream, s), "sort", s->dtype, \
         sized(s->dtype, s->rows *(s->n + s->k)) + s->rows * s->k * 8, 0)              \
    WORK(search, (dt_stream stream, const dt_search *s), (stream, s), "searchsorted",  \
         s->dtype, sized(s->dtype, s->rows * s->m) + s->rows * s->m * 8, 0)            \
    WORK(nn, (dt_stream stream, const struct dt_nn_call *c), (stream, c),              \
         nn_names[c->op], c->stored, nn_bytes(c),                                      \
         4 * (double)(c->outer * c->inner * c->n))                                     \
    WORK(attention, (dt_stream stream, const struct dt_attention_call *c),             \
         (stream, c), "attention", c->dtype, attention_bytes(c), attention_flops(c))   \
    WORK(attention_backward, (dt_stream stream, const struct dt_attention_call *c),    \
         (stream, c), "attention_backward", c->dtype, 2 * attention_bytes(c),          \
         2.5 * attention_flops(c))                                                     \
    WORK(rnn, (dt_stream stream, const struct dt_rnn_call *c), (stream, c),            \
         rnn_names[c->op], c->dtype, rnn_bytes(c), 20 * (double)(c->rows * c->n))      \
    WORK(convolution, (dt_stream stream, const struct dt_convolution *c), (stream, c), \
         convolution_names[c->part], c->dtype, convolution_bytes(c),                   \
         convolution_flops(c))                                                         \
    WORK(pooling, (dt_stream stream, const struct dt_pooling_call *c), (stream, c),    \
         pooling_names[c->op], c->dtype, pooling_bytes(c), pooling_flops(c))           \
    WORK(resample, (dt_stream stream, const struct dt_resample_call *c), (stream, c),  \
         "resample", c->dtype,                                                         \
         sized(c->dtype, c->outer * c->inner * (c->inputs + c->outputs)),              \
         2 * (double)(c->outer * c->inner) * (double)c->starts[c->outputs])            \
    WORK(lapack, (dt_stream stream, const struct dt_lapack_call *c), (stream, c),      \
         lapack_names[c->op], c->dtype, lapack_bytes(c), lapack_flops(c))              \
    WORK(foreach_norm,                                                                 \
         (dt_stream stream, dt_reduce_op op, const dt_foreach_norm_call *c),           \
         (stream, op, c), "foreach_norm", c->stored,                                   \
         sized(c->stored,                                                              \
               c->entries[c->count - 1].first *(int64_t)DT_FOREACH_NORM_CHUNK +        \
                   c->entries[c->count - 1].numel),                                    \
         0)

static dt_activity kernel(const char *name, dt_device device, void *stream,
                          dt_dtype dtype, int64_t bytes, double flops, const void *call,
                          dt_call_form form)
{
    return (dt_activity){.kind = DT_ACTIVITY_KERNEL,
                         .name = name,
                         .device = device,
                         .stream = stream,
                         .bytes = bytes,
                         .flops = flops,
                         .dtype = dtype,
                         .call = call,
                         .form = form};
}

/* The last argument of a WORK, which describes the call. */
#define LAST(...)                    LAST_OF(__VA_ARGS__, LAST_3, LAST_2, )(__VA_ARGS__)
#define LAST_OF(a, b, c, which, ...) which
#define LAST_2(stream, call)         call
#define LAST_3(stream, other, call)  call

/* A function of each observed backend, since a stream does not say whose it is. */
#define OBSERVED(type, member, parameters, arguments, name, dtype_of, bytes, flops)    \
    static int type##_##member parameters                                              \
    {                                                                                  \
        const dt_activity activity = kernel(                                           \
            name, dt_device_make(DT_##type, stream.device), stream.handle, dtype_of,   \
            bytes, flops, LAST arguments, DT_CALL_FORM(LAST arguments));               \
        dt_observed told;                                                              \
        if (dt_activity_begin(&told, &activity))                                       \
            return -1;                                                                 \
        return dt_activity_end(&told, &activity,                                       \
                               observed.real[DT_##type]->member arguments);            \
    }
#define OF_CPU(...)  OBSERVED(CPU, __VA_ARGS__)
#define OF_CUDA(...) OBSERVED(CUDA, __VA_ARGS__)
#define MEMORY(type)                                                                   \
    static int type##_allocate(dt_stream stream, size_t bytes, void **out)             \
    {                                                                                  \
        dt_activity activity = {.kind = DT_ACTIVITY_ALLOCATE,                          \
                                .name = "allocate",                                    \
                                .device = dt_device_make(DT_##type, stream.device),    \
                                .stream = stream.handle,                               \
                                .bytes = (int64_t)bytes};                              \
        dt_observed told;                                                              \
        if (dt_activity_begin(&told, &activity))                                       \
            return -1;                                                                 \
        int status = observed.real[DT_##type]->allocate(stream, bytes, out);           \
        activity.data = status ? NULL : *out;                                          \
        return dt_activity_end(&told, &activity, status);                              \
    }                                                                                  \
    static void type##_release(int device, void *data, size_t bytes)                   \
    {                                                                                  \
        const dt_activity activity = {.kind = DT_ACTIVITY_FREE,                        \
                                      .name = "free",                                  \
                                      .device = dt_device_make(DT_##type, device),     \
                                      .bytes = (int64_t)bytes,                         \
                                      .data = data};                                   \
        dt_observed told;                                                              \
        (void)dt_activity_begin(&told, &activity);                                     \
        observed.real[DT_##type]->release(device, data, bytes);                        \
        dt_activity_end(&told, &activity, 0);                                          \
    }
WORKS(OF_CPU)
WORKS(OF_CUDA)
MEMORY(CPU)
MEMORY(CUDA)

/* --- adding and removing observers --- */

static dt_backend observing[DT_NDEVICE_TYPES];

static void install(void)
{
    dt_device_count(DT_CUDA); /* so that the backend is there to be replaced */
    for (int type = 0; type < DT_NDEVICE_TYPES; type++) {
        observed.real[type] = dt_backends[type];
        if (!dt_backends[type])
            continue;
        dt_backend *own = &observing[type];
        *own = *dt_backends[type];
#define USE_CPU(member, ...)  own->member = own->member ? CPU_##member : NULL;
#define USE_CUDA(member, ...) own->member = CUDA_##member;
        if (type == DT_CPU) {
            WORKS(USE_CPU)
            USE_CPU(allocate)
            USE_CPU(release)
        } else {
            WORKS(USE_CUDA)
            USE_CUDA(allocate)
            USE_CUDA(release)
        }
        dt_backends[type] = own;
    }
}

static int slot_of(const dt_observer *observer)
{
    int slot = 0;
    while (slot < DT_OBSERVERS && observed.observers[slot] != observer)
        slot++;
    return slot;
}

void dt_observer_add(const dt_observer *observer)
{
    if (slot_of(observer) < DT_OBSERVERS || slot_of(NULL) == DT_OBSERVERS)
        return;
    if (observer->kernels && !observed.of_kernels++)
        install();
    int slot = slot_of(NULL); /* opening a backend may have added an observer */
    __atomic_store_n(&observed.observers[slot], observer, __ATOMIC_RELEASE);
    __atomic_add_fetch(&dt_observers, 1, __ATOMIC_RELAXED);
    dt_observers_of_places += observer->places;
}

void dt_observer_remove(const dt_observer *observer)
{
    int slot = slot_of(observer);
    if (slot == DT_OBSERVERS)
        return;
    __atomic_store_n(&observed.observers[slot], NULL, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&dt_observers, 1, __ATOMIC_RELAXED);
    dt_observers_of_places -= observer->places;
    if (!observer->kernels || --observed.of_kernels)
        return;
    for (int type = 0; type < DT_NDEVICE_TYPES; type++)
        dt_backends[type] = observed.real[type];
}
