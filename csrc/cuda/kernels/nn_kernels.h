/* How CUDA threads run the operations of ops/nn.def: the Row of ops/nn_operands.h.
 *
 * A row belongs to one thread (short rows, and rows across memory, whose neighbours are
 * then next to each other) or to a group: a warp or a block. Groups read up to 16 bytes
 * at a time where pointers allow it, and keep the elements of a row that they need again
 * in registers or in shared memory where they have room, so that memory is read once.
 *
 * The operands of a call that may be stored in 16 bits all are, or none: its `half`. */
#ifndef DT_CUDA_KERNELS_NN_KERNELS_H
#define DT_CUDA_KERNELS_NN_KERNELS_H

#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/nn_elements.h"
#include "cuda/kernels/warp.h"
#include "cuda/runtime/kernel_errors.h"

#define NN_METHOD __device__ __forceinline__
#include "ops/nn_operands.h"

namespace {

struct NnCall {
    const char *op_name; /* the host's, for the report */
    void *operands[DT_NN_OPERANDS];
    KernelReport *report;
    int64_t rows, n, inner;
    LongDivider by_n, by_inner;
    int threads; /* of a row: 1, 32 or a block's */
    int run;     /* terms of a run of a sum */
    int shift;   /* 2 to that: elements of all of them in a vector each */
    int room;    /* vectors of a thread that are in shared memory */
    Half half;   /* the type of stored operands */
    dt_nn_params params;
};
POINTERS_OF(NnCall, for (int k = 0; k < DT_NN_OPERANDS; k++) f(s.operands[k]);
            f(s.report);)

namespace nn {
/* The number of an operation's ROW operands, plus SHARED_ONE for each SHARED one. */
enum { SHARED_ONE = 16 };
template <class Op>
constexpr int counted = 0;
#define OUT(name)
#define INOUT(name)
#define OUT_PER_ROW(name)
#define OUT_SHARED(name)
#define ROW(name) +1
#define PER_ROW(name)
#define INDEX(name)
#define SHARED(name) +SHARED_ONE
#define STATISTIC(name)
#define SINGLE(name)
#define MASK(name)
#define NN_OP(op, ...)                                                                 \
    template <>                                                                        \
    constexpr int counted<op> = 0 __VA_ARGS__;
#include "ops/nn.def"
template <class Op>
constexpr int rows_of = counted<Op> % SHARED_ONE;
/* Whether registers may keep a row that starts or ends between two vectors. SHARED
 * operands, which have another layout than such a row, would take much code for it. */
template <class Op>
constexpr bool keeps_ragged = counted<Op> < SHARED_ONE;
} // namespace nn

/* A thread's part of a sum: see ops/nn_operands.h. */
template <typename T>
struct RunningSum {
    double total;
    T run;
    int length;
    __device__ __forceinline__ RunningSum() : total(0), run(0), length(0) {}
    __device__ __forceinline__ void add(T value, int terms = 32)
    {
        run += value;
        if (++length == terms) {
            total += (double)run;
            run = 0;
            length = 0;
        }
    }
    __device__ __forceinline__ double value() const { return total + (double)run; }
};

/* Where a row across memory starts. */
static __device__ __forceinline__ int64_t row_start(const NnCall &call, int64_t row)
{
    int64_t slab = divide(row, call.by_inner);
    return slab * call.n * call.inner + (row - slab * call.inner);
}

/* The number of a loose element, used as that of a slot. */
struct Loose {
    int64_t i;
};

/* Memory holds vectors of N from addresses that N divides. A row that starts or ends
 * between two of them has up to N - 1 loose elements at each end: the first threads take
 * one each. */
template <typename T, bool GROUP, int KEPT, int N, bool RAGGED = (N > 1 && KEPT <= 0)>
struct CudaRow {
    typedef Elements<T, KEPT, N> E;
    static constexpr int COPIED = 4; /* vectors at a time into shared memory */
    const NnCall &call;
    const dt_nn_params &params;
    int64_t number, n, base, stride;
    int first, step; /* the thread's first vector, and elements to its next one, a power
                        of two */
    int slots;       /* vectors of the thread */
    int head, loose; /* elements before the vectors, and at both ends */
    mutable char *free_shared;

