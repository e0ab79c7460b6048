#include "cuda/kernels/packs.h"
#include "cuda/runtime/report.h"

namespace {

/* The call as a kernel sees it: 3.4 KB of the 4 that arguments may take. */
struct IndexCall {
    const char *op_name; /* the host's, for the report */
    int ndim, nindices;
    bool wraps;
    Divider sizes[DT_MAX_NDIM];
    int64_t table_strides[DT_MAX_NDIM], value_strides[DT_MAX_NDIM];
    dt_index_dims indices[DT_MAX_NDIM];
};
POINTERS_OF(IndexCall, for (int k = 0; k < s.nindices; k++) f(s.indices[k].data);)
static_assert(sizeof(IndexCall) <= 3900, "too large for a kernel's arguments");

struct Read {
    template <typename T>
    static __device__ __forceinline__ void apply(T *x, T *y)
    {
        *y = *x;
    }
};
struct Write {
    template <typename T>
    static __device__ __forceinline__ void apply(T *x, T *y)
    {
        *x = *y;
    }
};

/* Integers wrap round; of bools the sum is the or and the product the and. */
struct Sum {
    template <typename T>
    static __device__ __forceinline__ T of(T a, T b)
    {
        return (T)(a + b);
    }
};
struct Product {
    template <typename T>
    static __device__ __forceinline__ T of(T a, T b)
    {
        return (T)(a * b);
    }
};

/* The word of 2, 4 or 8 bytes that holds an element, and the element's place in it. */
template <size_t size>
struct Word {
    typedef unsigned type;
};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
template <>
struct Word<2> {
    typedef unsigned short type;
};
#endif
template <>
struct Word<8> {
    typedef unsigned long long type;
};

/* x = F(x, y) as one step, for elements of any size. */
template <class F>
struct Atomic {
    template <typename T>
    static __device__ __forceinline__ void apply(T *x, T *y)
    {
        typedef typename Word<sizeof(T)>::type W;
        size_t shift = (uintptr_t)x % sizeof(W);
        W *word = (W *)((char *)x - shift), old = *(volatile W *)word, seen;
        do {
            seen = old;
            T element;
            W next = seen;
            __builtin_memcpy(&element, (char *)&seen + shift, sizeof(T));
            element = (T)F::of((Compute<T>)element, (Compute<T>)*y);
            __builtin_memcpy((char *)&next + shift, &element, sizeof(T));
            old = atomicCAS(word, seen, next);
        } while (old != seen);
    }
};
/* Hardware adds what it can by itself. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
#define ADDS_DOUBLES true
#else
#define ADDS_DOUBLES false
#endif
struct Add {
    template <typename T>
    static __device__ __forceinline__ void apply(T *x, T *y)
    {
        if constexpr (std::is_same_v<T, float> ||
                      (ADDS_DOUBLES && std::is_same_v<T, double>))
            atomicAdd(x, *y);
        else if constexpr (std::is_same_v<T, int32_t>)
            atomicAdd((unsigned *)x, (unsigned)*y);
        else if constexpr (std::is_same_v<T, int64_t>)
            atomicAdd((unsigned long long *)x, (unsigned long long)*y);
        else
            Atomic<Sum>::apply(x, y);
    }
};

/* Whether an index is a place of its dimension; a place is counted from the front then,
 * else reported. */
static __device__ __forceinline__ bool is_place(int64_t *index, const char *op_name,
                                                bool wraps, int64_t size, int dim,
                                                Report *report)
{
    int64_t low = wraps ? -size : 0;
    if (*index < low || *index >= size) {
        report_range(report, op_name, *index, low, size, dim);
        return false;
    }
    *index += *index < 0 ? size : 0;
    return true;
}

template <class Op, typename T, bool reads>
__global__ void index_kernel(GRID_CONSTANT(IndexCall) s, char *table, char *values,
                             Report *report, unsigned numel)
{
    unsigned left = (unsigned)thread_number();
    if (left >= numel)
        return;
    int64_t at[DT_MAX_NDIM], x = 0, y = 0;
    ROLLED
    for (int d = s.ndim - 1; d >= 0; d--) {
        unsigned outer = divide(left, s.sizes[d]);
        at[d] = left - outer * s.sizes[d].divisor;
        left = outer;
        x += at[d] * s.table_strides[d];
        y += at[d] * s.value_strides[d];
    }
    ROLLED
    for (int k = 0; k < s.nindices; k++) {
        const dt_index_dims &index = s.indices[k];
        int64_t offset = 0;
        ROLLED
        for (int d = 0; d < s.ndim; d++)
            offset += at[d] * index.strides[d];
        int64_t value = *(const int64_t *)((const char *)index.data + offset);
        if (!is_place(&value, s.op_name, s.wraps, index.size, index.dim, report)) {
            if (!reads)
                return;
            value = 0;
        }
        x += value * index.stride;
    }
    Op::apply((T *)(table + x), (T *)(values + y));
}

/* --- rows --- */

/* One index for a row of elements, as of an embedding. */
struct RowIndex {
    const char *op_name; /* the host's, for the report */
    int64_t size, stride;
    int dim;
    bool wraps;
};
NO_POINTERS(RowIndex)

/* Operands are the values, the table and the index. Words are moved in packs; what is
 * added goes one by one. */
template <class Op, typename T, bool reads>
__global__ void index_rows(RowIndex s, char *values, char *table, const char *index,
                           Report *report, GRID_CONSTANT(Packs<3>) p)
{
    constexpr int N = 16 / (int)sizeof(T);
    int64_t at[3];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, N, at);
    bool full = column + N <= p.length;
    int64_t place = *(const int64_t *)(index + at[2]);
    if (!is_place(&place, s.op_name, s.wraps, s.size, s.dim, report)) {
        if (!reads)
            return;
        place = 0;
    }
    values += at[0];
    table += at[1] + place * s.stride;
    if constexpr (std::is_same_v<Op, Read>) {
        put_pack<0>(p, values, column, full, pack_at<1, T, N>(p, table, column, full));
    } else if constexpr (std::is_same_v<Op, Write>) {
        put_pack<1>(p, table, column, full, pack_at<0, T, N>(p, values, column, full));
    } else {
        ROLLED
        for (int k = 0; k < N && column < p.length; k++, column += p.gap) {
            Op::apply((T *)table, (T *)values);
            values += p.hops[0];
            table += p.hops[1];
        }
    }
}

