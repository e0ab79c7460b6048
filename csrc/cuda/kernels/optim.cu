#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/stored_pack.h"
#include "cuda/kernels/tensor_table.h"
#include "ops/optim.h"
#include "ops/optim_ops.h"

namespace {

/* The operands of an update. */
enum { PARAMETER, GRADIENT, STATES, OPERANDS = STATES + DT_OPTIM_STATES };

struct OptimTensor {
    char *operands[OPERANDS];
    int64_t numel;
    int64_t first; /* of the blocks that work on it */
    union {
        double own[DT_OPTIM_OWN];
        const double *own_there; /* on the device */
    };
    bool aligned; /* everything may be loaded in vectors */
    bool there;   /* own_there counts */
};
POINTERS_OF(OptimTensor, for (char *&p : s.operands) f(p); if (s.there) f(s.own_there);)

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

/* The rate of a call that has it on the device: see dt_optim_call. */
struct Rate {
    const void *there; /* NULL: numbers and own are as they are */
    double decay;
    unsigned owns;
    int number, shrink;
    bool wide;
};
POINTERS_OF(Rate, f(s.there);)

/* The rule `op` on each element. All rules are in one kernel: see
 * elementwise_kernels.h. */
template <typename T, int N>
static __device__ __forceinline__ void apply_rule(dt_optim_op op,
                                                  Vector<T, N> (&e)[OPERANDS], T factor,
                                                  const T *n, const T *o, int &found)
{
    switch (op) {
#define OPTIM(name, ...)                                                               \
    case DT_UPDATE_##name:                                                             \
        UNROLL                                                                         \
        for (int j = 0; j < N; j++) {                                                  \
            T s[DT_OPTIM_STATES];                                                      \
            UNROLL                                                                     \
            for (int k = 0; k < DT_OPTIM_STATES; k++)                                  \
                s[k] = e[STATES + k].v[j];                                             \
            rule_##name<T>::run(e[PARAMETER].v[j], e[GRADIENT].v[j] * factor, s, n, o, \
                                found);                                                \
            UNROLL                                                                     \
            for (int k = 0; k < DT_OPTIM_STATES; k++)                                  \
                e[STATES + k].v[j] = s[k];                                             \
        }                                                                              \
        break;
#include "ops/optim.def"
#undef OPTIM
    default:
        break;
    }
}

