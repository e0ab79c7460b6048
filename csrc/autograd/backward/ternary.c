/* The rows of ops/ternary.def with their derivatives. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"

enum { USES_A = 1, USES_B = 2, USES_C = 4 };

#define FLAGS_OF_G(e)   0
#define FLAGS_OF_B(e)   USES_B
#define FLAGS_OF_C(e)   USES_C
#define FLAGS_OF_AB(e)  USES_A | USES_B
#define FLAGS_OF_BC(e)  USES_B | USES_C
#define FLAGS_OF_ABC(e) USES_A | USES_B | USES_C
#define CALLS_OF_G(e)   e
#define CALLS_OF_B(e)   e
#define CALLS_OF_C(e)   e
#define CALLS_OF_AB(e)  e
#define CALLS_OF_BC(e)  e
#define CALLS_OF_ABC(e) e

/* What the derivative for each input needs. */
static const unsigned char flags[DT_NTERNARY][3] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc)                        \
    {FLAGS_##da, FLAGS_##db, FLAGS_##dc},
#include "ops/ternary.def"
#undef TERNARY
};

#define CALL(name, letter, expression)                                                 \
    static dt_arg name##_calls_##letter(dt_scope *scope, dt_arg G, dt_arg A, dt_arg B, \
                                        dt_arg C)                                      \
    {                                                                                  \
        (void)scope, (void)G, (void)A, (void)B, (void)C;                               \
        return expression;                                                             \
    }
#define TERNARY(name, class, low, high, value, da, db, dc, doc)                        \
    CALL(name, a, CALLS_##da) CALL(name, b, CALLS_##db) CALL(name, c, CALLS_##dc)
#include "ops/ternary.def"
#undef TERNARY

typedef dt_arg (*calls_fn)(dt_scope *, dt_arg, dt_arg, dt_arg, dt_arg);
static const calls_fn calls[DT_NTERNARY][3] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc)                        \
    {name##_calls_a, name##_calls_b, name##_calls_c},
#include "ops/ternary.def"
#undef TERNARY
};

typedef struct ternary_data {
    dt_ternary_op op;
    bool is_tensor[3];
    dt_scalar scalars[3];
} ternary_data;

static int needs_of(const dt_node *node, dt_ternary_op op)
{
    int needs = 0;
    for (int i = 0; i < 3; i++)
        if (dt_node_wants(node, i))
            needs |= flags[op][i];
    return needs;
}

static int apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                 dt_tensor **into)
{
    const ternary_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    int needs = needs_of(node, data->op);
    dt_arg args[3];
    for (int i = 0; i < 3; i++) {
        args[i] = dt_arg_scalar(data->scalars[i]);
        if (!(needs & (1 << i)) || !data->is_tensor[i])
            continue;
        dt_tensor *kept = dt_node_saved(node, i, scope);
        if (!kept)
            return -1;
        args[i] = dt_arg_tensor(kept);
    }
    for (int i = 0; i < 3; i++) {
        if (!dt_node_wants(node, i))
            continue;
        dt_arg value =
            calls[data->op][i](scope, dt_arg_tensor(g), args[0], args[1], args[2]);
        into[i] = dt_scope_tensor(scope, value, g);
        if (!into[i])
            return -1;
    }
    return 0;
}
static const dt_node_type type = {apply, NULL};

/* target: the tensor that is about to be overwritten, or NULL. */
static dt_node *node_of(dt_ternary_op op, const char *name, const dt_arg *args,
                        const dt_tensor *target)
{
    const dt_tensor *inputs[] = {args[0].tensor, args[1].tensor, args[2].tensor};
    dt_node *node = dt_record_node(&type, name, 3, inputs, 3, 1, sizeof(ternary_data));
    if (!node)
        return NULL;
    ternary_data *data = node->data;
    data->op = op;
    int needs = needs_of(node, op);
    for (int i = 0; i < 3; i++) {
        const dt_tensor *t = inputs[i];
        data->is_tensor[i] = t != NULL;
        data->scalars[i] = t ? dt_scalar_float(0) : args[i].scalar;
        if (!t || !(needs & (1 << i)))
            continue;
        if (!target || target->storage != t->storage || target->offset != t->offset) {
            dt_node_save(node, i, t, -1);
        } else if (dt_node_save_copy(node, i, t) < 0) {
            dt_node_release(node);
            return NULL;
        }
    }
    return node;
}

static bool is_recorded(const dt_arg *args, dt_dtype result)
{
    return dt_dtype_is_float(result) &&
           (dt_recording_arg(args[0]) || dt_recording_arg(args[1]) ||
            dt_recording_arg(args[2]));
}

int dt_recorded_ternary(dt_ternary_op op, const char *name, dt_tensor *out,
                        const dt_arg *args)
{
    if (dt_ternary(op, out, args[0], args[1], args[2]) < 0)
        return -1;
    if (!is_recorded(args, (dt_dtype)out->dtype))
        return 0;
    return dt_record_steal(out, node_of(op, name, args, NULL));
}

int dt_recorded_ternary_into(dt_ternary_op op, const char *name, dt_tensor *target,
                             const dt_arg *args)
{
    if (dt_in_place_check(dt_ternary_names[op], target) < 0)
        return -1;
    if (!is_recorded(args, (dt_dtype)target->dtype) && !dt_recording(target))
        return dt_ternary_into(op, target, args[0], args[1], args[2]);
    dt_node *node = node_of(op, name, args, target);
    if (!node || dt_ternary_into(op, target, args[0], args[1], args[2]) < 0) {
        dt_node_release(node);
        return -1;
    }
    return dt_in_place_steal(target, node);
}
