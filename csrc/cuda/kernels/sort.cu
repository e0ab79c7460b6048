/* Rows in order. Elements become keys, whole numbers in the order that is wanted; a key
 * and its element's index make items that all differ, so that equal elements stay in
 * order whatever sorts them. Chunks are sorted by a bitonic network in shared memory.
 * Longer rows are sorted by digits (radix.h). Where only the first few are wanted, those
 * of each chunk go on to another round of chunks instead; very few are selected before
 * they are sorted. */
#include <limits.h>

#include "cuda/kernels/radix.h"
#include "cuda/runtime/kernel_errors.h"

namespace {

#define CHUNK 2048 /* items that a block sorts */

struct Chunks {
    int64_t rows, n;    /* rows of n items */
    int64_t of_row;     /* chunks of a row */
    int64_t keep;       /* how many items of each chunk go on */
    int size;           /* bytes of an element */
    int span_bits;      /* items of a chunk: a power of two */
    int count;          /* chunks that a block sorts side by side */
    LongDivider by_row; /* divides by of_row */
};
NO_POINTERS(Chunks)

/* Sorts chunks of x or, where that is NULL, of keys_in and places_in, into keys_out, NULL
 * in the last round, and places_out, whose rows have of_row * keep items.
 * The maximum key is for padding: indices are part of the order, so an element may have
 * it too. */
template <typename Key>
__global__ void chunk_kernel(const void *x, const Key *keys_in,
                             const unsigned *places_in, Key *keys_out,
                             unsigned *places_out, GRID_CONSTANT(Chunks) c,
                             GRID_CONSTANT(dt_key_order) order)
{
    STATIC_SHARED(Key[CHUNK], keys);
    STATIC_SHARED(unsigned[CHUNK], places);
    int64_t first = (int64_t)blockIdx.x * c.count, all = c.rows * c.of_row;
    int span = 1 << c.span_bits, total = c.count << c.span_bits;
    ROLLED
    for (int at = (int)threadIdx.x; at < total; at += BLOCK) {
        int64_t chunk = first + (at >> c.span_bits), row = divide(chunk, c.by_row);
        int64_t i = ((chunk - row * c.of_row) << c.span_bits) + (at & (span - 1));
        bool there = chunk < all && i < c.n;
        Key key = ~(Key)0;
        unsigned place = UINT_MAX;
        if (there && x) {
            key = dt_key_of(bits_at<Key>(x, row * c.n + i, c.size), order);
            place = (unsigned)i;
        } else if (there) {
            key = keys_in[row * c.n + i];
            place = places_in[row * c.n + i];
        }
        keys[at] = key;
        places[at] = place;
    }
    __syncthreads();
    ROLLED
    for (int size = 2; size <= span; size *= 2) {
        ROLLED
        for (int step = size / 2; step; step /= 2) {
            /* In a short step a warp's pairs are items of its own pairs of the step before. */
            if (step < 32)
                __syncwarp();
            else
                __syncthreads();
            ROLLED
            for (int t = (int)threadIdx.x; t < total / 2; t += BLOCK) {
                int low = 2 * t - (t & (step - 1)), high = low + step;
                Key a = keys[low], b = keys[high];
                unsigned a_place = places[low], b_place = places[high];
                bool rising = (low & size) == 0 || size == span;
                bool less = b < a || (b == a && b_place < a_place);
                if (less == rising) {
                    keys[low] = b;
                    keys[high] = a;
                    places[low] = b_place;
                    places[high] = a_place;
                }
            }
        }
    }
    __syncthreads();
    ROLLED
    for (int at = (int)threadIdx.x; at < total; at += BLOCK) {
        int64_t chunk = first + (at >> c.span_bits), i = at & (span - 1);
        if (chunk >= all || i >= c.keep)
            continue;
        if (keys_out)
            keys_out[chunk * c.keep + i] = keys[at];
        places_out[chunk * c.keep + i] = places[at];
    }
}

/* Items of which a warp selects some, SELECTED at most. */
template <typename Key>
constexpr int selection_of = sizeof(Key) == 8 ? 512 : 1024;
#define SELECTED 128

/* As chunk_kernel, but only the `keep` smallest of each selection_of<Key> items are passed on,
 * in their order: a warp finds the key below which they are, bit by bit. Of equal keys, and
 * of padding, the first are passed on. */
template <typename Key>
__global__ void __launch_bounds__(BLOCK, 4)
    select_kernel(const void *x, const Key *keys_in, const unsigned *places_in,
                  Key *keys_out, unsigned *places_out, GRID_CONSTANT(Chunks) c,
                  GRID_CONSTANT(dt_key_order) order)
{
    constexpr int SPAN = selection_of<Key>, EACH = SPAN / 32, SIDE = 16 / sizeof(Key);
    typedef Vector<Key, SIDE> Side;
    STATIC_SHARED(Key[BLOCK / 32][SPAN], staged);
    const unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1;
    const int64_t chunk = (int64_t)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (chunk >= c.rows * c.of_row)
        return;
    const int64_t row = divide(chunk, c.by_row), base = row * c.n;
    const int64_t first = (chunk - row * c.of_row) * SPAN;
    const int left = (int)(c.n - first < SPAN ? c.n - first : SPAN);
    Key *const mine = staged[threadIdx.x / 32];
    UNROLL_BY_4
    for (int i = (int)lane; i < SPAN; i += 32) {
        Key key = (Key)order.all;
        if (i < left)
            key = x ? dt_key_of(bits_at<Key>(x, base + first + i, c.size), order)
                    : keys_in[base + first + i];
        mine[i] = key;
    }
    __syncwarp();
    Side keys[EACH / SIDE];
    UNROLL
    for (int s = 0; s < EACH / SIDE; s++)
        keys[s] = ((const Side *)mine)[s * 32 + lane];
    /* The items below `bound` go on, and the first ones of those equal to it. */
    Key bound = 0;
    int below = 0;
    ROLLED
    for (Key bit = (Key)(order.all ^ order.all >> 1); bit && below < c.keep;
         bit >>= 1) {
        const Key higher = bound | bit;
        int count = 0;
        UNROLL
        for (int s = 0; s < EACH / SIDE; s++) {
            UNROLL
            for (int k = 0; k < SIDE; k++)
                count += keys[s].v[k] < higher;
        }
        count = reduce_group<true>(count, 32, [](int a, int b) { return a + b; });
        bound = count <= c.keep ? higher : bound;
        below = count <= c.keep ? count : below;
    }
    int equal = (int)c.keep - below;
    int64_t to = chunk * c.keep;
    ROLLED
    for (int i = (int)lane; i < SPAN; i += 32) {
        const Key key = mine[i];
        bool takes = key < bound;
        if (equal > 0) {
            const unsigned ties = __ballot_sync(0xffffffffu, key == bound);
            takes = takes || (key == bound && __popc(ties & lower) < equal);
            equal -= __popc(ties);
        }
        const unsigned taken = __ballot_sync(0xffffffffu, takes);
        if (takes) {
            const int64_t at = to + __popc(taken & lower);
            keys_out[at] = key;
            places_out[at] = i >= left ? UINT_MAX
                             : x       ? (unsigned)(first + i)
                                       : places_in[base + first + i];
        }
        to += __popc(taken);
    }
}

struct Gather {
    int64_t n, width, k; /* elements of a row of x, of indices, and of the result */
    int64_t all;         /* of the result */
    int size;            /* bytes of an element */
    LongDivider by_k;
};
NO_POINTERS(Gather)

/* The first k indices of each row in order, and the elements there. */
__global__ void gather_kernel(void *values, int64_t *index, const void *x,
                              const unsigned *places, GRID_CONSTANT(Gather) g)
{
    int64_t at = thread_number();
    if (at >= g.all)
        return;
    int64_t row = divide(at, g.by_k);
    unsigned place = places[row * g.width + (at - row * g.k)];
    index[at] = place;
    int64_t from = row * g.n + place;
    if (values && g.size == 8)
        put_bits(values, at, 8, bits_at<uint64_t>(x, from, 8));
    else if (values)
        put_bits(values, at, g.size, bits_at<uint32_t>(x, from, g.size));
}

/* --- a whole sort --- */

/* The bits of a number: of the items of a chunk in rows of n. */
static int span_bits_for(int64_t n)
{
    int bits = 1;
    while ((int64_t)1 << bits < n && 1 << bits < CHUNK)
        bits++;
    return bits;
}

/* Two sets of items in one allocation, which alternate as source and target. */
template <typename Key>
struct Buffers {
    Scratch memory;
    Key *keys[2];
    unsigned *places[2];

