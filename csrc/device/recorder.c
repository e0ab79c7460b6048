#include "device/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/attention.h"
#include "device/convolution.h"
#include "device/lapack.h"
#include "device/nn.h"
#include "device/pooling.h"
#include "device/resample.h"
#include "device/rnn.h"
#include "device/stream.h"

bool dt_recording;

static struct {
    dt_record *records;
    int64_t capacity, taken; /* taken also counts the dropped */
    bool device_times;
    int (*where)(void);
    int open; /* calls between begin and end, which may write their record */
    /* What lies in dt_backends otherwise. */
    const dt_backend *real[DT_NDEVICE_TYPES];
    /* An event of each GPU that was used, and the time of its recording. */
    void *base[DT_MAX_DEVICES];
    int64_t base_time[DT_MAX_DEVICES];
} recorder;

static _Thread_local int thread_id;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- records --- */

static void *new_event(const dt_backend *gpu, dt_stream stream)
{
    void *event = NULL;
    if (gpu->event_new(stream.device, true, &event) ||
        gpu->event_record(event, stream)) {
        if (event)
            gpu->event_free(event);
        dt_error_clear(); /* recording is no reason for the program to fail */
        return NULL;
    }
    return event;
}

dt_record *dt_record_begin(dt_record_kind kind, const char *name, dt_device device,
                           void *stream, int64_t bytes, double flops)
{
    if (!dt_recording)
        return NULL;
    int64_t at = __atomic_fetch_add(&recorder.taken, 1, __ATOMIC_RELAXED);
    if (at >= recorder.capacity)
        return NULL;
    __atomic_add_fetch(&recorder.open, 1, __ATOMIC_RELAXED);
    if (!thread_id)
        thread_id = (int)gettid();
    dt_record *r = &recorder.records[at];
    *r = (dt_record){.name = name,
                     .bytes = bytes,
                     .flops = flops,
                     .stream = stream,
                     .line = -1,
                     .thread = thread_id,
                     .kind = kind,
                     .device = device};
    if (recorder.where && kind < DT_RECORD_ALLOCATE)
        r->line = recorder.where();
    if (recorder.device_times && device.type == DT_CUDA && kind < DT_RECORD_WAIT) {
        const dt_backend *gpu = recorder.real[DT_CUDA];
        dt_stream on = {device.index, stream};
        if (!recorder.base[(int)device.index]) {
            recorder.base[(int)device.index] = new_event(gpu, on);
            recorder.base_time[(int)device.index] = now();
        }
        r->events[0] = new_event(gpu, on);
    }
    r->begin = now();
    return r;
}

void dt_record_end(dt_record *r)
{
    if (!r)
        return;
    r->end = now();
    if (r->events[0]) {
        dt_stream on = {r->device.index, r->stream};
        r->events[1] = new_event(recorder.real[DT_CUDA], on);
    }
    __atomic_sub_fetch(&recorder.open, 1, __ATOMIC_RELEASE);
}

/* --- backends that record --- */

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
    return sized(g->dtype, (g->a_batch ? g->batch : 1) * g->m * g->k +
                               (g->b_batch ? g->batch : 1) * g->k * g->n +
                               g->batch * g->m * g->n * (g->beta == 0 ? 1 : 2));
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
    return sized(c->dtype, rows * c->n * (operands < 3 ? operands : 3));
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

/* WORK(member, parameters, arguments, name, bytes, flops): a function of dt_backend that
 * is recorded as a kernel; `stream` is among the parameters. */
