/* Defines the forward functions that the rows of a table say as an expression: the file
 * that has what they call includes this, then the table, at its end. No guard: once for
 * each table. */
#define OP(id, flags, schema, forward, derivative, doc, example, prints)
#define OP_AS(id, flags, schema, expression, derivative, doc, example, prints)         \
    int dt_##id##_forward(dt_call *c)                                                  \
    {                                                                                  \
        return expression;                                                             \
    }
