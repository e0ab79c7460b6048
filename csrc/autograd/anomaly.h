/* A mode that looks for NaN in backward passes and says where the program called the
 * operation whose backward function failed. Global, as in PyTorch. */
#ifndef DT_AUTOGRAD_ANOMALY_H
#define DT_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

typedef struct dt_anomaly_mode {
    bool on, check_nan;
    char *(*place)(
        void); /* the lines of the program that are running, allocated; or NULL */
} dt_anomaly_mode;
extern dt_anomaly_mode dt_anomaly;

/* Looks for NaN in the gradients that node gives; waits for GPUs. -1 after dt_fail if there
 * is one. */
int dt_anomaly_check(const dt_node *node, dt_tensor *const *into);

/* Appends to the pending error where the operation of node was called. Returns -1. */
int dt_anomaly_explain(const dt_node *node);

#endif
