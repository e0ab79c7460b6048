#include "device/fusion_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "device/activity.h"

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
static dt_device on_device;
static dt_stream on_stream;
/* On a GPU, of the first step: alone it runs as without a queue. */
static dt_plan first;
static access accesses[ACCESSES];
static int naccesses, lines[DT_CHAIN_STEPS];
static int64_t apart;    /* bytes of the steps one by one */
static dt_error failure; /* of a run in a call that cannot fail */
static _Thread_local int wanted;
static void (*listening)(const dt_fusion_report *report);
static void (*compiling)(dt_device device, const dt_chain *chain);
static int runs_before_compiling;

const dt_backend *dt_fusion_real[DT_FUSION_TYPES];

/* --- what an operand is --- */

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
    const bool dense = plan->numel == chain.numel && dt_plan_is_dense(plan, o);
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

/* Says which operations of the program failed together. */
static int fail_as_chain(void)
{
    char text[DT_ERROR_TEXT / 2] = "", line[DT_LINE_TEXT];
    size_t used = 0;
    const int all = chain.nsteps + chain.nends;
    for (int s = 0; s < all && used < sizeof text - 2 * DT_LINE_TEXT; s++) {
        const dt_chain_end *end =
            s < chain.nsteps ? NULL : &chain.ends[s - chain.nsteps];
        const char *at = dt_activity_line_text(end ? end->line : lines[s], line);
        const char *name =
            end ? dt_chain_end_name(end) : dt_chain_step_name(&chain.steps[s]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s",
                                 s ? ", " : "", name, *at ? " at " : "", at);
    }
    return dt_fail_prefix("a fused kernel of %s: ", text);
}

/* Whether the chain is an operation that runs as without a queue. */
static bool is_alone(void)
{
    return chain.nsteps == 1 && !dt_chain_wanted_end(&chain) &&
           !dt_device_is_host(on_device);
}

static int run_chain(void)
{
    const dt_backend *backend = dt_fusion_real[(int)on_device.type];
    const dt_elementwise_op op = chain.steps[0].op;
    if (dt_device_is_host(on_device))
        return backend->chain(on_stream, &chain);
    int status = 0;
    if (!is_alone())
        status = backend->chain(on_stream, &chain);
    else if (chain.steps[0].wanted)
        status = op != DT_CHAIN_CONVERT ? backend->elementwise(on_stream, op, &first)
                 : first.operands[1].scalar ? backend->fill(on_stream, &first)
                                            : backend->copy(on_stream, &first);
    return status < 0 ? fail_as_chain() : status;
}

/* Runs the queue, without Python code, and leaves it empty. Returns as dt_backend.chain. */
static int run_queue(void)
{
    const bool yields = dt_gil_yield(false);
    const int count = naccesses, status = run_chain();
    dt_fusion_bound = 1;
    naccesses = chain.nsteps = chain.nlayouts = chain.nends = 0;
    apart = 0;
    for (int k = 0; k < count; k++)
        dt_storage_release(accesses[k].storage);
    dt_gil_yield(yields);
    return status;
}

/* The listener may run Python code, which may collect. */
static int run_and_report(const char *why)
{
    const dt_chain ran = chain;
    int at[DT_CHAIN_STEPS];
    memcpy(at, lines, sizeof at);
    const bool on_gpu = !dt_device_is_host(on_device);
    dt_fusion_report report = {&ran, at, why, false, dt_chain_bytes(&chain), apart};
    const int status = run_queue();
    report.compiled = on_gpu && ran.nsteps > 1 && !dt_chain_wanted_end(&ran) && !status;
    listening(&report);
    return status;
}

/* Fails as an earlier run did, if its call could not. */
static int fail_late(void)
{
    if (!failure.code)
        return 0;
    *dt_error_slot() = failure;
    failure.code = DT_ERROR_NONE;
    return -1;
}

/* The line of the program that a run is of: that of its last step. */
static int last_line(void)
{
    return lines[chain.nsteps - 1];
}

