/* The kernels for rows of one to four inputs, of any element type and any layout. All
 * rows of a type and arity are in one kernel, each of them once, since a kernel costs a
 * wheel some kilobytes for each architecture and there are hundreds of rows; the
 * threads of a launch take the same branch. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H
#define DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H

#include "cuda/kernels/compute.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/pack_access.h"
#include "ops/elementwise.h"
#include "ops/elementwise_ops.h"

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

/* Long rows take many registers, and other rows of their kernel with them: so those of
 * float, which are many, have a kernel of their own. */
enum { ALL_ROWS, SHORT_ROWS, LONG_ROWS, OWN_ROWS };
static __host__ __device__ constexpr bool is_long(const dt_class &c)
{
    return c.cost > 1 || c.rule == DT_RULE_EXPONENT;
}
static __host__ __device__ constexpr bool has_row(int rows, const dt_class &c,
                                                  int flags)
{
    if (rows == OWN_ROWS || flags & DT_OWN_KERNEL)
        return rows == OWN_ROWS && flags & DT_OWN_KERNEL;
    return rows == ALL_ROWS || is_long(c) == (rows == LONG_ROWS);
}

/* Row `op` of each element. */
template <int INPUTS, int ROWS, typename First, typename T, typename R, int N>
static __device__ __forceinline__ void
apply_row(int op, const Vector<First, N> &a, const Vector<T, N> &b,
          const Vector<T, N> &c, T d, Vector<R, N> &out)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr ((arity) == INPUTS &&                                             \
                      has_row(ROWS, DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) && \
                      runs<First, T, R>(DT_CLASS_VALUE(flags, DT_CLASS_##class))) {    \
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

/* Whether 16 bytes may be two packs: of small elements, or of floats stored in 16
 * bits. A thread asks for both at once, and sends one after the other through the
 * row. */
template <typename T, int ROWS>
constexpr bool may_be_pairs = sizeof(T) < 4 || std::is_same_v<T, float>;

/* How a kernel of float finds the elements of an operand: two bits for each, those of
 * operand K from bit 2 * K on; and whether those of 16 bits are bfloat16. */
static constexpr unsigned STORED_WHOLE = 0, STORED_HALF = 1, STORED_BYTE = 2,
                          STORED_BOOL = 3, BRAINS = 1u << 31;

/* How many inputs may be tensors: a fourth one is always a number. */
template <int INPUTS>
constexpr int tensors_of = INPUTS < 3 ? INPUTS : 3;

/* Input K of a thread as stored; 0 for one that the row does not have. It
 * becomes numbers when all inputs have been asked for, since that waits for it. */
template <int K, typename T, int N>
struct Input {
    typedef std::conditional_t<std::is_same_v<T, bool>, dt_bool, T> Stored;
    /* A pack, or a pair of them. */
    static constexpr int BYTES = N * (int)sizeof(T) * (sizeof(T) < 4 ? 2 : 1);
    Vector<uint32_t, (BYTES + 3) / 4> words;
    unsigned as;

    template <int OPERANDS>
    __device__ __forceinline__ Input(const Packs<OPERANDS> &p, const char *data,
                                     const int64_t *offsets, T value, unsigned column,
                                     bool full, bool pair, unsigned storage)
        : words{}
    {
        const char *from = K ? data + offsets[K] : data;
        bool there = K && p.ways[K] != PACK_OF_VALUE;
        as = std::is_same_v<T, float> && there ? storage >> 2 * K & 3 : STORED_WHOLE;
        /* The common case first. */
        if (K && p.ways[K] == PACK_WHOLE && full &&
            (pair || (sizeof(T) >= 4 && as == STORED_WHOLE))) {
            words = *(const decltype(words) *)from;
        } else if (as == STORED_HALF) {
            put(pack_at<K, uint16_t, N>(p, from, column, full));
        } else if (as != STORED_WHOLE) {
            put(pack_at<K, uint8_t, N>(p, from, column, full));
        } else if (there) {
            put(pack_at<K, Stored, N>(p, from, column, full));
        } else {
            Pack<Stored, N> values = {};
            UNROLL
            for (int k = 0; k < N; k++)
                values.set(k, (Stored)value);
            put(values);
        }
    }

    __device__ __forceinline__ Vector<T, N> elements(unsigned storage) const
    {
        if constexpr (std::is_same_v<T, float>) {
            if (as == STORED_HALF)
                return widened(first<uint16_t>().elements(), storage & BRAINS);
            if (as != STORED_WHOLE) {
                const Pack<uint8_t, N> bytes = first<uint8_t>();
                Vector<T, N> numbers;
                UNROLL
                for (int k = 0; k < N; k++)
                    numbers.v[k] =
                        as == STORED_BOOL ? T(bytes.get(k) != 0) : T(bytes.get(k));
                return numbers;
            }
        }
        if constexpr (std::is_same_v<T, bool>)
            return tested(first<Stored>().elements());
        else
            return first<Stored>().elements();
    }
    /* The second pack of a pair. Others are an element or a value, and stay the
     * same. */
    template <int OPERANDS>
    __device__ __forceinline__ void next(const Packs<OPERANDS> &p)
    {
        if (p.ways[K] != PACK_WHOLE)
            return;
        UNROLL
        for (int w = 0; w < BYTES / 8; w++)
            words.v[w] = words.v[w + BYTES / 8];
    }

  private:
    template <typename S>
    __device__ __forceinline__ Pack<S, N> first() const
    {
        Pack<S, N> pack;
        __builtin_memcpy(&pack.words, &words, sizeof pack.words);
        return pack;
    }
    template <typename S>
    __device__ __forceinline__ void put(const Pack<S, N> &pack)
    {
        __builtin_memcpy(&words, &pack.words, sizeof pack.words);
    }
};

/* Results as stored. */
template <typename R, int N>
static __device__ __forceinline__ auto stored(const Vector<R, N> &results,
                                              unsigned storage)
{
    if constexpr (std::is_same_v<R, float>)
        return packed(narrowed(results, storage & BRAINS));
    else
        return packed(results);
}

template <typename First, typename T, typename R, int INPUTS, int ROWS>
__global__ void __launch_bounds__(BLOCK,
                                  sizeof(T) < 4 || ROWS == LONG_ROWS ? 4 : MANY_BLOCKS)
    elementwise_kernel(int op, char *out, const char *a, const char *b, const char *c,
                       First a_value, T b_value, T c_value, T d_value, unsigned storage,
                       unsigned pairs, GRID_CONSTANT(Packs<tensors_of<INPUTS> + 1>) p)
{
    constexpr int N = elements_each<T>, TENSORS = tensors_of<INPUTS>;
    constexpr int B = INPUTS > 1 ? 2 : 0, C = INPUTS > 2 ? 3 : 0;
    int64_t at[TENSORS + 1];
    unsigned pack = (unsigned)thread_number();
    bool pair = may_be_pairs<T, ROWS> && pack < pairs;
    if (may_be_pairs<T, ROWS>)
        pack += pair ? pack : pairs;
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, N, at);
    bool full = column + N <= p.length;
    Input<1, First, N> x(p, a, at, a_value, column, full, pair, storage);
    Input<B, T, N> y(p, b, at, b_value, column, full, pair, storage);
    Input<C, T, N> z(p, c, at, c_value, column, full, pair, storage);
    out += at[0];
    Vector<decltype(stored(Vector<R, N>{}, storage)), 2> both = {};
    ROLLED
    for (int turn = 0;; turn++) {
        Vector<R, N> results = {};
        apply_row<INPUTS, ROWS>(op, x.elements(storage), y.elements(storage),
                                z.elements(storage), d_value, results);
        if constexpr (std::is_same_v<R, float>)
            if ((storage & 3) != STORED_HALF)
                return put_pack<0>(p, out, column, full, packed(results));
        both.v[1] = stored(results, storage);
        if (!pair)
            return put_pack<0>(p, out, column, full, both.v[1]);
        if (turn)
            break;
        both.v[0] = both.v[1];
        x.next(p);
        y.next(p);
        z.next(p);
    }
    *(decltype(both) *)out = both;
}

/* The number of pairs of packs that each operand loads or stores in one access. */
template <int N>
static unsigned pairs_of(const Packs<N> &p, const dt_plan *plan, int each)
{
    bool fits = p.gap == 1 && (plan->ndim == 1 || p.length % (2 * each) == 0);
    for (int k = 0; k < N; k++)
        fits = fits && (p.ways[k] == PACK_WHOLE ? has_whole_packs(plan, k, 2 * each)
                                                : k && p.ways[k] != PACK_APART);
    return !fits ? 0 : plan->ndim == 1 ? p.length / (2 * each) : p.numel / 2;
}

/* --- launches --- */

/* The value of a scalar operand. */
template <typename T>
T value_of(const dt_operand &operand)
{
    T value = (T)0;
    if (!operand.scalar)
        return value;
    if constexpr (std::is_same_v<T, float>)
        /* Any floating type: a number among halves may be a float32. */
        value = (float)dt_element_to_scalar(operand.dtype, operand.value.bytes).f;
    else if constexpr (std::is_same_v<T, bool>)
        value = (bool)operand.value.as_bool;
    else
        __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

static inline unsigned storage_of(const dt_plan *plan)
{
    unsigned storage = 0;
    for (int k = 0; k < plan->noperands; k++) {
        const dt_operand &o = plan->operands[k];
        unsigned as = o.scalar                    ? STORED_WHOLE
                      : dt_dtype_is_half(o.dtype) ? STORED_HALF
                      : k && o.dtype == DT_BOOL   ? STORED_BOOL
                      : k && o.dtype == DT_UINT8  ? STORED_BYTE
                                                  : STORED_WHOLE;
        storage |= as << 2 * k;
        storage |= as == STORED_HALF && o.dtype == DT_BFLOAT16 ? BRAINS : 0;
    }
    return storage;
}

/* Whether elements are small, those of inputs all of one size. */
template <typename T>
bool has_small_elements(const dt_plan *plan)
{
    bool small = true;
    for (int k = 0; k < plan->noperands; k++) {
        const dt_operand &o = plan->operands[k];
        size_t size = dt_dtype_size(o.dtype);
        small = small && (o.scalar || (k && sizeof(T) == 4 ? size == 2 : size < 4));
    }
    return small;
}

template <typename First, typename T, typename R, int INPUTS, int ROWS>
int start_rows(dt_stream stream, int op, const dt_plan *plan)
{
    constexpr int TENSORS = tensors_of<INPUTS>, EACH = elements_each<T>;
    const unsigned storage = std::is_same_v<T, float> ? storage_of(plan) : 0;
    const bool small = may_be_pairs<T, ROWS> && has_small_elements<T>(plan);
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand *operands = piece->operands;
        const dt_operand &a = operands[1], &b = operands[INPUTS > 1 ? 2 : 1],
                         &c = operands[TENSORS], &d = operands[INPUTS];
        auto packs = packs_of<TENSORS + 1>(piece, EACH);
        unsigned pairs = small ? pairs_of(packs, piece, EACH) : 0;
        return START("starting an elementwise kernel", stream,
                     (elementwise_kernel<First, T, R, INPUTS, ROWS>),
                     packs.numel - pairs, op, (char *)operands[0].data,
                     (const char *)a.data, INPUTS > 1 ? (const char *)b.data : nullptr,
                     INPUTS > 2 ? (const char *)c.data : nullptr, value_of<First>(a),
                     value_of<T>(b), value_of<T>(c), value_of<T>(d), storage, pairs,
                     packs);
    });
}

template <typename First, typename T, typename R, int INPUTS>
int elementwise_start(dt_stream stream, int op, const dt_plan *plan)
{
    if constexpr (std::is_same_v<T, float> && std::is_same_v<R, float> && INPUTS < 3)
        return is_long(dt_elementwise_rows[op].class_)
                   ? start_rows<First, T, R, INPUTS, LONG_ROWS>(stream, op, plan)
                   : start_rows<First, T, R, INPUTS, SHORT_ROWS>(stream, op, plan);
    else
        return start_rows<First, T, R, INPUTS, ALL_ROWS>(stream, op, plan);
}

/* The kernels of an element type: cuda/kernels/elementwise.h. */
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
