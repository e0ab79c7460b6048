/* The rows of ops/elementwise.def: their nodes and derivatives. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/formula.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/ops.h"

/* --- what the table says --- */

/* The derivative of an input for which there is no formula: an error, of another type
 * where the second input has a formula, as in PyTorch. */
static dt_arg not_implemented(dt_scope *scope, dt_elementwise_op op)
{
    const bool of_one = dt_elementwise_rows[op].reads[1] != DT_READS_UNKNOWN;
    scope->failed = true;
    dt_grad_not_implemented(of_one ? DT_ERROR_NOT_IMPLEMENTED : DT_ERROR_RUNTIME,
                            dt_elementwise_rows[op].name);
    return ZERO;
}

/* The derivative column as calls on tensors, for input number `input`. */
static dt_arg gradient_of(dt_scope *scope, dt_elementwise_op op, int input, dt_arg G,
                          dt_arg A, dt_arg B, dt_arg C, dt_arg Y)
{
    switch (3 * (int)op + input) {
#define NOT_DIFFERENTIABLE ZERO
#define NOT_IMPLEMENTED    not_implemented(scope, op)
#define CASE(name, i, derivative)                                                      \
    case 3 * DT_OP_##name + i:                                                         \
        return derivative;
#define CASES_1(name, a)       CASE(name, 0, a)
#define CASES_2(name, a, b)    CASES_1(name, a) CASE(name, 1, b)
#define CASES_3(name, a, b, c) CASES_2(name, a, b) CASE(name, 2, c)
#define CASES(arity, ...)      CASES_##arity(__VA_ARGS__)
#define LIST(...)              __VA_ARGS__
#define ELEMENTWISE(name, arity, class, flags, low, high, call, value, derivatives,    \
                    ...)                                                               \
    CASES(arity, name, LIST derivatives)
#include "ops/elementwise.def"
    default:
        return ZERO;
    }
}

/* The derivative of the angle of a complex number turns the number by a quarter. */
static dt_arg angle_gradient(dt_scope *scope, dt_arg G, dt_arg A)
{
    dt_tensor *turn = dt_scope_slot(scope);
    if (!turn || dt_complex_number("angle", turn, (dt_dtype)A.tensor->dtype, 0, 1)) {
        scope->failed = true;
        return ZERO;
    }
    return WHERE(EQ(A, ZERO), ZERO, DIV(MUL(G, dt_arg_tensor(turn)), CONJ(A)));
}

static dt_arg sign_gradient(dt_scope *scope, dt_arg G, dt_arg A)
{
    const dt_arg Y = SIGN(A), two = dt_arg_scalar(dt_scalar_int(2));
    const dt_arg across = SUB(G, MUL(CONJ(G), MUL(Y, Y)));
    return WHERE(EQ(A, ZERO), ZERO, DIV(across, MUL(two, NONZERO(ABS(A)))));
}

/* Where values are complex numbers: the derivative f'(a) that the table has is that of an
 * analytic function, real where its argument is, so its conjugate, by which the gradient is
 * multiplied, is f' of the conjugate of a. Others are functions of two real numbers. */
static dt_arg complex_gradient_of(dt_scope *scope, dt_elementwise_op op, int input,
                                  dt_arg G, const dt_arg *values)
{
    if (op == DT_OP_angle)
        return angle_gradient(scope, G, values[0]);
    if (op == DT_OP_sign) /* it turns as the number does: G without its part along Y */
        return sign_gradient(scope, G, values[0]);
    dt_arg conjugate[4];
    for (int i = 0; i < 4; i++)
        conjugate[i] = op != DT_OP_abs && values[i].tensor &&
                               dt_dtype_is_complex((dt_dtype)values[i].tensor->dtype)
                           ? CONJ(values[i])
                           : values[i];
    if (op == DT_OP_acosh) /* a root of the product would have another branch cut */
        return DIV(G, MUL(SQRT(SUB(conjugate[0], ONE)), SQRT(ADD(conjugate[0], ONE))));
    /* The table asks there whether the exponent is negative. */
    if (op == DT_OP_pow && input == 1)
        return WHERE(EQ(conjugate[0], ZERO), ZERO,
                     MUL(G, MUL(conjugate[3], LOG(conjugate[0]))));
    return gradient_of(scope, op, input, G, conjugate[0], conjugate[1], conjugate[2],
                       conjugate[3]);
}

