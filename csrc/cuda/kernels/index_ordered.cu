/* Deterministic writes and sums by index (`ordered` of a call): no two threads change the
 * same element, and each thread adds in an order that does not depend on the schedule.
 *
 * An entry is the part of the values for one element of the index: a row, or an element.
 * Entries are sorted by target with a stable sort, so those of one target are a run. To
 * write, the last entry of each run is written. To add or multiply, a thread folds the
 * entries of a tile, for one element of the row: a run within the tile is added to the
 * table, and a run that crosses the tile's ends leaves a partial result. A tile has at most
 * two of those. They are in order, so they are folded in the same way until there is one
 * tile. So long runs are divided among threads: a million values for one target take five
 * launches of 32 steps.
 *
 * The cost on an H100 (bytes over 2.4 TB/s, 2 us a launch): an entry takes 12 bytes for
 * keys, 20 for each pass of the sort, of which there is one for 8 bits of the number of
 * targets, and for a fold 12 and the values. The gradient of an embedding, 8192 words of
 * 768 float32 from 50,000: 25 MB of values and at most 50 of the table, 31 us, and 10
 * launches; unordered 31 us and 1 launch. scatter_add of 1e7 float32 to 1e6 targets:
 * 12 + 3 * 20 + 12 bytes, and sectors of 32 bytes for a value and a target, 1.4 GB, 0.6 ms;
 * unordered 0.8 GB, of which the table's half stays in the L2 cache, 0.2 ms. */
#include "cuda/kernels/compute.h"
#include "cuda/kernels/index.h"

