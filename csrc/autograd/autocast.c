#include "autograd/autocast.h"

#include <stdlib.h>

#include "autograd/autocast_cache.h"
#include "autograd/dispatch.h"
#include "autograd/recorded.h"

_Thread_local dt_autocast_state dt_autocast = {
    .of = {[DT_CPU] = {false, DT_BFLOAT16},
           {false, DT_FLOAT16},
           {false, DT_FLOAT16},
           {false, DT_FLOAT16}},
    .cache = true,
};

void dt_autocast_set(int device_type, bool enabled, dt_dtype dtype)
{
    dt_autocast.of[device_type].enabled = enabled;
    dt_autocast.of[device_type].dtype = dtype;
    dt_autocast.on = false;
    for (int type = 0; type < DT_MAX_DEVICE_TYPES; type++)
        dt_autocast.on |= dt_autocast.of[type].enabled;
}

void dt_autocast_enter(void)
{
    dt_autocast.blocks++;
}

void dt_autocast_leave(void)
{
    if (--dt_autocast.blocks <= 0)
        dt_autocast_cache_clear();
}

/* Whether autocast converts the tensor: it leaves float64 alone. */
static bool is_cast(const dt_tensor *t, int device_type)
{
    return t && (int)dt_tensor_device(t).type == device_type &&
           (t->dtype == DT_FLOAT32 || t->dtype == DT_FLOAT16 ||
            t->dtype == DT_BFLOAT16);
}

int dt_autocast_cast(dt_tensor *made, const dt_tensor *t, dt_dtype dtype)
{
    bool keeps =
        dt_autocast.cache && dt_autocast.blocks > 0 && dt_autocast_cache_takes(t);
    if (keeps && dt_autocast_cache_find(made, t, dtype))
        return 0;
    if (dt_recorded_to_format(made, t, dtype, dt_tensor_device(t), DT_FORMAT_PRESERVE,
                              false) < 0)
        return -1;
    return keeps ? dt_autocast_cache_keep(t, made) : 0;
}

/* The type that flags ask for on a type of devices, whatever the tensors' types are; or
 * -1. */
static int type_of(unsigned flags, int device_type)
{
    bool gpu = device_type != DT_CPU;
    if (flags & (DT_CASTS_LOWER | (gpu ? DT_CASTS_LOWER_ON_GPU : 0)))
        return (int)dt_autocast.of[device_type].dtype;
    unsigned here = gpu ? DT_CASTS_FLOAT_ON_GPU : DT_CASTS_FLOAT_ON_CPU;
    return flags & (DT_CASTS_FLOAT | here) ? DT_FLOAT32 : -1;
}

const dt_tensor *dt_autocast_as(dt_tensor *made, const dt_tensor *t, unsigned flags)
{
    int type = (int)dt_tensor_device(t).type;
    made->storage = NULL;
    if (!dt_autocast.on || !dt_autocast.of[type].enabled || !is_cast(t, type))
        return t;
    int dtype = type_of(flags, type);
    if (dtype < 0 || t->dtype == dtype)
        return t;
    return dt_autocast_cast(made, t, (dt_dtype)dtype) < 0 ? NULL : made;
}

/* Visits the tensors of a call. Returns false where visit does. */
static bool each_tensor(const dt_call *c, const dt_op_info *info,
                        bool (*visit)(const dt_tensor *t, void *data), void *data)
{
    for (int i = 0; i < info->schema.count; i++) {
        dt_param_type type = info->schema.parameters[i].type;
        const dt_value *v = &c->args[i];
        if (i == info->schema.out)
            continue;
        if (type == DT_PARAM_TENSOR || type == DT_PARAM_VALUE) {
            if (v->tensor && !visit(v->tensor, data))
                return false;
        } else if (type == DT_PARAM_TENSORS)
            for (int k = 0; k < v->count; k++)
                if (!visit(v->tensors[k], data))
                    return false;
    }
    return true;
}

/* The dtypes and devices of a call's tensors. */
typedef struct survey {
    int device_type; /* a GPU's, if one is there */
    int count;       /* of all tensors */
    int casts;       /* of tensors that autocast converts */
    bool types[DT_NDTYPES];
} survey;

static bool find_device(const dt_tensor *t, void *data)
{
    survey *s = data;
    if (!dt_device_is_cpu(dt_tensor_device(t)))
        s->device_type = (int)dt_tensor_device(t).type;
    return true;
}

static bool find_types(const dt_tensor *t, void *data)
{
    survey *s = data;
    s->count++;
    if (is_cast(t, s->device_type)) {
        s->casts++;
        s->types[t->dtype] = true;
    }
    return true;
}

