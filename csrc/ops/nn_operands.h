/* The operands of a call as the functors of ops/nn_*.h see them, by name, with types that
 * say what ops/nn.def says of them, so that reading an OUT does not compile.
 *
 * A functor has the name of its row in ops/nn.def and is written once for both backends,
 * over an abstract Row: all elements of one row, whether one thread, a group of CUDA
 * threads or a loop of vector instructions holds it.
 *
 *     row.read(x)              elements of a ROW or MASK, to be passed to the following
 *     row.shared(w, missing)   elements of a SHARED or STATISTIC operand; `missing` where
 *                              it is NULL
 *     row.cases(f, shared...)  f(shared...), compiled for operands given and missing
 *     row.sum(f, e...)         sum of f(element of each e) along the row; row.sum(e)
 *     row.sum_kept(y, &sum, f, e)  also gives the terms as elements; y is scratch
 *     row.max(e)               maximum, where a NaN counts as less than all numbers
 *     row.write(y, f, e...)    y = f(element of each e)
 *     row.add(y, i, value, f, e...)  y[i] = f(element i of each e) + value, after
 *                              row.write(y, f, e...)
 *     row.get(x), row.put(y, value)  the row's own element of a PER_ROW, SINGLE, OUT_PER_ROW
 *     row.get(x, i)            element i of a ROW or SHARED
 *     row.target(index)        the target class, and whether the row counts
 *     row.n, row.params
 *
 * How sums are rounded is the same everywhere: elements are added in T, in runs of
 * bounded length, and the runs in double. Lanes or threads that share a row have a run
 * each and are added as a tree. So the error does not grow with the row.
 *
 * A functor of COLUMNS has sums.add(f, operand...): f gives the Terms that an element adds
 * to the two sums of its column.
 *
 * The includer has op_exp, op_log, op_sqrt, and DT_FN and NN_METHOD, the qualifiers of
 * functions. */
#ifndef DT_OPS_NN_OPERANDS_H
#define DT_OPS_NN_OPERANDS_H

#include <stdint.h>

namespace {
namespace nn {

#define KIND(name, type)                                                               \
    template <typename T>                                                              \
    struct name {                                                                      \
        type *data;                                                                    \
    };
KIND(Out, T)
KIND(OutPerRow, T)
KIND(OutShared, T)
KIND(Row, T) /* of an INOUT: written, too */
KIND(PerRow, const T)
KIND(Shared, const T)
KIND(Statistic, const T)
KIND(Single, const T)
#undef KIND
struct Index {
    const int64_t *data;
};

struct Target {
    int64_t at;
    bool counts;
};

template <typename T>
struct Terms {
    T first, second;
};

namespace operands {
#define OUT(name)         Out<T> name;
#define INOUT(name)       Row<T> name;
#define OUT_PER_ROW(name) OutPerRow<T> name;
#define OUT_SHARED(name)  OutShared<T> name;
#define ROW(name)         Row<const T> name;
#define PER_ROW(name)     PerRow<T> name;
#define INDEX(name)       Index name;
#define SHARED(name)      Shared<T> name;
#define STATISTIC(name)   Statistic<T> name;
#define SINGLE(name)      Single<T> name;
#define MASK(name)        Row<const uint8_t> name;
#define NN_OP(op, ...)                                                                 \
    template <typename T>                                                              \
    struct op {                                                                        \
        __VA_ARGS__                                                                    \
    };
#include "ops/nn.def"
} // namespace operands

/* e^(x - shift), by a type of its own, since backends sum it differently. */
template <typename T>
struct Exp {
    T shift;
    NN_METHOD T operator()(T x) const { return op_exp(x - shift); }
};

/* The operands of a call of Op, or of a row of it: pointers in the order of ops/nn.def. */
template <class Op, typename T>
struct OperandsOf;
#define NN_OP(op, ...)                                                                 \
    struct op;                                                                         \
    template <typename T>                                                              \
    struct OperandsOf<op, T> : operands::op<T> {};
#include "ops/nn.def"
template <class Op, typename T>
DT_FN const OperandsOf<Op, T> &named(void *const *operands)
{
    return *reinterpret_cast<const OperandsOf<Op, T> *>(operands);
}

} // namespace nn
} // namespace

#endif