    __device__ __forceinline__ CudaRow(const NnCall &given, int64_t row, char *shared)
        : call(given), params(given.params), number(row), n(given.n),
          base(row * given.n), stride(1),
          first(GROUP ? (int)(threadIdx.x & (unsigned)(given.threads - 1)) * N : 0),
          step(GROUP ? given.threads * N : N), head(0), loose(0), free_shared(shared)
    {
        /* Vectors are never across memory. */
        if constexpr (N == 1)
            if (given.inner > 1) {
                base = row_start(given, row);
                stride = given.inner;
            }
        if constexpr (RAGGED) {
            head = (int)(-base & (N - 1));
            loose = head + (int)((n - head) & (N - 1));
        }
        const int64_t end = n - loose;
        slots = end > first ? (int)((end - first - 1) >> given.shift) + 1 : 0;
    }

    /* The elements of the row that starts at `data`. */
    __device__ __forceinline__ E elements(const char *data, Half half) const
    {
        E e;
        e.data = data;
        e.stride = stride;
        e.half = half;
        e.hop = hop(half);
        e.mine = stored_at<T>(e.data, start(), e.half);
        return e;
    }
    __device__ __forceinline__ E read(nn::Row<const T> x) const
    {
        E e = elements(stored_at<T>((const char *)x.data, base, call.half), call.half);
        if constexpr (KEPT > 0) {
            StoredPack<T, N> asked[KEPT / N];
            by_width<T>(e.half, [&](auto width) {
                UNROLL
                for (int s = 0; s < KEPT / N; s++)
                    if (s < slots)
                        asked[s].read(e.mine + s * e.hop, decltype(width)::value);
            });
            if (RAGGED && has_loose())
                e.single = e.at(loose_at());
            UNROLL
            for (int s = 0; s < KEPT / N; s++)
                e.kept[s] = asked[s].elements(e.half);
        } else if constexpr (KEPT == IN_SHARED) {
            char *near = free_shared + first * stored_size<T>(e.half);
            e.near = near;
            e.near_hop = step * stored_size<T>(e.half);
            e.room = call.room;
            free_shared += (int64_t)e.room * e.near_hop;
            int end = slots < e.room ? slots : e.room;
            if (has_loose())
                e.single = e.at(loose_at());
            /* Each thread copies the elements that it will read. */
            ROLLED
            for (int s = 0; s < end; s += COPIED) {
                StoredPack<T, N> asked[COPIED];
                UNROLL
                for (int f = 0; f < COPIED; f++)
                    if (f < end - s)
                        asked[f].read(e.mine + (s + f) * e.hop, e.half);
                UNROLL
                for (int f = 0; f < COPIED; f++)
                    if (f < end - s)
                        asked[f].write(near + (s + f) * e.near_hop, e.half);
            }
        }
        return e;
    }
    __device__ __forceinline__ SharedElements<T, N> shared(nn::Shared<T> w,
                                                           T missing) const
    {
        const char *data = (const char *)w.data;
        int hop = step * stored_size<T>(call.half);
        bool aligned = !RAGGED || head == 0;
        return {data,      stored_at<T>(data, head + first, call.half),
                hop,       missing,
                call.half, aligned};
    }
    template <class F, class... S>
    __device__ __forceinline__ void cases(F f, const S &...shared) const
    {
        f(shared...);
    }

