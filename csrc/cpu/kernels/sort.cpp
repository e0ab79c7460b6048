/* Elements become keys, whole numbers in the order that is wanted (ops/sort.h), and a
 * key and its element's index become one item. Indices make all items different, so that
 * equal elements stay in order whatever sorts them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

#define DT_FN static inline
#include "ops/sort.h"

namespace {

constexpr int64_t WORK = 16384; /* elements of a piece of parallel work, at least */
constexpr int64_t SMALL = 48;   /* items that are sorted by insertion */
constexpr int64_t WIDE = 60000; /* items from which on digits of 11 bits pay */
constexpr int64_t PART =
    131072; /* elements of a row that several threads sort, at least */
constexpr int64_t MERGE = 65536; /* items of one merge */
constexpr int64_t BLOCK = 65536; /* items between two looks for an interrupt */

/* The room for what might be among the first k. */
int64_t choices(int64_t k)
{
    return 2 * k + 512;
}

int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* f(begin, end) for the blocks of 0..n-1 in turn; false if the program wants to stop. */
template <class F>
bool in_blocks(int64_t n, F f)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        if (n > BLOCK && dt_pool_is_stopping())
            return false;
        f(i, least(n, i + BLOCK));
    }
    return true;
}

struct NarrowItem {
    uint64_t both;
    NarrowItem() = default;
    NarrowItem(uint64_t key, int64_t place) : both(key << 32 | (uint64_t)place) {}
    uint64_t key() const { return both >> 32; }
    int64_t place() const { return (int64_t)(both & 0xffffffffu); }
    bool operator<(const NarrowItem &b) const { return both < b.both; }
};

struct WideItem {
    uint64_t high, low;
    WideItem() = default;
    WideItem(uint64_t key, int64_t place) : high(key), low((uint64_t)place) {}
    uint64_t key() const { return high; }
    int64_t place() const { return (int64_t)low; }
    bool operator<(const WideItem &b) const
    {
        return high < b.high || (high == b.high && low < b.low);
    }
};

/* --- items of one row --- */

template <class Item>
void insertion_sort(int64_t n, Item *a)
{
    for (int64_t i = 1; i < n; i++) {
        Item x = a[i];
        int64_t j = i;
        for (; j && x < a[j - 1]; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

/* n items by their keys of `bits` bits, a digit at a time from the lowest; other is as
 * large as a. Says which of the two holds the result; NULL if it was stopped. */
template <class Item>
Item *radix_sort(int64_t n, Item *a, Item *other, int bits)
{
    const int digit = n >= WIDE && bits > 16 ? 11 : 8;
    const int passes = (bits + digit - 1) / digit;
    const uint64_t mask = ((uint64_t)1 << digit) - 1;
    int64_t counts[8][256], wide[6][2048];
    int64_t *table = digit == 8 ? counts[0] : wide[0];
    const int64_t size = (int64_t)1 << digit;
    memset(table, 0, (size_t)(passes * size) * sizeof *table);
    bool goes_on = in_blocks(n, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            uint64_t key = a[i].key();
            for (int p = 0; p < passes; p++)
                table[p * size + (int64_t)(key >> p * digit & mask)]++;
        }
    });
    for (int p = 0; p < passes && goes_on; p++) {
        int64_t *count = table + p * size, before = 0;
        const int shift = p * digit;
        if (count[a[0].key() >> shift & mask] == n)
            continue; /* a digit that all have in common */
        for (int64_t d = 0; d < size; d++) {
            int64_t here = count[d];
            count[d] = before;
            before += here;
        }
        goes_on = in_blocks(n, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                other[count[a[i].key() >> shift & mask]++] = a[i];
        });
        Item *swapped = a;
        a = other;
        other = swapped;
    }
    return goes_on ? a : nullptr;
}

