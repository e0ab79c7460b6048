/* The rows of ops/unary.def and ops/binary.def with their derivatives. */
#include <math.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"
#include "tensor/ops/copy.h"

/* --- what the tables say --- */

enum { USES_A = 1, USES_B = 2, USES_Y = 4, DIFFERENTIABLE = 8, USES_X = USES_A };

#define FLAGS_NONE       0
#define FLAGS_ZEROS      DIFFERENTIABLE
#define FLAGS_OF_G(e)    DIFFERENTIABLE
#define FLAGS_OF_X(e)    DIFFERENTIABLE | USES_X
#define FLAGS_OF_Y(e)    DIFFERENTIABLE | USES_Y
#define FLAGS_CALLS_X(e) DIFFERENTIABLE | USES_X
#define FLAGS_OF_A(e)    DIFFERENTIABLE | USES_A
#define FLAGS_OF_B(e)    DIFFERENTIABLE | USES_B
#define FLAGS_OF_AB(e)   DIFFERENTIABLE | USES_A | USES_B
#define FLAGS_OF_AY(e)   DIFFERENTIABLE | USES_A | USES_Y
#define FLAGS_OF_BY(e)   DIFFERENTIABLE | USES_B | USES_Y
#define FLAGS_OF_ABY(e)  DIFFERENTIABLE | USES_A | USES_B | USES_Y

static const unsigned char unary_flags[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc) FLAGS_##derivative,
#include "ops/unary.def"
#undef UNARY
};
/* For the first input, and for the second. */
static const unsigned char binary_flags[DT_NBINARY][2] = {
#define BINARY(name, class, low, high, value, da, db, doc) {FLAGS_##da, FLAGS_##db},
#include "ops/kernels.def"
#undef BINARY
};

/* Derivatives as tensor calls. */
#define CALLS_NONE       G
#define CALLS_ZEROS      ZERO
#define CALLS_OF_G(e)    e
#define CALLS_OF_X(e)    e
#define CALLS_OF_Y(e)    e
#define CALLS_CALLS_X(e) e
#define CALLS_OF_A(e)    e
#define CALLS_OF_B(e)    e
#define CALLS_OF_AB(e)   e
#define CALLS_OF_AY(e)   e
#define CALLS_OF_BY(e)   e
#define CALLS_OF_ABY(e)  e

/* A condition of two; numbers as well as tensors. */
static dt_arg dt_scope_and(dt_scope *scope, dt_arg a, dt_arg b)
{
    if (!a.tensor)
        return a.scalar.i ? b : a;
    if (!b.tensor)
        return b.scalar.i ? a : b;
    return dt_scope_binary(scope, DT_BINARY_logical_and, a, b);
}

/* Either condition of two tensors or a tensor and a number. */
static dt_arg dt_scope_or(dt_scope *scope, dt_arg a, dt_arg b)
{
    if (!a.tensor)
        return a.scalar.i ? a : b;
    if (!b.tensor)
        return b.scalar.i ? b : a;
    return dt_scope_binary(scope, DT_BINARY_logical_or, a, b);
}

#define UNARY(name, class, low, high, value, derivative, doc)                          \
    static dt_arg name##_calls(dt_scope *scope, dt_arg G, dt_arg X, dt_arg Y)          \
    {                                                                                  \
        (void)scope, (void)G, (void)X, (void)Y;                                        \
        return CALLS_##derivative;                                                     \
    }
#include "ops/unary.def"
#undef UNARY
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    static dt_arg name##_calls_a(dt_scope *scope, dt_arg G, dt_arg A, dt_arg B,        \
                                 dt_arg Y)                                             \
    {                                                                                  \
        (void)scope, (void)G, (void)A, (void)B, (void)Y;                               \
        return CALLS_##da;                                                             \
    }                                                                                  \
    static dt_arg name##_calls_b(dt_scope *scope, dt_arg G, dt_arg A, dt_arg B,        \
                                 dt_arg Y)                                             \
    {                                                                                  \
        (void)scope, (void)G, (void)A, (void)B, (void)Y;                               \
        return CALLS_##db;                                                             \
    }
