/* Kernels for rows of one or two inputs, for any element type: a form for operands that
 * lie in one run, with loads of 16 bytes, and a strided one. */
#ifndef DT_CUDA_ELEMENTWISE_KERNELS_H
#define DT_CUDA_ELEMENTWISE_KERNELS_H

#include "cuda/device.h"
#include "cuda/elementwise.h"
#include "cuda/layout.h"
#include "cuda/math.h"

/* What a class of the op tables makes of a type. */
enum { KIND_BOOL, KIND_INTEGER, KIND_FLOAT };
#define TAKES_ANY(kind)       true
#define TAKES_PREDICATE(kind) true
#define TAKES_COMPARE(kind)   true
#define TAKES_NUMBER(kind)    ((kind) != KIND_BOOL)
#define TAKES_DIVIDES(kind)   ((kind) != KIND_BOOL)
#define TAKES_FLOAT(kind)     ((kind) == KIND_FLOAT)
#define TAKES_REAL(kind)      ((kind) == KIND_FLOAT)
#define TAKES_BITS(kind)      ((kind) != KIND_FLOAT)
#define GIVES_ANY             T
#define GIVES_NUMBER          T
#define GIVES_DIVIDES         T
#define GIVES_FLOAT           T
#define GIVES_REAL            T
#define GIVES_BITS            T
#define GIVES_PREDICATE       bool
#define GIVES_COMPARE         bool

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

template <class Op, typename T>
__global__ void unary_flat(typename Op::R *out, const T *x, int64_t n, bool aligned)
{
    typedef typename Op::R R;
    constexpr int N = pack_size<T>;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    bool whole = aligned && i + N <= n;
    Pack<T, N> in = load_pack<T, N>(x, i, n, whole, T());
    Pack<R, N> result;
    UNROLL
    for (int k = 0; k < N; k++)
        result.v[k] = Op::run(in.v[k]);
    store_pack<R, N>(out, i, n, whole, result);
}

template <class Op, typename T>
__global__ void unary_strided(char *out, const char *x, unsigned n,
                              GRID_CONSTANT(Layout<2>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[2];
    layout_offsets(layout, i, at);
    *(typename Op::R *)(out + at[0]) = Op::run(*(const T *)(x + at[1]));
}

/* An operand that is NULL is immediate. */
template <class Op, typename T>
__global__ void binary_flat(typename Op::R *out, const T *a, const T *b, T a_value,
                            T b_value, int64_t n, bool aligned)
{
    typedef typename Op::R R;
    constexpr int N = pack_size<T>;
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N;
    bool whole = aligned && i + N <= n;
    Pack<T, N> left = load_pack<T, N>(a, i, n, whole, a_value);
    Pack<T, N> right = load_pack<T, N>(b, i, n, whole, b_value);
    Pack<R, N> result;
    UNROLL
    for (int k = 0; k < N; k++)
        result.v[k] = Op::run(left.v[k], right.v[k]);
    store_pack<R, N>(out, i, n, whole, result);
}

template <class Op, typename T>
__global__ void binary_strided(char *out, const char *a, const char *b, T a_value,
                               T b_value, unsigned n, GRID_CONSTANT(Layout<3>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[3];
    layout_offsets(layout, i, at);
    *(typename Op::R *)(out + at[0]) = Op::run(a ? *(const T *)(a + at[1]) : a_value,
                                               b ? *(const T *)(b + at[2]) : b_value);
}

template <typename T>
T value_of(const dt_operand &operand)
{
    T value;
    __builtin_memcpy(&value, operand.value.bytes, sizeof value);
    return value;
}

/* Starts one of a row's two kernels. These know types, not rows, so that there are few
 * of them. */
template <typename R, typename T>
int run_unary(dt_queue queue, const dt_plan *plan,
              void (*flat_unary)(R *, const T *, int64_t, bool),
              void (*strided_unary)(char *, const char *, unsigned,
                                    GRID_CONSTANT(Layout<2>)))
{
    constexpr int N = pack_size<T>;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    if (device_use(queue.device))
        return -1;
    if (plan->contiguous && !plan->operands[1].immediate) {
        R *out = (R *)plan->operands[0].data;
        const T *x = (const T *)plan->operands[1].data;
        bool aligned = is_aligned(out, sizeof(R) * N) && is_aligned(x, 16);
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH(flat_unary, blocks_for((plan->numel + N - 1) / N), BLOCK, 0,
                        stream, out, x, plan->numel, aligned));
        return 0;
    }
    return each_piece(plan, [&](const dt_plan *piece) {
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH(strided_unary, blocks_for(piece->numel), BLOCK, 0, stream,
                        (char *)piece->operands[0].data,
                        (const char *)piece->operands[1].data, (unsigned)piece->numel,
                        layout_of<2>(piece)));
        return 0;
    });
}

