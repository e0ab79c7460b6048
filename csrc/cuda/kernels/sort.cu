/* Rows in order. Elements become keys, whole numbers in the order that is wanted; a key
 * and its element's place make items that all differ, so that equal elements stay in
 * order whatever sorts them. Chunks are sorted by a bitonic network in shared memory.
 * Longer rows are merged out of their chunks, two by two; where only the first few are
 * wanted, those of each chunk go on to the next round instead. */
#include <limits.h>

#include "cuda/kernels/compute.h"
#include "cuda/runtime/report.h"

#define DT_FN static __device__ __forceinline__
#include "ops/sort.h"
NO_POINTERS(dt_key_order)

namespace {

#define CHUNK 2048 /* items that a block sorts */

/* --- keys --- */

/* Small elements have keys of 4 bytes. The greatest key is left for padding: places are
 * part of the order, so an element may have it too. */
template <typename B>
using KeyOf = std::conditional_t<sizeof(B) == 8, unsigned long long, unsigned>;

/* --- chunks --- */

typedef struct Chunks {
    int64_t rows, n; /* rows of n items */
    int64_t of_row;  /* chunks of a row */
    int64_t keep;    /* how many items of each chunk go on */
    int span;        /* items of a chunk, a power of two */
    int count;       /* chunks that a block sorts side by side */
} Chunks;
NO_POINTERS(Chunks)

/* Items of x (elements) or, where that is NULL, of keys_in and places_in. They go to
 * keys_out, NULL in the last round, and places_out, whose rows are of_row * keep long.
 */
template <typename B>
__global__ void chunk_kernel(const B *x, const KeyOf<B> *keys_in,
                             const unsigned *places_in, KeyOf<B> *keys_out,
                             unsigned *places_out, GRID_CONSTANT(Chunks) c,
                             GRID_CONSTANT(dt_key_order) order)
{
    typedef KeyOf<B> Key;
    __shared__ Key keys[CHUNK];
    __shared__ unsigned places[CHUNK];
    int64_t first = (int64_t)blockIdx.x * c.count, all = c.rows * c.of_row;
    int total = c.span * c.count;
    for (int at = (int)threadIdx.x; at < total; at += BLOCK) {
        int64_t chunk = first + at / c.span, row = chunk / c.of_row;
        int64_t i = (chunk - row * c.of_row) * c.span + at % c.span;
        bool there = chunk < all && i < c.n;
        keys[at] = ~(Key)0;
        places[at] = UINT_MAX;
        if (there && x) {
            keys[at] = (Key)dt_key_of(x[row * c.n + i], order);
            places[at] = (unsigned)i;
        } else if (there) {
            keys[at] = keys_in[row * c.n + i];
            places[at] = places_in[row * c.n + i];
        }
    }
    for (int size = 2; size <= c.span; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            __syncthreads();
            for (int t = (int)threadIdx.x; t < total / 2; t += BLOCK) {
                int low = t / step * 2 * step + t % step, high = low + step;
                bool rising = ((low & (c.span - 1)) & size) == 0 || size == c.span;
                bool less = keys[high] < keys[low] ||
                            (keys[high] == keys[low] && places[high] < places[low]);
                if (less == rising) {
                    Key key = keys[low];
                    keys[low] = keys[high];
                    keys[high] = key;
                    unsigned place = places[low];
                    places[low] = places[high];
                    places[high] = place;
                }
            }
        }
    __syncthreads();
    for (int at = (int)threadIdx.x; at < total; at += BLOCK) {
        int64_t chunk = first + at / c.span, i = at % c.span;
        if (chunk >= all || i >= c.keep)
            continue;
        if (keys_out)
            keys_out[chunk * c.keep + i] = keys[at];
        places_out[chunk * c.keep + i] = places[at];
    }
}

/* --- merging --- */

/* One thread an item: its place in the result is its own number and that of the items
 * of the neighbouring run that go before it. */
template <typename Key>
__global__ void merge_kernel(const Key *keys, const unsigned *places, Key *keys_out,
                             unsigned *places_out, int64_t n, int64_t run, int64_t all)
{
    int64_t at = thread_number();
    if (at >= all)
        return;
    int64_t row = at / n, i = at - row * n;
    int64_t pair = i / (2 * run) * 2 * run, own = i - pair;
    int64_t start = pair + (own < run ? run : 0);
    int64_t end = start + run < n ? start + run : n;
    const Key *other = keys + row * n;
    const unsigned *other_places = places + row * n;
    Key key = keys[at];
    unsigned place = places[at];
    int64_t low = start < end ? start : end, first = low, high = end;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (other[mid] < key || (other[mid] == key && other_places[mid] < place))
            low = mid + 1;
        else
            high = mid;
    }
    int64_t to = row * n + pair + (own < run ? own : own - run) + (low - first);
    keys_out[to] = key;
    places_out[to] = place;
}

