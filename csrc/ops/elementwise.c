#include "ops/elementwise.h"
#include "ops/elementwise_ops.h"

#include <math.h>

/* Derivatives evaluated as sets: the inputs and results that each one reads. */
#define G                  0
#define A                  DT_READS_A
#define B                  DT_READS_B
#define C                  DT_READS_C
#define Y                  DT_READS_Y
#define NOT_DIFFERENTIABLE DT_READS_NOTHING
#define NOT_IMPLEMENTED    DT_READS_UNKNOWN
#define ZERO               0
#define ONE                0
#define NUMBER(value)      0
#define UNION(a, b)        ((a) | (b))
#define ADD                UNION
#define SUB                UNION
#define MUL                UNION
#define DIV                UNION
#define POW                UNION
#define FLOORDIV           UNION
#define XLOGY              UNION
#define POLYGAMMA          UNION
#define XLOG1PY            UNION
#define ZETA               UNION
#define EQ                 UNION
#define NE                 UNION
#define LT                 UNION
#define LE                 UNION
#define GT                 UNION
#define GE                 UNION
#define AND                UNION
#define OR                 UNION
#define NONZERO(a)         (a)
#define WHERE(c, a, b)     ((c) | (a) | (b))
#define NEG(a)             (a)
#define CONJ(a)            (a)
#define ABS(a)             (a)
#define SIGN(a)            (a)
#define SQRT(a)            (a)
#define EXP(a)             (a)
#define EXP2(a)            (a)
#define LOG(a)             (a)
#define SIN(a)             (a)
#define COS(a)             (a)
#define SINH(a)            (a)
#define COSH(a)            (a)
#define TANH(a)            (a)
#define SIGMOID(a)         (a)
#define ERF(a)             (a)
#define TRUNC(a)           (a)
#define SINC(a)            (a)
#define DIGAMMA(a)         (a)
#define LGAMMA(a)          (a)
#define I0(a)              (a)
#define I0E(a)             (a)
#define I1(a)              (a)
#define I1E(a)             (a)
#define ERFCX(a)           (a)

/* A row that lacks a derivative, or has one too many, does not compile. */
#define READS_1(a)       {a}
#define READS_2(a, b)    {a, b}
#define READS_3(a, b, c) {a, b, c}

#define ROW(name, class, arity, flags, reads, low, high)                               \
    [DT_OP_##name] = {#name, #class, arity, flags,                                     \
                      reads, low,    high,  DT_CLASS_VALUE(flags, DT_CLASS_##class)},
#define LIST(...) __VA_ARGS__
const dt_elementwise_row dt_elementwise_rows[DT_NELEMENTWISE] = {
#define ELEMENTWISE(name, arity, class, flags, low, high, call, value, derivatives,    \
                    ...)                                                               \
    ROW(name, class, arity, flags, LIST(READS_##arity derivatives), low, high)
#include "ops/elementwise.def"
#define NONE {DT_READS_NOTHING, DT_READS_NOTHING, DT_READS_NOTHING, DT_READS_NOTHING}
#define ELEMENTWISE(...)
#define FUSED(name, arity, class, flags, low, high, ...)                               \
    ROW(name##_backward, FLOAT, arity + 1, (flags) & ~DT_COMPLEX, LIST(NONE), low, high)
#include "ops/elementwise.def"
};