    static size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }
    Buffers(dt_stream stream, size_t items)
        : memory(stream,
                 2 * (rounded(items * sizeof(Key)) + rounded(items * sizeof(unsigned))))
    {
        char *at = (char *)memory.data;
        for (int i = 0; i < 2 && at; i++) {
            keys[i] = (Key *)at;
            at += rounded(items * sizeof(Key));
            places[i] = (unsigned *)at;
            at += rounded(items * sizeof(unsigned));
        }
    }
};

template <typename Key>
static int sort_chunks(dt_stream stream, const dt_sorting *s, const void *x, int64_t n,
                       int64_t keep, const Buffers<Key> &b, int from)
{
    Chunks c;
    c.size = (int)dt_dtype_size(s->dtype);
    c.rows = s->rows;
    c.n = n;
    c.span_bits = span_bits_for(n);
    int span = 1 << c.span_bits;
    c.of_row = (n + span - 1) / span;
    c.by_row = long_divider_for(c.of_row);
    c.keep = keep < span ? keep : span;
    c.count = CHUNK / span;
    if (c.rows * c.of_row < c.count)
        c.count = (int)(c.rows * c.of_row);
    int64_t blocks = (c.rows * c.of_row + c.count - 1) / c.count;
    return START_BARRIERS("starting a sort", stream, (chunk_kernel<Key>), blocks, x,
                          b.keys[from], b.places[from], b.keys[1 - from],
                          b.places[1 - from], c,
                          dt_key_order_of(s->dtype, s->descending));
}

