/* Copies with and without a change of type, and constants. One kernel serves all pairs
 * of types: what it waits for is memory, not the choice of a conversion. */
#include "cuda/kernels/compute.h"

#define DT_FN static __device__ __forceinline__
#include "ops/convert.h"

/* A number on its way from one type to another. */
struct Number {
    bool is_float;
    int64_t i;
    double f;
};

template <class F>
static __device__ __forceinline__ void with_element_type(dt_dtype dtype, F f)
{
    switch (dtype) {
#define DT_DTYPE(ID, name, alias, type)                                                \
    case DT_##ID:                                                                      \
        f(type());                                                                     \
        break;
#include "ops/dtype.def"
    default:
        break;
    }
}

static __device__ __forceinline__ Number load_number(const char *from, dt_dtype dtype)
{
    Number x = {false, 0, 0};
    with_element_type(dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if constexpr (dt_kind_of<T> == DT_KIND_BOOL)
            x.i = (bool)*(const T *)from;
        else if constexpr (dt_kind_of<T> == DT_KIND_INTEGER)
            x.i = (int64_t)*(const T *)from;
        else
            x = {true, 0, (double)(Compute<T>)*(const T *)from};
    });
    return x;
}

static __device__ __forceinline__ void store_number(char *to, dt_dtype dtype,
                                                    const Number &x)
{
    with_element_type(dtype, [&](auto zero) {
        typedef decltype(zero) T;
        *(T *)to = x.is_float ? dt_converted<T>(x.f) : dt_converted<T>(x.i);
    });
}

__global__ void convert_strided(char *out, dt_dtype out_dtype, const char *x,
                                dt_dtype x_dtype, unsigned n,
                                GRID_CONSTANT(Layout<2>) layout)
{
    unsigned i = (unsigned)thread_number();
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
    unsigned i = (unsigned)thread_number();
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
    unsigned i = (unsigned)thread_number();
    if (i >= n)
        return;
    int64_t at[1];
    layout_offsets(layout, i, at);
    *(Word *)(out + at[0]) = value;
}

template <typename Word>
__global__ void fill_flat(Word *out, Word value, int64_t n, bool aligned)
{
    constexpr int N = vector_size<Word>;
    int64_t i = thread_number() * N;
    if (aligned && i + N <= n) {
        Vector<Word, N> vector;
        UNROLL
        for (int k = 0; k < N; k++)
            vector.v[k] = value;
        *(Vector<Word, N> *)(out + i) = vector;
        return;
    }
    for (int k = 0; k < N && i + k < n; k++)
        out[i + k] = value;
}

template <typename Word>
static int copy_words(dt_stream stream, const dt_plan *plan)
{
    return each_piece(plan, [&](const dt_plan *piece) {
        return START("starting a copy", stream, (copy_strided<Word>), piece->numel,
                     (char *)piece->operands[0].data,
                     (const char *)piece->operands[1].data, (unsigned)piece->numel,
                     layout_of<2>(piece));
    });
}

template <typename Word>
static int fill_words(dt_stream stream, const dt_plan *plan)
{
    constexpr int N = vector_size<Word>;
    Word value, *out = (Word *)plan->operands[0].data;
    __builtin_memcpy(&value, plan->operands[1].value.bytes, sizeof value);
    if (plan->contiguous)
        return START("starting a fill", stream, (fill_flat<Word>),
                     (plan->numel + N - 1) / N, out, value, plan->numel,
                     is_aligned(out, 16));
    return each_piece(plan, [&](const dt_plan *piece) {
        return START("starting a fill", stream, (fill_strided<Word>), piece->numel,
                     (char *)piece->operands[0].data, value, (unsigned)piece->numel,
                     layout_of<1>(piece));
    });
}

int dt_cuda_copy(dt_stream stream, const dt_plan *plan)
{
    dt_dtype to = plan->operands[0].dtype, from = plan->operands[1].dtype;
    if (to != from)
        return each_piece(plan, [&](const dt_plan *piece) {
            return START("starting a conversion", stream, convert_strided, piece->numel,
                         (char *)piece->operands[0].data, to,
                         (const char *)piece->operands[1].data, from,
                         (unsigned)piece->numel, layout_of<2>(piece));
        });
    if (!plan->contiguous)
        return with_word(
            to, [&](auto word) { return copy_words<decltype(word)>(stream, plan); });
    CUDA_TRY("copying on a device",
             cudaMemcpyAsync(plan->operands[0].data, plan->operands[1].data,
                             (size_t)plan->numel * dt_dtype_size(to),
                             cudaMemcpyDeviceToDevice, (cudaStream_t)stream.handle));
    return 0;
}

int dt_cuda_fill(dt_stream stream, const dt_plan *plan)
{
    return with_word(plan->operands[0].dtype, [&](auto word) {
        return fill_words<decltype(word)>(stream, plan);
    });
}
