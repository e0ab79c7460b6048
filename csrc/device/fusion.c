#include "device/fusion.h"

#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "device/activity.h"
#include "device/works.h"

/* Memory that steps read or write: by any storage some, each with one reference. */
typedef struct access {
    dt_storage *storage; /* NULL: nobody else has it any more, nor is it needed */
    const char *data;
    dt_dtype dtype;
    bool dense; /* all elements, one after the other */
    bool read;  /* as it is in memory */
    int writer; /* the last step that writes it, or BY_END + an end; -1: none */
} access;

#define BY_END   DT_CHAIN_STEPS
#define ACCESSES (DT_CHAIN_STEPS * (DT_MAX_INPUTS + 1) + DT_CHAIN_ENDS * DT_NN_OPERANDS)

int64_t dt_fusion_bound = 1;
int dt_fusion_blocks;

static dt_chain chain;
static access accesses[ACCESSES];
static int naccesses, lines[DT_CHAIN_STEPS];
static int64_t apart; /* bytes of the steps one by one */
static _Thread_local int wanted;
static void (*listening)(const dt_fusion_report *report);

static const dt_backend *real; /* the CPU's */
static dt_backend collecting;

/* --- what an operand is --- */

static bool is_dense(const dt_plan *plan, const dt_operand *o)
{
    int64_t stride = (int64_t)dt_dtype_size(o->dtype);
    for (int d = plan->ndim - 1; d >= 0; stride *= plan->shape[d--])
        if (o->strides[d] != stride)
            return false;
    return true;
}

static bool is_one(const dt_plan *plan, const dt_operand *o)
{
    for (int d = 0; d < plan->ndim; d++)
        if (o->strides[d])
            return false;
    return true;
}

/* Whether a tile of it is made of runs that are worth a call each. */
static bool is_in_runs(const dt_plan *plan, const dt_operand *o)
{
    const int last = plan->ndim - 1;
    return plan->shape[last] >= 32 &&
           (!o->strides[last] || o->strides[last] == (int64_t)dt_dtype_size(o->dtype));
}

static bool is_seen_outside(const dt_operand *o)
{
    return !o->scalar && (o->storage->borrowed || o->storage->exported);
}

/* --- conflicts --- */

static bool are_apart(const access *a, const dt_operand *o, bool dense)
{
    const char *data = o->data;
    return a->dense && dense &&
           (a->data + chain.numel * (int64_t)dt_dtype_size(a->dtype) <= data ||
            data + chain.numel * (int64_t)dt_dtype_size(o->dtype) <= a->data);
}

static bool is_same(const access *a, const dt_operand *o, bool dense)
{
    return a->dense && dense && a->data == o->data && a->dtype == o->dtype;
}

/* Whether the order of an operand and the queue's steps matters, beyond element for
 * element. */
static bool conflicts(const dt_plan *plan, int i)
{
    const dt_operand *o = &plan->operands[i];
    if (o->scalar)
        return false;
    const bool dense = plan->numel == chain.numel && is_dense(plan, o);
    for (int k = 0; k < naccesses; k++)
        if (accesses[k].storage == o->storage && (!i || accesses[k].writer >= 0) &&
            !is_same(&accesses[k], o, dense) && !are_apart(&accesses[k], o, dense))
            return true;
    return false;
}

static bool touches(const dt_storage *storage, bool writing)
{
    for (int k = 0; k < naccesses; k++)
        if (accesses[k].storage == storage && (writing || accesses[k].writer >= 0))
            return true;
    return false;
}

static access *find(const dt_operand *o, bool dense)
{
    for (int k = 0; k < naccesses; k++)
        if (accesses[k].storage == o->storage && accesses[k].data == o->data &&
            accesses[k].dtype == o->dtype && accesses[k].dense == dense)
            return &accesses[k];
    access *a = &accesses[naccesses++];
    *a = (access){.storage = dt_storage_retain(o->storage),
                  .data = o->data,
                  .dtype = o->dtype,
                  .dense = dense,
                  .writer = -1};
    return a;
}

/* --- the end of a chain --- */

/* Whether somebody besides the queue holds the storage. */
static bool is_held(const dt_storage *storage)
{
    int own = 0;
    for (int k = 0; k < naccesses; k++)
        own += accesses[k].storage == storage;
    return storage->references > own;
}

/* Gives back the memory of results that nobody holds. */
static void drop_dead(void)
{
    for (int k = 0; k < naccesses; k++) {
        access *a = &accesses[k];
        if (a->storage && a->writer >= 0 && a->writer < BY_END && !a->read &&
            !is_held(a->storage)) {
            dt_storage *dead = a->storage;
            a->storage = NULL;
            dt_storage_release(dead);
        }
    }
}