/* Rounds of selections, until each row has its first k items. */
template <typename Key>
static int select_items(dt_stream stream, const dt_sorting *s, const Buffers<Key> &b,
                        int *from)
{
    const dt_key_order order = dt_key_order_of(s->dtype, s->descending);
    const void *elements = s->x; /* of the first round */
    for (int64_t width = s->n; width > s->k; elements = nullptr, *from = 1 - *from) {
        Chunks c = {};
        c.size = (int)dt_dtype_size(s->dtype);
        c.rows = s->rows;
        c.n = width;
        c.of_row = (width + selection_of<Key> - 1) / selection_of<Key>;
        c.by_row = long_divider_for(c.of_row);
        c.keep = s->k;
        const int64_t blocks = (c.rows * c.of_row * 32 + BLOCK - 1) / BLOCK;
        if (START_BARRIERS("selecting what comes first", stream, (select_kernel<Key>),
                           blocks, elements, b.keys[*from], b.places[*from],
                           b.keys[1 - *from], b.places[1 - *from], c, order))
            return -1;
        width = c.of_row * s->k;
    }
    return 0;
}

/* Rounds, each of which leaves the first k of every chunk. */
template <typename Key>
static int sort_by_chunks(dt_stream stream, const dt_sorting *s)
{
    const bool selects = s->k <= SELECTED && s->n > SELECTED;
    /* A chunk that is not full may be padded to what is kept of it. */
    int64_t span = (int64_t)1 << span_bits_for(s->n);
    int64_t padded = (s->n + span - 1) / span * span;
    if (selects)
        padded = (s->n + selection_of<Key> - 1) / selection_of<Key> * s->k;
    Buffers<Key> b(stream, (size_t)(s->rows * padded));
    if (!b.memory.data)
        return -1;
    int from = 0;
    if (selects && select_items(stream, s, b, &from))
        return -1;
    int64_t width = selects ? s->k : s->n;
    const void *elements = selects ? nullptr : s->x; /* of the first round */
    for (;; from = 1 - from, elements = nullptr) {
        if (sort_chunks<Key>(stream, s, elements, width, s->k, b, from))
            return -1;
        span = (int64_t)1 << span_bits_for(width);
        int64_t chunks = (width + span - 1) / span;
        width = chunks * (s->k < span ? s->k : span);
        if (chunks > 1)
            continue;
        Gather g;
        g.n = s->n;
        g.width = width;
        g.k = s->k;
        g.all = s->rows * s->k;
        g.size = (int)dt_dtype_size(s->dtype);
        g.by_k = long_divider_for(s->k);
        return START("gathering what was sorted", stream, gather_kernel, g.all,
                     s->values, s->index, s->x, b.places[1 - from], g);
    }
}