    /* use(slot, vectors of each e...) for each of the thread's vectors; for its loose
     * element, too, in a vector of one. */
    template <class Use, class... S>
    __device__ __forceinline__ void each_vector(Use use, const S &...e) const
    {
        auto round = [&](int slot) {
            [&](const auto &...asked) {
                use(slot, e.got(asked, slot)...);
            }(e.ask(slot)...);
        };
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++)
                if (s < slots)
                    round(s);
        } else {
            ROLLED
            for (int s = 0; s < slots; s++)
                round(s);
        }
        if constexpr (RAGGED)
            if (has_loose())
                use(Loose{loose_at()}, Vector<T, 1>{{e.loose(loose_at())}}...);
    }

    template <class F, class... S>
    __device__ __forceinline__ T sum(F f, const S &...e) const
    {
        RunningSum<T> mine;
        T part = 0;
        each_vector(
            [&](auto, const auto &...v) {
                if constexpr (KEPT > 0)
                    part += sum_vector(f, v...);
                else
                    mine.add(sum_vector(f, v...), call.run);
            },
            e...);
        return reduce(KEPT > 0 ? part : (T)mine.value(), plus);
    }
    template <class S>
    __device__ __forceinline__ T sum(const S &e) const
    {
        return sum([](T v) { return v; }, e);
    }
    /* The terms stay in registers, or are computed again. */
    template <class F>
    __device__ __forceinline__ auto sum_kept(nn::Out<T>, T *sum, F f, const E &e) const
    {
        if constexpr (KEPT > 0) {
            E terms;
            each_vector(
                [&](auto slot, const auto &v) {
                    if constexpr (std::is_same_v<decltype(slot), Loose>)
                        terms.single = f(v.v[0]);
                    else
                        terms.kept[slot] = each_element<T, N>(f, v);
                },
                e);
            *sum = this->sum(terms);
            return terms;
        } else {
            *sum = this->sum(f, e);
            return Mapped<T, N, F, E>{f, e};
        }
    }
    __device__ __forceinline__ T max(const E &x) const
    {
        T mine = -(T)INFINITY;
        each_vector(
            [&](auto, const auto &v) {
                UNROLL
                for (T each : v.v)
                    mine = larger(mine, each);
            },
            x);
        return reduce(mine, larger);
    }

    template <class F, class... S>
    __device__ __forceinline__ void write(nn::Out<T> y, F f, const S &...e) const
    {
        char *row = stored_at<T>((char *)y.data, base, call.half),
             *mine = stored_at<T>(row, start(), call.half);
        const int64_t by = hop(call.half);
        each_vector(
            [&](auto slot, const auto &...v) {
                if constexpr (std::is_same_v<decltype(slot), Loose>)
                    put_element(stored_at<T>(row, slot.i, call.half), f(v.v[0]...),
                                call.half);
                else
                    put_elements(mine + slot * by, each_element<T, N>(f, v...),
                                 call.half);
            },
            e...);
    }
    /* Computed once more, since what is stored may be rounded. */
    template <class F, class... S>
    __device__ __forceinline__ void add(nn::Out<T> y, int64_t i, T value, F f,
                                        const S &...e) const
    {
        /* The thread that wrote the element writes it again. */
        bool wrote = ((i - head) & (step - 1)) / N * N == first;
        if (RAGGED && (i < head || i >= n - (loose - head)))
            wrote = has_loose() && loose_at() == i;
        if (wrote)
            put_element(stored_at<T>((char *)y.data, base + i * stride, call.half),
                        f(e.at(i)...) + value, call.half);
    }

    __device__ __forceinline__ T get(nn::PerRow<T> x) const { return x.data[number]; }
    __device__ __forceinline__ T get(nn::Single<T> x) const { return *x.data; }
    __device__ __forceinline__ T get(nn::Row<const T> x, int64_t i) const
    {
        return stored(x.data, base + i * stride, call.half);
    }
    __device__ __forceinline__ T get(nn::Shared<T> x, int64_t i) const
    {
        return stored(x.data, i, call.half);
    }
    __device__ __forceinline__ void put(nn::OutPerRow<T> y, T value) const
    {
        if (first == 0 && y.data)
            y.data[number] = value;
    }
    /* One thread reports a target out of range, whose row does not count. */
    __device__ __forceinline__ nn::Target target(nn::Index index) const
    {
        nn::Target t = {index.data[number], true};
        t.counts = t.at != params.ignore_index;
        if (t.counts && (uint64_t)t.at >= (uint64_t)n) {
            if (first == 0)
                report_range(call.report, call.op_name, t.at, 0, n, params.dim);
            t.counts = false;
        }
        return t;
    }

  private:
    /* Distances from the row to the thread's first vector, and from one to the next. */
    __device__ __forceinline__ int64_t start() const
    {
        return N > 1 ? head + first : first * stride;
    }
    __device__ __forceinline__ int64_t hop(Half half) const
    {
        return (N > 1 ? step : step * stride) * stored_size<T>(half);
    }
    /* Whether the thread has a loose element, and which. */
    __device__ __forceinline__ bool has_loose() const { return first / N < loose; }
    __device__ __forceinline__ int64_t loose_at() const
    {
        int mine = first / N;
        return mine < head ? mine : n - loose + mine;
    }
    template <class F, int M, class... V>
    static __device__ __forceinline__ T sum_vector(F f, const Vector<T, M> &v,
                                                   const V &...others)
    {
        T part = f(v.v[0], others.v[0]...);
        UNROLL
        for (int j = 1; j < M; j++)
            part += f(v.v[j], others.v[j]...);
        return part;
    }
    static __device__ __forceinline__ T plus(T a, T b) { return a + b; }
    static __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }
    template <class F>
    __device__ __forceinline__ T reduce(T value, F combine) const
    {
        if constexpr (GROUP)
            return reduce_group<true>(value, call.threads, combine);
        else
            return value;
    }
};