/* How many of the first `rank` items of a and b together are a's. */
template <class Item>
int64_t split(int64_t rank, const Item *a, int64_t na, const Item *b, int64_t nb)
{
    int64_t low = rank > nb ? rank - nb : 0, high = least(rank, na);
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (a[mid] < b[rank - mid - 1])
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Items first to last-1 of a and b together. */
template <class Item>
void merge(int64_t first, int64_t last, const Item *a, int64_t na, const Item *b,
           int64_t nb, Item *out)
{
    int64_t i = split(first, a, na, b, nb), j = first - i;
    for (int64_t at = first; at < last; at++) {
        if (i < na && (j >= nb || a[i] < b[j]))
            out[at] = a[i++];
        else
            out[at] = b[j++];
    }
}

/* --- rows of a call, whose elements are the bits B --- */

template <typename B, class Item>
struct Sorter {
    const dt_sorting *s;
    dt_key_order order;
    bool few;   /* only the first few of each row are wanted */
    int failed; /* 1: no memory, -1: interrupted */
    /* For one row that several threads share. */
    int64_t long_row, part;
    Item *all, *other;

    void load(int64_t row, int64_t first, int64_t n, Item *items) const
    {
        const B *x = (const B *)s->x + row * s->n + first;
        const dt_key_order own = order; /* what no item can overwrite */
        const B flips = (B)(own.sign ^ own.flipped);
        if (!own.minus_zero) /* integers: no NaN, no -0, so no comparison is needed */
            for (int64_t i = 0; i < n; i++)
                items[i] = Item((B)(x[i] ^ flips), first + i);
        else
            for (int64_t i = 0; i < n; i++)
                items[i] = Item(dt_key_of(x[i], own), first + i);
    }

    /* Items of a row as values and indices, from item number `first` of the result on. */
    void store(int64_t row, int64_t first, int64_t count, const Item *items) const
    {
        const B *x = (const B *)s->x + row * s->n;
        const int64_t to = row * s->k + first;
        for (int64_t i = 0; i < count; i++)
            s->index[to + i] = items[first + i].place();
        B *out = (B *)s->values + to;
        const dt_key_order own = order;
        for (int64_t i = 0; s->values && i < count; i++) {
            const Item &item = items[first + i];
            out[i] = dt_element_of((B)item.key(), own, x + item.place());
        }
    }

    bool load_row(int64_t row, int64_t first, int64_t n, Item *items) const
    {
        return in_blocks(n, [=](int64_t begin, int64_t end) {
            load(row, first + begin, end - begin, items + begin);
        });
    }

    /* Sorts n items; scratch is as large. Says where they are then; NULL if it was
     * stopped. */
    static Item *sort(int64_t n, Item *items, Item *scratch)
    {
        if (n > SMALL)
            return radix_sort(n, items, scratch, 8 * (int)sizeof(B));
        insertion_sort(n, items);
        return items;
    }
    /* The same, and they stay where they are. False if it was stopped. */
    static bool sort_in_place(int64_t n, Item *items, Item *scratch, int64_t wanted)
    {
        Item *sorted = sort(n, items, scratch);
        if (sorted && sorted != items)
            memcpy((void *)items, (const void *)sorted, (size_t)wanted * sizeof *items);
        return sorted;
    }

    /* The first few of many: those that might be among them are gathered, and now and
     * then all but the best are dropped. NULL if it was stopped. */
    Item *choose(int64_t row, Item *items, Item *scratch) const
    {
        const int64_t room = choices(s->k);
        int64_t held = 0;
        uint64_t worst = UINT64_MAX;
        Item block[64];
        for (int64_t i = 0; i < s->n; i += 64) {
            if (i && i % BLOCK == 0 && dt_pool_is_stopping())
                return nullptr;
            int64_t n = least(s->n - i, 64);
            load(row, i, n, block);
            int any = 0;
            for (int64_t b = 0; b < n; b++)
                any |= block[b].key() < worst;
            if (!any)
                continue;
            for (int64_t b = 0; b < n; b++)
                if (block[b].key() < worst)
                    items[held++] = block[b];
            if (held > room - 64) {
                if (!sort_in_place(held, items, scratch, s->k))
                    return nullptr;
                held = s->k;
                worst = items[s->k - 1].key();
            }
        }
        return sort(held, items, scratch);
    }

    static void sort_rows(void *context, int64_t begin, int64_t end)
    {
        Sorter *j = (Sorter *)context;
        const dt_sorting *s = j->s;
        int64_t n = j->few ? choices(s->k) : s->n;
        Item *items = (Item *)malloc((size_t)(2 * n) * sizeof *items);
        if (!items) {
            __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        for (int64_t row = begin; row < end; row++) {
            const Item *sorted = nullptr;
            if (j->few)
                sorted = j->choose(row, items, items + n);
            else if (j->load_row(row, 0, n, items))
                sorted = sort(n, items, items + n);
            bool stored = sorted && in_blocks(s->k, [=](int64_t first, int64_t last) {
                              j->store(row, first, last - first, sorted);
                          });
            if (!stored)
                break;
        }
        free(items);
    }

    /* One row among several threads: parts are sorted, then merged two by two. */
    static void sort_parts(void *context, int64_t begin, int64_t end)
    {
        const Sorter *j = (const Sorter *)context;
        for (int64_t p = begin; p < end; p++) {
            int64_t first = p * j->part, n = least(j->s->n - first, j->part);
            if (!j->load_row(j->long_row, first, n, j->all + first) ||
                !sort_in_place(n, j->all + first, j->other + first, n))
                return;
        }
    }
    static void merge_parts(void *context, int64_t begin, int64_t end)
    {
        const Sorter *j = (const Sorter *)context;
        const int64_t n = j->s->n, each = (2 * j->part + MERGE - 1) / MERGE;
        for (int64_t item = begin; item < end; item++) {
            int64_t start = item / each * 2 * j->part, first = item % each * MERGE;
            int64_t total = least(n - start, 2 * j->part), na = least(total, j->part);
            const Item *a = j->all + start;
            if (first < total)
                merge(first, least(total, first + MERGE), a, na, a + na, total - na,
                      j->other + start);
        }
    }
    static void write_parts(void *context, int64_t begin, int64_t end)
    {
        const Sorter *j = (const Sorter *)context;
        for (int64_t item = begin; item < end; item++)
            j->store(j->long_row, item * MERGE, least(j->s->k - item * MERGE, MERGE),
                     j->all);
    }
    void sort_long_row()
    {
        const int64_t n = s->n;
        all = (Item *)malloc((size_t)n * sizeof(Item));
        other = (Item *)malloc((size_t)n * sizeof(Item));
        failed = !all || !other;
        if (!failed) {
            failed = dt_pool_try(sort_parts, this, (n + part - 1) / part, 1);
            for (; part < n && !failed; part *= 2) {
                int64_t each = (2 * part + MERGE - 1) / MERGE;
                int64_t pairs = (n + 2 * part - 1) / (2 * part);
                failed = dt_pool_try(merge_parts, this, pairs * each, 1);
                Item *swapped = all;
                all = other;
                other = swapped;
            }
            if (!failed)
                failed = dt_pool_try(write_parts, this, (s->k + MERGE - 1) / MERGE, 1);
        }
        free(all);
        free(other);
    }

    static int run(const dt_sorting *s)
    {
        Sorter j = {};
        j.s = s;
        j.order = dt_key_order_of(s->dtype, s->descending);
        j.few = s->k < s->n / 8 && s->n > 256;
        int threads = dt_pool_threads();
        if (!j.few && threads > 1 && s->rows < threads && s->n >= 2 * PART) {
            for (; j.long_row < s->rows && !j.failed; j.long_row++) {
                j.part = (s->n + threads - 1) / threads;
                if (j.part < PART)
                    j.part = PART;
                j.sort_long_row();
            }
        } else if (s->rows * s->n < 2 * WORK) {
            sort_rows(&j, 0, s->rows);
        } else if (dt_pool_try(sort_rows, &j, s->rows, (WORK + s->n - 1) / s->n) < 0) {
            return -1;
        }
        return j.failed;
    }
};

/* --- searching in order --- */

/* The insertion point of a value: before the first element that is not less (right:
 * that is greater); of a NaN, the end. */
template <typename T>
void search(void *context, int64_t begin, int64_t end)
{
    const dt_search *s = (const dt_search *)context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = s->rows > 1 ? i / s->m : 0;
        const T *x = (const T *)s->sequence + row * s->n;
        const int64_t *sorter = s->sorter ? s->sorter + row * s->n : nullptr;
        const T value = ((const T *)s->values)[i];
        int64_t low = 0, high = s->n;
        while (low < high) {
            int64_t mid = low + (high - low) / 2;
            int64_t from =
                sorter ? __atomic_load_n(&sorter[mid], __ATOMIC_RELAXED) : mid;
            /* Another thread may have written the sorter since it was checked. */
            T at = x[(uint64_t)from < (uint64_t)s->n ? from : 0];
            if (s->right ? at > value : at >= value)
                high = mid;
            else
                low = mid + 1;
        }
        s->out[i] = low;
    }
}

/* A key of up to 4 bytes and an index fit in 8 bytes. */
template <typename B>
int sort_bits(const dt_sorting *s)
{
    if constexpr (sizeof(B) <= 4)
        if (s->n < INT64_C(0xffffffff))
            return Sorter<B, NarrowItem>::run(s);
    return Sorter<B, WideItem>::run(s);
}

} // namespace

