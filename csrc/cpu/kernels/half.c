#include "cpu/kernels/half.h"

#include <string.h>

/* Elements of a block: three of them stay in the first cache. */
#define BLOCK 1024

static void convert(dt_dtype to, dt_dtype from, int64_t n, void *out,
                    int64_t out_stride, const void *x, int64_t x_stride)
{
    char *data[] = {out, (char *)(uintptr_t)x};
    int64_t strides[] = {out_stride, x_stride};
    dt_cpu_kernels.copy->convert[to][from](n, data, strides);
}

static void through_float32(dt_dtype to, dt_dtype from, int64_t n, char *const *data,
                            const int64_t *strides)
{
    float block[BLOCK];
    char *out = data[0];
    const char *x = data[1];
    for (; n > 0; n -= BLOCK) {
        int64_t some = n < BLOCK ? n : BLOCK;
        convert(DT_FLOAT32, from, some, block, sizeof *block, x, strides[1]);
        convert(to, DT_FLOAT32, some, out, strides[0], block, sizeof *block);
        out += some * strides[0];
        x += some * strides[1];
    }
}

/* One row of the op tables: inputs widened, float32's kernel, the result narrowed.
 * Bools are written straight. A result may lie over an input: a block is read before it
 * is written. */
static void run_row(dt_kernel *kernel, dt_dtype dtype, int inputs, bool gives_bool,
                    int64_t n, char *const *data, const int64_t *strides)
{
    float blocks[3][BLOCK];
    char *at[3];
    memcpy(at, data, (size_t)(inputs + 1) * sizeof *at);
    for (; n > 0; n -= BLOCK) {
        int64_t some = n < BLOCK ? n : BLOCK;
        char *wide[3] = {gives_bool ? at[0] : (char *)blocks[0], (char *)blocks[1],
                         (char *)blocks[2]};
        int64_t steps[3] = {gives_bool ? strides[0] : (int64_t)sizeof(float), 0, 0};
        for (int i = 1; i <= inputs; i++) {
            steps[i] = strides[i] ? (int64_t)sizeof(float) : 0;
            if ((uintptr_t)at[i] & 1) /* a number that is float32 already */
                memcpy(wide[i], at[i] - 1, sizeof(float));
            else
                convert(DT_FLOAT32, dtype, strides[i] ? some : 1, wide[i],
                        sizeof(float), at[i], strides[i]);
        }
        kernel(some, wide, steps);
        if (!gives_bool)
            convert(dtype, DT_FLOAT32, some, at[0], strides[0], blocks[0],
                    sizeof(float));
        for (int i = 0; i <= inputs; i++)
            at[i] += some * strides[i];
    }
}

/* What a class of the op tables makes of a float: a kernel, and whether it gives bools.
 */
#define TAKES_ANY(...)       __VA_ARGS__
#define TAKES_NUMBER(...)    __VA_ARGS__
#define TAKES_FLOAT(...)     __VA_ARGS__
#define TAKES_REAL(...)      __VA_ARGS__
#define TAKES_DIVIDES(...)   __VA_ARGS__
#define TAKES_PREDICATE(...) __VA_ARGS__
#define TAKES_COMPARE(...)   __VA_ARGS__
#define TAKES_BITS(...)
enum {
    GIVES_BOOL_ANY = 0,
    GIVES_BOOL_NUMBER = 0,
    GIVES_BOOL_FLOAT = 0,
    GIVES_BOOL_REAL = 0,
    GIVES_BOOL_DIVIDES = 0,
    GIVES_BOOL_PREDICATE = 1,
    GIVES_BOOL_COMPARE = 1
};

#define NAME FLOAT16
#include "cpu/kernels/half.inc"
#undef NAME
#define NAME BFLOAT16
#include "cpu/kernels/half.inc"
#undef NAME

#define DT_DTYPE_HALF(ID, name, alias, type, class)
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    void dt_half_from_##ID##_FLOAT16(int64_t n, char *const *data,                     \
                                     const int64_t *strides)                           \
    {                                                                                  \
        through_float32(DT_FLOAT16, DT_##ID, n, data, strides);                        \
    }                                                                                  \
    void dt_half_from_##ID##_BFLOAT16(int64_t n, char *const *data,                    \
                                      const int64_t *strides)                          \
    {                                                                                  \
        through_float32(DT_BFLOAT16, DT_##ID, n, data, strides);                       \
    }                                                                                  \
    void dt_half_from_FLOAT16_##ID(int64_t n, char *const *data,                       \
                                   const int64_t *strides)                             \
    {                                                                                  \
        through_float32(DT_##ID, DT_FLOAT16, n, data, strides);                        \
    }                                                                                  \
    void dt_half_from_BFLOAT16_##ID(int64_t n, char *const *data,                      \
                                    const int64_t *strides)                            \
    {                                                                                  \
        through_float32(DT_##ID, DT_BFLOAT16, n, data, strides);                       \
    }
#include "ops/dtype.def"

void dt_half_from_FLOAT16_BFLOAT16(int64_t n, char *const *data, const int64_t *strides)
{
    through_float32(DT_BFLOAT16, DT_FLOAT16, n, data, strides);
}
void dt_half_from_BFLOAT16_FLOAT16(int64_t n, char *const *data, const int64_t *strides)
{
    through_float32(DT_FLOAT16, DT_BFLOAT16, n, data, strides);
}
void dt_half_from_FLOAT16_FLOAT16(int64_t n, char *const *data, const int64_t *strides)
{
    dt_cpu_kernels.copy->move_16(n, data, strides);
}
void dt_half_from_BFLOAT16_BFLOAT16(int64_t n, char *const *data,
                                    const int64_t *strides)
{
    dt_cpu_kernels.copy->move_16(n, data, strides);
}