int dt_fusion_run(const char *why)
{
    if (!chain.nsteps)
        return fail_late();
    dt_observed observed;
    finish();
    const bool alone = is_alone();
    const dt_chain described = chain;
    const dt_activity activity = {
        .kind = DT_ACTIVITY_KERNEL,
        .name = alone ? dt_chain_step_name(chain.steps) : "fused",
        .device = on_device,
        .stream = on_stream.handle,
        .bytes = dt_chain_bytes(&chain),
        .flops = (double)chain.numel * (chain.nsteps + chain.nends),
        .dtype = chain.steps[chain.nsteps - 1].result,
        .call = &described,
        .work = DT_WORK_CHAIN};
    const int outer = dt_activity_line_is(last_line());
    int status = 0;
    /* Its steps were allowed. An observer may run Python code, which may run the queue. */
    if (dt_activity_begin(&observed, &activity))
        dt_error_clear();
    if (chain.nsteps) {
        finish();
        status = listening ? run_and_report(why) : run_queue();
    }
    const bool frequent = compiling && status == runs_before_compiling;
    status = dt_activity_end(&observed, &activity, status < 0 ? status : 0);
    dt_activity_line_is(outer);
    if (frequent)
        compiling(activity.device, &described);
    return status ? status : fail_late();
}

int dt_fusion_order(const char *why)
{
    return chain.nsteps && !dt_device_is_host(on_device) ? dt_fusion_run(why)
                                                         : fail_late();
}

/* For calls that cannot fail. */
static void run_quietly(const char *why)
{
    if (dt_fusion_run(why)) {
        failure = *dt_error_slot();
        dt_error_clear();
    }
}

void dt_fusion_settle(const dt_storage *storage)
{
    if (touches(storage, true))
        run_quietly("memory is read or written");
}

void dt_fusion_listen(void (*listener)(const dt_fusion_report *report))
{
    run_quietly("end");
    listening = listener;
}

void dt_fusion_compile(int runs,
                       void (*compiler)(dt_device device, const dt_chain *chain))
{
    runs_before_compiling = runs;
    compiling = compiler;
}

/* --- collecting --- */

/* Whether a chain can have the operation as a step. */
static bool is_step(dt_elementwise_op op, const dt_plan *plan, dt_device_type type)
{
    if (!wanted || !dt_plan_is_dense(plan, &plan->operands[0]))
        return false;
    for (int i = 0; i < plan->noperands; i++)
        if (is_seen_outside(&plan->operands[i]) ||
            dt_dtype_is_complex(plan->operands[i].dtype))
            return false;
    return dt_fusion_real[type]->chain_step(op, plan);
}

/* Whether the queue is of the stream. */
static bool is_here(dt_device_type type, dt_stream on)
{
    return dt_device_equal(dt_device_make(type, on.device), on_device) &&
           on.handle == on_stream.handle;
}

/* Who listens or observes wants to know it, and a launch that fails. */
static int line_now(dt_device_type type)
{
    const bool asked =
        listening || type != DT_CPU || __atomic_load_n(&dt_observers, __ATOMIC_RELAXED);
    return wanted && asked ? dt_activity_line() : -1;
}

