/* The rows of ops/nn.def, one row of a tensor at a time. */
#include <string.h>

#include "cpu/kernels/math.h"
#include "cpu/kernels/nn_kernels.h"
#include "cpu/kernels/typed.h"

#define T       float
#define DT_NAME FLOAT32
#include "cpu/kernels/nn.inc"
#include "cpu/kernels/nn_loss.inc"
#include "cpu/kernels/nn_norm.inc"
#include "cpu/kernels/nn_end.inc"
#undef T
#undef DT_NAME
#define T       double
#define DT_NAME FLOAT64
#include "cpu/kernels/nn.inc"
#include "cpu/kernels/nn_loss.inc"
#include "cpu/kernels/nn_norm.inc"
#include "cpu/kernels/nn_end.inc"
#undef T
#undef DT_NAME

const dt_nn_kernels DT_ISA_NAME(dt_nn) = {
    .float32 =
        {
#define NN_OP(name, ...) [DT_NN_##name] = name##_FLOAT32,
#define COLUMNS(name, ...)
#include "ops/nn.def"
        },
    .float64 =
        {
#define NN_OP(name, ...) [DT_NN_##name] = name##_FLOAT64,
#define COLUMNS(name, ...)
#include "ops/nn.def"
        },
    .columns_float32 =
        {
#define NN_OP(name, ...)
#define COLUMNS(name, ...)                                                             \
    [DT_NN_##name] = {name##_columns_FLOAT32, name##_run_FLOAT32},
#include "ops/nn.def"
        },
    .columns_float64 =
        {
#define NN_OP(name, ...)
#define COLUMNS(name, ...)                                                             \
    [DT_NN_##name] = {name##_columns_FLOAT64, name##_run_FLOAT64},
#include "ops/nn.def"
        },
};
