#include "autograd/dispatch.h"

#include <string.h>

#include "autograd/autocast.h"
#include "autograd/op_node.h"
#include "autograd/record.h"

static int compare_devices(const dt_call *c, const dt_op_info *info)
{
    int first = -1;
    for (int i = 0; i < info->schema.count; i++) {
        const dt_tensor *t = c->args[i].tensor;
        if (info->schema.parameters[i].type != DT_PARAM_TENSOR || !t ||
            i == info->schema.out)
            continue;
        if (first < 0)
            first = i;
        else if (dt_check_same_device(c->name, info->schema.parameters[first].name,
                                      c->args[first].tensor,
                                      info->schema.parameters[i].name, t) < 0)
            return -1;
    }
    return 0;
}

static inline int check_devices(const dt_call *c, const dt_op_info *info)
{
    bool one = info->ntensors < 2 || c->op->flags & DT_ANY_DEVICE;
    return one ? 0 : compare_devices(c, info);
}

static void inputs_of(dt_op_inputs *in, const dt_call *c, const dt_op_info *info)
{
    in->count = 0;
    in->items = in->few;
    for (int i = 0; i < info->schema.count; i++) {
        if (info->input[i] < 0)
            continue;
        if (info->schema.parameters[i].type == DT_PARAM_TENSORS) {
            /* No operation has another input beside a list of inputs. */
            in->items = c->args[i].tensors;
            in->count = c->args[i].count;
            return;
        }
        in->few[in->count++] = c->args[i].tensor;
    }
}

/* Whether a gradient is wanted for an input. */
static bool is_recorded(const dt_op_inputs *in)
{
    for (int i = 0; i < in->count; i++)
        if (in->items[i] && dt_recording(in->items[i]))
            return true;
    return false;
}

/* Attaches a node where an input wants a gradient. The list of inputs is large, and stays
 * out of the frames of calls that need none. */
static __attribute__((noinline)) int record_inputs(dt_call *c, const dt_op_info *info)
{
    const dt_tensor *x = c->args[info->first].tensor;
    if (info->ninputs != 1 || !x || dt_recording(x)) {
        dt_op_inputs in;
        inputs_of(&in, c, info);
        if (is_recorded(&in) && dt_dtype_is_differentiable((dt_dtype)c->out[0]->dtype))
            return dt_op_node_attach(c, info, &in);
    }
    return x && (c->op->flags & DT_VIEW) ? dt_variable_follow(c->out[0], x) : 0;
}

static inline int record(dt_call *c, const dt_op_info *info)
{
    const dt_tensor *x = c->args[info->first].tensor;
    bool simple = info->ninputs == 1 && x && !dt_recording(x);
    return simple && !(c->op->flags & DT_VIEW) ? 0 : record_inputs(c, info);
}

/* Runs a call that writes into its first input, out[0]. The node's edge to the old
 * contents is made before. */
static __attribute__((noinline)) int write_in_place(dt_call *c, const dt_op_info *info)
{
    dt_tensor *target = c->out[0];
    dt_node *node = NULL;
    dt_op_inputs in;
    inputs_of(&in, c, info);
    bool recording = is_recorded(&in);
    if ((target->history || recording) && dt_in_place_check(c->name, target) < 0)
        return -1;
    if (recording && dt_dtype_is_differentiable((dt_dtype)target->dtype) &&
        !(node = dt_op_node_make(c, info, &in)))
        return -1;
    if (c->op->forward(c) < 0) {
        dt_node_release(node);
        return -1;
    }
    if (!node)
        return 0;
    if (dt_op_node_save_outputs(c, info, node) < 0) {
        dt_node_release(node);
        return -1;
    }
    return dt_in_place_steal(target, node);
}

static inline __attribute__((always_inline)) int run_call(dt_call *c,
                                                          const dt_op_info *info)
{
    if (check_devices(c, info) < 0 || c->op->forward(c) < 0)
        return -1;
    return c->op->backward ? record(c, info) : 0;
}

