#include <math.h>

#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

namespace {

/* PyTorch makes a progression in pairs of vectors, each from its own first element
 * rounded to the type; what is left at the end, element by element. So do we, to the
 * last bit. */
template <typename T>
void run_arange(void *context, int64_t begin, int64_t end)
{
    const dt_arange_call *p = (const dt_arange_call *)context;
    T *out = (T *)p->out;
    if constexpr (std::is_integral_v<Compute<T>>) {
        uint64_t step = (uint64_t)p->step.i;
        uint64_t value = (uint64_t)p->start.i + (uint64_t)begin * step;
        for (int64_t i = begin; i < end; i++, value += step)
            out[i] = (T)(int64_t)value;
    } else {
        typedef Compute<T> C;
        constexpr int64_t lanes = 32 / sizeof(T);
        double start = dt_scalar_as_double(p->start),
               step = dt_scalar_as_double(p->step);
        int64_t whole = p->numel - p->numel % (2 * lanes);
        for (int64_t i = begin; i < end; i++) {
            int64_t first = i < whole ? i - i % lanes : i;
            C base = (C)(T)(C)fma(step, (double)first, start);
            out[i] = (T)(C)fma(step, (double)(i - first), (double)base);
        }
    }
}

/* A float as the integer that an integer progression goes by. */
dt_scalar whole_number(dt_scalar s)
{
    return dt_scalar_int(dt_element_from_scalar(DT_INT64, s).as_int64);
}

const dt_pool_task tasks[] = {
#define DT_DTYPE(ID, name, alias, type) run_arange<type>,
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
};

} // namespace

int dt_cpu_arange(dt_stream, const dt_arange_call *call)
{
    dt_arange_call p = *call;
    if (!dt_dtype_is_float(p.dtype)) {
        p.start = whole_number(p.start);
        p.step = whole_number(p.step);
    }
    return dt_pool_try(tasks[p.dtype], &p, p.numel, 16384);
}
