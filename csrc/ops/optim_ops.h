/* DT_UPDATE_sgd, ...: the numbers of the rows of ops/optim.def. */
#ifndef DT_OPS_OPTIM_OPS_H
#define DT_OPS_OPTIM_OPS_H

enum {
#define OPTIM(name, ...) DT_UPDATE_##name,
#include "ops/optim.def"
#undef OPTIM
    DT_NOPTIM
};

#endif
