/* The kernels for rows of one or two inputs, of any element type and any layout. All
 * rows of a type lie in one kernel, each of them once, since a kernel costs a wheel
 * some kilobytes for each architecture and there are hundreds of rows; the threads of a
 * launch take the same branch. */
#ifndef DT_CUDA_ELEMENTWISE_KERNELS_H
#define DT_CUDA_ELEMENTWISE_KERNELS_H

#include "cuda/compute.h"
#include "cuda/device.h"
#include "cuda/elementwise.h"
#include "cuda/layout.h"
#include "cuda/math.h"

/* What a class of the op tables makes of a type. */
#define GIVES_ANY       T
#define GIVES_NUMBER    T
#define GIVES_DIVIDES   T
#define GIVES_FLOAT     T
#define GIVES_REAL      T
#define GIVES_BITS      T
#define GIVES_PREDICATE bool
#define GIVES_COMPARE   bool

/* --- rows
 * --------------------------------------------------------------------------------- */

/* Row `op` of each element, of the rows that give an R. */
template <typename T, typename R, int N>
static __device__ __forceinline__ void apply_row(dt_unary_op op, const Pack<T, N> &x,
                                                 Pack<R, N> &out)
{
    constexpr dt_kind kind = kind_of<T>;
    switch (op) {
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    case DT_UNARY_##name:                                                              \
        if constexpr (TAKES_##class(kind) && std::is_same_v<R, GIVES_##class>) {       \
            UNROLL                                                                     \
            for (int k = 0; k < N; k++) {                                              \
                T X = x.v[k];                                                          \
                out.v[k] = (R)(value);                                                 \
            }                                                                          \
        }                                                                              \
        break;
#include "ops/unary.def"
#undef UNARY
    default:
        break;
    }
}

template <typename T, typename R, int N>
static __device__ __forceinline__ void apply_row(dt_binary_op op, const Pack<T, N> &a,
                                                 const Pack<T, N> &b, Pack<R, N> &out)
{
    constexpr dt_kind kind = kind_of<T>;
    switch (op) {
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    case DT_BINARY_##name:                                                             \
        if constexpr (TAKES_##class(kind) && std::is_same_v<R, GIVES_##class>) {       \
            UNROLL                                                                     \
            for (int k = 0; k < N; k++) {                                              \
                T A = a.v[k], B = b.v[k];                                              \
                out.v[k] = (R)(value);                                                 \
            }                                                                          \
        }                                                                              \
        break;
#include "ops/kernels.def"
#undef BINARY
    default:
        break;
    }
}

/* --- packs
 * --------------------------------------------------------------------------------- */

/* Moves all elements down by one, so that loops which fill or empty a pack need not be
 * laid out flat: elements of a pack that lives in registers have no addresses. */
template <typename T, int N>
static __device__ __forceinline__ void push(Pack<T, N> &pack, T last)
{
    UNROLL
    for (int k = 0; k + 1 < N; k++)
        pack.v[k] = pack.v[k + 1];
    pack.v[N - 1] = last;
}

/* The elements to compute with, or the value of an operand without any. */
template <typename S, int N>
static __device__ __forceinline__ Pack<Compute<S>, N>
computed(const Pack<S, N> &stored, bool there, Compute<S> value, bool brain)
{
    Pack<Compute<S>, N> pack;
    UNROLL
    for (int k = 0; k < N; k++)
        pack.v[k] = there ? loaded(&stored.v[k], brain) : value;
    return pack;
}

/* --- the kernel
 * --------------------------------------------------------------------------------- */

/* Elements of a thread: 16 bytes of them, or 8 where elements are small. */
template <typename S>
constexpr int elements_each = (sizeof(S) < 4 ? 8 : 16) / (int)sizeof(S);

/* S and R are the types in memory. An input that is NULL is its value. `packs`:
 * everything lies in one run, and packs are aligned; then a block whose elements are
 * all there moves packs. Else a thread's elements are a block apart, so that neighbours
 * have neighbouring ones. */