#include "ops/binary.def"
#undef BINARY

typedef dt_arg (*unary_calls_fn)(dt_scope *, dt_arg, dt_arg, dt_arg);
static const unary_calls_fn unary_calls[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc) name##_calls,
#include "ops/unary.def"
#undef UNARY
};
typedef dt_arg (*binary_calls_fn)(dt_scope *, dt_arg, dt_arg, dt_arg, dt_arg);
static const binary_calls_fn binary_calls[DT_NBINARY][2] = {
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    [DT_BINARY_##name] = {name##_calls_a, name##_calls_b},
#include "ops/binary.def"
#undef BINARY
};

/* Derivatives as one kernel of the gradient and what was kept; -1: there is none. */
static const short fused[DT_NUNARY] = {
#define NOT(name)           -1
#define KERNEL(name)        DT_BINARY_##name##_backward
#define CHOICE_NONE         NOT
#define CHOICE_ZEROS        NOT
#define CHOICE_OF_G(e)      NOT
#define CHOICE_CALLS_X(e)   NOT
#define CHOICE_OF_X(e)      KERNEL
#define CHOICE_OF_Y(e)      KERNEL
#define APPLY(choice, name) choice(name)
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    APPLY(CHOICE_##derivative, name),
#include "ops/unary.def"
#undef UNARY
};

/* PyTorch's names: the row's with a capital at each word and after a digit; square is a
 * power there. */
#define NODE_NAME 40
static char unary_node_names[DT_NUNARY][NODE_NAME];
static char binary_node_names[DT_NBINARY][NODE_NAME];

static void name_node(char *out, const char *row, const char *suffix)
{
    bool capital = true;
    char *end = out + NODE_NAME - 16;
    for (; *row && out < end; row++) {
        if (*row == '_') {
            capital = true;
            continue;
        }
        *out++ =
            capital && *row >= 'a' && *row <= 'z' ? (char)(*row - 'a' + 'A') : *row;
        capital = *row >= '0' && *row <= '9';
    }
    while ((*out++ = *suffix++))
        ;
}

/* Threads that come here together write the same letters. */
static const char *unary_node_name(dt_unary_op op)
{
    char *name = unary_node_names[op];
    if (!*name) {
        char made[NODE_NAME];
        name_node(made, op == DT_UNARY_square ? "pow" : dt_unary_names[op],
                  "Backward0");
        for (int i = NODE_NAME - 1; i >= 0; i--)
            name[i] = made[i];
    }
    return name;
}

static const char *binary_node_name(dt_binary_op op, const dt_arg *args)
{
    if (op == DT_BINARY_pow)
        return args[1].tensor ? "PowBackward1" : "PowBackward0";
    if (!args[0].tensor && op == DT_BINARY_sub)
        return "RsubBackward1";
    if (!args[0].tensor && op == DT_BINARY_div) /* a number times the reciprocal */
        return "MulBackward0";
    char *name = binary_node_names[op];
    if (!*name) {
        char made[NODE_NAME];
        name_node(made, dt_binary_names[op], "Backward0");
        for (int i = NODE_NAME - 1; i >= 0; i--)
            name[i] = made[i];
    }
    return name;
}

/* --- of one tensor --- */

static int unary_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    dt_unary_op op = *(dt_unary_op *)node->data;
    dt_tensor *kept = NULL;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    if (node->nsaved && !(kept = dt_node_saved(node, 0, scope)))
        return -1;
    dt_arg G = dt_arg_tensor(gradients[0]), V = dt_arg_tensor(kept);
    if (!dt_grad_enabled && fused[op] >= 0) {
        into[0] = dt_scope_slot(scope);
        return into[0] ? dt_binary((dt_binary_op)fused[op], into[0], G, V) : -1;
    }
    into[0] = dt_scope_tensor(scope, unary_calls[op](scope, G, V, V), gradients[0]);
    return into[0] ? 0 : -1;
}
static const dt_node_type unary_type = {unary_apply, NULL};

/* in_place: x is about to be overwritten. */
static dt_node *unary_node(dt_unary_op op, const dt_tensor *x, bool in_place)
{
    int flags = unary_flags[op];
    bool keeps = flags & (USES_X | USES_Y);
    dt_node *node = dt_record_node(&unary_type, unary_node_name(op), 1, &x, keeps, 1,
                                   sizeof(dt_unary_op));
    if (node) {
        *(dt_unary_op *)node->data = op;
        if (flags & USES_X && !in_place)
            dt_node_save(node, 0, x, -1);
        if (flags & USES_X && in_place && dt_node_save_copy(node, 0, x) < 0) {
            dt_node_release(node);
            return NULL;
        }
    }
    return node;
}

int dt_record_unary(dt_unary_op op, dt_tensor *out, const dt_tensor *x)
{
    if (dt_unary(op, out, x) < 0)
        return -1;
    if (!(unary_flags[op] & DIFFERENTIABLE) || !dt_dtype_is_float((dt_dtype)out->dtype))
        return 0;
    dt_node *node = unary_node(op, x, false);
    if (node && unary_flags[op] & USES_Y)
        dt_node_save(node, 0, out, 0);
    return dt_record_steal(out, node);
}

int dt_recorded_unary_into(dt_unary_op op, dt_tensor *target, const dt_tensor *x)
{
    if (dt_in_place_check(dt_unary_names[op], target) < 0)
        return -1;
    bool records = dt_recording(x) || dt_recording(target);
    if (!records || !dt_dtype_is_float((dt_dtype)target->dtype))
        return dt_unary_into(op, target, x);
    dt_node *node = unary_node(op, x, x->storage == target->storage);
    if (!node || dt_unary_into(op, target, x) < 0) {
        dt_node_release(node);
        return -1;
    }
    if (unary_flags[op] & USES_Y)
        dt_node_save(node, 0, target, 0);
    return dt_in_place_steal(target, node);
}

/* --- of two --- */

typedef struct binary_data {
    dt_binary_op op;
    bool is_tensor[2];
    dt_scalar scalars[2];
} binary_data;

static int binary_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const binary_data *data = node->data;
    const unsigned char *flags = binary_flags[data->op];
    dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    int needs = 0;
    for (int i = 0; i < 2; i++)
        if (dt_node_wants(node, i))
            needs |= flags[i];
    dt_arg args[3]; /* A, B and Y */
    for (int i = 0; i < 3; i++) {
        args[i] = i < 2 ? dt_arg_scalar(data->scalars[i]) : ZERO;
        if (!(needs & (USES_A << i)) || (i < 2 && !data->is_tensor[i]))
            continue;
        dt_tensor *kept = dt_node_saved(node, i, scope);
        if (!kept)
            return -1;
        args[i] = dt_arg_tensor(kept);
    }
    for (int i = 0; i < 2; i++) {
        if (!dt_node_wants(node, i))
            continue;
        dt_arg value = binary_calls[data->op][i](scope, dt_arg_tensor(g), args[0],
                                                 args[1], args[2]);
        into[i] = dt_scope_tensor(scope, value, g);
        if (!into[i])
            return -1;
    }
    return 0;
}
static const dt_node_type binary_type = {binary_apply, NULL};