namespace {

/* Entries that a thread folds; how many loads it has in flight. */
enum { TILE = 32, AHEAD = 4 };

/* Keys: the offset of an entry's index and position, in steps of all such offsets.
 * `nowhere`, the maximum, is for an index out of range. */
struct Keys {
    Index index;
    Layout<2> entries; /* in the index and in the table */
    LongDivider step;
    int64_t nowhere;
    bool wide; /* 8 bytes, else 4 */
};
POINTERS_OF(Keys, each_pointer(s.index, f);)

static __device__ __forceinline__ int64_t key_at(const void *keys, bool wide,
                                                 unsigned i)
{
    return wide ? ((const int64_t *)keys)[i] : ((const int32_t *)keys)[i];
}
static __device__ __forceinline__ void put_key(void *keys, bool wide, unsigned i,
                                               int64_t key)
{
    if (wide)
        ((int64_t *)keys)[i] = key;
    else
        ((int32_t *)keys)[i] = (int32_t)key;
}

__global__ void key_kernel(void *keys, KernelReport *report, unsigned n,
                           GRID_CONSTANT(Keys) c)
{
    int64_t at[2];
    unsigned number = (unsigned)thread_number();
    if (number >= n)
        return;
    layout_offsets(c.entries, number, at);
    int64_t place = *(const int64_t *)(c.index.data + at[0]), key = c.nowhere;
    if (is_place(place, c.index))
        key = divide(at[1] + place_offset(place, c.index), c.step);
    else
        report_place(report, place, c.index);
    put_key(keys, c.wide, number, key);
}

/* Sorted entries and the elements of their rows. */
struct Entries {
    unsigned n, width; /* width: elements of a row */
    Divider by_width;
    Layout<1> entries; /* in the values, before they were sorted */
    Layout<2> rows;    /* in the values and in the table */
    int64_t nowhere, step;
    bool wide;
};
NO_POINTERS(Entries)

static __device__ __forceinline__ int64_t value_offset(const Entries &c, int64_t place)
{
    int64_t at;
    layout_offsets(c.entries, (unsigned)place, &at);
    return at;
}

__global__ void write_kernel(const char *values, char *table, const void *keys,
                             const int64_t *places, int size, GRID_CONSTANT(Entries) c)
{
    int64_t at[2];
    unsigned number = (unsigned)thread_number(), entry = divide(number, c.by_width);
    if (entry >= c.n)
        return;
    int64_t key = key_at(keys, c.wide, entry);
    if (key == c.nowhere || (entry + 1 < c.n && key_at(keys, c.wide, entry + 1) == key))
        return;
    layout_offsets(c.rows, number - entry * c.width, at);
    values += at[0] + value_offset(c, places[entry]);
    table += at[1] + key * c.step;
    with_element_word(size, [&](auto word) {
        typedef decltype(word) Word;
        *(Word *)table = *(const Word *)values;
    });
}

/* Parts of runs, two for each tile: of the run that comes from the tile before, and of
 * the one that goes on into the next. `nowhere` is the key of a missing part. */
template <typename A>
struct Parts {
    void *keys;
    A *sums;
};
template <typename A, class F>
void each_pointer(Parts<A> &s, F f)
{
    f(s.keys);
    f(s.sums);
}

/* parts: folds these instead of values, whose keys and places are of none then. */
template <typename T>
__global__ void fold_kernel(const char *values, char *table, const int64_t *places,
                            Parts<Compute<T>> parts, Parts<Compute<T>> out,
                            bool multiplies, GRID_CONSTANT(Entries) c)
{
    typedef Compute<T> A;
    int64_t at[2];
    unsigned number = (unsigned)thread_number(), tile = divide(number, c.by_width);
    unsigned first = tile * TILE;
    if (first >= c.n)
        return;
    unsigned end = first + TILE < c.n ? first + TILE : c.n;
    unsigned column = number - tile * c.width;
    layout_offsets(c.rows, column, at);
    values += at[0];
    table += at[1];
    A *own = out.sums + (int64_t)2 * tile * c.width + column;

    int64_t run = key_at(parts.keys, c.wide, first);
    int64_t next = end < c.n ? key_at(parts.keys, c.wide, end) : c.nowhere;
    /* Whether the run that is at hand comes from the tile before. */
    bool comes = first && key_at(parts.keys, c.wide, first - 1) == run;
    int64_t came = comes ? run : c.nowhere;
    A sum = A();
    bool any = false;
    auto fold = [&](A a, A b) { return multiplies ? a * b : a + b; };
    auto finish = [&] {
        if (comes)
            own[0] = sum;
        else if (run != c.nowhere) {
            T *to = (T *)(table + run * c.step);
            *to = (T)fold((A)*to, sum);
        }
        comes = any = false;
    };
    ROLLED
    for (unsigned i = first; i < end; i += AHEAD) {
        int64_t keys[AHEAD];
        A numbers[AHEAD];
        UNROLL
        for (unsigned k = 0; k < AHEAD; k++) {
            unsigned entry = i + k < end ? i + k : end - 1;
            keys[k] = key_at(parts.keys, c.wide, entry);
            /* Read before the key is known. The number of a missing part is undefined,
             * and its key, `nowhere`, keeps the sum from being written. */
            numbers[k] =
                places ? (A) * (const T *)(values + value_offset(c, places[entry]))
                       : parts.sums[(int64_t)entry * c.width + column];
        }
        UNROLL
        for (unsigned k = 0; k < AHEAD; k++) {
            if (i + k >= end)
                break;
            /* A run that fills the tile leaves both parts: the last entry is the second. */
            if (keys[k] != run || (comes && i + k == end - 1 && next == run))
                finish();
            run = keys[k];
            sum = any ? fold(sum, numbers[k]) : numbers[k];
            any = true;
        }
    }
    bool goes = next == run && end < c.n;
    if (goes)
        own[c.width] = sum;
    else
        finish();
    if (column)
        return;
    put_key(out.keys, c.wide, 2 * tile, came);
    put_key(out.keys, c.wide, 2 * tile + 1, goes ? run : c.nowhere);
}

/* --- launches --- */

static size_t rounded(int64_t bytes)
{
    return ((size_t)bytes + 255) / 256 * 256;
}

/* The call's dimensions: those over which entries are counted, along which the index
 * changes or the table does not, and those of an entry's row. */
struct Spaces {
    int64_t entries, width;
    Layout<2> of_keys; /* index, table */
    Layout<1> of_entries;
    Layout<2> of_rows;
    int64_t step, places; /* the number of possible keys, plus one */
};

static int64_t common_step(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static Spaces spaces_of(const dt_index_call *s)
{
    Spaces c = {};
    const dt_index_dims &index = s->indices[0];
    c.entries = c.width = 1;
    c.step = index.stride;
    int64_t reach = (index.size - 1) * index.stride;
    for (int d = 0; d < s->ndim; d++) {
        int64_t table = s->table_strides[d], value = s->value_strides[d];
        Divider size = divider_for((unsigned)s->shape[d]);
        if (index.strides[d] || !table) {
            int k = c.of_keys.ndim++;
            c.entries *= s->shape[d];
            c.of_keys.sizes[k] = c.of_entries.sizes[k] = size;
            c.of_keys.strides[0][k] = index.strides[d];
            c.of_keys.strides[1][k] = table;
            c.of_entries.strides[0][k] = value;
            c.step = common_step(c.step, table);
            reach += (s->shape[d] - 1) * table;
        } else {
            int k = c.of_rows.ndim++;
            c.width *= s->shape[d];
            c.of_rows.sizes[k] = size;
            c.of_rows.strides[0][k] = value;
            c.of_rows.strides[1][k] = table;
        }
    }
    /* A layout has a dimension. */
    if (!c.of_keys.ndim)
        c.of_keys.sizes[c.of_keys.ndim++] = c.of_entries.sizes[0] = divider_for(1);
    if (!c.of_rows.ndim)
        c.of_rows.sizes[c.of_rows.ndim++] = divider_for(1);
    c.of_entries.ndim = c.of_keys.ndim;
    if (!c.step)
        c.step = 1;
    c.places = reach / c.step + 1;
    return c;
}

static Entries entries_of(const Spaces &spaces, bool wide)
{
    Entries c;
    c.n = (unsigned)spaces.entries;
    c.width = (unsigned)spaces.width;
    c.by_width = divider_for(c.width);
    c.entries = spaces.of_entries;
    c.rows = spaces.of_rows;
    c.nowhere = spaces.places;
    c.step = spaces.step;
    c.wide = wide;
    return c;
}

static int64_t parts_of(int64_t entries)
{
    return (entries + TILE - 1) / TILE * 2;
}

template <typename T>
static int fold(dt_stream stream, const dt_index_call *s, bool multiplies, Entries c,
                void *keys, const int64_t *places)
{
    typedef Compute<T> A;
    /* Two sets of parts, which alternate as source and target. */
    const int64_t key_bytes = c.wide ? 8 : 4, most = parts_of(c.n);
    const int64_t counts[] = {most, parts_of(most)};
    size_t bytes = 0;
    for (int64_t count : counts)
        bytes += rounded(count * key_bytes) +
                 rounded(count * (int64_t)c.width * (int64_t)sizeof(A));
    Scratch memory(stream, bytes);
    if (!memory.data)
        return -1;
    Parts<A> sets[2], from = {keys, nullptr};
    char *at = (char *)memory.data;
    for (int k = 0; k < 2; k++) {
        sets[k].keys = at;
        at += rounded(counts[k] * key_bytes);
        sets[k].sums = (A *)at;
        at += rounded(counts[k] * (int64_t)c.width * (int64_t)sizeof(A));
    }
    for (int turn = 0;; turn = 1 - turn) {
        const int64_t parts = parts_of(c.n);
        if (START("adding in order", stream, (fold_kernel<T>), parts / 2 * c.width,
                  (const char *)s->values, (char *)s->table, places, from, sets[turn],
                  multiplies, c))
            return -1;
        if (parts == 2)
            return 0;
        from = sets[turn];
        places = nullptr;
        c.n = (unsigned)parts;
    }
}

} // namespace

int index_in_order(dt_stream stream, dt_index_op op, const dt_index_call *s,
                   KernelReport *report)
{
    const Spaces spaces = spaces_of(s);
    const int64_t n = spaces.entries;
    const bool wide = spaces.places > INT32_MAX;
    const size_t key_bytes = rounded(n * (wide ? 8 : 4));
    int bytes = 1;
    while (bytes < 8 && spaces.places >> 8 * bytes)
        bytes++;
    Scratch memory(stream, 2 * key_bytes + rounded(n * 8));
    if (!memory.data)
        return -1;
    char *keys = (char *)memory.data, *sorted = keys + key_bytes;
    int64_t *places = (int64_t *)(sorted + key_bytes);
    Keys k;
    k.index = index_of(s, 0);
    k.entries = spaces.of_keys;
    k.step = long_divider_for(spaces.step);
    k.nowhere = spaces.places;
    k.wide = wide;
    dt_sorting sorting = {
        wide ? DT_INT64 : DT_INT32, false, 1, n, n, keys, sorted, places};
    if (START("finding places", stream, key_kernel, n, keys, report, (unsigned)n, k) ||
        sort_numbers(stream, &sorting, bytes))
        return -1;
    Entries c = entries_of(spaces, wide);
    if (op == DT_INDEX_WRITE)
        return START("writing in order", stream, write_kernel, n * spaces.width,
                     (const char *)s->values, (char *)s->table, sorted, places,
                     (int)dt_dtype_size(s->dtype), c);
    bool multiplies = op == DT_INDEX_MULTIPLY;
    switch (s->dtype) {
    case DT_FLOAT16:
        return fold<dt_float16>(stream, s, multiplies, c, sorted, places);
    case DT_BFLOAT16:
        return fold<dt_bfloat16>(stream, s, multiplies, c, sorted, places);
    case DT_FLOAT32:
        return fold<float>(stream, s, multiplies, c, sorted, places);
    default:
        return fold<double>(stream, s, multiplies, c, sorted, places);
    }
}
