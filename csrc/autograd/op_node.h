/* The nodes of operations with a record. */
#ifndef DT_AUTOGRAD_OP_NODE_H
#define DT_AUTOGRAD_OP_NODE_H

#include "autograd/dispatch.h"
#include "autograd/variable.h"

extern const dt_node_type dt_op_node;

/* The tensors of a call that gradients may be wanted for. */
typedef struct dt_op_inputs {
    int count;
    const dt_tensor *const *items;
    const dt_tensor *few[DT_MAX_PARAMETERS];
} dt_op_inputs;

/* A node for the call, with the inputs that backward needs. NULL after dt_fail. */
dt_node *dt_op_node_make(dt_call *c, const dt_op_info *info, const dt_op_inputs *in);
/* Saves the results that backward needs, once they are computed. */
int dt_op_node_save_outputs(dt_call *c, const dt_op_info *info, dt_node *node);
/* Makes the results of a call those of a new node. */
int dt_op_node_attach(dt_call *c, const dt_op_info *info, const dt_op_inputs *in);

#endif
