/* The node of an operation with a record: its call, and the tensors that the derivative
 * needs. */
#include "autograd/op_node.h"

#include <stdio.h>
#include <string.h>

#include "autograd/grad.h"
#include "autograd/record.h"

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

/* Result k by the schema: of "(values, indices)". */
static void result_name(const dt_op_info *info, int k, char *text, size_t size)
{
    const char *names = info->schema.results;
    if (k >= info->nresults || !names || *names != '(') {
        snprintf(text, size, info->nmade > 1 ? "result%d" : "result", k);
        return;
    }
    for (names++; k; k--)
        names = strchr(names, ',') + 1;
    names += strspn(names, " ");
    snprintf(text, size, "%.*s", (int)strcspn(names, ",)"), names);
}

static void saved_name(const dt_node *node, int i, char *text, size_t size)
{
    const op_data *data = node->data;
    const dt_op_info *info = data->op->info;
    for (int p = 0; p < info->schema.count; p++) {
        if (!(data->op->saves & DT_SAVES_INPUT(p)))
            continue;
        const dt_parameter *parameter = &info->schema.parameters[p];
        int count = parameter->type == DT_PARAM_TENSORS ? data->args[p].count : 1;
        if (i < count) {
            bool self = !strcmp(parameter->name, "input");
            snprintf(text, size, "%s", self ? "self" : parameter->name);
            return;
        }
        i -= count;
    }
    for (int k = 0; k < info->nmade; k++)
        if (data->op->saves & DT_SAVES_OUTPUT(k) && !i--) {
            result_name(info, k, text, size);
            return;
        }
    *text = 0;
}
const dt_node_type dt_op_node = {op_apply, NULL, saved_name};

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

dt_node *dt_op_node_make(dt_call *c, const dt_op_info *info, const dt_op_inputs *in)
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
                if (dt_node_save(node, s++, c->args[i].tensors[k], -1) < 0)
                    goto fail;
            continue;
        }
        if (c->args[i].tensor && needs_input(op, info, node, i) &&
            dt_node_save(node, s, c->args[i].tensor, -1) < 0)
            goto fail;
        s++;
    }
    return node;
fail:
    dt_node_release(node);
    return NULL;
}

int dt_op_node_save_outputs(dt_call *c, const dt_op_info *info, dt_node *node)
{
    unsigned saves = c->op->saves;
    int s = __builtin_popcount(saves & (DT_SAVES_OUTPUT(0) - 1));
    for (int k = 0; k < info->nmade; k++) {
        const dt_tensor *out = c->out[k];
        if (!(saves & DT_SAVES_OUTPUT(k)))
            continue;
        bool result = k < info->nresults && out && out->storage &&
                      dt_dtype_is_differentiable((dt_dtype)out->dtype);
        if (out && out->storage && dt_node_save(node, s, out, result ? k : -1) < 0)
            return -1;
        s++;
    }
    return 0;
}

int dt_op_node_attach(dt_call *c, const dt_op_info *info, const dt_op_inputs *in)
{
    dt_node *node = dt_op_node_make(c, info, in);
    if (!node)
        return -1;
    int status = 0;
    for (int k = 0; k < info->nresults && !status; k++) {
        dt_tensor *out = c->out[k];
        if (!out || !out->storage || !dt_dtype_is_differentiable((dt_dtype)out->dtype))
            continue;
        status = dt_record_result(out, node, k);
    }
    const dt_tensor *x = c->args[info->first].tensor;
    dt_tensor *view = c->op->flags & DT_VIEW ? c->out[0] : NULL;
    if (!status && x && view && view->storage == x->storage)
        status = dt_variable_set_view(view, x);
    /* After the results have their metadata, which hooks see. */
    if (!status)
        status = dt_op_node_save_outputs(c, info, node);
    dt_node_release(node);
    return status;
}

const int64_t *dt_grad_item(const dt_grad *g, int k, int *ndim)
{
    const op_data *data = g->node->data;
    const int64_t *item = data->items + (int64_t)k * (DT_MAX_NDIM + 1);
    *ndim = (int)item[0];
    return item + 1;
}