/* The call as a plan of values, table and index, whose innermost dimension has one index:
 * false where the call is not of this form. */
static bool is_of_rows(const dt_index_call *s, dt_plan *plan)
{
    const dt_index_dims &index = s->indices[0];
    if (s->nindices != 1)
        return false;
    plan->noperands = 3;
    plan->operands[0].data = s->values;
    plan->operands[1].data = s->table;
    plan->operands[2].data = (void *)index.data;
    plan->operands[0].dtype = plan->operands[1].dtype = s->dtype;
    plan->operands[2].dtype = DT_INT64;
    plan->ndim = 0;
    plan->numel = s->numel;
    for (int d = 0; d < s->ndim; d++) {
        int64_t strides[] = {s->value_strides[d], s->table_strides[d],
                             index.strides[d]};
        if (s->shape[d] == 1)
            continue;
        bool merges = plan->ndim > 0;
        for (int k = 0; k < 3; k++) {
            plan->operands[k].scalar = false;
            merges = merges && plan->operands[k].strides[plan->ndim - 1] ==
                                   strides[k] * s->shape[d];
        }
        if (merges)
            plan->shape[plan->ndim - 1] *= s->shape[d];
        else
            plan->shape[plan->ndim++] = s->shape[d];
        for (int k = 0; k < 3; k++)
            plan->operands[k].strides[plan->ndim - 1] = strides[k];
    }
    return plan->ndim && !plan->operands[2].strides[plan->ndim - 1];
}