template <typename T, class Table>
__global__ void update_kernel(GRID_CONSTANT(Table) table, dt_optim_op op, int operands,
                              Half half, GRID_CONSTANT(Numbers<T>) numbers,
                              const T *scale, float *flag, GRID_CONSTANT(Rate) rate)
{
    constexpr int N = vector_size<T>;
    const OptimTensor &row = row_of_block(table);
    int64_t begin = ((int64_t)blockIdx.x - row.first) * CHUNK, end = begin + CHUNK;
    end = end < row.numel ? end : row.numel;
    const int size = stored_size<T>(half);
    T own[DT_OPTIM_OWN], n[DT_OPTIM_NUMBERS];
    UNROLL
    for (int k = 0; k < DT_OPTIM_OWN; k++)
        own[k] = (T)(row.there ? row.own_there[k] : row.own[k]);
    UNROLL
    for (int k = 0; k < DT_OPTIM_NUMBERS; k++)
        n[k] = numbers.v[k];
    if (rate.there) {
        double lr =
            rate.wide ? *(const double *)rate.there : *(const float *)rate.there;
        UNROLL
        for (int k = 0; k < DT_OPTIM_OWN; k++)
            if (rate.owns >> k & 1)
                own[k] = (T)((row.there ? row.own_there[k] : row.own[k]) * lr);
        UNROLL
        for (int k = 0; k < DT_OPTIM_NUMBERS; k++)
            n[k] = k == rate.number   ? (T)lr
                   : k == rate.shrink ? (T)(1 - lr * rate.decay)
                                      : n[k];
    }
    T factor = scale ? *scale : (T)1;
    int found = 0; /* in elements that are there, and copies of such */
    ROLLED
    for (int64_t i = begin + threadIdx.x * N; i < end; i += BLOCK * N) {
        StoredPack<T, N> asked[OPERANDS] = {};
        Vector<T, N> e[OPERANDS];
        bool whole = row.aligned && i + N <= end;
        int there = end - i < N ? (int)(end - i) : N;
        if (whole) {
            UNROLL
            for (int k = 0; k < OPERANDS; k++)
                if (k < operands)
                    asked[k].read(row.operands[k] + i * size, half);
        } else {
            UNROLL
            for (int k = 0; k < OPERANDS; k++) {
                const char *each[N];
                UNROLL
                for (int j = 0; j < N && k < operands; j++)
                    each[j] = row.operands[k] + (i + (j < there ? j : 0)) * size;
                if (k < operands)
                    asked[k].read_each(each, half);
            }
        }
        UNROLL
        for (int k = 0; k < OPERANDS; k++)
            e[k] = asked[k].elements(half);
        apply_rule(op, e, factor, n, own, found);
        if (whole) {
            UNROLL
            for (int k = 0; k < OPERANDS; k++)
                if (k != GRADIENT && k < operands)
                    put_elements(row.operands[k] + i * size, e[k], half);
        } else {
            UNROLL
            for (int k = 0; k < OPERANDS; k++) {
                UNROLL
                for (int j = 0; j < N; j++)
                    if (k != GRADIENT && k < operands && j < there)
                        put_element(row.operands[k] + (i + j) * size, e[k].v[j], half);
            }
        }
    }
    if (found && flag)
        *flag = 1;
}

template <typename T, class Table>
int start_update(dt_stream stream, const dt_optim_call *call, const Table &table,
                 int64_t blocks)
{
    static const int nstates[] = {
#define OPTIM(name, count, ...) count,
#include "ops/optim.def"
#undef OPTIM
    };
    Numbers<T> numbers;
    for (int k = 0; k < DT_OPTIM_NUMBERS; k++)
        numbers.v[k] = (T)call->numbers[k];
    return START_BLOCKS("starting an update", stream, (update_kernel<T, Table>), blocks,
                        table, call->op, STATES + nstates[call->op],
                        half_of(call->stored), numbers, (const T *)call->scale,
                        call->found,
                        Rate{call->rate, call->decay, call->rates, call->rate_at,
                             call->shrink_at, call->rate_is_wide});
}

/* Writes the row of an entry; gives the number of its blocks. */
int64_t fill(const dt_optim_entry &e, OptimTensor &row)
{
    row.operands[PARAMETER] = (char *)e.parameter;
    row.operands[GRADIENT] = (char *)e.gradient;
    for (int k = 0; k < DT_OPTIM_STATES; k++)
        row.operands[STATES + k] = (char *)e.states[k];
    row.aligned = true;
    for (const char *operand : row.operands)
        row.aligned = row.aligned && is_aligned(operand, 16);
    for (int k = 0; k < DT_OPTIM_OWN; k++)
        row.own[k] = e.own[k];
    row.there = e.own_there != nullptr;
    if (row.there)
        row.own_there = e.own_there;
    row.numel = e.numel;
    return (e.numel + CHUNK - 1) / CHUNK;
}

} // namespace

int dt_cuda_optim_step(dt_stream stream, const dt_optim_call *call)
{
    return for_tables<OptimTensor>(
        call->count,
        [&](int64_t i, OptimTensor &row) { return fill(call->entries[i], row); },
        [&](const auto &table, int64_t, int64_t blocks) {
            if (call->dtype == DT_FLOAT32)
                return start_update<float>(stream, call, table, blocks);
            if (call->dtype == DT_FLOAT64)
                return start_update<double>(stream, call, table, blocks);
            return dt_fail(DT_ERROR_RUNTIME,
                           "update: elements of type %s are not updated",
                           dt_dtype_name(call->dtype));
        });
}
