/* DT_NN_softmax, ...: the numbers of the rows of ops/nn.def, and of their operands. */
#ifndef DT_DEVICE_NN_OPS_H
#define DT_DEVICE_NN_OPS_H

#include <stddef.h>

enum {
#define NN_OP(name, ...) DT_NN_##name,
#include "ops/nn.def"
    DT_NNN
};

/* Floats in memory, of the type `stored` of a call. */
typedef struct dt_nn_stored dt_nn_stored;

/* The operands of each operation in order, so that NN_AT(softmax, x) is x's number. */
#define OUT(name)         dt_nn_stored *name;
#define INOUT(name)       dt_nn_stored *name;
#define OUT_PER_ROW(name) void *name;
#define OUT_SHARED(name)  void *name;
#define ROW(name)         dt_nn_stored *name;
#define PER_ROW(name)     void *name;
#define INDEX(name)       void *name;
#define SHARED(name)      dt_nn_stored *name;
#define STATISTIC(name)   void *name;
#define SINGLE(name)      void *name;
#define MASK(name)        void *name;
#define NN_OP(op, ...)                                                                 \
    struct dt_nn_##op##_operands {                                                     \
        __VA_ARGS__                                                                    \
    };
#include "ops/nn.def"
#define NN_AT(op, operand)                                                             \
    ((int)(offsetof(struct dt_nn_##op##_operands, operand) / sizeof(void *)))
#define NN_IS_STORED(op, operand)                                                      \
    _Generic(((struct dt_nn_##op##_operands *)NULL)->operand,                          \
        dt_nn_stored *: true,                                                          \
        void *: false)

#endif
