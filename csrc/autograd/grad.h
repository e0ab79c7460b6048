/* Backward functions, and calls in formulas. */
#ifndef DT_AUTOGRAD_GRAD_H
#define DT_AUTOGRAD_GRAD_H

#include "autograd/dispatch.h"
#include "autograd/temporaries.h"
#include "autograd/variable.h"

/* A backward function gets the gradients of the results and sets those of the inputs,
 * in the order of the schema's parameters. Formulas are written with dt_arg values and
 * fail through the scope, which the dispatcher checks after the backward function. With
 * one result that runs only where there is a gradient. */
typedef struct dt_grad {
    dt_node *node;
    dt_op *op;
    const dt_value *args; /* of the call; tensors are NULL */
    dt_scope *scope;
    dt_tensor *const *gradients; /* of the results; NULL: none came */
    dt_tensor **into;
} dt_grad;

static inline int dt_grad_edge(const dt_grad *g, int i)
{
    return g->op->info->input[i];
}
/* Whether the gradient of parameter i is wanted. */
static inline bool dt_grad_wants(const dt_grad *g, int i)
{
    return dt_node_wants(g->node, dt_grad_edge(g, i));
}
/* Sets it. 0, or -1 where the formula has failed. */
int dt_grad_set(dt_grad *g, int i, dt_arg value);
/* The second derivative for an input that the first one does not depend on, where PyTorch
 * records one all the same. */
typedef enum dt_flat {
    DT_FLAT_NONE, /* no second derivative */
    DT_FLAT_ZERO, /* a second derivative of 0 */
} dt_flat;
/* Records the gradients that are set for these parameters (bits) too: the end of a backward
 * function whose formula depends on them less than PyTorch's. 0, or -1. */
int dt_grad_flat(dt_grad *g, unsigned parameters, dt_flat flat);
/* Computes and sets it where it is wanted. */
#define SET_WANTED(i, value)                                                           \
    do {                                                                               \
        if (dt_grad_wants(g, i))                                                       \
            dt_grad_set(g, i, value);                                                  \
    } while (0)
/* The tensor saved for parameter i, or for result i: for formulas. No tensor where the
 * argument was None, or the result was not made. */
dt_arg dt_grad_input(dt_grad *g, int i);
dt_arg dt_grad_output(dt_grad *g, int i);
/* The same as a factor in a gradient: complex numbers conjugate. */
dt_arg dt_grad_factor(dt_grad *g, int i);
/* The number given for parameter i, a Scalar, as such a factor. */
dt_arg dt_grad_number(dt_grad *g, int i);
/* The list saved for parameter i, whose tensors `items` holds; they are the scope's. */
dt_value dt_grad_list(dt_grad *g, int i, const dt_tensor **items);
/* Shape, type and device of the tensor at parameter i, whose gradient is wanted. */
static inline const dt_result *dt_grad_like(const dt_grad *g, int i)
{
    dt_edge edge = g->node->edges[dt_grad_edge(g, i)];
    return &edge.node->results[edge.index];
}
/* Zeros in the shape of parameter i, with the type of the gradient. */
dt_arg dt_grad_zeros(dt_grad *g, int i);

/* Fails, since no derivative is written down for the operation. */
int dt_grad_not_implemented(dt_error_code code, const char *op_name);
/* Copies value into part, a view of whole, and makes whole, whose other elements are
 * zeros, the gradient of parameter i. */
int dt_grad_place(dt_grad *g, int i, dt_arg whole, dt_tensor *part,
                  const dt_tensor *value);
/* The gradient of parameter i where the results are its elements at index along dim:
 * zeros, with the gradient of result 0 written to (DT_INDEX_WRITE) or added at
 * (DT_INDEX_ADD) index. The results may lack dim. */
int dt_grad_scatter(dt_grad *g, int i, dt_index_op op, int64_t dim, dt_arg index);
/* The gradient of parameter 0 where the result is its elements at index, which counts
 * the flattened elements. */
int dt_grad_put(dt_grad *g, dt_arg index);
/* The shapes of the items of a Tensors parameter: *ndim sizes each. */
const int64_t *dt_grad_item(const dt_grad *g, int k, int *ndim);
/* t, a vector, in the shape that broadcasts along dimension dim of x. */
dt_arg dt_grad_along(dt_grad *g, const dt_tensor *t, const dt_tensor *x, int dim);
/* The result of an operation called in a formula; the tensor is the scope's. */
dt_arg dt_scope_call(dt_scope *scope, dt_op *op, int count, const dt_value *values);
#define SCOPE_CALL(scope, id, ...)                                                     \
    dt_scope_call(scope, DT_RECORD(id),                                                \
                  (int)(sizeof((const dt_value[]){__VA_ARGS__}) / sizeof(dt_value)),   \
                  (const dt_value[]){__VA_ARGS__})

/* In a backward function, of dt_grad *g: */
#define GRAD             dt_arg_tensor(g->gradients[0])
#define TENSOR(a)        dt_value_tensor((a).tensor)
#define CALL_OP(id, ...) SCOPE_CALL(g->scope, id, __VA_ARGS__)

#endif
