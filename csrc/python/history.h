/* Nodes of the autograd graph as objects, and what nodes and hooks need of Python. */
#ifndef DT_PYTHON_HISTORY_H
#define DT_PYTHON_HISTORY_H

#include "autograd/node.h"
#include "python/types/tensor.h"

/* A `Node`, as Tensor.grad_fn returns it: a new object for the node. NULL with an
 * exception set. */
PyObject *dt_node_object_new(dt_node *node);

bool dt_node_object_check(PyObject *value);

/* The node inside an object known to be one, borrowed. */
dt_node *dt_node_of(PyObject *object);

/* A new object over the same storage with the same history. */
PyObject *dt_tensor_object_alias(const dt_tensor *t);

/* The same without history, of this class. */
dt_tensor_object *dt_tensor_object_detached(PyTypeObject *type, const dt_tensor *t);

/* After Python code that the core called has raised: fails, and leaves the exception
 * with the thread, where dt_raise finds it. Returns -1. */
int dt_fail_in_python(void);

/* The handle of a hook, which it removes if there is no memory for the handle. */
PyObject *dt_hook_handle(dt_hook *hook);

/* Methods and the attribute `metadata` of Node. */
PyObject *dt_node_register_hook(PyObject *self, PyObject *function);
PyObject *dt_node_register_prehook(PyObject *self, PyObject *function);
PyObject *dt_node_metadata(PyObject *self, void *unused);
/* Visits what the hooks of a node refer to, for the garbage collector. */
int dt_node_hooks_visit(const dt_node *node, visitproc visit, void *arg);

/* The object whose backward() a custom Function's node calls, borrowed; other nodes:
 * NULL. */
PyObject *dt_function_object(const dt_node *node);

#endif