/* Derivatives for the first input that are also one kernel, of the gradient, A or Y,
 * and the row's other inputs; 0: not this one. */
static const dt_elementwise_op fused[DT_NELEMENTWISE] = {
#define ELEMENTWISE(...)
#define FUSED(name, ...) [DT_OP_##name] = DT_OP_##name##_backward,
#include "ops/elementwise.def"
};

/* "SigmoidBackward0" of sigmoid: a capital at each word and after a digit. */
#define NODE_NAME 40
static const char *name_after(dt_elementwise_op op)
{
    static char names[DT_NELEMENTWISE][NODE_NAME];
    char made[NODE_NAME], *end = made;
    if (*names[op])
        return names[op];
    bool capital = true;
    for (const char *c = dt_elementwise_rows[op].name; *c; c++) {
        if (*c != '_')
            *end++ = capital && *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
        capital = *c == '_' || (*c >= '0' && *c <= '9');
    }
    memcpy(end, "Backward0", sizeof "Backward0");
    /* Threads that come here together write the same letters; the first one last. */
    for (int i = (int)(end - made) + (int)sizeof "Backward0"; i >= 0; i--)
        names[op][i] = made[i];
    return names[op];
}

static const char *node_name(dt_elementwise_op op, const dt_arg *args)
{
    int numbers = 0;
    for (int i = 0; i < dt_elementwise_rows[op].arity; i++)
        numbers |= !args[i].tensor << i;
#define NODE(name, inputs, text)                                                       \
    if (op == DT_OP_##name && (numbers & inputs) == inputs)                            \
        return text;
#include "ops/elementwise.def"
    return name_after(op);
}

/* --- the node --- */

typedef struct elementwise_data {
    dt_elementwise_op op;
    unsigned char saved; /* which of A, B, C and Y are: bits DT_READS_A, ... */
    dt_scalar numbers[3];
} elementwise_data;

static int apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                 dt_tensor **into)
{
    const elementwise_data *data = node->data;
    dt_tensor *g = gradients[0];
    dt_arg values[4]; /* A, B, C and Y */
    if (!g)
        return 0;
    for (int i = 0, slot = 0; i < 4; i++) {
        values[i] = i < 3 ? dt_arg_scalar(data->numbers[i]) : ZERO;
        if (!(data->saved >> i & 1))
            continue;
        const dt_tensor *kept = dt_node_saved(node, slot++, scope);
        if (!kept)
            return -1;
        values[i] = dt_arg_tensor(kept);
    }
    bool complex = dt_dtype_is_complex((dt_dtype)g->dtype);
    for (int i = 0; i < 4; i++)
        complex = complex || (values[i].tensor &&
                              dt_dtype_is_complex((dt_dtype)values[i].tensor->dtype));
    for (int i = 0; i < node->nedges; i++) {
        if (!dt_node_wants(node, i))
            continue;
        /* The third input of a fused kernel's row is a number. */
        if (!i && !complex && !dt_grad_enabled && fused[data->op] &&
            !values[2].tensor) {
            const bool of_result = dt_elementwise_rows[data->op].reads[0] & DT_READS_Y;
            into[0] = dt_scope_slot(scope);
            if (!into[0] ||
                dt_elementwise(fused[data->op], into[0],
                               DT_ARGS(dt_arg_tensor(g), values[of_result ? 3 : 0],
                                       values[1], values[2])))
                return -1;
            continue;
        }
        dt_arg value =
            complex ? complex_gradient_of(scope, data->op, i, dt_arg_tensor(g), values)
                    : gradient_of(scope, data->op, i, dt_arg_tensor(g), values[0],
                                  values[1], values[2], values[3]);
        into[i] = scope->failed ? NULL : dt_scope_tensor(scope, value, g);
        if (!into[i] ||
            (dt_elementwise_rows[data->op].flags & DT_FLAT &&
             dt_record_flat(scope, &into[i], node, 1U << i, DT_FLAT_ZERO) < 0))
            return -1;
    }
    return 0;
}

