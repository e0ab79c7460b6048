#include "cpu/runtime/backend.h"

#include <math.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"
#include "device/random.h"

#define TWO_PI 6.283185307179586476925286766559
/* Words drawn at a time. */
#define CHUNK 1024
/* From this length on, normal numbers are made in blocks of 16. */
#define BLOCK 16

/* The next n words. The generator's lock is held. */
static void draw(dt_generator *g, int64_t n, uint32_t *out)
{
    while (n > 0) {
        if (g->next >= DT_TWISTER_WORDS) {
            *out++ = dt_generator_u32(g);
            n--;
            continue;
        }
        int64_t some = DT_TWISTER_WORDS - g->next;
        some = some > n ? n : some;
        dt_cpu_kernels.random->temper(some, out, g->words + g->next);
        g->next += (int)some;
        out += some;
        n -= some;
    }
}

static inline float uniform_float(uint32_t word)
{
    return (float)(word & 0xffffff) * 0x1p-24f;
}

static inline double uniform_double(uint64_t word)
{
    return (double)(word & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}

/* The first word drawn is the high half. */
static inline uint64_t wide(const uint32_t *words)
{
    return (uint64_t)words[0] << 32 | words[1];
}

static void fill_float32(dt_generator *g, int64_t n, float *out)
{
    uint32_t words[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t some = n - i > CHUNK ? CHUNK : n - i;
        draw(g, some, words);
        for (int64_t j = 0; j < some; j++)
            out[i + j] = uniform_float(words[j]);
    }
}

static void fill_float64(dt_generator *g, int64_t n, double *out)
{
    uint32_t words[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK / 2) {
        int64_t some = n - i > CHUNK / 2 ? CHUNK / 2 : n - i;
        draw(g, 2 * some, words);
        for (int64_t j = 0; j < some; j++)
            out[i + j] = uniform_double(wide(words + 2 * j));
    }
}

static void narrow(dt_dtype dtype, int64_t n, uint16_t *out, const float *x)
{
    char *data[2] = {(char *)out, (char *)(uintptr_t)x};
    const int64_t strides[2] = {sizeof *out, sizeof *x};
    dt_cpu_kernels.copy->convert[dtype][DT_FLOAT32](n, data, strides);
}

static void widen(dt_dtype dtype, int64_t n, float *out, const uint16_t *x)
{
    char *data[2] = {(char *)out, (char *)(uintptr_t)x};
    const int64_t strides[2] = {sizeof *out, sizeof *x};
    dt_cpu_kernels.copy->convert[DT_FLOAT32][dtype](n, data, strides);
}

/* --- uniform --- */

typedef struct span {
    void *out;
    double low, high;
    bool wide;
} span;

static void stretch(void *context, int64_t begin, int64_t end)
{
    const span *s = context;
    if (s->wide) {
        double *out = s->out;
        for (int64_t i = begin; i < end; i++)
            out[i] = fma(out[i], s->high - s->low, s->low);
    } else {
        float *out = s->out, low = (float)s->low, range = (float)s->high - low;
        for (int64_t i = begin; i < end; i++)
            out[i] = fmaf(out[i], range, low);
    }
}

/* Elements of 16 bits are drawn as float32 and then rounded. Where that reaches the
 * upper bound, which does not belong to the interval, it is the lower one. */
static void uniform_halves(dt_generator *g, const dt_random_call *call)
{
    float block[CHUNK];
    float low = (float)dt_scalar_as_double(call->low),
          high = (float)dt_scalar_as_double(call->high);
    for (int64_t i = 0; i < call->numel; i += CHUNK) {
        int64_t some = call->numel - i > CHUNK ? CHUNK : call->numel - i;
        fill_float32(g, some, block);
        for (int64_t j = 0; j < some; j++)
            block[j] = fmaf(block[j], high - low, low);
        uint16_t *out = (uint16_t *)call->out + i;
        narrow(call->dtype, some, out, block);
        widen(call->dtype, some, block, out);
        for (int64_t j = 0; j < some; j++)
            if (block[j] >= high && high > low)
                narrow(call->dtype, 1, out + j, &low);
    }
}

static void uniform(dt_generator *g, const dt_random_call *call)
{
    if (dt_dtype_is_half(call->dtype)) {
        uniform_halves(g, call);
        return;
    }
    span s = {.out = call->out,
              .low = dt_scalar_as_double(call->low),
              .high = dt_scalar_as_double(call->high),
              .wide = call->dtype == DT_FLOAT64};
    if (s.wide)
        fill_float64(g, call->numel, call->out);
    else
        fill_float32(g, call->numel, call->out);
    if (s.low != 0 || s.high != 1)
        dt_pool_run(stretch, &s, call->numel, 16384);
}

/* --- normal --- */

static double one_normal(dt_generator *g)
{
    if (g->normal_kept) {
        g->normal_kept = false;
        return g->normal;
    }
    double u1 = uniform_double(dt_generator_u64(g)),
           u2 = uniform_double(dt_generator_u64(g));
    double radius = sqrt(-2.0 * log1p(-u2)), angle = TWO_PI * u1;
    g->normal = radius * sin(angle);
    g->normal_kept = true;
    return radius * cos(angle);
}

static void transform(void *context, int64_t begin, int64_t end)
{
    const span *s = context;
    int64_t n = (end - begin) * BLOCK;
    if (s->wide)
        dt_cpu_kernels.random->normal_float64(n, (double *)s->out + begin * BLOCK,
                                              s->low, s->high);
    else
        dt_cpu_kernels.random->normal_float32(n, (float *)s->out + begin * BLOCK,
                                              (float)s->low, (float)s->high);
}

/* Whole blocks one after the other; where something is left over, the last 16 afresh.
 */
static void normal_halves(dt_generator *g, const dt_random_call *call)
{
    float block[CHUNK];
    uint16_t *out = call->out;
    int64_t n = call->numel, whole = n - n % BLOCK;
    float mean = (float)dt_scalar_as_double(call->low),
          deviation = (float)dt_scalar_as_double(call->high);
    if (n < BLOCK || call->singly) {
        for (int64_t i = 0; i < n; i++) {
            *block = (float)(one_normal(g) * dt_scalar_as_double(call->high) +
                             dt_scalar_as_double(call->low));
            narrow(call->dtype, 1, out + i, block);
        }
        return;
    }
    for (int64_t i = 0; i < whole; i += CHUNK) {
        int64_t some = whole - i > CHUNK ? CHUNK : whole - i;
        fill_float32(g, some, block);
        dt_cpu_kernels.random->normal_float32(some, block, mean, deviation);
        narrow(call->dtype, some, out + i, block);
    }
    if (whole == n)
        return;
    fill_float32(g, BLOCK, block);
    dt_cpu_kernels.random->normal_float32(BLOCK, block, mean, deviation);
    narrow(call->dtype, BLOCK, out + n - BLOCK, block);
}

static void normal(dt_generator *g, const dt_random_call *call)
{
    if (dt_dtype_is_half(call->dtype)) {
        normal_halves(g, call);
        return;
    }
    int64_t n = call->numel;
    span s = {.out = call->out,
              .low = dt_scalar_as_double(call->low),
              .high = dt_scalar_as_double(call->high),
              .wide = call->dtype == DT_FLOAT64};
    if (n < BLOCK || call->singly) {
        for (int64_t i = 0; i < n; i++) {
            double value = one_normal(g) * s.high + s.low;
            if (s.wide)
                ((double *)call->out)[i] = value;
            else
                ((float *)call->out)[i] = (float)value;
        }
        return;
    }
    if (s.wide)
        fill_float64(g, n, call->out);
    else
        fill_float32(g, n, call->out);
    dt_pool_run(transform, &s, n / BLOCK, 256);
    if (n % BLOCK == 0)
        return;
    /* The last 16 are drawn afresh, those among them that are done already too. */
    s.out = (char *)call->out + (size_t)(n - BLOCK) * dt_dtype_size(call->dtype);
    if (s.wide)
        fill_float64(g, BLOCK, s.out);
    else
        fill_float32(g, BLOCK, s.out);
    transform(&s, 0, 1);
}

/* --- integers and bernoulli --- */

#define NARROW_RANGE ((uint64_t)1 << 28)

static inline uint64_t next_integer(dt_generator *g, uint64_t range)
{
    if (range && range < NARROW_RANGE)
        return dt_generator_u32(g) % (uint32_t)range;
    uint64_t word = dt_generator_u64(g);
    return range ? word % range : word;
}

static void integers(dt_generator *g, const dt_random_call *call)
{
    dt_scalar low = call->low, high = call->high;
    int64_t first = low.kind == DT_KIND_FLOAT ? (int64_t)low.f : low.i;
    uint64_t range = (uint64_t)(high.kind == DT_KIND_FLOAT ? (int64_t)high.f : high.i) -
                     (uint64_t)first;
    if (high.i == INT64_MIN && call->dtype == DT_INT32) {
        /* PyTorch draws these of 32 bits, though as a range they would take 64. */
        for (int64_t i = 0; i < call->numel; i++)
            ((int32_t *)call->out)[i] = (int32_t)(dt_generator_u32(g) & INT32_MAX);
        return;
    }
    switch (call->dtype) {
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    case DT_##ID:                                                                      \
        for (int64_t i = 0; i < call->numel; i++)                                      \
            ((type *)call->out)[i] =                                                   \
                (type)(int64_t)((uint64_t)first + next_integer(g, range));             \
        break;
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        for (int64_t i = 0; i < call->numel; i++)                                      \
            ((type *)call->out)[i].bits = dt_##name##_narrow(                          \
                (float)(int64_t)((uint64_t)first + next_integer(g, range)));           \
        break;
#include "ops/dtype.def"
    case DT_NDTYPES:
        break;
    }
}

