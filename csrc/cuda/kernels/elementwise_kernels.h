/* The kernels for rows of one to four inputs, of any element type and any layout. All
 * rows of a type and arity lie in one kernel, each of them once, since a kernel costs a wheel
 * some kilobytes for each architecture and there are hundreds of rows; the threads of a
 * launch take the same branch. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H
#define DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H

#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/packs.h"
#include "ops/class.h"

/* --- rows --- */

/* Whether a row of this class is of a kernel <First, T, R>: the types of the first
 * input, of the others and of the result. */
template <typename First, typename T, typename R>
static __host__ __device__ constexpr bool runs(const dt_class &c)
{
    return c.takes[dt_kind_of<T>] &&
           (c.choice ? std::is_same_v<First, bool> : std::is_same_v<First, T>) &&
           (c.truth ? std::is_same_v<R, bool> : std::is_same_v<R, T>);
}

/* Row `op` of each element. */
template <int INPUTS, typename First, typename T, typename R, int N>
static __device__ __forceinline__ void
apply_row(int op, const Vector<First, N> &a, const Vector<T, N> &b,
          const Vector<T, N> &c, T d, Vector<R, N> &out)
{
    switch (op) {
#define KERNEL(name, arity, class, low, high, operands, value)                         \
    case DT_OP_##name:                                                                 \
        if constexpr ((arity) == INPUTS &&                                             \
                      runs<First, T, R>(DT_CLASS_VALUE(DT_CLASS_##class))) {           \
            UNROLL                                                                     \
            for (int k = 0; k < N; k++) {                                              \
                operands(First, a.v[k], b.v[k], c.v[k], d) out.v[k] = (R)(value);      \
            }                                                                          \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default:
        break;
    }
}

/* --- the kernel --- */

/* Elements of a pack: 16 bytes of them, or 8 where elements are small. */
template <typename T>
constexpr int elements_each = (sizeof(T) < 4 ? 8 : 16) / (int)sizeof(T);

/* How many inputs may be tensors: a fourth one is always a number. */
template <int INPUTS>
constexpr int tensors_of = INPUTS < 3 ? INPUTS : 3;

/* Input K of a thread as it lies in memory; 0 for one that the row does not have. It
 * becomes numbers when all inputs have been asked for, since that waits for it. */
template <int K, typename T, int N>
struct Input {
    typedef std::conditional_t<std::is_same_v<T, bool>, dt_bool, T> Stored;
    Pack<Stored, N> pack;
    Pack<uint16_t, N> halves; /* instead, where floats lie in 16 bits */
    bool is_half;

    template <int OPERANDS>
    __device__ __forceinline__ Input(const Packs<OPERANDS> &p, const char *data,
                                     const int64_t *offsets, T value, unsigned column,
                                     bool full, Half half)
        : pack{}, is_half(false)
    {
        const char *from = K ? data + offsets[K] : data;
        /* First what is most frequent. */
        if (K && p.ways[K] == PACK_WHOLE && full && !half) {
            pack.words = *(const decltype(pack.words) *)from;
            return;
        }
        bool there = K && p.ways[K] != PACK_OF_VALUE;
        is_half = std::is_same_v<T, float> && half && there;
        if (is_half) {
            halves = pack_at<K, uint16_t, N>(p, from, column, full);
        } else if (there) {
            pack = pack_at<K, Stored, N>(p, from, column, full);
        } else {
            UNROLL
            for (int k = 0; k < N; k++)
                pack.set(k, (Stored)value);
        }
    }

    __device__ __forceinline__ Vector<T, N> elements(Half half) const
    {
        if constexpr (std::is_same_v<T, bool>)
            return tested(pack.elements());
        else if constexpr (std::is_same_v<T, float>)
            return is_half ? widened(halves.elements(), half == BRAIN16)
                           : pack.elements();
        else
            return pack.elements();
    }
};

template <typename First, typename T, typename R, int INPUTS>
__global__ void ENOUGH_BLOCKS
elementwise_kernel(int op, char *out, const char *a, const char *b, const char *c,
                   First a_value, T b_value, T c_value, T d_value, Half half,
                   GRID_CONSTANT(Packs<tensors_of<INPUTS> + 1>) p)
{
    constexpr int N = elements_each<T>, TENSORS = tensors_of<INPUTS>;
    constexpr int B = INPUTS > 1 ? 2 : 0, C = INPUTS > 2 ? 3 : 0;
    int64_t at[TENSORS + 1];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, N, at);
    bool full = column + N <= p.length;
    Input<1, First, N> x(p, a, at, a_value, column, full, half);
    Input<B, T, N> y(p, b, at, b_value, column, full, half);
    Input<C, T, N> z(p, c, at, c_value, column, full, half);
    Vector<R, N> results = {};
    apply_row<INPUTS>(op, x.elements(half), y.elements(half), z.elements(half), d_value,
                      results);
    out += at[0];
    if constexpr (std::is_same_v<R, float>)
        if (half)
            return put_pack<0>(p, out, column, full,
                               packed(narrowed(results, half == BRAIN16)));
    put_pack<0>(p, out, column, full, packed(results));
}

/* --- launches --- */

/* What an operand has instead of elements. */
template <typename T>
T value_of(const dt_operand &operand)
{
    T value = 0;
    if (!operand.scalar)
        return value;
    if constexpr (std::is_same_v<T, float>)
        /* Of any type of floats: a number among halves may be a float32. */
        value = (float)dt_element_to_scalar(operand.dtype, operand.value.bytes).f;
    else if constexpr (std::is_same_v<T, bool>)
        value = (bool)operand.value.as_bool;
    else
        __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

template <typename First, typename T, typename R, int INPUTS>
int elementwise_start(dt_stream stream, int op, const dt_plan *plan)
{
    constexpr int TENSORS = tensors_of<INPUTS>;
    Half half = half_of(dt_plan_type(plan, false));
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand *operands = piece->operands;
        const dt_operand &a = operands[1], &b = operands[INPUTS > 1 ? 2 : 1],
                         &c = operands[TENSORS], &d = operands[INPUTS];
        auto packs = packs_of<TENSORS + 1>(piece, elements_each<T>);
        return START("starting an elementwise kernel", stream,
                     (elementwise_kernel<First, T, R, INPUTS>), packs.numel, op,
                     (char *)operands[0].data, (const char *)a.data,
                     INPUTS > 1 ? (const char *)b.data : nullptr,
                     INPUTS > 2 ? (const char *)c.data : nullptr, value_of<First>(a),
                     value_of<T>(b), value_of<T>(c), value_of<T>(d), half, packs);
    });
}

/* What cuda/kernels/elementwise.h says of an element type. */
#define ELEMENTWISE_TYPE(ID, type, ternary, quaternary, choice)                        \
    const elementwise_kernels elementwise_##ID = {                                     \
        {{elementwise_start<type, type, type, 1>,                                      \
          elementwise_start<type, type, type, 2>, ternary, quaternary},                \
         {elementwise_start<type, type, bool, 1>,                                      \
          elementwise_start<type, type, bool, 2>, nullptr, nullptr}},                  \
        choice};
#define ELEMENTWISE_TERNARY(type)    elementwise_start<type, type, type, 3>
#define ELEMENTWISE_QUATERNARY(type) elementwise_start<type, type, type, 4>

#endif