static void saved_name(const dt_node *node, int i, char *text, size_t size)
{
    static const char *const names[] = {"self", "other", "third", "result"};
    unsigned left = ((const elementwise_data *)node->data)->saved;
    while (i--)
        left &= left - 1;
    snprintf(text, size, "%s", names[__builtin_ctz(left)]);
}
static const dt_node_type type = {apply, NULL, saved_name};

/* Makes a node and saves the inputs that it needs. target: the tensor about to be
 * overwritten, or NULL. */
static dt_node *node_of(dt_elementwise_op op, const dt_arg *args,
                        const dt_tensor *target)
{
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    const dt_tensor *inputs[3];
    int reads = 0;
    for (int i = 0; i < row->arity; i++) {
        /* An overwritten input gets zeros if there is no derivative. */
        bool wants = dt_recording_arg(args[i]) &&
                     (row->reads[i] != DT_READS_NOTHING || args[i].tensor == target);
        inputs[i] = wants ? args[i].tensor : NULL;
        reads |= wants ? row->reads[i] & DT_READS : 0;
        if (wants && op == DT_OP_sign &&
            dt_dtype_is_complex((dt_dtype)inputs[i]->dtype))
            reads |= DT_READS_A;
    }
    for (int i = 0; i < row->arity; i++)
        if (!args[i].tensor)
            reads &= ~(1 << i);
    dt_node *node = dt_record_node(&type, node_name(op, args), row->arity, inputs,
                                   __builtin_popcount((unsigned)reads), 1,
                                   sizeof(elementwise_data));
    if (!node)
        return NULL;
    elementwise_data *data = node->data;
    data->op = op;
    data->saved = (unsigned char)reads;
    for (int i = 0, slot = 0; i < row->arity; i++) {
        const dt_tensor *t = args[i].tensor;
        if (!t)
            data->numbers[i] = args[i].scalar;
        if (!t || !(reads >> i & 1))
            continue;
        /* The very tensor that is overwritten, not one that merely shares its memory:
         * that is found out in the backward pass, as in PyTorch. */
        bool apart =
            !target || target->storage != t->storage || target->offset != t->offset;
        if ((apart ? dt_node_save(node, slot, t, -1)
                   : dt_node_save_copy(node, slot, t)) < 0) {
            dt_node_release(node);
            return NULL;
        }
        slot++;
    }
    return node;
}

static int keep_result(dt_node *node, const dt_tensor *out)
{
    const elementwise_data *data = node->data;
    return data->saved & DT_READS_Y ? dt_node_save(node, node->nsaved - 1, out, 0) : 0;
}

static bool is_recorded(dt_elementwise_op op, const dt_arg *args, dt_dtype result)
{
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    for (int i = 0; i < row->arity; i++)
        if (dt_recording_arg(args[i]) && row->reads[i] != DT_READS_NOTHING &&
            dt_dtype_is_differentiable(result))
            return true;
    return false;
}

int dt_recorded_elementwise_as(dt_elementwise_op as, dt_elementwise_op op,
                               dt_tensor *out, const dt_arg *args)
{
    if (dt_elementwise(op, out, args) < 0)
        return -1;
    if (!is_recorded(as, args, (dt_dtype)out->dtype))
        return 0;
    dt_node *node = node_of(as, args, NULL);
    if (dt_record_steal(out, node) < 0)
        return -1;
    if (keep_result(node, out) == 0) /* out keeps node */
        return 0;
    dt_tensor_clear(out);
    return -1;
}

int dt_recorded_elementwise(dt_elementwise_op op, dt_tensor *out, const dt_arg *args)
{
    return dt_recorded_elementwise_as(op, op, out, args);
}

int dt_recorded_elementwise_into(dt_elementwise_op op, dt_tensor *target,
                                 const dt_arg *args)
{
    /* A function without a derivative drops the history of the tensor it writes. */
    bool records =
        is_recorded(op, args, (dt_dtype)target->dtype) || dt_recording(target);
    if (dt_in_place_check(dt_elementwise_rows[op].name, target) < 0)
        return -1;
    if (!records)
        return dt_elementwise_into(op, target, args);
    dt_node *node = node_of(op, args, target);
    if (!node || dt_elementwise_into(op, target, args) < 0 ||
        keep_result(node, target) < 0) {
        dt_node_release(node);
        return -1;
    }
    return dt_in_place_steal(target, node);
}
