/* The backends that collect: a function of each type of devices, as a stream does not say
 * whose it is. */
#include "device/fusion_table.h"

#include "device/works.h"

static dt_backend collecting[DT_FUSION_TYPES];

#define JOIN(type, member, parameters, arguments, how)                                 \
    static int join_##member##_##type parameters                                       \
    {                                                                                  \
        const dt_fusion_fate its = how;                                                \
        return its == DT_FUSION_RUNS    ? dt_fusion_real[type]->member arguments       \
               : its == DT_FUSION_WAITS ? 0                                            \
                                        : -1;                                          \
    }
#define JOINS(type)                                                                    \
    JOIN(type, elementwise, (dt_stream s, dt_elementwise_op op, const dt_plan *c),     \
         (s, op, c), dt_fusion_collect((dt_device_type)type, s, op, c))                \
    JOIN(type, copy, (dt_stream s, const dt_plan *c), (s, c),                          \
         dt_fusion_collect((dt_device_type)type, s, DT_CHAIN_CONVERT, c))              \
    JOIN(type, fill, (dt_stream s, const dt_plan *c), (s, c),                          \
         dt_fusion_collect_fill((dt_device_type)type, s, c))                           \
    JOIN(type, reduce, (dt_stream s, dt_reduce_op op, const dt_reduction *c),          \
         (s, op, c),                                                                   \
         dt_fusion_collect_reduction((dt_device_type)type, s, DT_WORK_reduce, op,      \
                                     NULL, c))                                         \
    JOIN(type, moments, (dt_stream s, void *mean, const dt_reduction *c),              \
         (s, mean, c),                                                                 \
         dt_fusion_collect_reduction((dt_device_type)type, s, DT_WORK_moments, 0,      \
                                     mean, c))                                         \
    JOIN(type, nn, (dt_stream s, const dt_nn_call *c), (s, c),                         \
         dt_fusion_collect_rows((dt_device_type)type, s, c))
JOINS(0)
JOINS(1)

#define AFTER(type, member, parameters, arguments)                                     \
    static int after_##member##_##type parameters                                      \
    {                                                                                  \
        return dt_fusion_before(type, #member)                                         \
                   ? -1                                                                \
                   : dt_fusion_real[type]->member arguments;                           \
    }
#define WORK(member, parameters, arguments, ...)                                       \
    AFTER(0, member, parameters, arguments)                                            \
    AFTER(1, member, parameters, arguments)
#include "device/works.def"
_Static_assert(DT_FUSION_TYPES == 2, "add functions for the types that were added");

static void install(int type)
{
    dt_backend *own = &collecting[type];
    dt_fusion_real[type] = dt_works_real((dt_device_type)type);
    *own = *dt_fusion_real[type];
#define WORK(member, ...)                                                              \
    if (own->member)                                                                   \
        own->member = type ? after_##member##_1 : after_##member##_0;
#include "device/works.def"
#define JOIN_(member) own->member = type ? join_##member##_1 : join_##member##_0;
    JOIN_(elementwise)
    JOIN_(copy)
    JOIN_(fill)
    JOIN_(reduce)
    JOIN_(moments)
    JOIN_(nn)
    dt_works_replace((dt_device_type)type, own);
}

void dt_fusion_install(void)
{
    for (int type = 0; type < DT_FUSION_TYPES; type++)
        if (!dt_fusion_real[type] && dt_backends[type] && dt_backends[type]->chain)
            install(type);
}