/* Threads of a row that is long enough for one block of a multiprocessor. */
#define WIDE 1024
/* Elements that a thread has in registers. */
#define ROWS_KEPT      8
#define ROWS_KEPT_LONG 32

/* How many blocks a multiprocessor must have room for. With 4, threads that each keep 32
 * elements of 16 bits have 64 KB of loads in flight. */
template <class Op, int KEPT, int N>
constexpr int nn_blocks = KEPT == NOWHERE && N == 1                        ? MANY_BLOCKS
                          : KEPT == ROWS_KEPT_LONG && nn::rows_of<Op> == 1 ? 4
                                                                           : 1;

template <class Op, typename T, bool GROUP, int KEPT, int N>
__global__ void __launch_bounds__(KEPT == IN_SHARED ? WIDE : BLOCK,
                                  nn_blocks<Op, KEPT, N>)
    nn_kernel(GRID_CONSTANT(NnCall) call)
{
    int64_t row = blockIdx.x;
    char *shared = nullptr;
    if (!GROUP)
        row = row * BLOCK + threadIdx.x;
    else if (call.threads == 32)
        row = row * (BLOCK / 32) + threadIdx.x / 32;
    if constexpr (KEPT == IN_SHARED) {
        DYNAMIC_SHARED(char, rooms);
        shared = rooms + threadIdx.x / (unsigned)call.threads * nn::rows_of<Op> *
                             call.room * (call.threads * N * stored_size<T>(call.half));
    }
    constexpr bool ragged =
        N > 1 && (KEPT <= 0 || (KEPT == ROWS_KEPT_LONG && nn::keeps_ragged<Op>));
    /* The threads of a row leave together. */
    if (row < call.rows)
        Op::run(CudaRow<T, GROUP, KEPT, N, ragged>(call, row, shared),
                nn::named<Op, T>(call.operands));
}

/* --- launches --- */

/* The call as kernels take it. */
static inline int nn_prepare(dt_stream stream, const dt_nn_call *given, NnCall *out)
{
    out->op_name = given->op_name;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        out->operands[k] = given->operands[k];
    out->rows = given->outer * given->inner;
    out->n = given->n;
    out->inner = given->inner;
    out->by_n = long_divider_for(given->n);
    out->by_inner = long_divider_for(given->inner);
    out->params = given->params;
    out->half = half_of(given->stored);
    out->run = 32;
    out->report = report_of(stream.device);
    return out->report ? 0 : -1;
}