#define WORKS(WORK)                                                                    \
    WORK(fill, (dt_stream stream, const dt_plan *p), (stream, p), "fill",              \
         plan_bytes(p), 0)                                                             \
    WORK(copy, (dt_stream stream, const dt_plan *p), (stream, p), "copy",              \
         plan_bytes(p), 0)                                                             \
    WORK(elementwise, (dt_stream stream, dt_elementwise_op op, const dt_plan *p),      \
         (stream, op, p), elementwise_names[op], plan_bytes(p), (double)p->numel)      \
    WORK(reduce, (dt_stream stream, dt_reduce_op op, const dt_reduction *r),           \
         (stream, op, r), reduce_names[op], reduction_bytes(r),                        \
         (double)(r->kept_numel * r->reduced_numel))                                   \
    WORK(argreduce, (dt_stream stream, bool greatest, const dt_reduction *r),          \
         (stream, greatest, r), greatest ? "argmax" : "argmin", reduction_bytes(r),    \
         (double)(r->kept_numel * r->reduced_numel))                                   \
    WORK(gemm, (dt_stream stream, const dt_gemm *g), (stream, g), "matmul",            \
         gemm_bytes(g), gemm_flops(g))                                                 \
    WORK(arange, (dt_stream stream, const dt_arange_call *c), (stream, c), "arange",   \
         sized(c->dtype, c->numel), 0)                                                 \
    WORK(random,                                                                       \
         (dt_stream stream, struct dt_generator * generator, const dt_random_call *c), \
         (stream, generator, c), random_names[c->distribution],                        \
         sized(c->dtype, c->numel), 0)                                                 \
    WORK(index, (dt_stream stream, dt_index_op op, const dt_index_call *c),            \
         (stream, op, c), index_names[op], 2 * sized(c->dtype, c->numel), 0)           \
    WORK(optim_step, (dt_stream stream, const dt_optim_call *c), (stream, c),          \
         optim_names[c->op], 5 * sized(c->dtype, optim_numel(c)),                      \
         10 * (double)optim_numel(c))                                                  \
    WORK(nonzero_count, (dt_stream stream, const dt_nonzero_call *c), (stream, c),     \
         "nonzero", c->numel, 0)                                                       \
    WORK(nonzero_write, (dt_stream stream, const dt_nonzero_call *c), (stream, c),     \
         "nonzero", c->numel, 0)                                                       \
    WORK(scan, (dt_stream stream, dt_scan_op op, const dt_scan *s), (stream, op, s),   \
         scan_names[op], 2 * sized(s->dtype, s->outer * s->n * s->inner),              \
         (double)(s->outer * s->n * s->inner))                                         \
    WORK(moments, (dt_stream stream, void *mean, const dt_reduction *r),               \
         (stream, mean, r), "moments", reduction_bytes(r),                             \
         4 * (double)(r->kept_numel * r->reduced_numel))                               \
    WORK(sort, (dt_stream stream, const dt_sorting *s), (stream, s), "sort",           \
         sized(s->dtype, s->rows *(s->n + s->k)) + s->rows * s->k * 8, 0)              \
    WORK(search, (dt_stream stream, const dt_search *s), (stream, s), "searchsorted",  \
         sized(s->dtype, s->rows * s->m) + s->rows * s->m * 8, 0)                      \
    WORK(nn, (dt_stream stream, const struct dt_nn_call *c), (stream, c),              \
         nn_names[c->op], nn_bytes(c), 4 * (double)(c->outer * c->inner * c->n))       \
    WORK(attention, (dt_stream stream, const struct dt_attention_call *c),             \
         (stream, c), "attention", attention_bytes(c), attention_flops(c))             \
    WORK(attention_backward, (dt_stream stream, const struct dt_attention_call *c),    \
         (stream, c), "attention_backward", 2 * attention_bytes(c),                    \
         2.5 * attention_flops(c))                                                     \
    WORK(rnn, (dt_stream stream, const struct dt_rnn_call *c), (stream, c),            \
         rnn_names[c->op], rnn_bytes(c), 20 * (double)(c->rows * c->n))                \
    WORK(convolution, (dt_stream stream, const struct dt_convolution *c), (stream, c), \
         convolution_names[c->part], convolution_bytes(c), convolution_flops(c))       \
    WORK(pooling, (dt_stream stream, const struct dt_pooling_call *c), (stream, c),    \
         pooling_names[c->op], pooling_bytes(c), pooling_flops(c))                     \
    WORK(resample, (dt_stream stream, const struct dt_resample_call *c), (stream, c),  \
         "resample", sized(c->dtype, c->outer * c->inner * (c->inputs + c->outputs)),  \
         2 * (double)(c->outer * c->inner) * (double)c->starts[c->outputs])            \
    WORK(lapack, (dt_stream stream, const struct dt_lapack_call *c), (stream, c),      \
         lapack_names[c->op], lapack_bytes(c), lapack_flops(c))                        \
    WORK(foreach_norm,                                                                 \
         (dt_stream stream, dt_reduce_op op, const dt_foreach_norm_call *c),           \
         (stream, op, c), "foreach_norm",                                              \
         sized(c->dtype,                                                               \
               c->entries[c->count - 1].first *(int64_t)DT_FOREACH_NORM_CHUNK +        \
                   c->entries[c->count - 1].numel),                                    \
         0)

