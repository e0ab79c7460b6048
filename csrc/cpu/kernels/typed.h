/* For files that cpu/kernels/types.inc includes: names by the element type at hand (its ID in
 * ops/dtype.def). */
#ifndef DT_CPU_KERNELS_TYPED_H
#define DT_CPU_KERNELS_TYPED_H

/* The tables are written for all types: what is idle for one of them is no fault. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wtype-limits"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wbool-operation"
#endif

#define DT_FN                 static inline
#define DT_TYPED3(name, type) name##_##type
#define DT_TYPED2(name, type) DT_TYPED3(name, type)
#define DT_TYPED(name)        DT_TYPED2(name, DT_NAME)
#define DT_F(name)            DT_TYPED(name)

#endif