/* Says which results are stored, and which nobody reads. */
static void finish(void)
{
    for (int s = 0; s < chain.nsteps; s++) {
        chain.steps[s].out = NULL;
        chain.steps[s].wanted = false;
    }
    for (int e = 0; e < chain.nends; e++)
        chain.ends[e].wanted = false;
    for (int k = 0; k < naccesses; k++) {
        const access *a = &accesses[k];
        if (!a->storage || a->writer < 0 || !is_held(a->storage))
            continue;
        if (a->writer >= BY_END) {
            chain.ends[a->writer - BY_END].wanted = true;
        } else {
            dt_chain_step *step = &chain.steps[a->writer];
            step->out = (void *)(uintptr_t)a->data;
            step->wanted = true;
        }
    }
    for (int e = 0; e < chain.nends; e++)
        if (chain.ends[e].wanted)
            chain.steps[chain.ends[e].step].wanted = true;
    for (int s = chain.nsteps - 1; s >= 0; s--)
        for (int i = 0; chain.steps[s].wanted && i < chain.steps[s].ninputs; i++)
            if (chain.steps[s].inputs[i].step >= 0)
                chain.steps[chain.steps[s].inputs[i].step].wanted = true;
}

/* Runs the queue, without Python code, and leaves it empty. */
static void run_queue(void)
{
    const bool yields = dt_gil_yield(false);
    const int count = naccesses;
    real->chain((dt_stream){0, NULL}, &chain);
    dt_fusion_bound = 1;
    naccesses = chain.nsteps = chain.nlayouts = chain.nends = 0;
    apart = 0;
    for (int k = 0; k < count; k++)
        dt_storage_release(accesses[k].storage);
    dt_gil_yield(yields);
}

/* The listener may run Python code, which may collect. */
static void run_and_report(const char *why)
{
    const dt_chain ran = chain;
    int at[DT_CHAIN_STEPS];
    memcpy(at, lines, sizeof at);
    const dt_fusion_report report = {&ran, at, why, dt_chain_bytes(&chain), apart};
    run_queue();
    listening(&report);
}

void dt_fusion_run(const char *why)
{
    if (!chain.nsteps)
        return;
    dt_observed observed;
    finish();
    const dt_activity activity = {.kind = DT_ACTIVITY_KERNEL,
                                  .name = "fused",
                                  .device = dt_device_make(DT_CPU, 0),
                                  .bytes = dt_chain_bytes(&chain),
                                  .flops = (double)chain.numel *
                                           (chain.nsteps + chain.nends),
                                  .dtype = chain.steps[chain.nsteps - 1].result};
    /* Its steps were allowed. An observer may run Python code, which may run the queue. */
    if (dt_activity_begin(&observed, &activity))
        dt_error_clear();
    if (chain.nsteps) {
        finish();
        if (listening)
            run_and_report(why);
        else
            run_queue();
    }
    dt_activity_end(&observed, &activity, 0);
}

void dt_fusion_settle(const dt_storage *storage)
{
    if (touches(storage, true))
        dt_fusion_run("memory is read or written");
}

void dt_fusion_listen(void (*listener)(const dt_fusion_report *report))
{
    dt_fusion_run("end");
    listening = listener;
}

/* --- collecting --- */

/* Whether a chain can have the operation as a step. */
static bool is_step(dt_elementwise_op op, const dt_plan *plan)
{
    if (!wanted || plan->numel < DT_FUSION_NUMEL || !is_dense(plan, &plan->operands[0]))
        return false;
    for (int i = 0; i < plan->noperands; i++)
        if (is_seen_outside(&plan->operands[i]) ||
            dt_dtype_is_complex(plan->operands[i].dtype))
            return false;
    for (int i = 1; i < plan->noperands; i++) {
        const dt_operand *o = &plan->operands[i];
        if (!o->scalar && !is_one(plan, o) && !is_dense(plan, o) &&
            !is_in_runs(plan, o))
            return false;
    }
    if (op == DT_CHAIN_CONVERT)
        return true;
    const dt_class *class = &dt_elementwise_rows[op].class_;
    const dt_kind kind = dt_dtype_kind(dt_plan_type(plan, class->choice));
    /* Integers are divided one by one: a divisor of 0 is an error. */
    return class->takes[kind] &&
           (class->rule != DT_RULE_DIVISOR || kind == DT_KIND_FLOAT);
}

static void set_input(dt_chain_input *input, const dt_plan *plan, const dt_operand *o)
{
    input->step = input->layout = -1;
    input->data = NULL;
    input->dtype = o->dtype;
    if (o->scalar) {
        input->number = o->value;
    } else if (is_one(plan, o)) {
        memcpy(&input->number, o->data, dt_dtype_size(o->dtype));
    } else {
        const bool dense = is_dense(plan, o);
        access *a = find(o, dense);
        if (dense && a->writer >= 0) {
            input->step = a->writer;
            return;
        }
        a->read = true;
        input->data = o->data;
        if (dense)
            return;
        dt_chain_layout *layout = &chain.layouts[chain.nlayouts];
        input->layout = chain.nlayouts++;
        layout->ndim = plan->ndim;
        memcpy(layout->shape, plan->shape, sizeof *plan->shape * (size_t)plan->ndim);
        memcpy(layout->strides, o->strides, sizeof *o->strides * (size_t)plan->ndim);
    }
}

