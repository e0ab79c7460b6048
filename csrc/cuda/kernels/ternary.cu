#include "cuda/kernels/ternary.h"

#include "cuda/kernels/compute.h"
#include "cuda/runtime/device.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/math.h"
#include "ops/formula.h"

#define TERNARY(name, class, low, high, value, da, db, dc, doc)                        \
    template <typename T>                                                              \
    struct ternary_##name {                                                            \
        static __device__ __forceinline__ T run(T A, T B, T C) { return (T)(value); }  \
    };
#include "ops/ternary.def"
#undef TERNARY

/* An operand that is NULL is immediate. */
template <class Op, typename T>
__global__ void ternary_flat(T *out, const T *a, const T *b, const T *c, T a_value,
                             T b_value, T c_value, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = Op::run(a ? a[i] : a_value, b ? b[i] : b_value, c ? c[i] : c_value);
}

template <class Op, typename T>
__global__ void ternary_strided(char *out, const char *a, const char *b, const char *c,
                                T a_value, T b_value, T c_value, unsigned n,
                                Layout<4> layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[4];
    layout_offsets(layout, i, at);
    *(T *)(out + at[0]) = Op::run(a ? *(const T *)(a + at[1]) : a_value,
                                  b ? *(const T *)(b + at[2]) : b_value,
                                  c ? *(const T *)(c + at[3]) : c_value);
}

template <class Op, typename T>
static int run(dt_queue queue, const dt_plan *plan)
{
    cudaStream_t stream = (cudaStream_t)queue.stream;
    T values[3];
    for (int k = 0; k < 3; k++)
        __builtin_memcpy(&values[k], plan->operands[k + 1].value.bytes, sizeof(T));
    return each_piece(plan, [&](const dt_plan *piece) {
        const void *data[4];
        for (int k = 0; k < 4; k++)
            data[k] = piece->operands[k].immediate ? nullptr : piece->operands[k].data;
        if (piece->contiguous) {
            CUDA_TRY("starting an elementwise kernel",
                     LAUNCH((ternary_flat<Op, T>), blocks_for(piece->numel), BLOCK, 0,
                            stream, (T *)piece->operands[0].data, (const T *)data[1],
                            (const T *)data[2], (const T *)data[3], values[0],
                            values[1], values[2], piece->numel));
            return 0;
        }
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((ternary_strided<Op, T>), blocks_for(piece->numel), BLOCK, 0,
                        stream, (char *)piece->operands[0].data, (const char *)data[1],
                        (const char *)data[2], (const char *)data[3], values[0],
                        values[1], values[2], (unsigned)piece->numel,
                        layout_of<4>(piece)));
        return 0;
    });
}

/* A kernel where the class takes the type, else none. */
typedef int (*ternary_fn)(dt_queue queue, const dt_plan *plan);
template <template <typename> class Op, typename T, bool takes>
struct entry {
    static constexpr ternary_fn fn = run<Op<T>, T>;
};
template <template <typename> class Op, typename T>
struct entry<Op, T, false> {
    static constexpr ternary_fn fn = nullptr;
};

template <typename T>
static int run_row(dt_queue queue, dt_ternary_op op, const dt_plan *plan)
{
    static const struct {
        const char *name;
        ternary_fn fn;
    } rows[] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc)                        \
    {#name, entry<ternary_##name, T, TAKES_##class(kind_of<T>)>::fn},
#include "ops/ternary.def"
#undef TERNARY
    };
    if (!rows[op].fn)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: not defined for tensors of type %s on a GPU; convert them first",
            rows[op].name, dt_dtype_name(plan->operands[0].dtype));
    return rows[op].fn(queue, plan);
}

int ternary_run(dt_queue queue, dt_ternary_op op, const dt_plan *plan)
{
    if (device_use(queue.device))
        return -1;
    switch (plan->operands[0].dtype) {
    case DT_UINT8:
        return run_row<uint8_t>(queue, op, plan);
    case DT_INT8:
        return run_row<int8_t>(queue, op, plan);
    case DT_INT16:
        return run_row<int16_t>(queue, op, plan);
    case DT_INT32:
        return run_row<int32_t>(queue, op, plan);
    case DT_INT64:
        return run_row<int64_t>(queue, op, plan);
    case DT_FLOAT32:
        return run_row<float>(queue, op, plan);
    case DT_FLOAT64:
        return run_row<double>(queue, op, plan);
    default:
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: not defined for tensors of type %s on a GPU; convert them "
                       "first",
                       "elementwise", dt_dtype_name(plan->operands[0].dtype));
    }
}