/* A call with several results, a list of them, or results for the backward function. */
static int run_results(dt_call *c, const dt_op_info *info)
{
    dt_tensor kept[DT_MAX_RESULTS];
    c->list = NULL;
    for (int k = 0; k < info->nmade; k++) {
        if (k >= info->nresults)
            c->out[k] = &kept[k];
        if (c->out[k])
            c->out[k]->storage = NULL;
    }
    int status = run_call(c, info);
    if (status < 0 && info->list)
        dt_call_free_list(c);
    for (int k = 0; k < info->nmade; k++) {
        if (c->out[k] && (status < 0 || k >= info->nresults))
            dt_tensor_clear(c->out[k]);
        if (k >= info->nresults)
            c->out[k] = NULL;
    }
    return status;
}

/* Called only where nothing is recorded: otherwise the binding rejects out=. */
static __attribute__((noinline)) void keep_target(dt_call *c, const dt_op_info *info)
{
    dt_op_inputs in;
    inputs_of(&in, c, info);
    if (is_recorded(&in) || dt_recording(c->target))
        c->target = NULL;
}

int dt_dispatch(dt_call *c)
{
    const dt_op_info *info = dt_op_info_of(c->op);
    if (__builtin_expect(!info, 0))
        return -1;
    return c->op->flags & DT_CASTS && __builtin_expect(dt_autocast.on, 0)
               ? dt_autocast_dispatch(c, info)
               : dt_dispatch_as_is(c);
}

int dt_dispatch_as_is(dt_call *c)
{
    const dt_op_info *info = c->op->info;
    if (c->in_place && (c->op->flags & DT_WRITES)) {
        if (check_devices(c, info) < 0)
            return -1;
        return c->op->backward ? write_in_place(c, info) : c->op->forward(c);
    }
    if (c->target)
        keep_target(c, info);
    if (!info->plain)
        return run_results(c, info);
    c->out[0]->storage = NULL;
    if (__builtin_expect(run_call(c, info) == 0, 1))
        return 0;
    dt_tensor_clear(c->out[0]);
    return -1;
}

/* name and node NULL: the operation's. */
static int call_values(dt_op *op, const char *name, const char *node,
                       dt_tensor *const *out, int nout, bool in_place, int count,
                       const dt_value *values)
{
    dt_value all[DT_MAX_PARAMETERS];
    const dt_op_info *info = dt_op_info_of(op);
    if (!info)
        return -1;
    if (count < info->schema.count) {
        memcpy(all, values, (size_t)count * sizeof *values);
        for (int i = count; i < info->schema.count; i++)
            all[i] = info->defaults[i];
        values = all;
    }
    dt_call call = {.op = op,
                    .name = name ? name : info->schema.name,
                    .node = node ? node : op->node,
                    .args = values,
                    .in_place = in_place};
    memcpy(call.out, out, (size_t)nout * sizeof *out);
    return dt_dispatch(&call);
}

int dt_call_values(dt_op *op, dt_tensor *out, int count, const dt_value *values)
{
    out->storage = NULL;
    return call_values(op, NULL, NULL, &out, 1, false, count, values);
}

int dt_call_as(const char *node, dt_op *op, dt_tensor *out, int count,
               const dt_value *values)
{
    out->storage = NULL;
    return call_values(op, NULL, node, &out, 1, false, count, values);
}

int dt_call_into(dt_op *op, const char *name, dt_tensor *target, int count,
                 const dt_value *values)
{
    return call_values(op, name, NULL, &target, 1, true, count, values);
}

int dt_call_overload(dt_op *op, dt_call *c, int count, const dt_value *values)
{
    const dt_op_info *info = dt_op_info_of(op);
    return info ? call_values(op, c->name, NULL, c->out, info->nresults, false, count,
                              values)
                : -1;
}
