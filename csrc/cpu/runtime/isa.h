/* Instruction sets: which variant of the *.isa.cpp files runs on this processor. */
#ifndef DT_CPU_RUNTIME_ISA_H
#define DT_CPU_RUNTIME_ISA_H

/* ISA(name, test): one line per variant, best first; test: whether the processor has
 * it. The build defines DT_ISAS where it compiles one variant alone. */
#ifndef DT_ISAS
#define DT_ISAS(ISA)                                                                   \
    ISA(avx512, __builtin_cpu_supports("avx512f") &&                                   \
                    __builtin_cpu_supports("avx512bw") &&                              \
                    __builtin_cpu_supports("avx512dq") &&                              \
                    __builtin_cpu_supports("avx512vl") && DT_ISA_HAS_AVX2)             \
    ISA(avx2, DT_ISA_HAS_AVX2)                                                         \
    ISA(baseline, 1)
#define DT_ISA_HAS_AVX2                                                                \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&                \
     __builtin_cpu_supports("bmi2") && dt_isa_has_f16c())
/* Whether the processor converts float16; __builtin_cpu_supports does not always
 * know. */
int dt_isa_has_f16c(void);
#endif

/* The name of this variant's copy of a symbol. */
#ifdef DT_ISA
#define DT_ISA_JOIN2(name, isa) name##_##isa
#define DT_ISA_JOIN(name, isa)  DT_ISA_JOIN2(name, isa)
#define DT_ISA_NAME(name)       DT_ISA_JOIN(name, DT_ISA)
#endif

typedef enum dt_isa {
#define ISA(name, test) DT_ISA_##name,
    DT_ISAS(ISA)
#undef ISA
        DT_NISAS
} dt_isa;

/* The best variant that the processor supports, or PYDEVTENSOR_CPU_ISA if supported. */
dt_isa dt_isa_choose(void);
const char *dt_isa_name(dt_isa isa);

#endif
