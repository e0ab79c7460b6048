/* The rows of ops/reduce.def as functors, for both backends. The includer has the words
 * of ops/formula.h, and DT_FN, the qualifiers of functions. */
#ifndef DT_OPS_REDUCE_H
#define DT_OPS_REDUCE_H

#include <stdint.h>
#include <type_traits>

/* The properties of a class of ops/reduce.def: whether its rows take floats only, the type
 * that they accumulate in, and whether they start from an element, not an identity. */
typedef enum Accumulates { AS_ITSELF, AS_TOTAL, AS_TRUTH, NACCUMULATES } Accumulates;
struct reduce_class {
    bool floats;
    Accumulates accumulates;
    bool starts;
};
constexpr reduce_class CLASS_TOTAL = {false, AS_TOTAL, false};
constexpr reduce_class CLASS_FLOAT = {true, AS_ITSELF, false};
constexpr reduce_class CLASS_NORM = {true, AS_ITSELF, false};
constexpr reduce_class CLASS_ORDER = {false, AS_ITSELF, true};
constexpr reduce_class CLASS_TRUTH = {false, AS_TRUTH, false};

/* reduce_NAME<In, Acc>: elements of In to an Acc, the type of partial results. In what
 * is mapped, elements and the parameter are of the type of the result, or for TRUTH of
 * that of the input. */
#define REDUCE(name, class, identity_, map_, combine_, finish_, ...)                   \
    template <typename In, typename Acc>                                               \
    struct reduce_##name {                                                             \
        static constexpr reduce_class row_class = CLASS_##class;                       \
        DT_FN Acc identity()                                                           \
        {                                                                              \
            typedef Acc T;                                                             \
            return (T)(identity_);                                                     \
        }                                                                              \
        DT_FN Acc map(In element, double parameter)                                    \
        {                                                                              \
            typedef std::conditional_t<CLASS_##class.accumulates == AS_TRUTH, In, Acc> \
                T;                                                                     \
            T X = (T)element, P = (T)parameter;                                        \
            (void)P;                                                                   \
            return (Acc)(map_);                                                        \
        }                                                                              \
        DT_FN Acc combine(Acc A, Acc B) { return (Acc)(combine_); }                    \
        DT_FN Acc finish(Acc A, int64_t count, double parameter)                       \
        {                                                                              \
            typedef Acc T;                                                             \
            T COUNT = (T)count, P = (T)parameter;                                      \
            (void)COUNT, (void)P;                                                      \
            return (Acc)(finish_);                                                     \
        }                                                                              \
    };
#include "ops/reduce.def"
#undef REDUCE

#endif
