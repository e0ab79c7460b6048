/* Defines the forward functions that the rows of a table say as an expression: the file
 * that has what they call includes this, then the table, at its end. */
#ifndef DT_TENSOR_OPS_DEFINE_H
#define DT_TENSOR_OPS_DEFINE_H

#define OP(id, flags, schema, forward, derivative, doc, example, prints)
#define OP_AS(id, flags, schema, expression, derivative, doc, example, prints)         \
    int dt_##id##_forward(dt_call *c)                                                  \
    {                                                                                  \
        return expression;                                                             \
    }

/* Of the call c: the first argument, an int, ints, and the first result. */
#define INPUT    c->args[0].tensor
#define INT(at)  c->args[at].i
#define INTS(at) c->args[at].count, c->args[at].ints
#define RESULT   c->out[0]

#endif
