/* Sums over rows: the COLUMNS of ops/nn.def. Blocks add up parts of the rows, and a second
 * kernel the parts: how rows are cut depends on sizes alone, so a sum is the same each
 * time. */
#include "cuda/kernels/nn_kernels.h"
#include "ops/nn_loss.h"
#include "ops/nn_norm.h"

namespace {

/* The part of a column that a thread has. */
template <typename T>
struct ThreadSums {
    /* Elements of an operand that a thread asks for at a time. Doubles are rare. */
    static constexpr int AHEAD = sizeof(T) > 4 ? 1 : 4;
    const NnCall &call;
    int64_t column, first, end, step; /* rows */
    double &one, &two;

    /* Of `N` rows from r on, whose elements are at places i: what was asked for, and then
     * its numbers. */
    template <int N>
    __device__ __forceinline__ StoredPack<T, N>
    ask(nn::Row<const T> x, const int64_t (&i)[N], int64_t) const
    {
        const char *at[N];
        UNROLL_HERE
        for (int k = 0; k < N; k++)
            at[k] = stored_at<T>((const char *)x.data, i[k], call.half);
        StoredPack<T, N> asked;
        asked.read_each(at, call.half);
        return asked;
    }
    template <int N>
    __device__ __forceinline__ Vector<T, N> ask(nn::PerRow<T> x, const int64_t (&)[N],
                                                int64_t r) const
    {
        Vector<T, N> asked;
        UNROLL_HERE
        for (int k = 0; k < N; k++)
            asked.v[k] = x.data[r + k * step];
        return asked;
    }
    template <int N>
    __device__ __forceinline__ Vector<T, N> ask(nn::Statistic<T> x,
                                                const int64_t (&)[N], int64_t) const
    {
        return filled<T, N>(x.data[column]);
    }
    template <int N>
    __device__ __forceinline__ Vector<T, N> got(const StoredPack<T, N> &asked) const
    {
        return asked.elements(call.half);
    }
    template <int N>
    __device__ __forceinline__ const Vector<T, N> &got(const Vector<T, N> &asked) const
    {
        return asked;
    }
    template <int N, class F, class... V>
    __device__ __forceinline__ void sum(RunningSum<T> &a, RunningSum<T> &b, F f,
                                        const V &...v) const
    {
        UNROLL_HERE
        for (int k = 0; k < N; k++) {
            nn::Terms<T> terms = f(v.v[k]...);
            a.add(terms.first);
            b.add(terms.second);
        }
    }
    template <class F, class... Operand>
    __device__ __forceinline__ void add(F f, const Operand &...operand) const
    {
        RunningSum<T> a, b;
        /* A row has its elements in a slab, such as an image: rows follow by additions. */
        const int64_t inner = call.inner, slab = call.n * inner;
        int64_t slabs = divide(step, call.by_inner), by = step - slabs * inner;
        int64_t row = divide(first, call.by_inner), in_slab = first - row * inner;
        int64_t at = row * slab + column * inner + in_slab;
        auto next = [&] {
            int64_t now = at;
            at += slabs * slab + by;
            in_slab += by;
            if (in_slab >= inner) {
                in_slab -= inner;
                at += slab - inner;
            }
            return now;
        };
        int64_t r = first;
        ROLLED
        for (; r + (AHEAD - 1) * step < end; r += AHEAD * step) {
            int64_t i[AHEAD];
            UNROLL_HERE
            for (int k = 0; k < AHEAD; k++)
                i[k] = next();
            [&](const auto &...asked) {
                sum<AHEAD>(a, b, f, got(asked)...);
            }(ask<AHEAD>(operand, i, r)...);
        }
        ROLLED
        for (; r < end; r += step) {
            int64_t i[1] = {next()};
            sum<1>(a, b, f, got(ask<1>(operand, i, r))...);
        }
        one = a.value();
        two = b.value();
    }
};

struct Sums {
    double one, two;
};
struct AddSums {
    __device__ __forceinline__ Sums operator()(Sums a, Sums b) const
    {
        return {a.one + b.one, a.two + b.two};
    }
};

/* Neighbouring columns to a block, a power of two of them, whose threads share the rows
 * of each: those of part blockIdx.y. Partial sums are [part][sum][column]. */
template <class Op, typename T>
__global__ void columns_kernel(GRID_CONSTANT(NnCall) call, double *sums, int64_t part,
                               unsigned columns)
{
    unsigned at = threadIdx.x & (columns - 1), step = BLOCK / columns;
    int64_t c = (int64_t)blockIdx.x * columns + at;
    int64_t first = blockIdx.y * part;
    int64_t end = first + part < call.rows ? first + part : call.rows;
    Sums all = {0, 0};
    if (c < call.n)
        Op::run(ThreadSums<T>{call, c, first + threadIdx.x / columns, end, step,
                              all.one, all.two},
                nn::named<Op, T>(call.operands));
    if (columns == 1) {
        all = reduce_group<false>(all, BLOCK, AddSums());
    } else {
        STATIC_SHARED(Sums[BLOCK], sum);
        sum[threadIdx.x] = all;
        ROLLED
        for (unsigned half = BLOCK / 2; half >= columns; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                sum[threadIdx.x] = AddSums()(sum[threadIdx.x], sum[threadIdx.x + half]);
        }
        all = sum[threadIdx.x];
    }
    if (threadIdx.x < columns && c < call.n) {
        sums[(blockIdx.y * 2) * call.n + c] = all.one;
        sums[(blockIdx.y * 2 + 1) * call.n + c] = all.two;
    }
}

/* The sums of all parts: a column has one thread, or a warp where parts are many. */
template <typename T>
__global__ void columns_finish(T *first, T *second, const double *sums, int64_t n,
                               int64_t parts, int threads, double scale, bool ratio)
{
    Sums all = {0, 0};
    int64_t thread = thread_number(), c = threads == 1 ? thread : thread / 32;
    if (c >= n)
        return;
    ROLLED
    for (int64_t p = threadIdx.x % (unsigned)threads; p < parts; p += threads) {
        all.one += sums[(p * 2) * n + c];
        all.two += sums[(p * 2 + 1) * n + c];
    }
    all = reduce_group<false>(all, threads, AddSums());
    if (threadIdx.x % (unsigned)threads)
        return;
    T one = (T)(all.one * scale), two = (T)(all.two * scale);
    if (first)
        first[c] = ratio ? one / two : one;
    if (second)
        second[c] = two;
}

/* Blocks that keep a large GPU busy, and elements of a column that are worth a part. */
#define COLUMN_BLOCKS 1024
#define COLUMN_PART   1024

template <class Op, typename T>
static int columns_start(dt_stream stream, const dt_nn_call *given)
{
    NnCall call;
    if (nn_prepare(stream, given, &call))
        return -1;
    unsigned columns = given->inner < 32 ? 32 : 1;
    int64_t tiles = (call.n + columns - 1) / columns;
    int64_t parts = COLUMN_BLOCKS / tiles, max = call.rows / COLUMN_PART;
    parts = parts > max ? max : parts;
    parts = parts < 1 ? 1 : parts;
    int64_t part = (call.rows + parts - 1) / parts;
    parts = (call.rows + part - 1) / part;
    Scratch scratch(stream, (size_t)(parts * 2 * call.n) * sizeof(double));
    double *sums = (double *)scratch.data;
    dim3 grid((unsigned)tiles, (unsigned)parts);
    if (!sums ||
        START_BARRIERS("starting sums over rows", stream, (columns_kernel<Op, T>), grid,
                       call, sums, part, columns))
        return -1;
    T *first = (T *)given->operands[0];
    T *second = Op::sums > 1 ? (T *)given->operands[1] : nullptr;
    int threads = parts < 32 ? 1 : 32;
    int64_t blocks = (call.n * threads + BLOCK - 1) / BLOCK;
    return START_BARRIERS("starting sums over rows", stream, (columns_finish<T>),
                          blocks, first, second, (const double *)sums, call.n, parts,
                          threads, given->params.scale, given->params.ratio);
}

} // namespace

NN_ENTRY(weighted_mean, columns_start)
NN_ENTRY(layer_norm_parameters, columns_start)
NN_ENTRY(batch_norm_parameters, columns_start)
