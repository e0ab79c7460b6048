/* The records of all operations, and what is prepared of each at its first call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/grad.h"
#include "base/lock.h"

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