static void append(dt_elementwise_op op, const dt_plan *plan, int line)
{
    dt_chain_step *step = &chain.steps[chain.nsteps];
    step->op = op;
    step->ninputs = plan->noperands - 1;
    step->type = op == DT_CHAIN_CONVERT
                     ? plan->operands[1].dtype
                     : dt_plan_type(plan, dt_elementwise_rows[op].class_.choice);
    step->result = plan->operands[0].dtype;
    step->out = NULL;
    step->wanted = false;
    chain.numel = plan->numel;
    for (int i = 0; i < step->ninputs; i++)
        set_input(&step->inputs[i], plan, &plan->operands[i + 1]);
    find(&plan->operands[0], true)->writer = chain.nsteps;
    lines[chain.nsteps] = line;
    if (listening) {
        for (int i = 0; i < plan->noperands; i++)
            if (!plan->operands[i].scalar)
                apart += plan->numel * (int64_t)dt_dtype_size(plan->operands[i].dtype);
    }
    chain.nsteps++;
    dt_fusion_bound = INT64_MAX;
    drop_dead();
}

/* Adds the operation to the chain and gives true; or false after it has run the chains that
 * the operation depends on, and the caller runs the operation. */
static bool collect(dt_elementwise_op op, const dt_plan *plan)
{
    if (!wanted && !chain.nsteps)
        return false;
    const bool takes = is_step(op, plan);
    const int line = takes && listening ? dt_activity_line() : -1; /* before all else */
    if (chain.nsteps) {
        const char *why = NULL;
        for (int i = 0; i < plan->noperands; i++)
            if (conflicts(plan, i) || (!takes && !plan->operands[i].scalar &&
                                       touches(plan->operands[i].storage, !i)))
                why = takes ? "memory is read or written otherwise"
                            : "an operation that is not fused";
        if (takes && plan->numel != chain.numel)
            why = "another number of elements";
        else if (takes && chain.nsteps == DT_CHAIN_STEPS)
            why = "the chain is full";
        else if (takes && chain.nlayouts + DT_MAX_INPUTS > DT_CHAIN_LAYOUTS)
            why = "too many broadcasts";
        if (why)
            dt_fusion_run(why);
    }
    if (takes)
        append(op, plan, line);
    return takes;
}

/* --- collecting ends --- */

/* The length of a reduction's rows, if they are all elements of dense memory in order; else
 * 0. */
static int64_t row_of(const dt_reduction *r)
{
    const int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    const int64_t row = r->reduced_numel;
    if (r->reduced_ndim != 1 || r->reduced_strides[0] != size || r->kept_ndim > 1 ||
        (r->kept_ndim && r->kept_strides[0] != row * size))
        return 0;
    return row * r->kept_numel == chain.numel ? row : 0;
}

/* The step whose result is all that memory; -1: none. */
static int step_of(const dt_storage *storage, const void *data, dt_dtype dtype)
{
    for (int k = 0; k < naccesses; k++) {
        const access *a = &accesses[k];
        if (a->storage == storage && a->data == data && a->dtype == dtype && a->dense &&
            a->writer >= 0)
            return a->writer;
    }
    return -1;
}

/* Whether the end's operands, but for the result of the chain, may wait. */
static bool may_wait(const dt_chain_end *end, void *const *operands,
                     dt_storage *const *storages, int count)
{
    for (int i = 0; i < count; i++) {
        const dt_storage *s = storages[i];
        if (i != end->operand && operands[i] &&
            (!s || s->borrowed || s->exported || touches(s, end->writes >> i & 1)))
            return false;
    }
    return true;
}

static bool has_rows(void)
{
    for (int e = 0; e < chain.nends; e++)
        if (chain.ends[e].work == DT_WORK_nn)
            return true;
    return false;
}

static bool joins(dt_chain_end *end, int64_t row, int count, void *const *operands,
                  dt_storage *const *storages)
{
    if (!wanted || row < 2 || chain.nends == DT_CHAIN_ENDS ||
        (chain.nends && chain.row != row) || (end->work == DT_WORK_nn && has_rows()) ||
        !real->chain_end(end))
        return false;
    if (may_wait(end, operands, storages, count))
        return true;
    free(end->partials);
    return false;
}

/* Adds an end that takes `row` elements together to the chain and gives true; or false
 * after it has run the chain, and the caller runs the operation. */
