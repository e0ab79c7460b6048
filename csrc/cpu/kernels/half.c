#include "cpu/kernels/half.h"

#include <string.h>

/* Elements of a block: four of them stay in the first cache. */
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

void dt_half_run(const dt_half_kernel *k, int64_t n, char *const *data,
                 const int64_t *strides)
{
    float blocks[DT_MAX_OPERANDS][BLOCK];
    char *at[DT_MAX_OPERANDS], *wide[DT_MAX_OPERANDS];
    int64_t steps[DT_MAX_OPERANDS];
    memcpy(at, data, (size_t)k->noperands * sizeof *at);
    for (; n > 0; n -= BLOCK) {
        int64_t some = n < BLOCK ? n : BLOCK;
        for (int i = 0; i < k->noperands; i++) {
            bool converts = k->halves >> i & 1;
            wide[i] = converts ? (char *)blocks[i] : at[i];
            steps[i] =
                converts && (strides[i] || !i) ? (int64_t)sizeof(float) : strides[i];
            if (converts && i)
                convert(DT_FLOAT32, k->half, strides[i] ? some : 1, wide[i],
                        sizeof(float), at[i], strides[i]);
        }
        k->kernel(some, wide, steps);
        if (k->halves & 1)
            convert(k->half, DT_FLOAT32, some, at[0], strides[0], blocks[0],
                    sizeof(float));
        for (int i = 0; i < k->noperands; i++)
            at[i] += some * strides[i];
    }
}

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