/* target: the tensor that is about to be overwritten, or NULL. */
static dt_node *binary_node(dt_binary_op op, const dt_arg *args,
                            const dt_tensor *target)
{
    const dt_tensor *inputs[] = {args[0].tensor, args[1].tensor};
    dt_node *node = dt_record_node(&binary_type, binary_node_name(op, args), 2, inputs,
                                   3, 1, sizeof(binary_data));
    if (!node)
        return NULL;
    binary_data *data = node->data;
    data->op = op;
    for (int i = 0; i < 2; i++) {
        data->is_tensor[i] = inputs[i] != NULL;
        if (!inputs[i])
            data->scalars[i] = args[i].scalar;
    }
    int needs = 0;
    for (int i = 0; i < 2; i++)
        if (dt_node_wants(node, i))
            needs |= binary_flags[op][i];
    for (int i = 0; i < 2; i++) {
        const dt_tensor *t = inputs[i];
        if (!t || !(needs & (USES_A << i)))
            continue;
        /* The very tensor that is overwritten, not one that merely shares its memory:
         * that is found out in the backward pass, as in PyTorch. */
        if (!target || target->storage != t->storage || target->offset != t->offset) {
            dt_node_save(node, i, t, -1);
        } else if (dt_node_save_copy(node, i, t) < 0) {
            dt_node_release(node);
            return NULL;
        }
    }
    return node;
}