static bool collect_end(dt_chain_end *end, int64_t row, int count,
                        void *const *operands, dt_storage *const *storages)
{
    if (!joins(end, row, count, operands, storages)) {
        dt_fusion_run(end->work == DT_WORK_nn ? "an operation on rows" : "a reduction");
        return false;
    }
    for (int i = 0; i < count; i++)
        if (i != end->operand && operands[i]) {
            const bool writes = end->writes >> i & 1;
            accesses[naccesses++] =
                (access){.storage = dt_storage_retain(storages[i]),
                         .data = operands[i],
                         .read = !writes,
                         .writer = writes ? BY_END + chain.nends : -1};
        }
    chain.row = row;
    chain.ends[chain.nends++] = *end;
    if (listening)
        apart += dt_chain_end_bytes(&chain, end) +
                 chain.numel * (int64_t)dt_dtype_size(chain.steps[end->step].result);
    drop_dead();
    return true;
}

/* Before all else: it may run Python code, which may run the queue. */
static int line_of_end(void)
{
    return wanted && listening ? dt_activity_line() : -1;
}

/* For reduce, and moments with their mean. */
static bool collect_reduction(dt_work work, dt_reduce_op op, void *mean,
                              const dt_reduction *c)
{
    if (!chain.nsteps)
        return false;
    dt_chain_end end = {.work = work, .op = op, .mean = mean, .reduction = *c};
    end.line = line_of_end();
    void *const operands[] = {(void *)(uintptr_t)c->input, c->output, mean};
    end.step = step_of(c->storages[0], c->input, c->input_dtype);
    return collect_end(&end, end.step < 0 ? 0 : row_of(c), 3, operands, c->storages);
}

static int collect_reduce(dt_stream stream, dt_reduce_op op, const dt_reduction *c)
{
    return collect_reduction(DT_WORK_reduce, op, NULL, c) ? 0
                                                          : real->reduce(stream, op, c);
}

static int collect_moments(dt_stream stream, void *mean, const dt_reduction *c)
{
    return collect_reduction(DT_WORK_moments, 0, mean, c)
               ? 0
               : real->moments(stream, mean, c);
}

static int collect_nn(dt_stream stream, const dt_nn_call *c)
{
    if (!chain.nsteps)
        return real->nn(stream, c);
    dt_chain_end end = {.work = DT_WORK_nn, .step = -1, .rows = *c};
    end.line = line_of_end();
    if (c->outer * c->n == chain.numel)
        for (int k = 0; k < DT_NN_OPERANDS && end.step < 0; k++) {
            if (c->operands[k])
                end.step = step_of(c->storages[k], c->operands[k], c->stored);
            end.operand = k;
        }
    return collect_end(&end, end.step < 0 ? 0 : c->n, DT_NN_OPERANDS, c->operands,
                       c->storages)
               ? 0
               : real->nn(stream, c);
}

/* --- the backend that collects --- */

static int collect_elementwise(dt_stream stream, dt_elementwise_op op, const dt_plan *c)
{
    return collect(op, c) ? 0 : real->elementwise(stream, op, c);
}

static int collect_copy(dt_stream stream, const dt_plan *c)
{
    return collect(DT_CHAIN_CONVERT, c) ? 0 : real->copy(stream, c);
}

/* A tensor that is filled is often new, and begins no chain. */
static int collect_fill(dt_stream stream, const dt_plan *c)
{
    if (chain.nsteps && c->numel == chain.numel && collect(DT_CHAIN_CONVERT, c))
        return 0;
    if (chain.nsteps && touches(c->operands[0].storage, true))
        dt_fusion_run("fill");
    return real->fill(stream, c);
}

#define WORK(member, parameters, arguments, ...)                                       \
    static int after_##member parameters                                               \
    {                                                                                  \
        dt_fusion_run(#member);                                                        \
        return real->member arguments;                                                 \
    }
#define GPU_WORK(...)
#include "device/works.def"

static void install(void)
{
    real = dt_works_real(DT_CPU);
    collecting = *real;
#define WORK(member, ...) collecting.member = after_##member;
#define GPU_WORK(...)
#include "device/works.def"
    collecting.elementwise = collect_elementwise;
    collecting.copy = collect_copy;
    collecting.fill = collect_fill;
    collecting.reduce = collect_reduce;
    collecting.moments = collect_moments;
    collecting.nn = collect_nn;
    dt_works_replace(DT_CPU, &collecting);
}

void dt_fusion_begin(void)
{
    if (!real)
        install();
    dt_fusion_blocks++;
    wanted++;
}

void dt_fusion_end(void)
{
    dt_fusion_blocks--;
    if (!--wanted)
        dt_fusion_run("the end of the block");
}

bool dt_fusion_asked(void)
{
    return wanted;
}