template <class Op, typename T, bool reads>
static int run_rows(dt_stream stream, const dt_index_call *s, const dt_plan *plan,
                    Report *report)
{
    const dt_index_dims &index = s->indices[0];
    constexpr int N = 16 / (int)sizeof(T);
    /* Threads that add have neighbouring elements, which the hardware adds together. */
    constexpr bool moves = std::is_same_v<Op, Read> || std::is_same_v<Op, Write>;
    auto packs = packs_of<3>(plan, N, !moves);
    if (packs.ways[1] == PACK_WHOLE && index.stride % 16)
        packs.ways[1] = PACK_APART;
    RowIndex row = {s->op_name, index.size, index.stride, index.dim, s->wraps};
    return START("starting an index operation", stream, (index_rows<Op, T, reads>),
                 packs.numel, row, (char *)s->values, (char *)s->table,
                 (const char *)index.data, report, packs);
}

/* Elements of one launch: as many as a Divider divides. */
template <class Op, typename T, bool reads>
static int run_part(dt_stream stream, const dt_index_call *s, Report *report)
{
    /* What embeddings and their gradients do. */
    if constexpr (reads || std::is_same_v<Op, Write> ||
                  (std::is_same_v<Op, Add> && dt_kind_of<T> == DT_KIND_FLOAT)) {
        dt_plan rows;
        if (is_of_rows(s, &rows))
            return run_rows<Op, T, reads>(stream, s, &rows, report);
    }
    IndexCall given;
    __builtin_memset(&given, 0, sizeof given);
    given.op_name = s->op_name;
    given.ndim = s->ndim;
    given.nindices = s->nindices;
    given.wraps = s->wraps;
    for (int d = 0; d < s->ndim; d++) {
        given.sizes[d] = divider_for((unsigned)s->shape[d]);
        given.table_strides[d] = s->table_strides[d];
        given.value_strides[d] = s->value_strides[d];
    }
    for (int k = 0; k < s->nindices; k++)
        given.indices[k] = s->indices[k];
    return START("starting an index operation", stream, (index_kernel<Op, T, reads>),
                 s->numel, given, (char *)s->table, (char *)s->values, report,
                 (unsigned)s->numel);
}

/* In parts along the outermost dimension, where there is more than one launch takes. */
template <class Op, typename T, bool reads>
static int run(dt_stream stream, const dt_index_call *s)
{
    Report *report = report_of(stream.device);
    if (!report)
        return -1;
    if (s->numel < MAX_LAYOUT_NUMEL)
        return run_part<Op, T, reads>(stream, s, report);
    int outermost = 0;
    while (s->shape[outermost] == 1)
        outermost++;
    int64_t inner = s->numel / s->shape[outermost];
    int64_t rows = inner < MAX_LAYOUT_NUMEL ? (MAX_LAYOUT_NUMEL - 1) / inner : 1;
    for (int64_t first = 0; first < s->shape[outermost]; first += rows) {
        dt_index_call part = *s;
        int64_t rest = s->shape[outermost] - first;
        part.shape[outermost] = rest < rows ? rest : rows;
        part.numel = part.shape[outermost] * inner;
        part.table = (char *)s->table + first * s->table_strides[outermost];
        part.values = (char *)s->values + first * s->value_strides[outermost];
        for (int k = 0; k < s->nindices; k++)
            part.indices[k].data =
                (const int64_t *)((const char *)s->indices[k].data +
                                  first * s->indices[k].strides[outermost]);
        if (run<Op, T, reads>(stream, &part))
            return -1;
    }
    return 0;
}

/* Without arithmetic an element is so many bytes. */
template <class Op, bool reads>
static int move(dt_stream stream, const dt_index_call *s)
{
    return with_word(
        s->dtype, [&](auto word) { return run<Op, decltype(word), reads>(stream, s); });
}

template <class Op>
static int accumulate(dt_stream stream, const dt_index_call *s)
{
    return with_type(
        s->dtype, [&](auto zero) { return run<Op, decltype(zero), false>(stream, s); });
}

} // namespace

int dt_cuda_index(dt_stream stream, dt_index_op op, const dt_index_call *s)
{
    switch (op) {
    case DT_INDEX_READ:
        return move<Read, true>(stream, s);
    case DT_INDEX_WRITE:
        return move<Write, false>(stream, s);
    case DT_INDEX_ADD:
        return accumulate<Add>(stream, s);
    default:
        return accumulate<Atomic<Product>>(stream, s);
    }
}