template <typename R, typename T>
int run_binary(dt_queue queue, const dt_plan *plan,
               void (*flat_binary)(R *, const T *, const T *, T, T, int64_t, bool),
               void (*strided_binary)(char *, const char *, const char *, T, T,
                                      unsigned, GRID_CONSTANT(Layout<3>)))
{
    constexpr int N = pack_size<T>;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    const dt_operand &a = plan->operands[1], &b = plan->operands[2];
    T a_value = T(), b_value = T();
    if (device_use(queue.device))
        return -1;
    if (a.immediate)
        a_value = value_of<T>(a);
    if (b.immediate)
        b_value = value_of<T>(b);
    if (plan->contiguous) {
        R *out = (R *)plan->operands[0].data;
        bool aligned = is_aligned(out, sizeof(R) * N) && is_aligned(a.data, 16) &&
                       is_aligned(b.data, 16);
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH(flat_binary, blocks_for((plan->numel + N - 1) / N), BLOCK, 0,
                        stream, out, (const T *)(a.immediate ? nullptr : a.data),
                        (const T *)(b.immediate ? nullptr : b.data), a_value, b_value,
                        plan->numel, aligned));
        return 0;
    }
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &pa = piece->operands[1], &pb = piece->operands[2];
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH(strided_binary, blocks_for(piece->numel), BLOCK, 0, stream,
                        (char *)piece->operands[0].data,
                        (const char *)(pa.immediate ? nullptr : pa.data),
                        (const char *)(pb.immediate ? nullptr : pb.data), a_value,
                        b_value, (unsigned)piece->numel, layout_of<3>(piece)));
        return 0;
    });
}

/* Each row as a type that kernels are made for. */
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    template <typename T>                                                              \
    struct unary_##name {                                                              \
        typedef GIVES_##class R;                                                       \
        static __device__ __forceinline__ R run(T X) { return (R)(value); }            \
    };
#include "ops/unary.def"
#undef UNARY
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    template <typename T>                                                              \
    struct binary_##name {                                                             \
        typedef GIVES_##class R;                                                       \
        static __device__ __forceinline__ R run(T A, T B) { return (R)(value); }       \
    };
#include "ops/kernels.def"
#undef BINARY

/* A kernel where the class takes the type, else none, so that nothing is made in vain.
 */
template <template <typename> class Op, typename T, bool takes>
struct unary_entry {
    static int fn(dt_queue queue, const dt_plan *plan)
    {
        return run_unary<typename Op<T>::R, T>(queue, plan, unary_flat<Op<T>, T>,
                                               unary_strided<Op<T>, T>);
    }
};
template <template <typename> class Op, typename T>
struct unary_entry<Op, T, false> {
    static constexpr elementwise_fn fn = nullptr;
};
template <template <typename> class Op, typename T, bool takes>
struct binary_entry {
    static int fn(dt_queue queue, const dt_plan *plan)
    {
        return run_binary<typename Op<T>::R, T>(queue, plan, binary_flat<Op<T>, T>,
                                                binary_strided<Op<T>, T>);
    }
};
template <template <typename> class Op, typename T>
struct binary_entry<Op, T, false> {
    static constexpr elementwise_fn fn = nullptr;
};

#define UNARY_ENTRY(name, class, type, kind)                                           \
    unary_entry<unary_##name, type, TAKES_##class(kind)>::fn,
#define BINARY_ENTRY(name, class, type, kind)                                          \
    binary_entry<binary_##name, type, TAKES_##class(kind)>::fn,

#endif
