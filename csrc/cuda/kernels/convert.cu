/* Copies with and without a change of type, and constants. One kernel serves all pairs
 * of types: what it waits for is memory, not the choice of a conversion. */
#include "cuda/kernels/convert.h"

#include "cuda/runtime/device.h"
#include "cuda/kernels/layout.h"

/* A number on its way from one type to another. */
struct Number {
    bool is_float;
    int64_t i;
    double f;
};

static __device__ __forceinline__ Number load_number(const char *from, dt_dtype dtype)
{
    Number x = {false, 0, 0};
    switch (dtype) {
#define DT_DTYPE_BOOL(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        x.i = *(const unsigned char *)from != 0;                                       \
        break;
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    case DT_##ID:                                                                      \
        x.i = (int64_t)*(const type *)from;                                            \
        break;
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        x.is_float = true;                                                             \
        x.f = (double)*(const type *)from;                                             \
        break;
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        x.is_float = true;                                                             \
        x.f = (double)(float)*(const type *)from;                                      \
        break;
#include "ops/dtype.def"
    default:
        break;
    }
    return x;
}

/* What has no place among 64-bit integers gives the least of them, as on the CPU. */
static __device__ __forceinline__ int64_t truncated(double f)
{
    return f > -9223372036854775808.0 && f < 9223372036854775808.0 ? (int64_t)f
                                                                   : INT64_MIN;
}

/* To types below 64 bits it goes through 32, as on the CPU (cpu/kernels/copy.isa.c). */
static __device__ __forceinline__ int64_t narrow(double f)
{
    return f > -2147483649.0 && f < 2147483648.0 ? (int64_t)f : INT32_MIN;
}

static __device__ __forceinline__ void store_number(char *to, dt_dtype dtype,
                                                    const Number &x)
{
    switch (dtype) {
#define DT_DTYPE_BOOL(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        *(bool *)to = x.is_float ? x.f != 0 : x.i != 0;                                \
        break;
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    case DT_##ID:                                                                      \
        *(type *)to = (type)(!x.is_float        ? x.i                                  \
                             : sizeof(type) < 8 ? narrow(x.f)                          \
                                                : truncated(x.f));                     \
        break;
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        *(type *)to = x.is_float ? (type)x.f : (type)x.i;                              \
        break;
#include "ops/dtype.def"
    default:
        break;
    }
}

__global__ void convert_strided(char *out, dt_dtype out_dtype, const char *x,
                                dt_dtype x_dtype, unsigned n,
                                GRID_CONSTANT(Layout<2>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[2];
    layout_offsets(layout, i, at);
    store_number(out + at[0], out_dtype, load_number(x + at[1], x_dtype));
}

/* Without a change of type an element is so many bytes. */
template <typename Word>
__global__ void copy_strided(char *out, const char *x, unsigned n,
                             GRID_CONSTANT(Layout<2>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[2];
    layout_offsets(layout, i, at);
    *(Word *)(out + at[0]) = *(const Word *)(x + at[1]);
}

template <typename Word>
__global__ void fill_strided(char *out, Word value, unsigned n,
                             GRID_CONSTANT(Layout<1>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[1];
    layout_offsets(layout, i, at);
    *(Word *)(out + at[0]) = value;
}

template <typename Word>
__global__ void fill_flat(Word *out, Word value, int64_t n, bool aligned)
{
    constexpr int N = pack_size<Word>;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    if (aligned && i + N <= n) {
        Pack<Word, N> pack;
        UNROLL
        for (int k = 0; k < N; k++)
            pack.v[k] = value;
        *(Pack<Word, N> *)(out + i) = pack;
        return;
    }
    for (int k = 0; k < N && i + k < n; k++)
        out[i + k] = value;
}

template <typename Word>
static int copy_words(dt_stream stream, const dt_plan *plan)
{
    return each_piece(plan, [&](const dt_plan *piece) {
        CUDA_TRY("starting a copy",
                 LAUNCH((copy_strided<Word>), blocks_for(piece->numel), BLOCK, 0,
                        (cudaStream_t)stream.handle, (char *)piece->operands[0].data,
                        (const char *)piece->operands[1].data, (unsigned)piece->numel,
                        layout_of<2>(piece)));
        return 0;
    });
}

template <typename Word>
static int fill_words(dt_stream stream, const dt_plan *plan)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    Word value;
    __builtin_memcpy(&value, plan->operands[1].value.bytes, sizeof value);
    if (plan->contiguous) {
        Word *out = (Word *)plan->operands[0].data;
        CUDA_TRY(
            "starting a fill",
            LAUNCH((fill_flat<Word>),
                   blocks_for((plan->numel + pack_size<Word> - 1) / pack_size<Word>),
                   BLOCK, 0, handle, out, value, plan->numel, is_aligned(out, 16)));
        return 0;
    }
    return each_piece(plan, [&](const dt_plan *piece) {
        CUDA_TRY("starting a fill",
                 LAUNCH((fill_strided<Word>), blocks_for(piece->numel), BLOCK, 0,
                        handle, (char *)piece->operands[0].data, value,
                        (unsigned)piece->numel, layout_of<1>(piece)));
        return 0;
    });
}

int convert_copy(dt_stream stream, const dt_plan *plan)
{
    dt_dtype to = plan->operands[0].dtype, from = plan->operands[1].dtype;
    cudaStream_t handle = (cudaStream_t)stream.handle;
    if (device_use(stream.device))
        return -1;
    if (to != from)
        return each_piece(plan, [&](const dt_plan *piece) {
            CUDA_TRY("starting a conversion",
                     LAUNCH(convert_strided, blocks_for(piece->numel), BLOCK, 0, handle,
                            (char *)piece->operands[0].data, to,
                            (const char *)piece->operands[1].data, from,
                            (unsigned)piece->numel, layout_of<2>(piece)));
            return 0;
        });
    if (plan->contiguous) {
        CUDA_TRY("copying on a device",
                 cudaMemcpyAsync(plan->operands[0].data, plan->operands[1].data,
                                 (size_t)plan->numel * dt_dtype_size(to),
                                 cudaMemcpyDeviceToDevice, handle));
        return 0;
    }
    switch (dt_dtype_size(to)) {
    case 1:
        return copy_words<uint8_t>(stream, plan);
    case 2:
        return copy_words<uint16_t>(stream, plan);
    case 4:
        return copy_words<uint32_t>(stream, plan);
    default:
        return copy_words<uint64_t>(stream, plan);
    }
}

int convert_fill(dt_stream stream, const dt_plan *plan)
{
    if (device_use(stream.device))
        return -1;
    switch (dt_dtype_size(plan->operands[0].dtype)) {
    case 1:
        return fill_words<uint8_t>(stream, plan);
    case 2:
        return fill_words<uint16_t>(stream, plan);
    case 4:
        return fill_words<uint32_t>(stream, plan);
    default:
        return fill_words<uint64_t>(stream, plan);
    }
}