static void bernoulli(dt_generator *g, const dt_random_call *call)
{
    double p = dt_scalar_as_double(call->low);
    double draws[CHUNK];
    for (int64_t i = 0; i < call->numel; i += CHUNK) {
        int64_t some = call->numel - i > CHUNK ? CHUNK : call->numel - i;
        fill_float64(g, some, draws);
        switch (call->dtype) {
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    case DT_##ID:                                                                      \
        for (int64_t j = 0; j < some; j++)                                             \
            ((type *)call->out)[i + j] = (type)(draws[j] < p);                         \
        break;
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        for (int64_t j = 0; j < some; j++)                                             \
            ((type *)call->out)[i + j].bits =                                          \
                dt_##name##_narrow((float)(draws[j] < p));                             \
        break;
#include "ops/dtype.def"
        case DT_NDTYPES:
            break;
        }
    }
}

int dt_cpu_random(dt_stream stream, dt_generator *g, const dt_random_call *call)
{
    (void)stream;
    bool floats = dt_dtype_is_float(call->dtype);
    if (!floats && call->distribution <= DT_RANDOM_NORMAL)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s random numbers need a floating type, not %s; give dtype=float32",
            call->distribution == DT_RANDOM_UNIFORM ? "uniform" : "normal",
            dt_dtype_name(call->dtype));
    pthread_mutex_lock(&g->lock);
    switch (call->distribution) {
    case DT_RANDOM_UNIFORM:
        uniform(g, call);
        break;
    case DT_RANDOM_NORMAL:
        normal(g, call);
        break;
    case DT_RANDOM_INTEGERS:
        integers(g, call);
        break;
    case DT_RANDOM_BERNOULLI:
        bernoulli(g, call);
        break;
    case DT_NDISTRIBUTIONS:
        break;
    }
    pthread_mutex_unlock(&g->lock);
    return 0;
}
