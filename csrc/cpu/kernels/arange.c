#include <math.h>

#include "cpu/runtime/pool.h"
#include "cpu/runtime/backend.h"

/* PyTorch makes a progression in pairs of vectors, each from its own first element
 * rounded to the type; what is left at the end, element by element. So do we, to the
 * last bit. */
#define LANES_HALF    16
#define LANES_FLOAT32 8
#define LANES_FLOAT64 4

#define FLOATS(ID, type)                                                               \
    static void run_##ID(void *context, int64_t begin, int64_t end)                    \
    {                                                                                  \
        const dt_arange_call *p = context;                                             \
        type *out = p->out;                                                            \
        double start = dt_scalar_as_double(p->start),                                  \
               step = dt_scalar_as_double(p->step);                                    \
        int64_t whole = p->numel - p->numel % (2 * LANES_##ID);                        \
        for (int64_t i = begin; i < end; i++) {                                        \
            int64_t first = i < whole ? i - i % LANES_##ID : i;                        \
            double base = (double)(type)fma(step, (double)first, start);               \
            out[i] = (type)fma(step, (double)(i - first), base);                       \
        }                                                                              \
    }
FLOATS(FLOAT32, float)
FLOATS(FLOAT64, double)

#define HALVES(ID, name)                                                               \
    static void run_##ID(void *context, int64_t begin, int64_t end)                    \
    {                                                                                  \
        const dt_arange_call *p = context;                                             \
        uint16_t *out = p->out;                                                        \
        double start = dt_scalar_as_double(p->start),                                  \
               step = dt_scalar_as_double(p->step);                                    \
        int64_t whole = p->numel - p->numel % (2 * LANES_HALF);                        \
        for (int64_t i = begin; i < end; i++) {                                        \
            int64_t first = i < whole ? i - i % LANES_HALF : i;                        \
            float base = (float)fma(step, (double)first, start);                       \
            base = dt_##name##_widen(dt_##name##_narrow(base));                        \
            out[i] = dt_##name##_narrow(                                               \
                (float)fma(step, (double)(i - first), (double)base));                  \
        }                                                                              \
    }
#define DT_DTYPE_HALF(ID, name, alias, type, class) HALVES(ID, name)
#include "ops/dtype.def"

#define INTEGERS(ID, type)                                                             \
    static void run_##ID(void *context, int64_t begin, int64_t end)                    \
    {                                                                                  \
        const dt_arange_call *p = context;                                             \
        type *out = p->out;                                                            \
        uint64_t start = (uint64_t)p->start.i, step = (uint64_t)p->step.i;             \
        for (int64_t i = begin; i < end; i++)                                          \
            out[i] = (type)(int64_t)(start + (uint64_t)i * step);                      \
    }
#define DT_DTYPE_BOOL(ID, name, alias, type, class)    INTEGERS(ID, type)
#define DT_DTYPE_INTEGER(ID, name, alias, type, class) INTEGERS(ID, type)
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)
#define DT_DTYPE_HALF(ID, name, alias, type, class)
#include "ops/dtype.def"

static const dt_pool_task tasks[DT_NDTYPES] = {
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = run_##ID,
#include "ops/dtype.def"
};

/* A float as the integer that an integer progression goes by. */
static dt_scalar whole_number(dt_scalar s)
{
    dt_element e = dt_element_from_scalar(DT_INT64, s);
    return dt_scalar_int(e.as_int64);
}

int dt_cpu_arange(dt_stream stream, const dt_arange_call *progression)
{
    (void)stream;
    dt_arange_call p = *progression;
    if (!dt_dtype_is_float(p.dtype)) {
        p.start = whole_number(p.start);
        p.step = whole_number(p.step);
    }
    dt_pool_run(tasks[p.dtype], &p, p.numel, 16384);
    return 0;
}
