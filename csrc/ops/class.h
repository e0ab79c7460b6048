/* Which element types a class of ops/elementwise.def takes, in which it computes, and
 * what it gives. */
#ifndef DT_OPS_CLASS_H
#define DT_OPS_CLASS_H

#include "base/dtype.h"

/* The demands of a class beyond a type with kernels. */
typedef enum dt_class_rule {
    DT_RULE_NONE,
    DT_RULE_FLOATING, /* integers and bools become the default floating type */
    DT_RULE_COUNTING, /* bools become int64 */
    DT_RULE_SIGN,     /* an input of bool is a RuntimeError */
    DT_RULE_DIVISOR,  /* integers divided by 0: an error on the CPU, 0 on a GPU */
    DT_RULE_EXPONENT, /* integers: no negative number; bools: only a number of bool */
    DT_RULE_CHOICE    /* A is of bool; B and C have the result's type, and are moved */
} dt_class_rule;

/* Docstrings' sentences about the result's type. */
#define DT_OF        "The result has the type that the inputs promote to"
#define DT_OF_ANY    DT_OF "."
#define DT_OF_NUMBER DT_OF "; not bool."
#define DT_OF_COUNT  DT_OF "; int64 for bool."
#define DT_OF_DIVIDES                                                                  \
    DT_OF_NUMBER " An integer divided by 0 is a RuntimeError on the CPU; on a GPU it " \
                 "gives 0."
#define DT_OF_INTEGER DT_OF ", an integer type."
#define DT_OF_BITS   DT_OF ", an integer type or bool (NotImplementedError for floats)."
#define DT_OF_REAL   DT_OF ", a floating type (NotImplementedError for others)."
#define DT_OF_FLOAT  DT_OF ", or the default floating type for integers and bools."
#define DT_OF_TRUTH  "The result is of bool."
#define DT_OF_CHOICE "The result has the type that the two choices promote to."

/* A class: the kinds that it has kernels for (bool, integers, floats); whether the
 * result is of bool, whether A is, and whether the quick functions leave arguments to
 * the exact ones (cpu/kernels/float_functions.h); the cost of an element in additions; rule;
 * docstring. */
/* clang-format off */
/*                         kernels  result A  exact cost */
#define DT_CLASS_ANY       1, 1, 1,   0,   0,   0,   1, DT_RULE_NONE,     DT_OF_ANY
#define DT_CLASS_NUMBER    0, 1, 1,   0,   0,   0,   1, DT_RULE_NONE,     DT_OF_NUMBER
#define DT_CLASS_SIGNED    0, 1, 1,   0,   0,   0,   1, DT_RULE_SIGN,     DT_OF_NUMBER
#define DT_CLASS_COUNT     0, 1, 1,   0,   0,   0,   1, DT_RULE_COUNTING, DT_OF_COUNT
#define DT_CLASS_POWER     1, 1, 1,   0,   0,   0,   1, DT_RULE_EXPONENT, DT_OF_NUMBER
#define DT_CLASS_DIVIDES   0, 1, 1,   0,   0,   1,   4, DT_RULE_DIVISOR,  DT_OF_DIVIDES
#define DT_CLASS_INTEGER   0, 1, 0,   0,   0,   0,   1, DT_RULE_NONE,     DT_OF_INTEGER
#define DT_CLASS_BITS      1, 1, 0,   0,   0,   0,   1, DT_RULE_NONE,     DT_OF_BITS
#define DT_CLASS_REAL      0, 0, 1,   0,   0,   0,   4, DT_RULE_NONE,     DT_OF_REAL
#define DT_CLASS_FLOAT     0, 0, 1,   0,   0,   0,   4, DT_RULE_FLOATING, DT_OF_FLOAT
#define DT_CLASS_MATH      0, 0, 1,   0,   0,   1,   4, DT_RULE_FLOATING, DT_OF_FLOAT
#define DT_CLASS_PREDICATE 1, 1, 1,   1,   0,   0,   1, DT_RULE_NONE,     DT_OF_TRUTH
#define DT_CLASS_CHOICE    0, 1, 0,   0,   1,   0,   1, DT_RULE_CHOICE,   DT_OF_CHOICE
/* clang-format on */

typedef struct dt_class {
    bool takes[DT_NKINDS]; /* by dt_kind */
    bool truth, choice, exact;
    unsigned char cost;
    dt_class_rule rule;
    const char *doc;
} dt_class;

/* Flags of a row. */
enum {
    /* Among elements of 16 bits a number stays float32; else it is rounded to them. */
    DT_WIDE_NUMBERS = 1,
    DT_ONE_TYPE = 2,          /* tensors of two types are a RuntimeError */
    DT_IN_PLACE_FUNCTION = 4, /* name_ is also a function of the module */
    DT_TENSOR_NEEDED = 8,     /* numbers alone are a TypeError */
    DT_FLOAT_ON_GPU = 16,     /* under autocast it takes float32 there */
    DT_FLAT = 32,    /* derivatives record their input, with a second derivative of 0 */
    DT_COMPLEX = 64, /* the formula holds for complex numbers, too */
    DT_RARE = 128, /* long, and seldom called: a GPU's kernel for chains has no room */
    DT_OWN_KERNEL =
        256, /* on a GPU in cuda/kernels/elementwise_special.cu, of floats */
};

/* DT_CLASS_VALUE(flags, DT_CLASS_ANY): the columns as a dt_class, for a row of these flags.
 */
#define DT_CLASS_VALUE(...) DT_CLASS_VALUE_(__VA_ARGS__)
#define DT_CLASS_VALUE_(flags, b, i, f, ...)                                           \
    {{b, i, f, ((flags) & DT_COMPLEX) != 0}, __VA_ARGS__}

#endif
