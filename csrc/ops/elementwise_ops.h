/* DT_OP_abs, ...: the numbers of what backends have an elementwise kernel for. */
#ifndef DT_OPS_ELEMENTWISE_OPS_H
#define DT_OPS_ELEMENTWISE_OPS_H

enum {
#define KERNEL(name, ...) DT_OP_##name,
#include "ops/elementwise_kernels.def"
    DT_NELEMENTWISE
};

#endif
