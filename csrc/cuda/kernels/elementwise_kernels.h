/* The kernels for rows of one to four inputs, of any element type and any layout. All
 * rows of a type and arity lie in one kernel, each of them once, since a kernel costs a wheel
 * some kilobytes for each architecture and there are hundreds of rows; the threads of a
 * launch take the same branch. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H
#define DT_CUDA_KERNELS_ELEMENTWISE_KERNELS_H

#include "cuda/kernels/compute.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/math.h"
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

/* --- vectors --- */

/* Moves all elements down by one, so that loops which fill or empty a vector need not be
 * laid out flat: elements of a vector that lives in registers have no addresses. */
template <typename T, int N>
static __device__ __forceinline__ void push(Vector<T, N> &vector, T last)
{
    UNROLL
    for (int k = 0; k + 1 < N; k++)
        vector.v[k] = vector.v[k + 1];
    vector.v[N - 1] = last;
}

/* --- the kernel --- */

/* Elements of a thread: 16 bytes of them, or 8 where elements are small. */
template <typename T>
constexpr int elements_each = (sizeof(T) < 4 ? 8 : 16) / (int)sizeof(T);

/* How many inputs may be tensors: a fourth one is always a number. */
template <int INPUTS>
constexpr int tensors_of = INPUTS < 3 ? INPUTS : 3;

/* An input that is NULL is its value. `vectors`: everything lies in one run, and vectors
 * are aligned; then a block whose elements are all there moves vectors. Else a thread's
 * elements are a block apart, so that neighbours have neighbouring ones. */
template <typename First, typename T, typename R, int INPUTS>
__global__ void ENOUGH_BLOCKS elementwise_kernel(
    int op, char *out, const char *a, const char *b, const char *c, First a_value,
    T b_value, T c_value, T d_value, Half half, bool vectors, int64_t n,
    GRID_CONSTANT(Layout<tensors_of<INPUTS> + 1>) layout)
{
    constexpr int N = elements_each<T>, TENSORS = tensors_of<INPUTS>;
    int64_t at[TENSORS + 1], first = (int64_t)blockIdx.x * (BLOCK * N);
    bool whole = vectors && first + BLOCK * N <= n;
    first += whole ? threadIdx.x * N : threadIdx.x;
    Vector<First, N> x;
    Vector<T, N> y, z;
    UNROLL
    for (int k = 0; k < N; k++) {
        x.v[k] = a_value;
        y.v[k] = b_value;
        z.v[k] = c_value;
    }
    if (whole) {
        if (a)
            x = elements_at<First, N>(a + first * stored_size<First>(half), half);
        if (INPUTS > 1 && b)
            y = elements_at<T, N>(b + first * stored_size<T>(half), half);
        if (INPUTS > 2 && c)
            z = elements_at<T, N>(c + first * stored_size<T>(half), half);
    } else {
        ROLLED
        for (int k = 0; k < N; k++) {
            int64_t i = first + k * BLOCK;
            layout_offsets(layout, (unsigned)(i < n ? i : n - 1), at);
            if (a)
                push(x, element_at<First>(a + at[1], half));
            if (INPUTS > 1 && b)
                push(y, element_at<T>(b + at[INPUTS > 1 ? 2 : 1], half));
            if (INPUTS > 2 && c)
                push(z, element_at<T>(c + at[TENSORS], half));
        }
    }
    Vector<R, N> results = {};
    apply_row<INPUTS>(op, x, y, z, d_value, results);
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
    constexpr int N = elements_each<T>, TENSORS = tensors_of<INPUTS>;
    Half half = half_of(dt_plan_type(plan, false));
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand *operands = piece->operands;
        const dt_operand &a = operands[1], &b = operands[INPUTS > 1 ? 2 : 1],
                         &c = operands[TENSORS], &d = operands[INPUTS];
        char *out = (char *)operands[0].data;
        bool vectors = piece->contiguous &&
                       is_aligned(out, (size_t)N * stored_size<R>(half)) &&
                       is_aligned(a.data, (size_t)N * stored_size<First>(half)) &&
                       is_aligned(b.data, (size_t)N * stored_size<T>(half)) &&
                       is_aligned(c.data, (size_t)N * stored_size<T>(half));
        return START("starting an elementwise kernel", stream,
                     (elementwise_kernel<First, T, R, INPUTS>),
                     (piece->numel + N - 1) / N, op, out, (const char *)a.data,
                     INPUTS > 1 ? (const char *)b.data : nullptr,
                     INPUTS > 2 ? (const char *)c.data : nullptr, value_of<First>(a),
                     value_of<T>(b), value_of<T>(c), value_of<T>(d), half, vectors,
                     piece->numel, layout_of<TENSORS + 1>(piece));
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