int dt_cpu_sort(dt_stream, const dt_sorting *s)
{
    DT_WITHOUT_GIL(s->rows * s->n > 1024);
    size_t size = dt_dtype_size(s->dtype);
    int failed = size == 1   ? sort_bits<uint8_t>(s)
                 : size == 2 ? sort_bits<uint16_t>(s)
                 : size == 4 ? sort_bits<uint32_t>(s)
                             : sort_bits<uint64_t>(s);
    if (failed > 0)
        return dt_fail(
            DT_ERROR_HOST_MEMORY,
            "sort: no memory to sort %lld elements; delete some tensors first",
            (long long)s->n);
    return failed;
}

int dt_cpu_search(dt_stream, const dt_search *s)
{
    const int64_t sequences = s->rows > 1 ? s->rows : 1;
    DT_WITHOUT_GIL(s->rows * s->m > 1024 || (s->sorter && sequences * s->n > 16384));
    for (int64_t i = 0; s->sorter && i < sequences * s->n; i++)
        if (s->sorter[i] < 0 || s->sorter[i] >= s->n)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: index %" PRId64 " of the sorter is out of range for a "
                           "sequence of %" PRId64
                           " elements; give what argsort() gives",
                           s->op_name, s->sorter[i], s->n);
    return dt_pool_try(s->dtype == DT_INT64     ? search<int64_t>
                       : s->dtype == DT_FLOAT32 ? search<float>
                                                : search<double>,
                       (void *)s, s->rows * s->m, 4096);
}
