#include "autograd/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autocast.h"
#include "autograd/recorded.h"
#include "base/lock.h"
#include "tensor/ops/ops.h"

/* --- the table --- */

#define NOT_DIFFERENTIABLE
#define COMPOSITE
#define GRADIENT(backward, saves, node) int dt_##backward##_backward(dt_grad *);
#define OP(id, flags, schema, forward, derivative, doc, example, prints)               \
    int dt_##forward##_forward(dt_call *);                                             \
    derivative
#include "ops/functions/all.def"
#undef OP
#undef NOT_DIFFERENTIABLE
#undef COMPOSITE
#undef GRADIENT

#define NOT_DIFFERENTIABLE              NULL, 0, NULL
#define COMPOSITE                       NULL, DT_SAVES_NOTHING, NULL
#define GRADIENT(backward, saves, node) dt_##backward##_backward, saves, node
#define OP(id, flags, schema, forward, ...)                                            \
    dt_op dt_op_##id = {schema, flags, dt_##forward##_forward, __VA_ARGS__, NULL};
#include "ops/functions/all.def"
#undef OP

/* The number of names in "(values, indices)"; 1 for other results. */
static int count_results(const char *results)
{
    int count = 1;
    if (results && *results == '(')
        for (const char *c = results; *c && *c != ')'; c++)
            count += *c == ',';
    return count;
}

static bool is_input(const dt_op_info *info, int i)
{
    dt_param_type type = info->schema.parameters[i].type;
    return i != info->schema.out &&
           (type == DT_PARAM_TENSOR || type == DT_PARAM_VALUE ||
            type == DT_PARAM_TENSORS);
}

const dt_op_info *dt_op_prepare(dt_op *op)
{
    const char *end;
    dt_lock(DT_LOCK_OPS);
    dt_op_info *info = op->info;
    if (!info) {
        info = calloc(1, sizeof *info);
        if (!info) {
            dt_fail(DT_ERROR_HOST_MEMORY,
                    "there is no memory to call this for the first time; delete some "
                    "tensors first");
        } else if (dt_schema_parse(&info->schema, op->schema, DT_MAX_PARAMETERS, &end) <
                   0) {
            free(info);
            info = NULL;
        }
    }
    if (info && !op->info) {
        for (int i = info->schema.count - 1; i >= 0; i--) {
            info->ntensors +=
                is_input(info, i) && info->schema.parameters[i].type == DT_PARAM_TENSOR;
            if (is_input(info, i) && !(op->saves & DT_NO_GRADIENT(i)))
                info->first = i;
        }
        for (int i = 0; i < info->schema.count; i++) {
            const dt_parameter *p = &info->schema.parameters[i];
            info->defaults[i] = dt_value_default(p);
            info->optional[i] = !p->required && i != info->schema.rest &&
                                p->type != DT_PARAM_DEVICE && p->type != DT_PARAM_ORDER;
            if (!info->optional[i])
                info->nfixed = i + 1;
            bool input = is_input(info, i) && !(op->saves & DT_NO_GRADIENT(i));
            info->input[i] = (signed char)(input ? info->ninputs++ : -1);
        }
        info->factory = -1;
        for (int i = 1; i < info->schema.count; i++)
            if (info->schema.parameters[i].type == DT_PARAM_LAYOUT)
                info->factory = i - 1;
        size_t length = strlen(info->schema.name);
        info->in_place = info->schema.name[length - 1] == '_';
        info->list = info->schema.results &&
                     !strncmp(info->schema.results, "Tensors", sizeof "Tensors" - 1);
        info->nresults = info->nmade =
            info->list ? 0 : count_results(info->schema.results);
        for (int k = info->nresults; k < DT_MAX_RESULTS; k++)
            if (op->saves & DT_SAVES_OUTPUT(k))
                info->nmade = k + 1;
        info->plain = info->nresults == 1 && info->nmade == 1;
        if (op->node) {
            snprintf(info->in_place_node, sizeof info->in_place_node, "%s", op->node);
            info->in_place_node[strlen(info->in_place_node) - 1]++;
        }
        __atomic_store_n(&op->info, info, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_OPS);
    return info;
}

/* --- nodes --- */

/* The call of a node; the ints and texts of its arguments follow. */
typedef struct op_data {
    dt_op *op;
    int64_t *items; /* of a Tensors parameter: ndim and shape of each tensor */
    int item_size;
    dt_value args[];
} op_data;

static int op_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                    dt_tensor **into)
{
    const op_data *data = node->data;
    dt_grad g = {.node = node,
                 .op = data->op,
                 .args = data->args,
                 .scope = scope,
                 .gradients = gradients,
                 .into = into};
    bool wanted = false;
    for (int e = 0; e < node->nedges && !wanted; e++)
        wanted = dt_node_wants(node, e);
    if (!wanted || (node->nresults == 1 && !gradients[0]))
        return 0;
    return data->op->backward(&g) < 0 || scope->failed ? -1 : 0;
}
const dt_node_type dt_op_node = {op_apply, NULL};