static int sort_by(dt_stream stream, const dt_sorting *s, int bytes)
{
    if (s->n >= UINT_MAX)
        return dt_fail(DT_ERROR_RUNTIME,
                       "sort: a row of %lld elements is too long for a GPU; sort it in "
                       "parts, or on the CPU",
                       (long long)s->n);
    bool wide = dt_dtype_size(s->dtype) == 8;
    if (s->n <= CHUNK || s->k <= CHUNK / 4)
        return wide ? sort_by_chunks<uint64_t>(stream, s)
                    : sort_by_chunks<uint32_t>(stream, s);
    return wide ? radix::sort<uint64_t>(stream, s, bytes)
                : radix::sort<uint32_t>(stream, s, bytes);
}

} // namespace

int dt_cuda_sort(dt_stream stream, const dt_sorting *s)
{
    return sort_by(stream, s, (int)dt_dtype_size(s->dtype));
}

int sort_numbers(dt_stream stream, const dt_sorting *s, int bytes)
{
    return sort_by(stream, s, bytes);
}

/* --- searching in order --- */

namespace {

struct Search {
    const char *op_name; /* the host's, for the report */
    const int64_t *sorter;
    int64_t *out;
    int64_t rows, n, m;
    LongDivider by_m;
    bool right;
};
POINTERS_OF(Search, f(s.sorter); f(s.out);)

/* The insertion point of a value: before the first element that is not less (right:
 * that is greater); of a NaN, the end. */
template <typename T>
__global__ void search_kernel(const T *sequence, const T *values, KernelReport *report,
                              GRID_CONSTANT(Search) s)
{
    int64_t i = thread_number();
    if (i >= s.rows * s.m)
        return;
    int64_t row = s.rows > 1 ? divide(i, s.by_m) : 0;
    const T *x = sequence + row * s.n;
    const int64_t *sorter = s.sorter ? s.sorter + row * s.n : nullptr;
    T value = values[i];
    int64_t low = 0, high = s.n;
    ROLLED
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        int64_t place = sorter ? sorter[mid] : mid;
        if (place < 0 || place >= s.n) {
            report_range(report, s.op_name, place, 0, s.n, 0);
            place = mid;
        }
        T at = x[place];
        if (s.right ? at > value : at >= value)
            high = mid;
        else
            low = mid + 1;
    }
    s.out[i] = low;
}

template <typename T>
static int search(dt_stream stream, const dt_search *s)
{
    Search call = {
        s->op_name, s->sorter, s->out, s->rows, s->n, s->m, long_divider_for(s->m),
        s->right};
    KernelReport *report = report_of(stream.device);
    if (!report)
        return -1;
    return START("starting a search", stream, (search_kernel<T>), s->rows * s->m,
                 (const T *)s->sequence, (const T *)s->values, report, call);
}

} // namespace

int dt_cuda_search(dt_stream stream, const dt_search *s)
{
    return s->dtype == DT_INT64     ? search<int64_t>(stream, s)
           : s->dtype == DT_FLOAT32 ? search<float>(stream, s)
                                    : search<double>(stream, s);
}
