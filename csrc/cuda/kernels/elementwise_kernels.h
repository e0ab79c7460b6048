/* The kernels for rows of one or two inputs, of any element type and any layout. All
 * rows of a type lie in one kernel, each of them once, since a kernel costs a wheel
 * some kilobytes for each architecture and there are hundreds of rows; the threads of a
 * launch take the same branch. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H
#define DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H

#include "cuda/kernels/compute.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/math.h"

/* What a class of the op tables makes of a type. */
#define GIVES_ANY       T
#define GIVES_NUMBER    T
#define GIVES_DIVIDES   T
#define GIVES_FLOAT     T
#define GIVES_REAL      T
#define GIVES_BITS      T
#define GIVES_PREDICATE bool
#define GIVES_COMPARE   bool

/* --- rows --- */

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

/* --- packs --- */

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

/* --- the kernel --- */

/* Elements of a thread: 16 bytes of them, or 8 where elements are small. */
template <typename T>
constexpr int elements_each = (sizeof(T) < 4 ? 8 : 16) / (int)sizeof(T);

/* An input that is NULL is its value. `packs`: everything lies in one run, and packs
 * are aligned; then a block whose elements are all there moves packs. Else a thread's
 * elements are a block apart, so that neighbours have neighbouring ones. */
template <typename T, typename R, int INPUTS>
__global__ void ENOUGH_BLOCKS elementwise_kernel(int op, char *out, const char *a,
                                                 const char *b, T a_value, T b_value,
                                                 Half half, bool packs, int64_t n,
                                                 GRID_CONSTANT(Layout<INPUTS + 1>)
                                                     layout)
{
    constexpr int N = elements_each<T>;
    int64_t at[INPUTS + 1], first = (int64_t)blockIdx.x * (BLOCK * N);
    bool whole = packs && first + BLOCK * N <= n;
    first += whole ? threadIdx.x * N : threadIdx.x;
    Pack<T, N> x, y;
    UNROLL
    for (int k = 0; k < N; k++) {
        x.v[k] = a_value;
        y.v[k] = b_value;
    }
    if (whole) {
        if (a)
            x = elements_at<T, N>(a + first * stored_size<T>(half), half);
        if (b)
            y = elements_at<T, N>(b + first * stored_size<T>(half), half);
    } else {
        ROLLED
        for (int k = 0; k < N; k++) {
            int64_t i = first + k * BLOCK;
            layout_offsets(layout, (unsigned)(i < n ? i : n - 1), at);
            if (a)
                push(x, element_at<T>(a + at[1], half));
            if (b)
                push(y, element_at<T>(b + at[INPUTS], half));
        }
    }
    Pack<R, N> results = {};
    if constexpr (INPUTS == 2)
        apply_row((dt_binary_op)op, x, y, results);
    else
        apply_row((dt_unary_op)op, x, results);
    if (whole) {
        put_elements(out + first * stored_size<R>(half), results, half);
        return;
    }
    ROLLED
    for (int k = 0; k < N; k++) {
        int64_t i = first + k * BLOCK;
        if (i >= n)
            return;
        layout_offsets(layout, (unsigned)i, at);
        put_element(out + at[0], results.v[0], half);
        push(results, R());
    }
}

/* --- launches --- */

/* What an operand has instead of elements. */
template <typename T>
T value_of(const dt_operand &operand)
{
    T value = 0;
    if (!operand.immediate)
        return value;
    if constexpr (std::is_same_v<T, float>)
        /* Of any type of floats: a number among halves may be a float32. */
        value = (float)dt_element_to_scalar(operand.dtype, operand.value.bytes).f;
    else
        __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

template <typename T, typename R, int INPUTS>
int elementwise_start(dt_queue queue, int op, const dt_plan *plan)
{
    constexpr int N = elements_each<T>;
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &a = piece->operands[1], &b = piece->operands[INPUTS];
        Half half = half_of((a.immediate ? b : a).dtype);
        char *out = (char *)piece->operands[0].data;
        const char *from_a = (const char *)(a.immediate ? nullptr : a.data);
        const char *from_b = (const char *)(b.immediate ? nullptr : b.data);
        size_t pack = (size_t)N * stored_size<T>(half);
        bool packs = piece->contiguous &&
                     is_aligned(out, (size_t)N * stored_size<R>(half)) &&
                     is_aligned(from_a, pack) && is_aligned(from_b, pack);
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((elementwise_kernel<T, R, INPUTS>),
                        blocks_for((piece->numel + N - 1) / N), BLOCK, 0,
                        (cudaStream_t)queue.stream, op, out, from_a,
                        INPUTS == 2 ? from_b : nullptr, value_of<T>(a), value_of<T>(b),
                        half, packs, piece->numel, layout_of<INPUTS + 1>(piece)));
        return 0;
    });
}

/* What cuda/kernels/elementwise.h says of an element type. */
#define ELEMENTWISE(ID, type)                                                          \
    const elementwise_kernels elementwise_##ID = {                                     \
        {elementwise_start<type, type, 1>, elementwise_start<type, bool, 1>},          \
        {elementwise_start<type, type, 2>, elementwise_start<type, bool, 2>},          \
    };

#endif