static void keep_result(dt_node *node, dt_binary_op op, const dt_tensor *out)
{
    for (int i = 0; i < 2; i++)
        if (dt_node_wants(node, i) && binary_flags[op][i] & USES_Y &&
            !node->saved[2].tensor.storage)
            dt_node_save(node, 2, out, 0);
}

static bool is_recorded(dt_binary_op op, const dt_arg *args, dt_dtype result)
{
    if (!dt_dtype_is_float(result))
        return false;
    for (int i = 0; i < 2; i++)
        if (dt_recording_arg(args[i]) && binary_flags[op][i] & DIFFERENTIABLE)
            return true;
    return false;
}

int dt_record_binary(dt_binary_op op, dt_tensor *out, dt_arg a, dt_arg b)
{
    dt_arg args[] = {a, b};
    if (dt_binary(op, out, a, b) < 0)
        return -1;
    if (!is_recorded(op, args, (dt_dtype)out->dtype))
        return 0;
    dt_node *node = binary_node(op, args, NULL);
    if (node)
        keep_result(node, op, out);
    return dt_record_steal(out, node);
}

int dt_recorded_binary_into(dt_binary_op op, dt_tensor *target, dt_arg a, dt_arg b)
{
    dt_arg args[] = {a, b};
    if (!target->history && !dt_recording_arg(b) && !dt_recording_arg(a))
        return dt_binary_into(op, target, a, b);
    if (dt_in_place_check(dt_binary_names[op], target) < 0)
        return -1;
    if (!is_recorded(op, args, (dt_dtype)target->dtype))
        return dt_binary_into(op, target, a, b);
    dt_node *node = binary_node(op, args, target);
    if (!node || dt_binary_into(op, target, a, b) < 0) {
        dt_node_release(node);
        return -1;
    }
    keep_result(node, op, target);
    return dt_in_place_steal(target, node);
}

/* --- a choice of two --- */

static int where_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    dt_tensor *condition = dt_node_saved(node, 0, scope);
    if (!condition || !gradients[0])
        return condition ? 0 : -1;
    dt_arg C = dt_arg_tensor(condition), G = dt_arg_tensor(gradients[0]);
    for (int i = 0; i < 2; i++) {
        if (!dt_node_wants(node, i))
            continue;
        into[i] = dt_scope_tensor(scope, i ? WHERE(C, ZERO, G) : WHERE(C, G, ZERO),
                                  gradients[0]);
        if (!into[i])
            return -1;
    }
    return 0;
}
static const dt_node_type where_type = {where_apply, NULL};

int dt_recorded_where(dt_tensor *out, const dt_tensor *condition, dt_arg a, dt_arg b)
{
    if (dt_where(out, condition, a, b) < 0)
        return -1;
    if (!dt_recording_arg(a) && !dt_recording_arg(b))
        return 0;
    const dt_tensor *inputs[] = {a.tensor, b.tensor};
    dt_node *node = dt_record_node(&where_type, "WhereBackward0", 2, inputs, 1, 1, 0);
    if (node)
        dt_node_save(node, 0, condition, -1);
    return dt_record_steal(out, node);
}
