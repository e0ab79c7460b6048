/* Kernels for rows of one or two inputs, for any element type: a form for operands that
 * lie in one run, with loads of 16 bytes, and a strided one. */
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

/* The N elements from number i of an operand that has n: at once where they are whole
 * and aligned. What lies beyond, or has no operand (NULL), is `value`. */
template <typename T, int N>
static __device__ __forceinline__ Pack<T, N> load_pack(const T *x, int64_t i, int64_t n,
                                                       bool whole, T value)
{
    Pack<T, N> pack;
    if (x && whole)
        return *(const Pack<T, N> *)(x + i);
    UNROLL
    for (int k = 0; k < N; k++)
        pack.v[k] = x && i + k < n ? x[i + k] : value;
    return pack;
}
template <typename T, int N>
static __device__ __forceinline__ void store_pack(T *out, int64_t i, int64_t n,
                                                  bool whole, const Pack<T, N> &pack)
{
    if (whole) {
        *(Pack<T, N> *)(out + i) = pack;
        return;
    }
    UNROLL
    for (int k = 0; k < N; k++)
        if (i + k < n)
            out[i + k] = pack.v[k];
}

/* --- rows
 * --------------------------------------------------------------------------------- */

/* Row `op` of each element of a pack, of the rows that give an R. All of them lie in
 * one function, and so in one kernel, since a kernel costs a wheel some kilobytes for
 * each architecture and there are hundreds of rows; its threads take the same branch.
 */
template <typename T, typename R, int N>
static __device__ __forceinline__ void unary_rows(dt_unary_op op, const Pack<T, N> &x,
                                                  Pack<R, N> &out)
{
    constexpr int kind = kind_of<T>;
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
static __device__ __forceinline__ void binary_rows(dt_binary_op op, const Pack<T, N> &a,
                                                   const Pack<T, N> &b, Pack<R, N> &out)
{
    constexpr int kind = kind_of<T>;
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

/* --- kernels
 * --------------------------------------------------------------------------------- */

/* A kernel takes as many registers as its hungriest row: no more than leave room for
 * the threads that keep memory busy, so that the hungriest put some of theirs aside. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define ENOUGH_BLOCKS __launch_bounds__(BLOCK, 4)
#else
#define ENOUGH_BLOCKS __launch_bounds__(BLOCK, 6)
#endif

template <typename T, typename R>
__global__ void ENOUGH_BLOCKS unary_flat(dt_unary_op op, R *out, const T *x, int64_t n,
                                         bool aligned)
{
    constexpr int N = pack_size<T>;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    bool whole = aligned && i + N <= n;
    Pack<R, N> result = {};
    unary_rows<T, R, N>(op, load_pack<T, N>(x, i, n, whole, T()), result);
    store_pack<R, N>(out, i, n, whole, result);
}

template <typename T, typename R>
__global__ void ENOUGH_BLOCKS unary_strided(dt_unary_op op, char *out, const char *x,
                                            unsigned n, GRID_CONSTANT(Layout<2>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[2];
    layout_offsets(layout, i, at);
    Pack<R, 1> result = {};
    unary_rows<T, R, 1>(op, {{*(const T *)(x + at[1])}}, result);
    *(R *)(out + at[0]) = result.v[0];
}

/* An operand that is NULL is immediate. */
template <typename T, typename R>
__global__ void ENOUGH_BLOCKS binary_flat(dt_binary_op op, R *out, const T *a,
                                          const T *b, T a_value, T b_value, int64_t n,
                                          bool aligned)
{
    constexpr int N = pack_size<T>;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    bool whole = aligned && i + N <= n;
    Pack<R, N> result = {};
    binary_rows<T, R, N>(op, load_pack<T, N>(a, i, n, whole, a_value),
                         load_pack<T, N>(b, i, n, whole, b_value), result);
    store_pack<R, N>(out, i, n, whole, result);
}

template <typename T, typename R>
__global__ void ENOUGH_BLOCKS binary_strided(dt_binary_op op, char *out, const char *a,
                                             const char *b, T a_value, T b_value,
                                             unsigned n,
                                             GRID_CONSTANT(Layout<3>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[3];
    layout_offsets(layout, i, at);
    Pack<R, 1> result = {};
    binary_rows<T, R, 1>(op, {{a ? *(const T *)(a + at[1]) : a_value}},
                         {{b ? *(const T *)(b + at[2]) : b_value}}, result);
    *(R *)(out + at[0]) = result.v[0];
}

/* --- launches
 * --------------------------------------------------------------------------------- */

template <typename T>
T value_of(const dt_operand &operand)
{
    T value;
    __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

template <typename T, typename R>
int run_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan)
{
    constexpr int N = pack_size<T>;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    if (plan->contiguous && !plan->operands[1].immediate) {
        R *out = (R *)plan->operands[0].data;
        const T *x = (const T *)plan->operands[1].data;
        bool aligned = is_aligned(out, sizeof(R) * N) && is_aligned(x, 16);
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((unary_flat<T, R>), blocks_for((plan->numel + N - 1) / N),
                        BLOCK, 0, stream, op, out, x, plan->numel, aligned));
        return 0;
    }
    return each_piece(plan, [&](const dt_plan *piece) {
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((unary_strided<T, R>), blocks_for(piece->numel), BLOCK, 0,
                        stream, op, (char *)piece->operands[0].data,
                        (const char *)piece->operands[1].data, (unsigned)piece->numel,
                        layout_of<2>(piece)));
        return 0;
    });
}

template <typename T, typename R>
int run_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan)
{
    constexpr int N = pack_size<T>;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    const dt_operand &a = plan->operands[1], &b = plan->operands[2];
    T a_value = T(), b_value = T();
    if (a.immediate)
        a_value = value_of<T>(a);
    if (b.immediate)
        b_value = value_of<T>(b);
    if (plan->contiguous) {
        R *out = (R *)plan->operands[0].data;
        bool aligned = is_aligned(out, sizeof(R) * N) && is_aligned(a.data, 16) &&
                       is_aligned(b.data, 16);
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((binary_flat<T, R>), blocks_for((plan->numel + N - 1) / N),
                        BLOCK, 0, stream, op, out,
                        (const T *)(a.immediate ? nullptr : a.data),
                        (const T *)(b.immediate ? nullptr : b.data), a_value, b_value,
                        plan->numel, aligned));
        return 0;
    }
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &pa = piece->operands[1], &pb = piece->operands[2];
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((binary_strided<T, R>), blocks_for(piece->numel), BLOCK, 0,
                        stream, op, (char *)piece->operands[0].data,
                        (const char *)(pa.immediate ? nullptr : pa.data),
                        (const char *)(pb.immediate ? nullptr : pb.data), a_value,
                        b_value, (unsigned)piece->numel, layout_of<3>(piece)));
        return 0;
    });
}

/* What cuda/elementwise.h says of an element type. */
#define ELEMENTWISE(ID, type)                                                          \
    const elementwise_kernels elementwise_##ID = {                                     \
        {run_unary<type, type>, run_unary<type, bool>},                                \
        {run_binary<type, type>, run_binary<type, bool>},                              \
    };

#endif