/* The tensors of a call that gradients may be wanted for. */
typedef struct inputs {
    int count;
    const dt_tensor *const *items;
    const dt_tensor *few[DT_MAX_PARAMETERS];
} inputs;

static void inputs_of(inputs *in, const dt_call *c, const dt_op_info *info)
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

/* Whether a matrix, or each of a batch, is stored column by column. */
static bool is_column_major(const dt_tensor *t)
{
    int n = t->ndim;
    return n > 1 && !t->contiguous && t->strides[n - 2] == 1 &&
           t->strides[n - 1] >= t->shape[n - 2];
}

static bool is_ints(dt_param_type type)
{
    return dt_param_is_per_dim(type) || type == DT_PARAM_INTS;
}

static size_t ints_of_text(const char *text)
{
    return strlen(text) / sizeof(int64_t) + 1;
}

/* Copies the arguments into the node; ints and texts follow the values. */
static void keep_args(op_data *data, const dt_call *c, const dt_op_info *info)
{
    int64_t *ints = (int64_t *)(void *)&data->args[info->schema.count];
    data->op = c->op;
    for (int i = 0; i < info->schema.count; i++) {
        const dt_parameter *p = &info->schema.parameters[i];
        dt_value *v = &data->args[i];
        *v = c->args[i];
        if (v->tensor && (c->op->flags & DT_BILINEAR))
            v->column_major = is_column_major(v->tensor);
        v->tensor = NULL;
        if (is_ints(p->type) && v->count > 0) {
            memcpy(ints, v->ints, (size_t)v->count * sizeof *ints);
            v->ints = ints;
            ints += v->count;
        } else if (p->type == DT_PARAM_TENSORS) {
            v->tensors = NULL;
            data->items = ints;
            for (int k = 0; k < v->count; k++, ints += DT_MAX_NDIM + 1) {
                const dt_tensor *item = c->args[i].tensors[k];
                ints[0] = item->ndim;
                memcpy(ints + 1, item->shape, (size_t)item->ndim * sizeof *ints);
            }
        } else if (p->type == DT_PARAM_STR && v->text) {
            v->text = memcpy(ints, v->text, strlen(v->text) + 1);
            ints += ints_of_text(v->text);
        }
    }
}

static size_t bytes_of_args(const dt_call *c, const dt_op_info *info)
{
    size_t ints = 0;
    for (int i = 0; i < info->schema.count; i++) {
        dt_param_type type = info->schema.parameters[i].type;
        int count = c->args[i].count > 0 ? c->args[i].count : 0;
        if (is_ints(type))
            ints += (size_t)count;
        else if (type == DT_PARAM_TENSORS)
            ints += (size_t)count * (DT_MAX_NDIM + 1);
        else if (type == DT_PARAM_STR && c->args[i].text)
            ints += ints_of_text(c->args[i].text);
    }
    return sizeof(op_data) + (size_t)info->schema.count * sizeof(dt_value) +
           ints * sizeof(int64_t);
}

/* Whether input i is to be saved: a factor only where another one wants a gradient. */
static bool needs_input(const dt_op *op, const dt_op_info *info, const dt_node *node,
                        int i)
{
    if (!(op->flags & DT_BILINEAR))
        return true;
    for (int k = 0; k < info->schema.count; k++)
        if (k != i && (op->saves & DT_SAVES_INPUT(k)) &&
            dt_node_wants(node, info->input[k]))
            return true;
    return false;
}

