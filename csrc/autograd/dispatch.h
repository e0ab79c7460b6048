/* The dispatcher: runs a call of an operation and records it for the backward pass. */
#ifndef DT_AUTOGRAD_DISPATCH_H
#define DT_AUTOGRAD_DISPATCH_H

#include "autograd/temporaries.h"
#include "autograd/variable.h"
#include "tensor/call.h"

/* The record of a row: DT_RECORD(flip). It is declared where it is named, so that a new
 * row compiles the table alone; the linker knows whether there is one. */
#define DT_RECORD(id)                                                                  \
    ({                                                                                 \
        extern dt_op dt_op_##id;                                                       \
        &dt_op_##id;                                                                   \
    })

/* Facts derived from a record's schema; made at the first use and kept. NULL after
 * dt_fail. */
struct dt_op_info {
    dt_schema schema;
    int ntensors;  /* Tensor parameters, `out` left aside */
    int ninputs;   /* Tensor, Tensors and Value parameters that gradients are for */
    int first;     /* the first of these parameters */
    bool list;     /* the schema returns Tensors, any number of them */
    int factory;   /* index of dtype of DT_FACTORY_KWARGS, or -1 */
    int nresults;  /* tensors that the schema returns */
    int nmade;     /* tensors that forward makes: kept ones, too */
    bool in_place; /* the name ends in _: always in place */
    bool plain;    /* one result, and none kept for the backward function alone */
    dt_value defaults[DT_MAX_PARAMETERS]; /* of arguments left out */
    bool optional[DT_MAX_PARAMETERS];     /* left out, they need no conversion */
    int nfixed;                           /* all from here on are optional */
    signed char input[DT_MAX_PARAMETERS]; /* parameter -> number of its input, or -1 */
    char in_place_node[40]; /* the node's name in place: PyTorch counts overloads */
};
const dt_op_info *dt_op_prepare(dt_op *op);
static inline const dt_op_info *dt_op_info_of(dt_op *op)
{
    const dt_op_info *info = __atomic_load_n(&op->info, __ATOMIC_ACQUIRE);
    return info ? info : dt_op_prepare(op);
}

/* Checks that the inputs are on one device, runs the operation and, where an input
 * wants a gradient, attaches a node to the results. 0, or -1 after dt_fail: the results
 * hold nothing then. */
int dt_dispatch(dt_call *call);

/* The same without a look at autocast, of a record that is prepared. */
int dt_dispatch_as_is(dt_call *call);

/* Runs an operation with one result. DT_CALL(flip, out, dt_value_tensor(x),
 * dt_value_ints(1, dims)): arguments in the order of the schema; those left out at the
 * end take the schema's defaults. */
int dt_call_values(dt_op *op, dt_tensor *out, int count, const dt_value *values);
#define DT_CALL(id, out, ...)                                                          \
    dt_call_values(DT_RECORD(id), out,                                                 \
                   (int)(sizeof((const dt_value[]){__VA_ARGS__}) / sizeof(dt_value)),  \
                   (const dt_value[]){__VA_ARGS__})

/* The same for a node of another name than the operation's. */
int dt_call_as(const char *node, dt_op *op, dt_tensor *out, int count,
               const dt_value *values);
#define DT_CALL_AS(node, id, out, ...)                                                 \
    dt_call_as(node, DT_RECORD(id), out,                                               \
               (int)(sizeof((const dt_value[]){__VA_ARGS__}) / sizeof(dt_value)),      \
               (const dt_value[]){__VA_ARGS__})

/* The same for an operation with DT_WRITES, in place: the first value is target.
 * `name`: for messages; NULL: the operation's. */
int dt_call_into(dt_op *op, const char *name, dt_tensor *target, int count,
                 const dt_value *values);
#define DT_CALL_INTO(id, target, ...)                                                  \
    dt_call_into(                                                                      \
        DT_RECORD(id), NULL, target,                                                   \
        (int)(sizeof((const dt_value[]){dt_value_tensor(target), __VA_ARGS__}) /       \
              sizeof(dt_value)),                                                       \
        (const dt_value[]){dt_value_tensor(target), __VA_ARGS__})

/* The same for a composite c that is another operation with other arguments: it gets
 * the results of c. */
int dt_call_overload(dt_op *op, dt_call *c, int count, const dt_value *values);
#define DT_CALL_OVERLOAD(id, c, ...)                                                   \
    dt_call_overload(                                                                  \
        DT_RECORD(id), c,                                                              \
        (int)(sizeof((const dt_value[]){__VA_ARGS__}) / sizeof(dt_value)),             \
        (const dt_value[]){__VA_ARGS__})

/* --- backward functions --- */

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

/* The node type of all operations with a record. */
extern const dt_node_type dt_op_node;

#endif