template <typename S, typename R, int INPUTS>
__global__ void ENOUGH_BLOCKS elementwise_kernel(int op, char *out, const char *a,
                                                 const char *b, Compute<S> a_value,
                                                 Compute<S> b_value, bool brain,
                                                 bool packs, int64_t n,
                                                 GRID_CONSTANT(Layout<INPUTS + 1>)
                                                     layout)
{
    constexpr int N = elements_each<S>;
    int64_t at[INPUTS + 1], first = (int64_t)blockIdx.x * (BLOCK * N);
    bool whole = packs && first + BLOCK * N <= n;
    first += whole ? threadIdx.x * N : threadIdx.x;
    Pack<S, N> left = {}, right = {};
    if (whole) {
        if (a)
            left = *(const Pack<S, N> *)(a + first * sizeof(S));
        if (b)
            right = *(const Pack<S, N> *)(b + first * sizeof(S));
    } else {
        ROLLED
        for (int k = 0; k < N; k++) {
            int64_t i = first + k * BLOCK;
            layout_offsets(layout, (unsigned)(i < n ? i : n - 1), at);
            if (a)
                push(left, *(const S *)(a + at[1]));
            if (b)
                push(right, *(const S *)(b + at[INPUTS]));
        }
    }
    typedef Compute<S> T;
    Pack<T, N> x = computed(left, a, a_value, brain);
    Pack<Compute<R>, N> values = {};
    if constexpr (INPUTS == 2)
        apply_row((dt_binary_op)op, x, computed(right, b, b_value, brain), values);
    else
        apply_row((dt_unary_op)op, x, values);
    Pack<R, N> results;
    UNROLL
    for (int k = 0; k < N; k++)
        store(&results.v[k], values.v[k], brain);
    if (whole) {
        *(Pack<R, N> *)(out + first * sizeof(R)) = results;
        return;
    }
    ROLLED
    for (int k = 0; k < N; k++) {
        int64_t i = first + k * BLOCK;
        if (i >= n)
            return;
        layout_offsets(layout, (unsigned)i, at);
        *(R *)(out + at[0]) = results.v[0];
        push(results, R());
    }
}

/* --- launches
 * --------------------------------------------------------------------------------- */

/* What an operand has instead of elements. */
template <typename S>
Compute<S> value_of(const dt_operand &operand)
{
    Compute<S> value = 0;
    if (!operand.immediate)
        return value;
    if constexpr (std::is_same_v<S, Bits16>)
        /* A number among floats of 16 bits may be a float32. */
        value = (float)dt_element_to_scalar(operand.dtype, operand.value.bytes).f;
    else
        __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

template <typename S, typename R, int INPUTS>
int elementwise_start(dt_queue queue, int op, const dt_plan *plan)
{
    constexpr int N = elements_each<S>;
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &a = piece->operands[1], &b = piece->operands[INPUTS];
        bool brain = (a.immediate ? b : a).dtype == DT_BFLOAT16;
        char *out = (char *)piece->operands[0].data;
        const char *from_a = (const char *)(a.immediate ? nullptr : a.data);
        const char *from_b = (const char *)(b.immediate ? nullptr : b.data);
        bool packs = piece->contiguous && is_aligned(out, N * sizeof(R)) &&
                     is_aligned(from_a, N * sizeof(S)) &&
                     is_aligned(from_b, N * sizeof(S));
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((elementwise_kernel<S, R, INPUTS>),
                        blocks_for((piece->numel + N - 1) / N), BLOCK, 0,
                        (cudaStream_t)queue.stream, op, out, from_a,
                        INPUTS == 2 ? from_b : nullptr, value_of<S>(a), value_of<S>(b),
                        brain, packs, piece->numel, layout_of<INPUTS + 1>(piece)));
        return 0;
    });
}

/* What cuda/elementwise.h says of an element type. */
#define ELEMENTWISE(ID, type)                                                          \
    const elementwise_kernels elementwise_##ID = {                                     \
        {elementwise_start<type, type, 1>, elementwise_start<type, bool, 1>},          \
        {elementwise_start<type, type, 2>, elementwise_start<type, bool, 2>},          \
    };

#endif
