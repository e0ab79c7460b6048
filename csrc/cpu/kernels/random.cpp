/* Random numbers of the CPU's backend: those of PyTorch's CPU generator. */
#include <math.h>

#include "base/gil.h"
#include "cpu/kernels/kernels.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"
#include "device/random.h"

namespace {

constexpr double TWO_PI = 6.283185307179586476925286766559;
/* Words drawn at a time. */
constexpr int64_t CHUNK = 1024;
/* From this length on, normal numbers are made in blocks of 16. */
constexpr int64_t BLOCK = 16;
/* Elements between two looks for an interrupt: whole blocks. The last chunk is at least
 * as long, so that it is made as one of the whole call. */
constexpr int64_t LOOK = 1 << 20;

int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A number as an element of T. */
template <typename T, typename From>
T rounded(From x)
{
    if constexpr (is_half<T>)
        return T((float)x);
    else
        return (T)x;
}

/* --- words and uniform numbers; the generator's lock is held --- */

void draw(dt_generator *g, int64_t n, uint32_t *out)
{
    while (n > 0) {
        if (g->next >= DT_TWISTER_WORDS) {
            *out++ = dt_generator_u32(g);
            n--;
            continue;
        }
        int64_t some = least(DT_TWISTER_WORDS - g->next, n);
        dt_cpu_kernels.random->temper(some, out, g->words + g->next);
        g->next += (int)some;
        out += some;
        n -= some;
    }
}

double uniform_double(uint64_t word)
{
    return (double)(word & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}
template <typename T>
T uniform_of(const uint32_t *words)
{
    if constexpr (sizeof(T) == sizeof(float))
        return (float)(*words & 0xffffff) * 0x1p-24f;
    else /* the first word drawn is the high half */
        return uniform_double((uint64_t)words[0] << 32 | words[1]);
}

template <typename T>
void fill(dt_generator *g, int64_t n, T *out)
{
    constexpr int64_t each = sizeof(T) / sizeof(uint32_t);
    uint32_t words[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK / each) {
        int64_t some = least(n - i, CHUNK / each);
        draw(g, each * some, words);
        for (int64_t j = 0; j < some; j++)
            out[i + j] = uniform_of<T>(words + each * j);
    }
}

/* --- uniform --- */

float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}
double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

template <typename T>
void stretch(void *context, int64_t begin, int64_t end)
{
    const dt_random_call *call = (const dt_random_call *)context;
    T *out = (T *)call->out, low = (T)dt_scalar_as_double(call->low);
    T range = (T)dt_scalar_as_double(call->high) - low;
    for (int64_t i = begin; i < end; i++)
        out[i] = fused(out[i], range, low);
}

template <typename T>
void uniform(dt_generator *g, const dt_random_call *call)
{
    T *out = (T *)call->out;
    double low = dt_scalar_as_double(call->low), high = dt_scalar_as_double(call->high);
    if constexpr (!is_half<T>) {
        fill(g, call->numel, out);
        if (low != 0 || high != 1)
            dt_pool_run(stretch<T>, (void *)call, call->numel, 16384);
        return;
    }
    /* Drawn as float32 and then rounded. Where that reaches the upper bound, which does
     * not belong to the interval, it is the lower one. */
    float block[CHUNK], from = (float)low, to = (float)high;
    for (int64_t i = 0; i < call->numel; i += CHUNK) {
        int64_t some = least(call->numel - i, CHUNK);
        fill(g, some, block);
        for (int64_t j = 0; j < some; j++)
            block[j] = fmaf(block[j], to - from, from);
        dt_convert_dense(call->dtype, DT_FLOAT32, some, out + i, block);
        dt_convert_dense(DT_FLOAT32, call->dtype, some, block, out + i);
        for (int64_t j = 0; j < some; j++)
            if (block[j] >= to && to > from)
                out[i + j] = rounded<T>(from);
    }
}

/* --- normal --- */

double one_normal(dt_generator *g)
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

/* Whole blocks of uniform numbers to normal ones, in place. */
template <typename T>
void make_normal(const dt_random_call *call, int64_t n, T *x)
{
    const dt_random_kernels *kernels = dt_cpu_kernels.random;
    (sizeof(T) == sizeof(float) ? kernels->normal_float32 : kernels->normal_float64)(
        n, x, dt_scalar_as_double(call->low), dt_scalar_as_double(call->high));
}

template <typename T>
void transform(void *context, int64_t begin, int64_t end)
{
    const dt_random_call *call = (const dt_random_call *)context;
    make_normal(call, (end - begin) * BLOCK, (T *)call->out + begin * BLOCK);
}

/* Blocks of normal numbers, CHUNK of them at most. */
template <typename T>
void draw_normal(dt_generator *g, const dt_random_call *call, int64_t n, T *out)
{
    Compute<T> block[CHUNK];
    fill(g, n, block);
    make_normal(call, n, block);
    dt_convert_dense(call->dtype, dt_dtype_compute(call->dtype), n, out, block);
}

template <typename T>
void normal(dt_generator *g, const dt_random_call *call)
{
    T *out = (T *)call->out;
    int64_t n = call->numel, whole = n - n % BLOCK;
    if (n < BLOCK || call->singly) {
        double mean = dt_scalar_as_double(call->low);
        double deviation = dt_scalar_as_double(call->high);
        for (int64_t i = 0; i < n; i++)
            out[i] = rounded<T>(one_normal(g) * deviation + mean);
        return;
    }
    if constexpr (is_half<T>) {
        for (int64_t i = 0; i < whole; i += CHUNK)
            draw_normal(g, call, least(whole - i, CHUNK), out + i);
    } else {
        fill(g, n, out);
        dt_pool_run(transform<T>, (void *)call, n / BLOCK, 256);
    }
    /* The last 16 are drawn afresh, those among them that are done already too. */
    if (whole < n)
        draw_normal(g, call, BLOCK, out + n - BLOCK);
}

/* --- integers and bernoulli --- */

constexpr uint64_t NARROW_RANGE = (uint64_t)1 << 28;

uint64_t next_integer(dt_generator *g, uint64_t range)
{
    if (range && range < NARROW_RANGE)
        return dt_generator_u32(g) % (uint32_t)range;
    uint64_t word = dt_generator_u64(g);
    return range ? word % range : word;
}

int64_t whole_number(dt_scalar s)
{
    return s.kind == DT_KIND_FLOAT ? (int64_t)s.f : s.i;
}

template <typename T>
void integers(dt_generator *g, const dt_random_call *call)
{
    T *out = (T *)call->out;
    uint64_t first = (uint64_t)whole_number(call->low);
    uint64_t range = (uint64_t)whole_number(call->high) - first;
    /* PyTorch draws these of 32 bits, though as a range they would take 64. */
    bool all = call->high.i == INT64_MIN && call->dtype == DT_INT32;
    for (int64_t i = 0; i < call->numel; i++)
        out[i] = rounded<T>(all ? (int64_t)(dt_generator_u32(g) & INT32_MAX)
                                : (int64_t)(first + next_integer(g, range)));
}

template <typename T>
void bernoulli(dt_generator *g, const dt_random_call *call)
{
    double p = dt_scalar_as_double(call->low), draws[CHUNK];
    T *out = (T *)call->out;
    for (int64_t i = 0; i < call->numel; i += CHUNK) {
        int64_t some = least(call->numel - i, CHUNK);
        fill(g, some, draws);
        for (int64_t j = 0; j < some; j++)
            out[i + j] = draws[j] < p ? rounded<T>(1) : rounded<T>(0);
    }
}

template <typename T>
int run_random(dt_generator *g, const dt_random_call *call)
{
    if (call->distribution == DT_RANDOM_INTEGERS) {
        integers<T>(g, call);
    } else if (call->distribution == DT_RANDOM_BERNOULLI) {
        bernoulli<T>(g, call);
    } else if constexpr (std::is_integral_v<Compute<T>>) {
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s random numbers need a floating type, not %s; give dtype=float32",
            call->distribution == DT_RANDOM_UNIFORM ? "uniform" : "normal",
            dt_dtype_name(call->dtype));
    } else {
        (call->distribution == DT_RANDOM_UNIFORM ? uniform<T> : normal<T>)(g, call);
    }
    return 0;
}
int (*const runs[])(dt_generator *, const dt_random_call *) = {
#define DT_DTYPE(ID, name, alias, type) run_random<type>,
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
};

} // namespace

int dt_cpu_random(dt_stream, dt_generator *g, const dt_random_call *call)
{
    DT_WITHOUT_GIL(true); /* before the lock, which other threads take with it */
    dt_random_call chunk = *call;
    const int64_t size = (int64_t)dt_dtype_size(call->dtype);
    int status = 0;
    dt_lock(g->lock);
    for (int64_t first = 0; first < call->numel && !status; first += chunk.numel) {
        const int64_t left = call->numel - first;
        chunk.out = (char *)call->out + first * size;
        chunk.numel = left < 2 * LOOK ? left : LOOK;
        status = dt_generator_check(g) < 0 ? -1 : runs[call->dtype](g, &chunk);
    }
    dt_unlock(g->lock);
    return status;
}
