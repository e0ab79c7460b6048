/* Defines the forward functions that the rows of a table say as an expression: the file
 * that has what they call includes this, then the table, at its end. Composites are
 * defined where DT_COMPOSITES is, in csrc/autograd/ops, and all others where it is
 * not, in csrc/tensor/ops. */
#ifndef DT_TENSOR_OPS_DEFINE_H
#define DT_TENSOR_OPS_DEFINE_H

#define OP(...)
#define OP_AS(id, flags, schema, expression, derivative, ...)                          \
    DEFINE_##derivative(id, expression)
#define DEFINE(id, expression)                                                         \
    int dt_##id##_forward(dt_call *c)                                                  \
    {                                                                                  \
        return expression;                                                             \
    }
#define LEAVE(id, expression)
#ifdef DT_COMPOSITES
#define DEFINE_COMPOSITE          DEFINE
#define DEFINE_NOT_DIFFERENTIABLE LEAVE
#define DEFINE_GRADIENT(...)      LEAVE
#else
#define DEFINE_COMPOSITE          LEAVE
#define DEFINE_NOT_DIFFERENTIABLE DEFINE
#define DEFINE_GRADIENT(...)      DEFINE
#endif

/* Parts of the call c: the first argument, an int, ints, and the first result. */
#define INPUT    c->args[0].tensor
#define INT(at)  c->args[at].i
#define INTS(at) c->args[at].count, c->args[at].ints
#define RESULT   c->out[0]

#endif
