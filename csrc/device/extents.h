/* The memory that a call of a backend reads and writes, operand by operand: what the
 * races of simulated GPUs are found by. */
#ifndef DT_DEVICE_EXTENTS_H
#define DT_DEVICE_EXTENTS_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXTENT_NDIM (2 * DT_MAX_NDIM)

/* The elements of one operand. */
typedef struct dt_extent {
    const char *data; /* element 0 */
    int64_t item;     /* bytes of an element; 0: all from data to the block's end */
    int ndim;
    int64_t shape[DT_EXTENT_NDIM], strides[DT_EXTENT_NDIM]; /* in bytes */
    bool reads, writes;
} dt_extent;

typedef void (*dt_extent_visitor)(void *context, const dt_extent *extent);

/* CALL(form, type): a call of a backend, by the type of what describes it. */
#define DT_CALLS(CALL)                                                                 \
    CALL(plan, dt_plan)                                                                \
    CALL(reduction, dt_reduction)                                                      \
    CALL(gemm, dt_gemm)                                                                \
    CALL(arange, dt_arange_call)                                                       \
    CALL(random, dt_random_call)                                                       \
    CALL(index, dt_index_call)                                                         \
    CALL(optim, dt_optim_call)                                                         \
    CALL(nonzero, dt_nonzero_call)                                                     \
    CALL(scan, dt_scan)                                                                \
    CALL(sorting, dt_sorting)                                                          \
    CALL(search, dt_search)                                                            \
    CALL(nn, struct dt_nn_call)                                                        \
    CALL(attention, struct dt_attention_call)                                          \
    CALL(rnn, struct dt_rnn_call)                                                      \
    CALL(norm, dt_foreach_norm_call)                                                   \
    CALL(convolution, struct dt_convolution)                                           \
    CALL(pooling, struct dt_pooling_call)                                              \
    CALL(resample, struct dt_resample_call)                                            \
    CALL(lapack, struct dt_lapack_call)                                                \
    CALL(one, dt_extent)

typedef enum dt_call_form {
    DT_CALL_NONE,
#define CALL(form, type) DT_CALL_##form,
    DT_CALLS(CALL)
#undef CALL
} dt_call_form;

#ifndef __cplusplus
/* The form of a call, by the type that it points to; for sources that know all of them. */
#define DT_CALL_CASE(form, type)                                                       \
    type:                                                                              \
    DT_CALL_##form,
#define DT_CALL_FORM(call)                                                             \
    _Generic(*(call), DT_CALLS(DT_CALL_CASE) default: DT_CALL_NONE)
#endif

/* Calls visit for each operand of the call that has memory; `name` tells a call that reads
 * a table from one that writes it. It is meant for programs that are searched for mistakes:
 * nothing is faster because of it. */
void dt_extents(int form, const char *name, const void *call, dt_extent_visitor visit,
                void *context);

#ifdef __cplusplus
}
#endif
#endif