/* A node for the call, with the inputs that backward needs. NULL after dt_fail. */
static dt_node *make_node(dt_call *c, const dt_op_info *info, const inputs *in)
{
    const dt_op *op = c->op;
    int nsaved = __builtin_popcount(op->saves & DT_SAVES), s = 0;
    for (int i = 0; i < info->schema.count; i++)
        if (op->saves & DT_SAVES_INPUT(i) &&
            info->schema.parameters[i].type == DT_PARAM_TENSORS)
            nsaved += c->args[i].count - 1;
    dt_node *node = dt_record_node(&dt_op_node, c->node, in->count, in->items, nsaved,
                                   info->nresults, bytes_of_args(c, info));
    if (!node)
        return NULL;
    keep_args(node->data, c, info);
    for (int i = 0; i < info->schema.count; i++) {
        if (!(op->saves & DT_SAVES_INPUT(i)))
            continue;
        if (info->schema.parameters[i].type == DT_PARAM_TENSORS) {
            for (int k = 0; k < c->args[i].count; k++)
                dt_node_save(node, s++, c->args[i].tensors[k], -1);
            continue;
        }
        if (c->args[i].tensor && needs_input(op, info, node, i))
            dt_node_save(node, s, c->args[i].tensor, -1);
        s++;
    }
    return node;
}

static void save_outputs(dt_call *c, const dt_op_info *info, dt_node *node)
{
    unsigned saves = c->op->saves;
    int s = __builtin_popcount(saves & (DT_SAVES_OUTPUT(0) - 1));
    for (int k = 0; k < info->nmade; k++) {
        const dt_tensor *out = c->out[k];
        if (!(saves & DT_SAVES_OUTPUT(k)))
            continue;
        bool result = k < info->nresults && out && out->storage &&
                      dt_dtype_is_float((dt_dtype)out->dtype);
        if (out && out->storage)
            dt_node_save(node, s, out, result ? k : -1);
        s++;
    }
}

/* Makes the results those of a new node. */
static int attach(dt_call *c, const dt_op_info *info, const inputs *in)
{
    dt_node *node = make_node(c, info, in);
    if (!node)
        return -1;
    save_outputs(c, info, node);
    int status = 0;
    for (int k = 0; k < info->nresults && !status; k++) {
        dt_tensor *out = c->out[k];
        if (!out || !out->storage || !dt_dtype_is_float((dt_dtype)out->dtype))
            continue;
        dt_node_set_result(node, k, out);
        status = dt_variable_set_made(out, node, k);
    }
    const dt_tensor *x = c->args[info->first].tensor;
    dt_tensor *view = c->op->flags & DT_VIEW ? c->out[0] : NULL;
    if (!status && x && view && view->storage == x->storage)
        status = dt_variable_set_view(view, x);
    dt_node_release(node);
    return status;
}

/* --- calls --- */

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

/* Whether a gradient is wanted for an input. */
static bool is_recorded(const inputs *in)
{
    for (int i = 0; i < in->count; i++)
        if (in->items[i] && dt_recording(in->items[i]))
            return true;
    return false;
}

/* Attaches a node where an input wants a gradient. */
static int record(dt_call *c, const dt_op_info *info)
{
    inputs in;
    const dt_tensor *x = c->args[info->first].tensor;
    if (info->ninputs == 1 && x && !dt_recording(x))
        /* The commonest case, for which no list of the inputs is needed. */
        return c->op->flags & DT_VIEW ? dt_variable_follow(c->out[0], x) : 0;
    inputs_of(&in, c, info);
    if (is_recorded(&in) && dt_dtype_is_float((dt_dtype)c->out[0]->dtype))
        return attach(c, info, &in);
    return x && (c->op->flags & DT_VIEW) ? dt_variable_follow(c->out[0], x) : 0;
}

/* Runs a call that writes into its first input, out[0]. The node's edge to the old
 * contents is made before. */
static int write_in_place(dt_call *c, const dt_op_info *info)
{
    dt_tensor *target = c->out[0];
    dt_node *node = NULL;
    inputs in;
    inputs_of(&in, c, info);
    bool recording = is_recorded(&in);
    if ((target->history || recording) && dt_in_place_check(c->name, target) < 0)
        return -1;
    if (recording && dt_dtype_is_float((dt_dtype)target->dtype) &&
        !(node = make_node(c, info, &in)))
        return -1;
    if (c->op->forward(c) < 0) {
        dt_node_release(node);
        return -1;
    }
    if (!node)
        return 0;
    save_outputs(c, info, node);
    return dt_in_place_steal(target, node);
}

static int run_call(dt_call *c, const dt_op_info *info)
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
    if (c->target) {
        /* The binding rejects out= where a gradient is wanted. */
        inputs in;
        inputs_of(&in, c, info);
        if (is_recorded(&in) || dt_recording(c->target))
            c->target = NULL;
    }
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

/* --- for backward functions --- */

