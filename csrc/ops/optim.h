/* The rows of ops/optim.def as functors, for both backends. The includer has the words of
 * ops/formula.h, and DT_FN, the qualifiers of functions. */
#ifndef DT_OPS_OPTIM_H
#define DT_OPS_OPTIM_H

#include "ops/ops.h"

#define S(name)          s[name]
#define N(name)          n[name]
#define O(name)          o[name]
#define FOUND(condition) found |= (int)(condition)
/* One element: the parameter P, its gradient G, its states s; the numbers n of the call,
 * and o of the tensor; the flag `found`. */
#define OPTIM(name, count, states, numbers, own, kept_count, kept, prepare, formula,   \
              doc)                                                                     \
    template <typename T>                                                              \
    struct rule_##name {                                                               \
        static constexpr int nstates = count;                                          \
        DT_FN void run(T &P, T G, T *s, const T *n, const T *o, int &found)            \
        {                                                                              \
            enum { DT_OPTIM_NAMES states };                                            \
            enum { DT_OPTIM_NAMES numbers };                                           \
            enum { DT_OPTIM_NAMES own };                                               \
            (void)s, (void)n, (void)o, (void)found;                                    \
            formula                                                                    \
        }                                                                              \
    };
#include "ops/optim.def"
#undef OPTIM
#undef S
#undef N
#undef O
#undef FOUND

#endif
