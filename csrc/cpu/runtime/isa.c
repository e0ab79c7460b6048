#include "cpu/runtime/isa.h"

#include <stdlib.h>
#include <string.h>

#ifdef DT_ISA_HAS_AVX2
#include <cpuid.h>

int dt_isa_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}
#endif

static const char *const names[DT_NISAS] = {
#define ISA(name, test) #name,
    DT_ISAS(ISA)
#undef ISA
};

const char *dt_isa_name(dt_isa isa)
{
    return names[isa];
}

dt_isa dt_isa_choose(void)
{
    int usable[DT_NISAS] = {
#define ISA(name, test) (test) != 0,
        DT_ISAS(ISA)
#undef ISA
    };
    const char *wanted = getenv("PYDEVTENSOR_CPU_ISA");
    for (int i = 0; wanted && i < DT_NISAS; i++)
        if (!strcmp(wanted, names[i]) && usable[i])
            return (dt_isa)i;
    int best = 0;
    while (!usable[best])
        best++;
    return (dt_isa)best;
}