/* The type that the call's tensors are to have, or -1 where they stay as they are. */
static int target_of(const dt_call *c, const dt_op_info *info, const survey *s)
{
    unsigned flags = c->op->flags;
    bool gpu = s->device_type != DT_CPU;
    int type = type_of(flags, s->device_type);
    if (type == DT_FLOAT32) {
        /* An argument dtype says more. */
        for (int i = 0; i < info->schema.count; i++)
            if (info->schema.parameters[i].type == DT_PARAM_DTYPE && c->args[i].given)
                return -1;
    }
    if (type >= 0)
        return type;
    if (!(flags &
          (DT_CASTS_MIXED | (gpu ? DT_CASTS_WIDEST_ON_GPU : DT_CASTS_WIDEST_ON_CPU))))
        return -1;
    bool mixed =
        s->types[DT_FLOAT32] + s->types[DT_FLOAT16] + s->types[DT_BFLOAT16] > 1;
    return mixed ? DT_FLOAT32 : -1;
}

/* The casts of a call's tensors, to one type. */
typedef struct casting {
    int device_type;
    dt_dtype dtype;
    int made;
    dt_tensor *casts;
} casting;

static int cast_one(casting *to, const dt_tensor **t)
{
    if (!is_cast(*t, to->device_type) || (*t)->dtype == to->dtype)
        return 0;
    dt_tensor *copy = &to->casts[to->made];
    if (dt_autocast_cast(copy, *t, to->dtype) < 0)
        return -1;
    to->made++;
    *t = copy;
    return 0;
}

static int cast_all(casting *to, dt_value *args, const dt_op_info *info,
                    const dt_tensor **items)
{
    for (int i = 0; i < info->schema.count; i++) {
        dt_param_type type = info->schema.parameters[i].type;
        if (i == info->schema.out)
            continue;
        if (type == DT_PARAM_TENSOR || type == DT_PARAM_VALUE) {
            if (args[i].tensor && cast_one(to, &args[i].tensor) < 0)
                return -1;
        } else if (type == DT_PARAM_TENSORS && args[i].count > 0) {
            for (int k = 0; k < args[i].count; k++) {
                items[k] = args[i].tensors[k];
                if (cast_one(to, &items[k]) < 0)
                    return -1;
            }
            args[i].tensors = items;
            items += args[i].count;
        }
    }
    return 0;
}

/* Gives a result the type of the call's first tensor again. */
static int narrow_result(dt_call *c, dt_dtype dtype)
{
    DT_LOCAL(wide);
    dt_tensor_move(&wide, c->out[0]);
    return dt_autocast_cast(c->out[0], &wide, dtype);
}

int dt_autocast_dispatch(dt_call *c, const dt_op_info *info)
{
    survey s = {.device_type = DT_CPU};
    int dtype = -1;
    each_tensor(c, info, find_device, &s);
    if (dt_autocast.of[s.device_type].enabled && !c->in_place && !c->target) {
        each_tensor(c, info, find_types, &s);
        dtype = s.casts ? target_of(c, info, &s) : -1;
    }
    if (dtype < 0)
        return dt_dispatch_as_is(c);
    const dt_tensor *first = c->args[info->first].tensor;
    dt_dtype given = first ? (dt_dtype)first->dtype : DT_FLOAT32;
    bool narrows = c->op->flags & DT_CASTS_MIXED && dtype == DT_FLOAT32 &&
                   given != DT_FLOAT32 &&
                   !(c->op->flags & DT_CASTS_FLOAT_ON_GPU && s.device_type != DT_CPU);
    dt_value args[DT_MAX_PARAMETERS];
    for (int i = 0; i < info->schema.count; i++)
        args[i] = c->args[i];
    casting to = {s.device_type, (dt_dtype)dtype, 0, NULL};
    /* The copies, and the lists that name them. */
    to.casts = malloc((size_t)s.casts * sizeof *to.casts +
                      (size_t)s.count * sizeof(dt_tensor *));
    if (!to.casts)
        return dt_fail(DT_ERROR_HOST_MEMORY, "%s: no memory left for its arguments",
                       c->name);
    const dt_tensor **items = (const dt_tensor **)(to.casts + s.casts);
    dt_call call = *c;
    call.args = args;
    bool on = dt_autocast_pause();
    int status = cast_all(&to, args, info, items);
    if (!status)
        status = dt_dispatch_as_is(&call);
    if (!status) {
        c->list = call.list;
        c->list_count = call.list_count;
        if (narrows)
            status = narrow_result(c, given);
    }
    dt_autocast_resume(on);
    for (int i = 0; i < to.made; i++)
        dt_tensor_clear(&to.casts[i]);
    free(to.casts);
    return status;
}