/* The first k places of each row, and the elements there. */
template <typename B>
__global__ void gather_kernel(B *values, int64_t *index, const B *x,
                              const unsigned *places, int64_t n, int64_t width,
                              int64_t k, int64_t all)
{
    int64_t at = thread_number();
    if (at >= all)
        return;
    int64_t row = at / k, place = places[row * width + (at - row * k)];
    index[at] = place;
    if (values)
        values[at] = x[row * n + place];
}

/* --- a whole sort --- */

static int power_from(int64_t n)
{
    int power = 2;
    while (power < n && power < CHUNK)
        power *= 2;
    return power;
}

/* Two sets of items to go to and fro between, as one piece of memory. */
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

template <typename B>
static int sort_chunks(dt_stream stream, const dt_sorting *s, const B *x, int64_t n,
                       int64_t keep, const Buffers<KeyOf<B>> &b, int from)
{
    Chunks c;
    c.rows = s->rows;
    c.n = n;
    c.span = power_from(n);
    c.of_row = (n + c.span - 1) / c.span;
    c.keep = keep < c.span ? keep : c.span;
    c.count = CHUNK / c.span;
    if (c.rows * c.of_row < c.count)
        c.count = (int)(c.rows * c.of_row);
    int64_t blocks = (c.rows * c.of_row + c.count - 1) / c.count;
    return START_BARRIERS("starting a sort", stream, (chunk_kernel<B>), blocks, x,
                          b.keys[from], b.places[from], b.keys[1 - from],
                          b.places[1 - from], c,
                          dt_key_order_of(s->dtype, s->descending));
}

template <typename B>
static int run(dt_stream stream, const dt_sorting *s)
{
    const B *x = (const B *)s->x;
    /* A chunk that is not full may be padded to what is kept of it. */
    int64_t padded =
        s->n <= CHUNK ? power_from(s->n) : (s->n + CHUNK - 1) / CHUNK * CHUNK;
    Buffers<KeyOf<B>> b(stream, (size_t)(s->rows * padded));
    if (!b.memory.data)
        return -1;
    int at = 1; /* the set that holds the items */
    int64_t width = s->n;
    if (s->n <= CHUNK || s->k <= CHUNK / 4) {
        /* Rounds, each of which leaves the first k of every chunk. */
        for (bool first = true;; first = false) {
            at = first ? 0 : at;
            if (sort_chunks<B>(stream, s, first ? x : nullptr, width, s->k, b, at))
                return -1;
            at = 1 - at;
            int64_t span = power_from(width), chunks = (width + span - 1) / span;
            width = chunks * (s->k < span ? s->k : span);
            if (chunks == 1)
                break;
        }
    } else {
        width = (s->n + CHUNK - 1) / CHUNK * CHUNK; /* with what pads the last chunk */
        int64_t all = s->rows * width;
        if (sort_chunks<B>(stream, s, x, s->n, CHUNK, b, 0))
            return -1;
        for (int64_t run = CHUNK; run < width; run *= 2, at = 1 - at)
            if (START("starting a merge", stream, (merge_kernel<KeyOf<B>>), all,
                      b.keys[at], b.places[at], b.keys[1 - at], b.places[1 - at], width,
                      run, all))
                return -1;
    }
    int64_t all = s->rows * s->k;
    return START("gathering what was sorted", stream, (gather_kernel<B>), all,
                 (B *)s->values, s->index, x, b.places[at], s->n, width, s->k, all);
}

} // namespace

int dt_cuda_sort(dt_stream stream, const dt_sorting *s)
{
    if (s->n >= UINT_MAX)
        return dt_fail(DT_ERROR_RUNTIME,
                       "sort: a row of %lld elements is too long for a GPU; sort it in "
                       "parts, or on the CPU",
                       (long long)s->n);
    return with_word(s->dtype,
                     [&](auto word) { return run<decltype(word)>(stream, s); });
}

/* --- searching in order --- */

namespace {

struct Search {
    const char *op_name; /* the host's, for the report */
    const int64_t *sorter;
    int64_t *out;
    int64_t rows, n, m;
    bool right;
};
POINTERS_OF(Search, f(s.sorter); f(s.out);)

/* Where a value goes: before what is not less (right: what is greater), so that the
 * order holds; a NaN goes to the end. */
template <typename T>
__global__ void search_kernel(const T *sequence, const T *values, Report *report,
                              GRID_CONSTANT(Search) s)
{
    int64_t i = thread_number();
    if (i >= s.rows * s.m)
        return;
    int64_t row = s.rows > 1 ? i / s.m : 0;
    const T *x = sequence + row * s.n;
    const int64_t *sorter = s.sorter ? s.sorter + row * s.n : nullptr;
    T value = values[i];
    int64_t low = 0, high = s.n;
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
    Search call = {s->op_name, s->sorter, s->out, s->rows, s->n, s->m, s->right};
    Report *report = report_of(stream.device);
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
