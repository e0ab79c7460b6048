/* The rows of ops/rowwise.def, one row of a tensor at a time. */
#include <string.h>

#include "cpu/math.h"
#include "cpu/rowwise_kernels.h"
#include "cpu/typed.h"

#define T       float
#define DT_NAME FLOAT32
#include "cpu/rowwise.inc"
#include "cpu/rowwise_loss.inc"
#include "cpu/rowwise_norm.inc"
#include "cpu/rowwise_end.inc"
#undef T
#undef DT_NAME
#define T       double
#define DT_NAME FLOAT64
#include "cpu/rowwise.inc"
#include "cpu/rowwise_loss.inc"
#include "cpu/rowwise_norm.inc"
#include "cpu/rowwise_end.inc"
#undef T
#undef DT_NAME

const dt_rowwise_kernels DT_ISA_NAME(dt_rowwise) = {
    .float32 =
        {
#define ROWWISE(name, ...) [DT_ROWWISE_##name] = name##_FLOAT32,
#define COLUMNS(name, ...)
#include "ops/rowwise.def"
        },
    .float64 =
        {
#define ROWWISE(name, ...) [DT_ROWWISE_##name] = name##_FLOAT64,
#define COLUMNS(name, ...)
#include "ops/rowwise.def"
        },
    .columns_float32 =
        {
#define ROWWISE(name, ...)
#define COLUMNS(name, ...)                                                             \
    [DT_ROWWISE_##name] = {name##_columns_FLOAT32, name##_run_FLOAT32},
#include "ops/rowwise.def"
        },
    .columns_float64 =
        {
#define ROWWISE(name, ...)
#define COLUMNS(name, ...)                                                             \
    [DT_ROWWISE_##name] = {name##_columns_FLOAT64, name##_run_FLOAT64},
#include "ops/rowwise.def"
        },
};
