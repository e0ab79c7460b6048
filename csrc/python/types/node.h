/* `Node`: a node of the autograd graph, as Tensor.grad_fn returns it. */
#ifndef DT_PYTHON_TYPES_NODE_H
#define DT_PYTHON_TYPES_NODE_H

#include "autograd/node.h"
#include "python/module.h"

/* A new object for the node. NULL with an exception set. */
PyObject *dt_node_object_new(dt_node *node);

bool dt_node_object_check(PyObject *value);

/* The node inside an object known to be one, borrowed. */
dt_node *dt_node_of(PyObject *object);

#endif