static inline void nn_set_threads(NnCall &call, int threads, int each)
{
    call.threads = threads;
    call.shift = 0;
    while (1 << call.shift < threads * each)
        call.shift++;
}

/* Rows from which on a GPU is busy with one thread, or one warp, for each. */
#define ROWS_MANY  16384
#define ROWS_WARPS 2048
#define ROWS_SHORT 16

/* How threads share rows of floats: one has a row; they take elements one by one, or
 * vectors; those that are needed again are in few registers, in many, or in shared
 * memory. */
enum NnWay { NN_ALONE, NN_SINGLY, NN_VECTORS, NN_KEPT, NN_KEPT_LONG, NN_SHARED };
struct NnForm {
    NnWay way;
    int threads; /* of a row; NN_SHARED: at least */
};

/* passes: of the operation, over `rows` rows of elements; keeps: nn::keeps_ragged. */
static inline NnForm nn_form(const NnCall &call, bool vectors, int passes, int rows,
                             bool keeps)
{
    constexpr int N = vector_size<float>;
    if (call.n <= ROWS_SHORT ||
        (call.inner > 1 && (call.rows >= ROWS_MANY || call.n <= 256)))
        return {NN_ALONE, 1};
    const int threads = call.n <= 512 ? 32 : BLOCK;
    if (!vectors)
        return {NN_SINGLY, threads};
    if (passes == 1)
        return {NN_VECTORS, threads};
    /* Warps have no barriers to wait at. */
    const bool many = call.rows >= ROWS_WARPS;
    const bool warps = call.n <= 32 * (many ? ROWS_KEPT_LONG : ROWS_KEPT);
    int group = warps ? 32 : BLOCK;
    /* Memory is busy if each thread has loads of 64 bytes in flight. Of 16-bit floats these
     * are all elements that a thread can keep, so a row gets fewer threads. */
    if (call.half && many && !warps)
        for (group = 64; group < BLOCK && call.n > group * ROWS_KEPT_LONG;)
            group *= 2;
    /* Rows of float32 take the time of a copy with shared memory, too. */
    const bool ragged = call.n % N, kept = !ragged || (keeps && call.half);
    /* Three blocks of a multiprocessor have room for such rows. */
    if (!kept || call.n > group * ROWS_KEPT_LONG)
        return {NN_SHARED, warps || (many && call.n * rows <= 2048) ? 32 : BLOCK};
    return {ragged || call.n > group * ROWS_KEPT ? NN_KEPT_LONG : NN_KEPT, group};
}

static inline bool nn_has_vectors(const dt_nn_call *given, Half half)
{
    bool vectors = given->inner == 1;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        vectors = vectors && is_aligned(given->operands[k], half ? 8 : 16);
    return vectors;
}

/* Rows of a block: those of a thread or a warp share one. */
static inline int nn_rows_of_block(int threads)
{
    return threads <= 32 ? BLOCK / threads : 1;
}

template <class Op, typename T, bool GROUP, int KEPT, int N>
static int nn_launch(dt_stream stream, NnCall &call, int threads)
{
    const int64_t each = nn_rows_of_block(threads);
    int64_t blocks = (call.rows + each - 1) / each;
    nn_set_threads(call, threads, N);
    if constexpr (GROUP)
        return start_result(
            "starting an operation on rows",
            (Relaxed(),
             LAUNCH_BARRIERS((nn_kernel<Op, T, true, KEPT, N>), blocks, each * threads,
                             0, (cudaStream_t)stream.handle, call)));
    else
        return START_BLOCKS("starting an operation on rows", stream,
                            (nn_kernel<Op, T, false, KEPT, N>), blocks, call);
}