static void set_input(dt_chain_input *input, const dt_plan *plan, const dt_operand *o)
{
    input->step = input->layout = -1;
    input->data = NULL;
    input->dtype = o->dtype;
    if (o->scalar) {
        input->number = o->value;
    } else if (dt_device_is_host(on_device) && dt_plan_is_one(plan, o)) {
        memcpy(&input->number, o->data, dt_dtype_size(o->dtype));
    } else {
        const bool dense = dt_plan_is_dense(plan, o);
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

/* Why the chain has to run before the operation; NULL: it need not. */
static const char *why_run(const dt_plan *plan, bool takes, bool same, bool host)
{
    if (!same)
        return takes || !host ? "another device or stream" : NULL;
    for (int i = 0; i < plan->noperands; i++)
        if (conflicts(plan, i) || (!takes && !plan->operands[i].scalar &&
                                   touches(plan->operands[i].storage, !i)))
            return takes ? "memory is read or written otherwise"
                         : "an operation that is not fused";
    if (!takes)
        return NULL;
    if (plan->numel != chain.numel)
        return "another number of elements";
    if (chain.nsteps == DT_CHAIN_STEPS)
        return "the chain is full";
    return chain.nlayouts + DT_MAX_INPUTS > DT_CHAIN_LAYOUTS ? "too many broadcasts"
                                                             : NULL;
}

/* Adds the operation to the chain; or runs the chain if the operation depends on it, and
 * the caller runs the operation. */
dt_fusion_fate dt_fusion_collect(dt_device_type type, dt_stream on,
                                 dt_elementwise_op op, const dt_plan *plan)
{
    if (!wanted && !chain.nsteps)
        return fail_late() ? DT_FUSION_FAILS : DT_FUSION_RUNS;
    const dt_device here = dt_device_make(type, on.device);
    const bool takes = is_step(op, plan, type), host = dt_device_is_host(here);
    const int line = takes ? line_now(type) : -1; /* before all else */
    if (chain.nsteps) {
        const char *why = why_run(plan, takes, is_here(type, on), host);
        if (why && dt_fusion_run(why))
            return DT_FUSION_FAILS;
    }
    if (!takes)
        return DT_FUSION_RUNS;
    if (!chain.nsteps) {
        on_device = here;
        on_stream = on;
        if (!host)
            first = *plan;
    }
    append(op, plan, line);
    return DT_FUSION_WAITS;
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
        !dt_fusion_real[(int)on_device.type]->chain_end ||
        !dt_fusion_real[(int)on_device.type]->chain_end(&chain, end))
        return false;
    if (may_wait(end, operands, storages, count))
        return true;
    free(end->partials);
    return false;
}

/* Adds an end that takes `row` elements together to the chain; or runs the chain, and the
 * caller runs the operation. */
static dt_fusion_fate collect_end(dt_chain_end *end, int64_t row, int count,
                                  void *const *operands, dt_storage *const *storages)
{
    if (!joins(end, row, count, operands, storages)) {
        const char *why =
            end->work == DT_WORK_nn ? "an operation on rows" : "a reduction";
        return dt_fusion_run(why) ? DT_FUSION_FAILS : DT_FUSION_RUNS;
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
        apart += dt_chain_end_bytes(end) +
                 chain.numel * (int64_t)dt_dtype_size(chain.steps[end->step].result);
    drop_dead();
    return DT_FUSION_WAITS;
}

/* For reduce, and moments with their mean. */
dt_fusion_fate dt_fusion_collect_reduction(dt_device_type type, dt_stream on,
                                           dt_work work, dt_reduce_op op, void *mean,
                                           const dt_reduction *c)
{
    if (!chain.nsteps || on_device.type != (int)type)
        return fail_late() ? DT_FUSION_FAILS : DT_FUSION_RUNS;
    dt_chain_end end = {.work = work, .op = op, .mean = mean, .reduction = *c};
    end.line = line_now(type); /* it may run Python code, which may run the queue */
    void *const operands[] = {(void *)(uintptr_t)c->input, c->output, mean};
    end.step =
        is_here(type, on) ? step_of(c->storages[0], c->input, c->input_dtype) : -1;
    return collect_end(&end, end.step < 0 ? 0 : row_of(c), 3, operands, c->storages);
}

dt_fusion_fate dt_fusion_collect_rows(dt_device_type type, dt_stream on,
                                      const dt_nn_call *c)
{
    if (!chain.nsteps || on_device.type != (int)type)
        return fail_late() ? DT_FUSION_FAILS : DT_FUSION_RUNS;
    dt_chain_end end = {.work = DT_WORK_nn, .step = -1, .rows = *c};
    end.line = line_now(type);
    if (is_here(type, on) && c->outer * c->n == chain.numel)
        for (int k = 0; k < DT_NN_OPERANDS && end.step < 0; k++) {
            if (c->operands[k])
                end.step = step_of(c->storages[k], c->operands[k], c->stored);
            end.operand = k;
        }
    return collect_end(&end, end.step < 0 ? 0 : c->n, DT_NN_OPERANDS, c->operands,
                       c->storages);
}

/* A tensor that is filled is often new, and begins no chain. */
dt_fusion_fate dt_fusion_collect_fill(dt_device_type type, dt_stream on,
                                      const dt_plan *c)
{
    if (chain.nsteps && c->numel == chain.numel && on_device.type == (int)type)
        return dt_fusion_collect(type, on, DT_CHAIN_CONVERT, c);
    const bool runs = chain.nsteps && touches(c->operands[0].storage, true);
    return (runs ? dt_fusion_run("fill") : fail_late()) ? DT_FUSION_FAILS
                                                        : DT_FUSION_RUNS;
}

int dt_fusion_before(int type, const char *why)
{
    return on_device.type == type ? dt_fusion_run(why) : fail_late();
}

/* --- blocks --- */

void dt_fusion_begin(void)
{
    dt_fusion_install();
    dt_fusion_blocks++;
    wanted++;
}

int dt_fusion_end(void)
{
    dt_fusion_blocks--;
    return --wanted ? 0 : dt_fusion_run("the end of the block");
}

bool dt_fusion_asked(void)
{
    return wanted;
}
