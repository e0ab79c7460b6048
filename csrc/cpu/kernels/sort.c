#include "cpu/runtime/backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/pool.h"

/* Elements become keys, whole numbers in the order that is wanted, and a key and its
 * element's place become one item. Places make all items different, so that equal
 * elements stay in order whatever sorts them. */

#define WORK  16384  /* elements of a piece of parallel work, at least */
#define SMALL 48     /* items that are sorted by insertion */
#define WIDE  60000  /* items from which on digits of 11 bits pay */
#define PART  131072 /* elements of a row that several threads sort, at least */
#define MERGE 65536  /* items that are merged in one go */
/* The room for what might be among the first k. */
#define CHOICES(k) (2 * (k) + 512)

/* --- keys --- */

/* How bits become keys. */
typedef struct order {
    bool is_float, is_signed;
    uint64_t infinity; /* a float's bits */
    uint64_t flip;     /* ~0: descending */
} order;

/* A NaN is greater than all, whatever its sign and bits, and -0 is 0: what they were is
 * not in the key. */
#define KEYS(bits)                                                                     \
    static inline uint##bits##_t key_of_##bits(uint##bits##_t b, order o)              \
    {                                                                                  \
        typedef uint##bits##_t B;                                                      \
        const B sign = (B)((B)1 << (bits - 1));                                        \
        if (o.is_float) {                                                              \
            const B size = (B)(b & (B)~sign);                                          \
            B key = b & sign ? (B)~b : (B)(b | sign);                                  \
            key = size == 0 ? sign : key;                                              \
            b = size > (B)o.infinity ? (B) ~(B)0 : key;                                \
        } else if (o.is_signed) {                                                      \
            b = (B)(b ^ sign);                                                         \
        }                                                                              \
        return (B)(b ^ (B)o.flip);                                                     \
    }                                                                                  \
    static inline uint##bits##_t element_of_##bits(uint##bits##_t key, order o,        \
                                                   const uint##bits##_t *x)            \
    {                                                                                  \
        typedef uint##bits##_t B;                                                      \
        const B sign = (B)((B)1 << (bits - 1));                                        \
        key = (B)(key ^ (B)o.flip);                                                    \
        if (!o.is_float)                                                               \
            return o.is_signed ? (B)(key ^ sign) : key;                                \
        if (key == sign || key == (B) ~(B)0)                                           \
            return *x;                                                                 \
        return key & sign ? (B)(key ^ sign) : (B)~key;                                 \
    }
KEYS(8)
KEYS(16)
KEYS(32)
KEYS(64)

static order order_of(dt_dtype dtype, bool descending)
{
    order o = {.is_float = dt_dtype_is_float(dtype),
               .is_signed =
                   dt_dtype_kind(dtype) == DT_KIND_INTEGER && dtype != DT_UINT8,
               .flip = descending ? ~(uint64_t)0 : 0};
    dt_element infinity = dt_element_from_scalar(dtype, dt_scalar_float(INFINITY));
    if (o.is_float)
        memcpy(&o.infinity, infinity.bytes, dt_dtype_size(dtype));
    return o;
}

/* --- sorting --- */

typedef struct job {
    const dt_sorting *s;
    order order;
    int size;
    bool few; /* only the first few of each row are wanted */
    int failed;
    int64_t row, part; /* of one row among several threads */
    void *items, *scratch;
} job;

typedef struct wide_item {
    uint64_t key, place;
} wide_item;

static inline wide_item make_wide(uint64_t key, int64_t place)
{
    wide_item item = {key, (uint64_t)place};
    return item;
}

#define ITEM             uint64_t
#define NAMED(name)      narrow_##name
#define KEY(item)        ((item) >> 32)
#define PLACE(item)      ((int64_t)((item) & 0xffffffffu))
#define MAKE(key, place) ((uint64_t)(key) << 32 | (uint64_t)(place))
#define LESS(a, b)       ((a) < (b))
#include "cpu/kernels/sort.inc"

#define ITEM             wide_item
#define NAMED(name)      wide_##name
#define KEY(item)        ((item).key)
#define PLACE(item)      ((int64_t)(item).place)
#define MAKE(key, place) make_wide((uint64_t)(key), place)
#define LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).place < (b).place))
#include "cpu/kernels/sort.inc"

int dt_cpu_sort(dt_stream stream, const dt_sorting *s)
{
    (void)stream;
    job j = {.s = s,
             .order = order_of(s->dtype, s->descending),
             .size = (int)dt_dtype_size(s->dtype),
             .few = s->k < s->n / 8 && s->n > 256};
    bool narrow = j.size <= 4 && s->n < INT64_C(0xffffffff);
    int threads = dt_pool_threads();
    if (!j.few && threads > 1 && s->rows < threads && s->n >= 2 * PART) {
        for (j.row = 0; j.row < s->rows && !j.failed; j.row++) {
            j.part = (s->n + threads - 1) / threads;
            if (j.part < PART)
                j.part = PART;
            (narrow ? narrow_long_row : wide_long_row)(&j);
        }
    } else if (s->rows * s->n < 2 * WORK) {
        (narrow ? narrow_rows : wide_rows)(&j, 0, s->rows);
    } else {
        dt_pool_run(narrow ? narrow_rows : wide_rows, &j, s->rows,
                    (WORK + s->n - 1) / s->n);
    }
    if (j.failed)
        return dt_fail(
            DT_ERROR_HOST_MEMORY,
            "sort: no memory to sort %lld elements; delete some tensors first",
            (long long)s->n);
    return 0;
}

/* --- searching in order --- */

/* Where a value goes: before what is not less (right: what is greater), so that the
 * order holds; a NaN goes to the end. */
#define SEARCH(name, T)                                                                \
    static void search_##name(void *context, int64_t begin, int64_t end)               \
    {                                                                                  \
        const dt_search *s = context;                                                  \
        for (int64_t i = begin; i < end; i++) {                                        \
            const int64_t row = s->rows > 1 ? i / s->m : 0;                            \
            const T *x = (const T *)s->sequence + row * s->n;                          \
            const int64_t *sorter = s->sorter ? s->sorter + row * s->n : NULL;         \
            const T value = ((const T *)s->values)[i];                                 \
            int64_t low = 0, high = s->n;                                              \
            while (low < high) {                                                       \
                int64_t mid = low + (high - low) / 2;                                  \
                T at = x[sorter ? sorter[mid] : mid];                                  \
                if (s->right ? at > value : at >= value)                               \
                    high = mid;                                                        \
                else                                                                   \
                    low = mid + 1;                                                     \
            }                                                                          \
            s->out[i] = low;                                                           \
        }                                                                              \
    }
SEARCH(int64, int64_t)
SEARCH(float32, float)
SEARCH(float64, double)

int dt_cpu_search(dt_stream stream, const dt_search *s)
{
    (void)stream;
    dt_search call = *s;
    const int64_t sequences = s->rows > 1 ? s->rows : 1;
    for (int64_t i = 0; s->sorter && i < sequences * s->n; i++)
        if (s->sorter[i] < 0 || s->sorter[i] >= s->n)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: index %" PRId64 " of the sorter is out of range for a "
                           "sequence of %" PRId64
                           " elements; give what argsort() gives",
                           s->what, s->sorter[i], s->n);
    dt_pool_run(s->dtype == DT_INT64     ? search_int64
                : s->dtype == DT_FLOAT32 ? search_float32
                                         : search_float64,
                &call, s->rows * s->m, 4096);
    return 0;
}
