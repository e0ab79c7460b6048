#include "cuda/kernels/index.h"
#include "cuda/kernels/pack_access.h"

namespace {

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

/* The word of 2, 4 or 8 bytes that holds an element. */
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
    static __device__ __forceinline__ void apply(T *x, T y)
    {
        typedef typename Word<sizeof(T)>::type W;
        typedef Unsigned<(int)sizeof(T)> Bits;
        size_t before = sizeof(W) == sizeof(T) ? 0 : (uintptr_t)x % sizeof(W);
        unsigned shift = (unsigned)before * 8;
        const W others = (W) ~((W)(Bits)-1 << shift);
        W *word = (W *)((char *)x - before), old = *(volatile W *)word, seen;
        do {
            seen = old;
            Bits bits = (Bits)(seen >> shift);
            T element;
            __builtin_memcpy(&element, &bits, sizeof bits);
            element = (T)F::of((Compute<T>)element, (Compute<T>)y);
            __builtin_memcpy(&bits, &element, sizeof bits);
            W next = (W)((seen & others) | (W)bits << shift);
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

/* Halves it adds in pairs: to the other one -0 is added, which changes no number. False
 * where it cannot, and at the table's end, where there may be no other one. */
template <typename T>
static __device__ __forceinline__ bool add_to_pair(T *x, T y, const char *end)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    unsigned odd = (unsigned)(uintptr_t)x >> 1 & 1;
    unsigned pair = odd ? 0x8000u | (unsigned)y.bits << 16 : 0x80000000u | y.bits;
    T *first = x - odd;
    if ((const char *)(first + 2) > end)
        return false;
    if constexpr (std::is_same_v<T, dt_float16>) {
        asm volatile("red.global.add.noftz.f16x2 [%0], %1;"
                     :
                     : "l"(first), "r"(pair)
                     : "memory");
        return true;
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (std::is_same_v<T, dt_bfloat16>) {
        asm volatile("red.global.add.noftz.bf16x2 [%0], %1;"
                     :
                     : "l"(first), "r"(pair)
                     : "memory");
        return true;
    }
#endif
#else
    (void)x, (void)y, (void)end;
#endif
    return false;
}

/* end: of the table. */
template <typename T>
static __device__ __forceinline__ void add(T *x, T y, const char *end)
{
    if constexpr (std::is_same_v<T, float> ||
                  (ADDS_DOUBLES && std::is_same_v<T, double>))
        atomicAdd(x, y);
    else if constexpr (std::is_same_v<T, int32_t>)
        atomicAdd((unsigned *)x, (unsigned)y);
    else if constexpr (std::is_same_v<T, int64_t>)
        atomicAdd((unsigned long long *)x, (unsigned long long)y);
    else if constexpr (is_half<T>) {
        if (!add_to_pair(x, y, end))
            Atomic<Sum>::apply(x, y);
    } else
        Atomic<Sum>::apply(x, y);
}

/* --- elements --- */

/* Elements for a thread, which loads all indices first and then all elements. */
enum { EACH = 4 };
/* Indices of one launch: where there are more, they are joined before. */
enum { MOST_INDICES = 4 };

/* Packs of the values, the table and the first index; the others over these packs, and
 * their distances from an element of a pack to the next. */
struct IndexCall {
    int nindices;
    Packs<3> p;
    Index indices[MOST_INDICES];
    int64_t strides[MOST_INDICES - 1][DT_MAX_NDIM], hops[MOST_INDICES - 1];
};
POINTERS_OF(IndexCall,
            for (int k = 0; k < s.nindices; k++) each_pointer(s.indices[k], f);)

/* Where a thread's elements are. */
struct Elements {
    unsigned live; /* bit k: there is an element k */
    char *value;   /* the first; the others follow at hops */
    int64_t hop;
    char *entries[EACH]; /* of the table */
};

/* False for a thread without any. An index out of range is reported, and leads to the
 * first entry if `reads`, else nowhere. */
static __device__ __forceinline__ bool find(const IndexCall &s, char *values,
                                            char *table, KernelReport *report,
                                            bool reads, Elements *out)
{
    const Packs<3> &p = s.p;
    int64_t at[3];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return false;
    unsigned column = pack_offsets(p, pack, EACH, at), live = 0;
    UNROLL
    for (int k = 0; k < EACH; k++) {
        live |= (unsigned)(column + k * p.gap < p.length) << k;
        out->entries[k] = table + at[1] + k * p.hops[1];
    }
    int64_t offset = at[2], hop = p.hops[2];
    ROLLED
    for (int nth = 0;; nth++) {
        const Index &index = s.indices[nth];
        const char *from = index.data + offset;
        int64_t places[EACH];
        bool all = true;
        UNROLL
        for (int k = 0; k < EACH; k++, from += hop)
            places[k] = live >> k & 1 ? *(const int64_t *)from : 0;
        UNROLL
        for (int k = 0; k < EACH; k++)
            all = all && is_place(places[k], index);
        if (!all) {
            int64_t wrong = 0;
            UNROLL
            for (int k = 0; k < EACH; k++)
                if (!is_place(places[k], index)) {
                    wrong = places[k];
                    places[k] = 0;
                    live &= ~((unsigned)!reads << k);
                }
            report_place(report, wrong, index);
        }
        UNROLL
        for (int k = 0; k < EACH; k++)
            out->entries[k] += place_offset(places[k], index);
        if (nth == s.nindices - 1)
            break;
        offset = strided_offset(pack, p.layout.ndim, p.layout.sizes, s.strides[nth]);
        hop = s.hops[nth];
    }
    out->live = live;
    out->value = values + at[0];
    out->hop = p.hops[0];
    return true;
}

template <typename T>
static __device__ __forceinline__ void values_of(const Elements &e, T (&out)[EACH])
{
    const char *from = e.value;
    UNROLL
    for (int k = 0; k < EACH; k++, from += e.hop)
        out[k] = e.live >> k & 1 ? *(const T *)from : T();
}

template <typename Word>
static __device__ __forceinline__ void read_words(Elements e)
{
    Word words[EACH];
    UNROLL
    for (int k = 0; k < EACH; k++)
        words[k] = e.live >> k & 1 ? *(const Word *)e.entries[k] : Word();
    UNROLL
    for (int k = 0; k < EACH; k++, e.value += e.hop)
        if (e.live >> k & 1)
            *(Word *)e.value = words[k];
}

/* If an index occurs several times, one of its values remains; which one is not determined
 * (in index_ordered.cu it is). `make kernel-check` reports a race, and expects it here and
 * in index_rows. */
template <typename Word>
static __device__ __forceinline__ void write_words(const Elements &e)
{
    Word words[EACH];
    values_of(e, words);
    UNROLL
    for (int k = 0; k < EACH; k++)
        if (e.live >> k & 1)
            *(Word *)e.entries[k] = words[k];
}

/* reads: values = table[...]; else the other way. */
__global__ void ENOUGH_BLOCKS index_words(GRID_CONSTANT(IndexCall) s, char *values,
                                          char *table, KernelReport *report, int size,
                                          bool reads)
{
    Elements e;
    if (find(s, values, table, report, reads, &e))
        with_element_word(size, [&](auto word) {
            if (reads)
                read_words<decltype(word)>(e);
            else
                write_words<decltype(word)>(e);
        });
}

template <typename T>
static __device__ __forceinline__ void accumulate_numbers(Elements e, const char *end,
                                                          bool multiplies)
{
    T numbers[EACH];
    values_of(e, numbers);
    ROLLED
    for (; e.live; e.live >>= 1) {
        if (e.live & 1) {
            if (multiplies)
                Atomic<Product>::apply((T *)e.entries[0], numbers[0]);
            else
                add((T *)e.entries[0], numbers[0], end);
        }
        UNROLL
        for (int k = 1; k < EACH; k++) {
            e.entries[k - 1] = e.entries[k];
            numbers[k - 1] = numbers[k];
        }
    }
}

/* table[...] += values, or *= them. */
__global__ void index_numbers(GRID_CONSTANT(IndexCall) s, char *values, char *table,
                              int64_t bytes, KernelReport *report, dt_dtype dtype,
                              bool multiplies)
{
    Elements e;
    if (find(s, values, table, report, false, &e))
        with_element_type(dtype, [&](auto zero) {
            accumulate_numbers<decltype(zero)>(e, table + bytes, multiplies);
        });
}

/* --- many indices --- */

struct ManyIndices {
    int ndim, nindices;
    bool reads;
    Divider sizes[DT_MAX_NDIM];
    Index indices[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM][DT_MAX_NDIM]; /* of each index */
};
POINTERS_OF(ManyIndices,
            for (int k = 0; k < s.nindices; k++) each_pointer(s.indices[k], f);)
static_assert(sizeof(ManyIndices) <= 3900, "too large for a kernel's arguments");

/* The offset of the element that all indices select, in bytes of the table; -1: none. */
__global__ void join_indices(GRID_CONSTANT(ManyIndices) s, int64_t *joined,
                             KernelReport *report, unsigned numel)
{
    unsigned number = (unsigned)thread_number();
    if (number >= numel)
        return;
    int64_t sum = 0;
    bool all = true;
    ROLLED
    for (int nth = 0;; nth++) {
        const Index &index = s.indices[nth];
        int64_t offset = strided_offset(number, s.ndim, s.sizes, s.strides[nth]);
        int64_t place = *(const int64_t *)(index.data + offset);
        if (!is_place(place, index)) {
            report_place(report, place, index);
            all = false;
            place = 0;
        }
        sum += place_offset(place, index);
        if (nth == s.nindices - 1)
            break;
    }
    joined[number] = all || s.reads ? sum : -1;
}

/* --- rows --- */

/* The operations on whole rows, for embeddings and their gradients. */
struct Read {};
struct Write {};

/* Operands are the values, the table and the index. Words are moved in packs; what is
 * added goes one by one. */
template <class Op, typename T>
__global__ void index_rows(Index index, char *values, char *table, int64_t bytes,
                           KernelReport *report, GRID_CONSTANT(Packs<3>) p)
{
    constexpr int N = 16 / (int)sizeof(T);
    int64_t at[3];
    unsigned pack = (unsigned)thread_number();
    if (pack >= p.numel)
        return;
    unsigned column = pack_offsets(p, pack, N, at);
    bool full = column + N <= p.length;
    int64_t place = *(const int64_t *)(index.data + at[2]);
    if (!is_place(place, index)) {
        report_place(report, place, index);
        if (!std::is_same_v<Op, Read>)
            return;
        place = 0;
    }
    const char *end = table + bytes;
    values += at[0];
    table += at[1] + place_offset(place, index);
    if constexpr (std::is_same_v<Op, Read>) {
        put_pack<0>(p, values, column, full, pack_at<1, T, N>(p, table, column, full));
    } else if constexpr (std::is_same_v<Op, Write>) {
        put_pack<1>(p, table, column, full, pack_at<0, T, N>(p, values, column, full));
    } else {
        ROLLED
        for (int k = 0; k < N && column < p.length; k++, column += p.gap) {
            add((T *)table, *(const T *)values, end);
            values += p.hops[0];
            table += p.hops[1];
        }
    }
}

/* --- launches --- */

/* The call as a plan of values, table and first index. */
static dt_plan plan_of(const dt_index_call *s)
{
    const dt_index_dims &index = s->indices[0];
    dt_plan plan;
    plan.noperands = 3;
    plan.ndim = s->ndim;
    plan.numel = s->numel;
    void *data[] = {s->values, s->table, (void *)index.data};
    const int64_t *strides[] = {s->value_strides, s->table_strides, index.strides};
    for (int d = 0; d < s->ndim; d++)
        plan.shape[d] = s->shape[d];
    for (int k = 0; k < 3; k++) {
        dt_operand &operand = plan.operands[k];
        operand.data = data[k];
        operand.dtype = k < 2 ? s->dtype : DT_INT64;
        operand.scalar = false;
        for (int d = 0; d < s->ndim; d++)
            operand.strides[d] = strides[k][d];
    }
    return plan;
}

/* Bytes from the table's first element to the end of the last one that the call may
 * reach. */
static int64_t bytes_of_table(const dt_index_call *s)
{
    int64_t bytes = (int64_t)dt_dtype_size(s->dtype);
    for (int d = 0; d < s->ndim; d++)
        bytes += (s->shape[d] - 1) * s->table_strides[d];
    for (int k = 0; k < s->nindices; k++)
        bytes += (s->indices[k].size - 1) * s->indices[k].stride;
    return bytes;
}

template <class Op, typename T>
static int run_rows(dt_stream stream, const dt_index_call *s, KernelReport *report)
{
    const Index index = index_of(s, 0);
    const dt_plan plan = plan_of(s);
    constexpr int N = 16 / (int)sizeof(T);
    /* Threads that add have neighbouring elements, which the hardware adds together. */
    auto packs = packs_of<3>(&plan, N, std::is_same_v<Op, Sum>);
    if (packs.ways[1] == PACK_WHOLE && index.stride % 16)
        packs.ways[1] = PACK_APART;
    return START("starting an index operation", stream, (index_rows<Op, T>),
                 packs.numel, index, (char *)s->values, (char *)s->table,
                 bytes_of_table(s), report, packs);
}

static int add_rows(dt_stream stream, const dt_index_call *s, KernelReport *report)
{
    switch (s->dtype) {
    case DT_FLOAT16:
        return run_rows<Sum, dt_float16>(stream, s, report);
    case DT_BFLOAT16:
        return run_rows<Sum, dt_bfloat16>(stream, s, report);
    case DT_FLOAT32:
        return run_rows<Sum, float>(stream, s, report);
    default:
        return run_rows<Sum, double>(stream, s, report);
    }
}

static IndexCall elements_of_call(const dt_index_call *s)
{
    const dt_plan plan = plan_of(s);
    IndexCall c;
    c.nindices = s->nindices;
    c.p = packs_of<3>(&plan, EACH, true);
    for (int k = 0; k < s->nindices; k++)
        c.indices[k] = index_of(s, k);
    for (int k = 1; k < s->nindices; k++) {
        const int64_t *strides = s->indices[k].strides;
        for (int d = 0; d < s->ndim; d++)
            c.strides[k - 1][d] = strides[d];
        c.hops[k - 1] = strides[s->ndim - 1] * c.p.gap;
    }
    return c;
}

/* Calls use(call, report) for the call with one index instead of many: numbers of
 * bytes, for the dimensions along which the many change. */
template <class Use>
static int with_joined(dt_stream stream, const dt_index_call *s, bool reads,
                       KernelReport *report, Use use)
{
    dt_index_call call = *s;
    ManyIndices many;
    dt_index_dims &joined = call.indices[0];
    int64_t numel = 1;
    many.nindices = s->nindices;
    many.reads = reads;
    many.ndim = 0;
    for (int k = 0; k < s->nindices; k++)
        many.indices[k] = index_of(s, k);
    bool changes[DT_MAX_NDIM];
    for (int d = 0; d < s->ndim; d++) {
        changes[d] = false;
        for (int k = 0; k < s->nindices; k++)
            changes[d] = changes[d] || s->indices[k].strides[d];
        if (!changes[d])
            continue;
        for (int k = 0; k < s->nindices; k++)
            many.strides[k][many.ndim] = s->indices[k].strides[d];
        many.sizes[many.ndim++] = divider_for((unsigned)s->shape[d]);
    }
    if (!many.ndim) {
        for (int k = 0; k < s->nindices; k++)
            many.strides[k][0] = 0;
        many.sizes[many.ndim++] = divider_for(1);
    }
    for (int d = s->ndim - 1; d >= 0; d--) {
        joined.strides[d] = changes[d] ? numel * 8 : 0;
        numel *= changes[d] ? s->shape[d] : 1;
    }
    Scratch memory(stream, (size_t)numel * 8);
    if (!memory.data || START("joining indices", stream, join_indices, numel, many,
                              (int64_t *)memory.data, report, (unsigned)numel))
        return -1;
    joined.data = (const int64_t *)memory.data;
    joined.size = 1;
    for (int k = 0; k < s->nindices; k++)
        joined.size += (s->indices[k].size - 1) * s->indices[k].stride;
    joined.stride = 1;
    joined.dim = -1;
    call.nindices = 1;
    call.wraps = false;
    return use(&call, report);
}

/* Calls use(part, report) for the call, or, where there is more than one launch takes,
 * for parts of it along the outermost dimension. Where it has more than `most` indices,
 * they are joined. */
template <class Use>
static int each_part(dt_stream stream, const dt_index_call *s, bool reads, int most,
                     Use use)
{
    KernelReport *report = report_of(stream.device);
    if (!report)
        return -1;
    if (s->numel < MAX_LAYOUT_NUMEL)
        return s->nindices > most ? with_joined(stream, s, reads, report, use)
                                  : use(s, report);
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
        if (each_part(stream, &part, reads, most, use))
            return -1;
    }
    return 0;
}

/* Whether the innermost dimension has one index. */
static bool is_of_rows(const dt_index_call *s)
{
    return s->nindices == 1 && !s->indices[0].strides[s->ndim - 1];
}

/* Moves elements without arithmetic: only their size matters. */
static int move(dt_stream stream, const dt_index_call *call, bool reads)
{
    return each_part(stream, call, reads, MOST_INDICES,
                     [&](const dt_index_call *s, KernelReport *report) {
                         if (is_of_rows(s))
                             return with_word(s->dtype, [&](auto word) {
                                 typedef decltype(word) Word;
                                 return reads
                                            ? run_rows<Read, Word>(stream, s, report)
                                            : run_rows<Write, Word>(stream, s, report);
                             });
                         IndexCall c = elements_of_call(s);
                         return START("starting an index operation", stream,
                                      index_words, c.p.numel, c, (char *)s->values,
                                      (char *)s->table, report,
                                      (int)dt_dtype_size(s->dtype), reads);
                     });
}

static int accumulate(dt_stream stream, const dt_index_call *call, bool multiplies)
{
    return each_part(
        stream, call, false, MOST_INDICES,
        [&](const dt_index_call *s, KernelReport *report) {
            if (!multiplies && dt_dtype_is_float(s->dtype) && is_of_rows(s))
                return add_rows(stream, s, report);
            IndexCall c = elements_of_call(s);
            return START("starting an index operation", stream, index_numbers,
                         c.p.numel, c, (char *)s->values, (char *)s->table,
                         bytes_of_table(s), report, s->dtype, multiplies);
        });
}

} // namespace

int dt_cuda_index(dt_stream stream, dt_index_op op, const dt_index_call *s)
{
    /* Sums of whole numbers are the same in any order. */
    if (s->ordered &&
        (op == DT_INDEX_WRITE || (op != DT_INDEX_READ && dt_dtype_is_float(s->dtype))))
        return each_part(stream, s, false, 1,
                         [&](const dt_index_call *part, KernelReport *report) {
                             return index_in_order(stream, op, part, report);
                         });
    switch (op) {
    case DT_INDEX_READ:
    case DT_INDEX_WRITE:
        return move(stream, s, op == DT_INDEX_READ);
    default:
        return accumulate(stream, s, op == DT_INDEX_MULTIPLY);
    }
}
