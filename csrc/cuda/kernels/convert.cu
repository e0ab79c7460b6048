/* Copies with and without a change of type, and constants. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/pack_access.h"
#include "cuda/kernels/transpose.h"

#define DT_FN static __device__ __forceinline__
#include "ops/convert.h"

namespace {

/* --- conversions between floats --- */

/* A pack of each float type in 8 or 16 bytes at a time. */
enum { FLOATS_EACH = 8 };

template <int K>
__device__ __forceinline__ Vector<float, FLOATS_EACH>
floats_at(const Packs<2> &p, const char *at, unsigned column, bool full, Half half)
{
    if (half)
        return widened(
            pack_at<K, uint16_t, FLOATS_EACH>(p, at, column, full).elements(),
            half == BRAIN16);
    return pack_at<K, float, FLOATS_EACH>(p, at, column, full).elements();
}

/* float32 and the floats of 16 bits, which are what networks convert in each step. */
__global__ void convert_floats(char *out, Half to, const char *x, Half from,
                               GRID_CONSTANT(Packs<2>) p)
{
    int64_t at[2];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, FLOATS_EACH, at);
    bool full = column + FLOATS_EACH <= p.length;
    auto floats = floats_at<1>(p, x + at[1], column, full, from);
    out += at[0];
    if (to)
        put_pack<0>(p, out, column, full, packed(narrowed(floats, to == BRAIN16)));
    else
        put_pack<0>(p, out, column, full, packed(floats));
}

bool is_narrow_float(dt_dtype dtype)
{
    return dtype == DT_FLOAT32 || dt_dtype_is_half(dtype);
}

/* --- other conversions --- */

/* One kernel serves all pairs of types: memory limits its speed, not the branch on the
 * types. */
enum { NUMBERS_EACH = 4 };

/* Numbers on their way from one type to another. */
struct Numbers {
    bool are_floats;
    int64_t i[NUMBERS_EACH];
    double f[NUMBERS_EACH];
};

__device__ __forceinline__ Numbers numbers_at(const Packs<2> &p, const char *at,
                                              unsigned column, bool full,
                                              dt_dtype dtype)
{
    Numbers x = {};
    with_element_type(dtype, [&](auto zero) {
        typedef decltype(zero) T;
        auto pack = pack_at<1, T, NUMBERS_EACH>(p, at, column, full);
        x.are_floats = dt_kind_of<T> == DT_KIND_FLOAT;
        UNROLL
        for (int k = 0; k < NUMBERS_EACH; k++)
            if constexpr (dt_kind_of<T> == DT_KIND_BOOL)
                x.i[k] = (bool)pack.get(k);
            else if constexpr (dt_kind_of<T> == DT_KIND_INTEGER)
                x.i[k] = (int64_t)pack.get(k);
            else
                x.f[k] = (double)(Compute<T>)pack.get(k);
    });
    return x;
}

__device__ __forceinline__ void put_numbers(const Packs<2> &p, char *at,
                                            unsigned column, bool full, dt_dtype dtype,
                                            const Numbers &x)
{
    with_element_type(dtype, [&](auto zero) {
        typedef decltype(zero) T;
        Pack<T, NUMBERS_EACH> pack = {};
        UNROLL
        for (int k = 0; k < NUMBERS_EACH; k++)
            pack.set(k,
                     x.are_floats ? dt_converted<T>(x.f[k]) : dt_converted<T>(x.i[k]));
        put_pack<0>(p, at, column, full, pack);
    });
}

__global__ void convert_numbers(char *out, dt_dtype to, const char *x, dt_dtype from,
                                GRID_CONSTANT(Packs<2>) p)
{
    int64_t at[2];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, NUMBERS_EACH, at);
    bool full = column + NUMBERS_EACH <= p.length;
    Numbers numbers = numbers_at(p, x + at[1], column, full, from);
    put_numbers(p, out + at[0], column, full, to, numbers);
}

int convert(dt_stream stream, const dt_plan *plan)
{
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &out = piece->operands[0], &x = piece->operands[1];
        if (is_narrow_float(out.dtype) && is_narrow_float(x.dtype)) {
            auto packs = packs_of<2>(piece, FLOATS_EACH);
            return START("starting a conversion", stream, convert_floats, packs.numel,
                         (char *)out.data, half_of(out.dtype), (const char *)x.data,
                         half_of(x.dtype), packs);
        }
        auto packs = packs_of<2>(piece, NUMBERS_EACH);
        return START("starting a conversion", stream, convert_numbers, packs.numel,
                     (char *)out.data, out.dtype, (const char *)x.data, x.dtype, packs);
    });
}

/* --- copies and constants --- */

/* Copies without a change of type: only the size of an element matters. */
template <typename Word>
__global__ void copy_words(char *out, const char *x, GRID_CONSTANT(Packs<2>) p)
{
    constexpr int N = 16 / (int)sizeof(Word);
    int64_t at[2];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, N, at);
    bool full = column + N <= p.length;
    put_pack<0>(p, out + at[0], column, full,
                pack_at<1, Word, N>(p, x + at[1], column, full));
}

template <typename Word>
__global__ void fill_words(char *out, Word value, GRID_CONSTANT(Packs<1>) p)
{
    constexpr int N = 16 / (int)sizeof(Word);
    int64_t at[1];
    unsigned number = (unsigned)thread_number();
    if (number >= p.numel)
        return;
    unsigned column = pack_offsets(p, number, N, at);
    Pack<Word, N> pack = {};
    UNROLL
    for (int k = 0; k < N; k++)
        pack.set(k, value);
    put_pack<0>(p, out + at[0], column, column + N <= p.length, pack);
}

template <typename Word>
int copy(dt_stream stream, const dt_plan *plan)
{
    return each_piece(plan, [&](const dt_plan *piece) {
        int dim = transposed_dim(piece);
        if (dim >= 0)
            return start_transpose(stream, piece, dim);
        auto packs = packs_of<2>(piece, 16 / (int)sizeof(Word));
        return START("starting a copy", stream, (copy_words<Word>), packs.numel,
                     (char *)piece->operands[0].data,
                     (const char *)piece->operands[1].data, packs);
    });
}

template <typename Word>
int fill(dt_stream stream, const dt_plan *plan)
{
    Word value;
    __builtin_memcpy(&value, plan->operands[1].value.bytes, sizeof value);
    return each_piece(plan, [&](const dt_plan *piece) {
        auto packs = packs_of<1>(piece, 16 / (int)sizeof(Word));
        return START("starting a fill", stream, (fill_words<Word>), packs.numel,
                     (char *)piece->operands[0].data, value, packs);
    });
}

} // namespace

int dt_cuda_copy(dt_stream stream, const dt_plan *plan)
{
    dt_dtype to = plan->operands[0].dtype, from = plan->operands[1].dtype;
    if (to != from)
        return convert(stream, plan);
    if (!plan->contiguous)
        return with_word(to,
                         [&](auto word) { return copy<decltype(word)>(stream, plan); });
    CUDA_TRY("copying on a device",
             cudaMemcpyAsync(plan->operands[0].data, plan->operands[1].data,
                             (size_t)plan->numel * dt_dtype_size(to),
                             cudaMemcpyDeviceToDevice, (cudaStream_t)stream.handle));
    return 0;
}

int dt_cuda_fill(dt_stream stream, const dt_plan *plan)
{
    return with_word(plan->operands[0].dtype,
                     [&](auto word) { return fill<decltype(word)>(stream, plan); });
}
