/* The dispatcher: runs a call of an operation and records it for the backward pass. */
#ifndef DT_AUTOGRAD_DISPATCH_H
#define DT_AUTOGRAD_DISPATCH_H

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

#endif
