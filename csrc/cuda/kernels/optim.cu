#include "cuda/kernels/math.h"
#include "cuda/kernels/tensor_table.h"
#include "ops/optim.h"

namespace {

struct OptimTensor {
    void *parameter;
    const void *gradient;
    void *states[DT_OPTIM_STATES];
    int64_t numel;
    int64_t first; /* of the blocks that work on it */
    double own[DT_OPTIM_OWN];
    bool aligned; /* everything may be loaded in vectors */
};

/* Elements that one block works on: a multiple of what its threads take at once. */
#define CHUNK 4096

template <typename T>
struct Numbers {
    T v[DT_OPTIM_NUMBERS];
};
template <typename T, class F>
void each_pointer(Numbers<T> &, F)
{
}

/* A thread's elements: some of a parameter, its gradient and its states. */
template <typename T, int N>
struct Elements {
    Vector<T, N> parameter, gradient, states[DT_OPTIM_STATES];
};

/* The rule `op` on each element. All rules lie in one kernel: see
 * elementwise_kernels.h. */
template <typename T, int LANES>
static __device__ __forceinline__ void apply_rule(dt_optim_op op, Elements<T, LANES> &e,
                                                  T factor, const T *n, const T *o)
{
    switch (op) {
#define OPTIM(name, ...)                                                               \
    case DT_UPDATE_##name:                                                             \
        UNROLL                                                                         \
        for (int j = 0; j < LANES; j++) {                                              \
            T s[DT_OPTIM_STATES];                                                      \
            UNROLL                                                                     \
            for (int k = 0; k < DT_OPTIM_STATES; k++)                                  \
                s[k] = e.states[k].v[j];                                               \
            rule_##name<T>::run(e.parameter.v[j], e.gradient.v[j] * factor, s, n, o);  \
            UNROLL                                                                     \
            for (int k = 0; k < DT_OPTIM_STATES; k++)                                  \
                e.states[k].v[j] = s[k];                                               \
        }                                                                              \
        break;
#include "ops/optim.def"
#undef OPTIM
    default:
        break;
    }
}

/* f(memory, vector) of all that the rule has. */
template <typename T, int N, class F>
static __device__ __forceinline__ void each_operand(Elements<T, N> &e, T *parameter,
                                                    T *const *states, int count, F f)
{
    f(parameter, e.parameter);
    UNROLL
    for (int k = 0; k < DT_OPTIM_STATES; k++)
        if (k < count)
            f(states[k], e.states[k]);
}

template <typename T>
__global__ void update_kernel(const OptimTensor *rows, int64_t count, dt_optim_op op,
                              int nstates, GRID_CONSTANT(Numbers<T>) numbers,
                              const T *scale, Followed)
{
    constexpr int N = vector_size<T>;
    const OptimTensor &row = row_of_block(rows, count);
    int64_t begin = ((int64_t)blockIdx.x - row.first) * CHUNK, end = begin + CHUNK;
    end = end < row.numel ? end : row.numel;
    T *p = FOLLOW((T *)row.parameter), *states[DT_OPTIM_STATES], own[DT_OPTIM_OWN];
    const T *g = FOLLOW((const T *)row.gradient);
    UNROLL
    for (int k = 0; k < DT_OPTIM_STATES; k++)
        states[k] = FOLLOW((T *)row.states[k]);
    UNROLL
    for (int k = 0; k < DT_OPTIM_OWN; k++)
        own[k] = (T)row.own[k];
    T factor = scale ? *scale : (T)1;
    ROLLED
    for (int64_t i = begin + threadIdx.x * N; i < end; i += BLOCK * N) {
        Elements<T, N> e = {};
        bool whole = row.aligned && i + N <= end;
        int there = end - i < N ? (int)(end - i) : N;
        auto load = [&](const T *from, Vector<T, N> &to) {
            if (whole) {
                to = *(const Vector<T, N> *)(from + i);
                return;
            }
            UNROLL
            for (int j = 0; j < N; j++)
                if (j < there)
                    to.v[j] = from[i + j];
        };
        auto store = [&](T *to, const Vector<T, N> &from) {
            if (whole) {
                *(Vector<T, N> *)(to + i) = from;
                return;
            }
            UNROLL
            for (int j = 0; j < N; j++)
                if (j < there)
                    to[i + j] = from.v[j];
        };
        load(g, e.gradient);
        each_operand(e, p, states, nstates, load);
        apply_rule(op, e, factor, numbers.v, own);
        each_operand(e, p, states, nstates, store);
    }
}

/* Fills rows, and pointers with all that they hold; gives the number of blocks. */
int64_t fill_rows(const dt_optim_call *call, OptimTensor *rows, void **pointers)
{
    int64_t blocks = 0;
    for (int64_t i = 0; i < call->count; i++) {
        const dt_optim_entry &e = call->entries[i];
        OptimTensor &row = rows[i];
        row.parameter = e.parameter;
        row.gradient = e.gradient;
        row.aligned = is_aligned(e.parameter, 16) && is_aligned(e.gradient, 16);
        *pointers++ = e.parameter;
        *pointers++ = (void *)e.gradient;
        for (int k = 0; k < DT_OPTIM_STATES; k++) {
            row.states[k] = e.states[k];
            row.aligned = row.aligned && is_aligned(e.states[k], 16);
            *pointers++ = e.states[k];
        }
        for (int k = 0; k < DT_OPTIM_OWN; k++)
            row.own[k] = e.own[k];
        row.numel = e.numel;
        row.first = blocks;
        blocks += (e.numel + CHUNK - 1) / CHUNK;
    }
    return blocks;
}

template <typename T>
int start(dt_stream stream, const dt_optim_call *call, const OptimTensor *rows,
          int64_t blocks, void **pointers)
{
    static const int nstates[] = {
#define OPTIM(name, count, ...) count,
#include "ops/optim.def"
#undef OPTIM
    };
    Numbers<T> numbers;
    for (int k = 0; k < DT_OPTIM_NUMBERS; k++)
        numbers.v[k] = (T)call->numbers[k];
    return START_BLOCKS("starting an update", stream, (update_kernel<T>), blocks, rows,
                        call->count, call->op, nstates[call->op], numbers,
                        (const T *)call->scale,
                        FOLLOWED(pointers, (DT_OPTIM_STATES + 2) * call->count));
}

} // namespace

int dt_cuda_optim_step(dt_stream stream, const dt_optim_call *call)
{
    int64_t blocks = 0;
    return with_table<OptimTensor>(
        stream, "update", call->count, DT_OPTIM_STATES + 2,
        [&](OptimTensor *rows, void **pointers) {
            blocks = fill_rows(call, rows, pointers);
        },
        [&](const OptimTensor *rows, void **pointers) {
            if (call->dtype == DT_FLOAT32)
                return start<float>(stream, call, rows, blocks, pointers);
            if (call->dtype == DT_FLOAT64)
                return start<double>(stream, call, rows, blocks, pointers);
            return dt_fail(DT_ERROR_RUNTIME,
                           "update: elements of type %s are not updated",
                           dt_dtype_name(call->dtype));
        });
}
