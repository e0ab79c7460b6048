/* Long calls of records: they compute on aliases of their operands, and other Python threads
 * run meanwhile. */
#include "python/call.h"

static bool is_operand(const dt_schema *schema, int i)
{
    dt_param_type type = schema->parameters[i].type;
    return type == DT_PARAM_TENSOR || type == DT_PARAM_VALUE;
}

bool dt_call_crosses(const dt_call *c)
{
    const int count = c->op->info->schema.count;
    const dt_tensor *x = c->args[0].tensor;
    for (int i = 1; i < count && x; i++)
        if (is_operand(&c->op->info->schema, i) && c->args[i].tensor &&
            !dt_device_equal(dt_tensor_device(c->args[i].tensor), dt_tensor_device(x)))
            return true;
    return false;
}

int dt_dispatch_long(dt_call *call, dt_value *values, const dt_tensor **items,
                     Py_ssize_t nitems)
{
    const dt_schema *schema = &call->op->info->schema;
    const dt_tensor *target = call->target, *first = values[0].tensor;
    dt_held held;
    if (dt_held_begin(&held, (size_t)(schema->count + 1 + nitems)) < 0)
        return -1;
    for (int i = 0; i < schema->count; i++)
        if (is_operand(schema, i))
            dt_held_add(&held, &values[i].tensor);
    for (Py_ssize_t k = 0; k < nitems; k++)
        dt_held_add(&held, &items[k]);
    dt_held_add(&held, &target);
    call->target = (dt_tensor *)target;
    dt_tensor *out = call->out[0];
    if (out && out == first) /* it is written in place */
        call->out[0] = (dt_tensor *)values[0].tensor;
    int status = dt_dispatch(call);
    dt_held_end(&held);
    call->target = (dt_tensor *)target;
    call->out[0] = out;
    return status;
}
