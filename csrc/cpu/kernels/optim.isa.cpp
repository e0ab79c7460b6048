/* The rows of ops/optim.def as loops over the elements of one tensor. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"

#define DT_F(name) Quick::name
#include "ops/formula.h"
#undef DT_FN
#define DT_FN static DT_INLINE

namespace {

#include "ops/optim.h"

template <class Rule, typename T>
void update(int64_t elements, void *parameter, const void *gradient,
            void *const *states, const double *numbers, const double *own,
            const void *scale, float *found)
{
    T n[DT_OPTIM_NUMBERS], o[DT_OPTIM_OWN];
    T *const p = (T *)parameter;
    const T *const g = (const T *)gradient;
    T *const s0 = (T *)states[0], *const s1 = (T *)states[1],
             *const s2 = (T *)states[2];
    const T factor = scale ? *(const T *)scale : (T)1;
    for (int k = 0; k < DT_OPTIM_NUMBERS; k++)
        n[k] = (T)numbers[k];
    for (int k = 0; k < DT_OPTIM_OWN; k++)
        o[k] = (T)own[k];
    int any = 0;
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < elements; i++) {
        T s[DT_OPTIM_STATES], value = p[i];
        if (Rule::nstates > 0)
            s[0] = s0[i];
        if (Rule::nstates > 1)
            s[1] = s1[i];
        if (Rule::nstates > 2)
            s[2] = s2[i];
        Rule::run(value, g[i] * factor, s, n, o, any);
        p[i] = value;
        if (Rule::nstates > 0)
            s0[i] = s[0];
        if (Rule::nstates > 1)
            s1[i] = s[1];
        if (Rule::nstates > 2)
            s2[i] = s[2];
    }
    float one = 1;
    if (any && found) /* other threads may write it too */
        __atomic_store(found, &one, __ATOMIC_RELAXED);
}

template <typename T>
dt_optim_kernel *const updates[] = {
#define OPTIM(name, ...) update<rule_##name<T>, T>,
#include "ops/optim.def"
#undef OPTIM
};

} // namespace

const dt_optim_kernels DT_ISA_NAME(dt_optim) = {updates<float>, updates<double>};