/* Bytes of shared memory that the blocks of a multiprocessor may ask for together. */
static inline int shared_of_multiprocessor(int device, int64_t *bytes)
{
    dt_device_properties p;
    if (dt_cuda_device_properties(device, &p))
        return -1;
    *bytes = (int64_t)p.shared_memory_per_block_optin - (1 << 10);
    return 0;
}

/* Threads of a row of which `row` bytes are in shared memory: the blocks of a
 * multiprocessor, which have WIDE together, have room in `most`. */
static inline int nn_shared_threads(int least, int64_t row, int64_t most)
{
    int threads = least;
    while (least > 32 && threads < WIDE && row * (WIDE / threads) > most)
        threads *= 2;
    return threads;
}

/* The elements that threads need again are in shared memory, as many as fit. */
template <class Op, typename T, int N>
static int nn_launch_shared(dt_stream stream, NnCall &call, int least)
{
    const char *doing = "starting an operation on rows";
    auto kernel = nn_kernel<Op, T, true, IN_SHARED, N>;
    const int64_t item = nn::rows_of<Op> * stored_size<T>(call.half);
    int64_t most;
    if (shared_of_multiprocessor(stream.device, &most))
        return -1;
    const int threads = nn_shared_threads(least, call.n * item, most);
    nn_set_threads(call, threads, N);
    const int block = threads < BLOCK ? BLOCK : threads, each = block / threads;
    const int64_t slot = item * block * N, slots = (call.n >> call.shift) + 1;
    call.room = (int)(slots * slot > most ? most / slot : slots);
    const size_t bytes = (size_t)(call.room * slot);
    int64_t blocks = (call.rows + each - 1) / each;
    return start_result(doing,
                        (Relaxed(), LAUNCH_LARGE(kernel, blocks, block, bytes,
                                                 (cudaStream_t)stream.handle, call)));
}

template <class Op, typename T>
static int nn_start(dt_stream stream, const dt_nn_call *given)
{
    NnCall call;
    if (nn_prepare(stream, given, &call))
        return -1;
    if constexpr (Op::passes == 0) {
        return nn_launch<Op, T, false, NOWHERE, 1>(stream, call, 1);
    } else if constexpr (sizeof(T) > 4) {
        /* Each form is a kernel of its own, so doubles, which are rare, have one. */
        return nn_launch<Op, T, true, NOWHERE, 1>(stream, call,
                                                  call.n <= 512 ? 32 : BLOCK);
    } else {
        constexpr int N = vector_size<T>;
        const bool vectors = nn_has_vectors(given, call.half);
        const NnForm form =
            nn_form(call, vectors, Op::passes, nn::rows_of<Op>, nn::keeps_ragged<Op>);
        if (form.way == NN_ALONE)
            return nn_launch<Op, T, false, NOWHERE, 1>(stream, call, 1);
        if (form.way == NN_SINGLY)
            return nn_launch<Op, T, true, NOWHERE, 1>(stream, call, form.threads);
        if constexpr (Op::passes == 1)
            return nn_launch<Op, T, true, NOWHERE, N>(stream, call, form.threads);
        else if (form.way == NN_SHARED)
            return nn_launch_shared<Op, T, N>(stream, call, form.threads);
        else if (form.way == NN_KEPT)
            return nn_launch<Op, T, true, ROWS_KEPT, N>(stream, call, form.threads);
        else
            return nn_launch<Op, T, true, ROWS_KEPT_LONG, N>(stream, call,
                                                             form.threads);
    }
}

} // namespace

/* Defines the function of an operation by a `start` of its functor and type. */
#define NN_ENTRY(op, start)                                                            \
    int nn_##op(dt_stream stream, const dt_nn_call *call)                              \
    {                                                                                  \
        return call->dtype == DT_FLOAT64 ? start<nn::op, double>(stream, call)         \
                                         : start<nn::op, float>(stream, call);         \
    }

#endif