/* A recorded function of each backend, since a stream does not say whose it is. */
#define RECORDED(type, member, parameters, arguments, name, bytes, flops)              \
    static int type##_##member parameters                                              \
    {                                                                                  \
        dt_record *record = dt_record_begin(DT_RECORD_KERNEL, name,                    \
                                            dt_device_make(DT_##type, stream.device),  \
                                            stream.handle, bytes, flops);              \
        int status = recorder.real[DT_##type]->member arguments;                       \
        dt_record_end(record);                                                         \
        return status;                                                                 \
    }
#define OF_CPU(...)  RECORDED(CPU, __VA_ARGS__)
#define OF_CUDA(...) RECORDED(CUDA, __VA_ARGS__)
#define MEMORY(type)                                                                   \
    static int type##_allocate(dt_stream stream, size_t bytes, void **out)             \
    {                                                                                  \
        dt_record *r = dt_record_begin(DT_RECORD_ALLOCATE, "allocate",                 \
                                       dt_device_make(DT_##type, stream.device),       \
                                       stream.handle, (int64_t)bytes, 0);              \
        int status = recorder.real[DT_##type]->allocate(stream, bytes, out);           \
        dt_record_end(r);                                                              \
        return status;                                                                 \
    }                                                                                  \
    static void type##_release(int device, void *data, size_t bytes)                   \
    {                                                                                  \
        dt_record *r =                                                                 \
            dt_record_begin(DT_RECORD_FREE, "free", dt_device_make(DT_##type, device), \
                            NULL, (int64_t)bytes, 0);                                  \
        recorder.real[DT_##type]->release(device, data, bytes);                        \
        dt_record_end(r);                                                              \
    }
WORKS(OF_CPU)
WORKS(OF_CUDA)
MEMORY(CPU)
MEMORY(CUDA)

/* --- start and stop --- */

static dt_backend recording_backends[DT_NDEVICE_TYPES];

static void install(void)
{
    for (int type = 0; type < DT_NDEVICE_TYPES; type++) {
        recorder.real[type] = dt_backends[type];
        if (!dt_backends[type])
            continue;
        dt_backend *own = &recording_backends[type];
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

int dt_recorder_start(int64_t capacity, bool device_times, int (*where)(void))
{
    if (dt_recording)
        return dt_fail(DT_ERROR_RUNTIME,
                       "a profile is running already; stop it before another starts");
    dt_recorder_clear();
    recorder.records = calloc((size_t)capacity, sizeof *recorder.records);
    if (!recorder.records)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the events of a profile");
    dt_device_count(DT_CUDA); /* so that the backend is there to be replaced */
    recorder.capacity = capacity;
    recorder.device_times = device_times;
    recorder.where = where;
    install();
    dt_recording = true;
    return 0;
}

void dt_recorder_stop(void)
{
    if (!dt_recording)
        return;
    dt_recording = false;
    for (int type = 0; type < DT_NDEVICE_TYPES; type++)
        dt_backends[type] = recorder.real[type];
}

static int64_t recorded(void)
{
    return recorder.taken < recorder.capacity ? recorder.taken : recorder.capacity;
}

int dt_recorder_resolve(void)
{
    const dt_backend *gpu = recorder.real[DT_CUDA];
    for (int device = 0; device < DT_MAX_DEVICES; device++)
        if (recorder.base[device] && gpu->device_synchronize(device))
            return -1;
    for (int64_t i = 0; i < recorded(); i++) {
        dt_record *r = &recorder.records[i];
        float from, to;
        int device = (int)r->device.index;
        if (!r->events[0] || !r->events[1] || r->device_end)
            continue;
        if (gpu->event_elapsed(recorder.base[device], r->events[0], &from) ||
            gpu->event_elapsed(recorder.base[device], r->events[1], &to))
            return -1;
        r->device_begin = recorder.base_time[device] + (int64_t)((double)from * 1e6);
        r->device_end = recorder.base_time[device] + (int64_t)((double)to * 1e6);
    }
    return 0;
}

const dt_record *dt_recorder_read(int64_t *count, int64_t *dropped)
{
    *count = recorded();
    *dropped = recorder.taken - *count;
    return recorder.records;
}

void dt_recorder_clear(void)
{
    const dt_backend *gpu = recorder.real[DT_CUDA];
    for (int64_t i = 0; i < recorded(); i++)
        for (int k = 0; k < 2; k++)
            if (recorder.records[i].events[k])
                gpu->event_free(recorder.records[i].events[k]);
    for (int device = 0; device < DT_MAX_DEVICES; device++) {
        if (recorder.base[device])
            gpu->event_free(recorder.base[device]);
        recorder.base[device] = NULL;
    }
    /* A long call of another thread may outlive the profile: its record stays. */
    if (!__atomic_load_n(&recorder.open, __ATOMIC_ACQUIRE))
        free(recorder.records);
    recorder.records = NULL;
    recorder.capacity = recorder.taken = 0;
}