int dt_grad_set(dt_grad *g, int i, dt_arg value)
{
    dt_tensor **into = &g->into[dt_grad_edge(g, i)];
    const dt_tensor *like = g->gradients[0];
    for (int k = 1; !like && k < g->node->nresults; k++)
        like = g->gradients[k];
    *into = dt_scope_tensor(g->scope, value, like);
    return *into ? 0 : -1;
}

int dt_grad_flat(dt_grad *g, unsigned parameters, dt_flat flat)
{
    unsigned edges = 0;
    for (int i = 0; i < g->op->info->schema.count; i++)
        if (parameters >> i & 1)
            edges |= 1U << dt_grad_edge(g, i);
    for (int e = 0; e < g->node->nedges; e++)
        if (g->into[e] &&
            dt_record_flat(g->scope, &g->into[e], g->node, edges, flat) < 0)
            return -1;
    return 0;
}

static int place_of(const dt_grad *g, unsigned bit)
{
    return __builtin_popcount(g->op->saves & (bit - 1));
}

static dt_arg saved(dt_grad *g, int place)
{
    if (!g->node->used && !g->node->saved[place].tensor.storage)
        return dt_arg_scalar(dt_scalar_float(0));
    dt_tensor *t = g->scope->failed ? NULL : dt_node_saved(g->node, place, g->scope);
    if (!t)
        g->scope->failed = true;
    return t ? dt_arg_tensor(t) : dt_arg_scalar(dt_scalar_float(0));
}

dt_arg dt_grad_input(dt_grad *g, int i)
{
    return saved(g, place_of(g, DT_SAVES_INPUT(i)));
}

dt_arg dt_grad_output(dt_grad *g, int i)
{
    return saved(g, place_of(g, DT_SAVES_OUTPUT(i)));
}

dt_value dt_grad_list(dt_grad *g, int i, const dt_tensor **items)
{
    for (int k = 0; k < g->args[i].count; k++)
        items[k] = saved(g, place_of(g, DT_SAVES_INPUT(i)) + k).tensor;
    return dt_value_tensors(g->args[i].count, items);
}

int dt_grad_not_implemented(dt_error_code code, const char *op_name)
{
    return dt_fail(
        code,
        "backward: the derivative of %s is not implemented; leave its result "
        "out of what is differentiated, by detach()",
        op_name);
}

dt_arg dt_grad_zeros(dt_grad *g, int i)
{
    const dt_result *like = dt_grad_like(g, i);
    dt_tensor *out = g->scope->failed ? NULL : dt_scope_slot(g->scope);
    if (!out || dt_full(g->node->name, out, (dt_dtype)g->gradients[0]->dtype,
                        like->ndim, like->shape, dt_tensor_device(g->gradients[0]),
                        dt_scalar_float(0)) < 0) {
        g->scope->failed = true;
        return dt_arg_scalar(dt_scalar_float(0));
    }
    return dt_arg_tensor(out);
}

int dt_grad_scatter(dt_grad *g, int i, dt_index_op op, int64_t dim, dt_arg index)
{
    const dt_result *like = dt_grad_like(g, i);
    dt_arg grad = GRAD, out = dt_grad_zeros(g, i);
    if (g->scope->failed)
        return -1;
    dim = dt_shape_wrap_dim(g->node->name, dim, like->ndim);
    if (grad.tensor->ndim < like->ndim) {
        grad = CALL_OP(unsqueeze, TENSOR(grad), dt_value_int(dim));
        index = CALL_OP(unsqueeze, TENSOR(index), dt_value_int(dim));
    }
    const dt_value args[] = {TENSOR(out), dt_value_int(dim), TENSOR(index),
                             TENSOR(grad)};
    if (g->scope->failed ||
        dt_call_into(op == DT_INDEX_ADD ? DT_RECORD(scatter_add) : DT_RECORD(scatter),
                     NULL, (dt_tensor *)out.tensor, 4, args) < 0)
        return -1;
    return dt_grad_set(g, i, out);
}

const int64_t *dt_grad_item(const dt_grad *g, int k, int *ndim)
{
    const op_data *data = g->node->data;
    const int64_t *item = data->items + (int64_t)k * (DT_MAX_NDIM + 1);
    *ndim = (int)item[0];
    return item + 1;
}

dt_arg dt_scope_call(dt_scope *scope, dt_op *op, int count, const dt_value *values)
{
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    if (out && dt_call_values(op, out, count, values) == 0)
        return dt_arg_tensor(out);
    scope->failed = true;
    return dt_arg_scalar(dt_scalar_float(0));
}
