/* Elements chosen by index tensors. Several values for one element are taken in
 * row-major order, the last one staying: the result is the same each time. */
#include <inttypes.h>
#include <string.h>

#include <algorithm>

#include "base/gil.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

namespace {

/* --- are all indices in range? --- */

/* The first of n indices, `stride` bytes apart, that is below low or not below size; NULL:
 * there is none. */
const int64_t *first_outside(const char *p, int64_t stride, int64_t n, int64_t low,
                             int64_t size)
{
    const int64_t span = size - low;
    int64_t signs = stride == sizeof(int64_t) ? 0 : -1; /* others: one by one */
    if (!signs)
        for (int64_t i = 0; i < n; i++) { /* SSE2 does not compare 64 bits */
            const int64_t above = ((const int64_t *)p)[i] - low;
            signs |= above | (span - 1 - above);
        }
    for (int64_t i = 0; signs < 0 && i < n; i++) {
        const int64_t *each = (const int64_t *)(p + i * stride);
        if ((uint64_t)(*each - low) >= (uint64_t)span)
            return each;
    }
    return nullptr;
}

/* The same, by several threads. */
struct search {
    const char *p;
    int64_t stride, low, size;
    const int64_t *first;
};

void search_chunk(void *context, int64_t begin, int64_t end)
{
    search *w = (search *)context;
    const int64_t *found = first_outside(w->p + begin * w->stride, w->stride,
                                         end - begin, w->low, w->size);
    const int64_t *first = __atomic_load_n(&w->first, __ATOMIC_RELAXED);
    while (found && (!first || found < first) &&
           !__atomic_compare_exchange_n(&w->first, &first, found, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* Calls with at least this many elements are divided among threads. */
constexpr int64_t SHARED = 32768;

const int64_t *find_outside(const char *p, int64_t stride, int64_t n, int64_t low,
                            int64_t size)
{
    if (n < SHARED)
        return first_outside(p, stride, n, low, size);
    search w = {p, stride, low, size, nullptr};
    dt_pool_run(search_chunk, &w, n, SHARED / 2);
    return w.first;
}

int check_index(const dt_index_call *s, const dt_index_dims *index)
{
    int64_t at[DT_MAX_NDIM] = {0};
    int dims[DT_MAX_NDIM], ndim = 0;
    const int64_t low = s->wraps ? -index->size : 0;
    const char *p = (const char *)index->data;
    for (int d = 0; d < s->ndim; d++)
        if (index->strides[d]) /* what is broadcast is looked at once */
            dims[ndim++] = d;
    const int inner = ndim ? dims[--ndim] : 0;
    const int64_t stride = index->strides[inner], n = stride ? s->shape[inner] : 1;
    for (;;) {
        if (const int64_t *bad = find_outside(p, stride, n, low, index->size))
            return dt_fail(
                s->code,
                "%s: index %" PRId64 " is out of range for dimension %d of "
                "size %" PRId64 "; give indices from %" PRId64 " to %" PRId64,
                s->op_name, *bad, index->dim, index->size, low, index->size - 1);
        int k = ndim - 1;
        for (; k >= 0; k--) {
            int d = dims[k];
            p += index->strides[d];
            if (++at[d] < s->shape[d])
                break;
            p -= at[d] * index->strides[d];
            at[d] = 0;
        }
        if (k < 0)
            return 0;
    }
}

/* --- rows: the innermost dimension --- */

/* Elements of a row, or some of them: where they begin, and the indices that change along
 * it. */
struct row {
    int64_t n, table_stride, value_stride;
    char *table, *values;
    int nindices;
    const dt_index_dims *indices[DT_MAX_NDIM];
    const char *at[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM];
};

/* Another thread may have written the index since it was checked: what is out of range
 * then counts as 0. */
inline int64_t element_of(int64_t size, const int64_t *at)
{
    int64_t value = __atomic_load_n(at, __ATOMIC_RELAXED);
    value = value < 0 ? value + size : value;
    return (uint64_t)value < (uint64_t)size ? value : 0;
}
inline int64_t offset_of(const dt_index_dims *index, const char *at)
{
    return element_of(index->size, (const int64_t *)at) * index->stride;
}

/* f(x, y) of each element x of the table and y of the values. */
template <typename T, class F>
inline void each(const row *r, F f)
{
    /* The compiler cannot know that f does not write to the row. */
    const int64_t n = r->n, table_stride = r->table_stride;
    const int64_t value_stride = r->value_stride;
    char *const table = r->table, *const values = r->values;
    const int nindices = r->nindices;
    if (!nindices && table_stride == sizeof(T) && value_stride == sizeof(T)) {
        for (int64_t i = 0; i < n; i++)
            f((T *)table + i, (T *)values + i);
        return;
    }
    if (nindices == 1) { /* the commonest */
        const dt_index_dims index = *r->indices[0];
        const char *at = r->at[0];
        const int64_t stride = r->strides[0];
        if (!table_stride && stride == sizeof(int64_t) && index.stride == sizeof(T)) {
            for (int64_t i = 0; i < n; i++)
                f((T *)table + element_of(index.size, (const int64_t *)at + i),
                  (T *)(values + i * value_stride));
            return;
        }
        for (int64_t i = 0; i < n; i++)
            f((T *)(table + i * table_stride + offset_of(&index, at + i * stride)),
              (T *)(values + i * value_stride));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        char *place = table + i * table_stride;
        for (int k = 0; k < nindices; k++)
            place += offset_of(r->indices[k], r->at[k] + i * r->strides[k]);
        f((T *)place, (T *)(values + i * value_stride));
    }
}
template <typename B>
void read(const row *r)
{
    each<B>(r, [](B *x, B *y) { *y = *x; });
}
template <typename B>
void write(const row *r)
{
    each<B>(r, [](B *x, B *y) { *x = *y; });
}
/* Integers wrap round; of bools the sum is the or and the product the and. */
template <typename T>
void add(const row *r)
{
    typedef Compute<T> C;
    each<T>(r, [](T *x, T *y) { *x = (T)(C)((C)*x + (C)*y); });
}
template <typename T>
void multiply_row(const row *r)
{
    typedef Compute<T> C;
    each<T>(r, [](T *x, T *y) { *x = (T)(C)((C)*x * (C)*y); });
}

typedef void row_fn(const row *r);
/* Indexed by log2 of the element size; accumulates by the type, too. */
row_fn *const reads[] = {read<uint8_t>, read<uint16_t>, read<uint32_t>, read<uint64_t>};
row_fn *const writes[] = {write<uint8_t>, write<uint16_t>, write<uint32_t>,
                          write<uint64_t>};
row_fn *const accumulates[][DT_NDTYPES] = {
    {
#define DT_DTYPE(ID, name, alias, type) add<type>,
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
    },
    {
#define DT_DTYPE(ID, name, alias, type) multiply_row<type>,
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
    },
};

/* Elements between two looks for an interrupt. */
constexpr int64_t CHUNK = 65536;

struct job {
    const dt_index_call *s;
    dt_index_op op;
    row_fn *run;
    int64_t size;
    int64_t apart; /* elements that one thread writes */
};

inline void run_chunk(const job *j, const row *r)
{
    bool dense =
        !r->nindices && r->table_stride == j->size && r->value_stride == j->size;
    if (dense && j->op == DT_INDEX_READ)
        memcpy(r->values, r->table, (size_t)(r->n * j->size));
    else if (dense && j->op == DT_INDEX_WRITE)
        memcpy(r->table, r->values, (size_t)(r->n * j->size));
    else
        j->run(r);
}

/* The row of that number, from its element `first` on. */
row row_from(const dt_index_call *s, int64_t number, int64_t first)
{
    int64_t at[DT_MAX_NDIM];
    int inner = s->ndim - 1;
    row r;
    r.n = s->shape[inner] - first;
    r.table_stride = s->table_strides[inner];
    r.value_stride = s->value_strides[inner];
    r.table = (char *)s->table;
    r.values = (char *)s->values;
    r.nindices = 0;
    at[inner] = first;
    for (int d = inner - 1; d >= 0; d--) {
        at[d] = number % s->shape[d];
        number /= s->shape[d];
    }
    for (int d = 0; d <= inner; d++) {
        r.table += at[d] * s->table_strides[d];
        r.values += at[d] * s->value_strides[d];
    }
    for (int k = 0; k < s->nindices; k++) {
        const dt_index_dims *index = &s->indices[k];
        const char *p = (const char *)index->data;
        for (int d = 0; d <= inner; d++)
            p += at[d] * index->strides[d];
        if (!index->strides[inner]) {
            r.table += offset_of(index, p);
            continue;
        }
        r.indices[r.nindices] = index;
        r.strides[r.nindices] = index->strides[inner];
        r.at[r.nindices++] = p;
    }
    return r;
}

/* Whether one index says where each row begins, as in x[i] and in embedding(). */
bool has_rows(const dt_index_call *s)
{
    return s->ndim == 2 && s->nindices == 1 && !s->indices[0].strides[1];
}

void run_rows(const job *j, int64_t begin, int64_t end)
{
    const dt_index_call *s = j->s;
    const dt_index_dims *index = &s->indices[0];
    row r = {};
    r.n = s->shape[1];
    r.table_stride = s->table_strides[1];
    r.value_stride = s->value_strides[1];
    for (int64_t i = begin; i < end; i++) {
        const char *at = (const char *)index->data + i * index->strides[0];
        r.table = (char *)s->table + i * s->table_strides[0] + offset_of(index, at);
        r.values = (char *)s->values + i * s->value_strides[0];
        run_chunk(j, &r);
    }
}

void run_elements(void *context, int64_t begin, int64_t end)
{
    const job *j = (const job *)context;
    const int64_t inner = j->s->shape[j->s->ndim - 1];
    const bool by_rows = has_rows(j->s) && inner <= CHUNK;
    int64_t looked = begin;
    while (begin < end) {
        int64_t rows = by_rows && begin % inner == 0 ? (end - begin) / inner : 0;
        if (rows) {
            rows = std::min(rows, CHUNK / inner);
            run_rows(j, begin / inner, begin / inner + rows);
            begin += rows * inner;
        } else {
            row r = row_from(j->s, begin / inner, begin % inner);
            r.n = std::min({r.n, end - begin, CHUNK});
            run_chunk(j, &r);
            begin += r.n;
        }
        if (begin - looked < CHUNK)
            continue;
        if (dt_pool_is_stopping())
            return;
        looked = begin;
    }
}

void run_parts(void *context, int64_t begin, int64_t end)
{
    const job *j = (const job *)context;
    run_elements(context, begin * j->apart, end * j->apart);
}

/* The elements of a part of the outermost dimension longer than 1, if its parts of the
 * table have no element in common, so that several threads may write them; else 0. */
int64_t elements_apart(const dt_index_call *s, int64_t size)
{
    int outer = 0;
    while (outer < s->ndim - 1 && s->shape[outer] == 1)
        outer++;
    if (outer == s->ndim - 1)
        return 0;
    int64_t reach = size, elements = 1;
    for (int d = outer + 1; d < s->ndim; d++) {
        reach += (s->shape[d] - 1) * s->table_strides[d];
        elements *= s->shape[d];
    }
    for (int k = 0; k < s->nindices; k++)
        reach += (s->indices[k].size - 1) * s->indices[k].stride;
    return reach <= s->table_strides[outer] ? elements : 0;
}

} // namespace

int dt_cpu_index(dt_stream, dt_index_op op, const dt_index_call *s)
{
    DT_WITHOUT_GIL(s->numel > 4096);
    for (int k = 0; k < s->nindices; k++)
        if (check_index(s, &s->indices[k]))
            return -1;
    job j = {s, op, nullptr, (int64_t)dt_dtype_size(s->dtype), 0};
    int power = __builtin_ctzll((unsigned long long)j.size);
    j.run = op == DT_INDEX_READ    ? reads[power]
            : op == DT_INDEX_WRITE ? writes[power]
                                   : accumulates[op - DT_INDEX_ADD][s->dtype];
    bool shared = s->numel >= SHARED;
    if (shared && op != DT_INDEX_READ)
        j.apart = elements_apart(s, j.size);
    if (j.apart)
        return dt_pool_try(run_parts, &j, s->numel / j.apart, SHARED / 2 / j.apart + 1);
    return dt_pool_try(run_elements, &j, s->numel,
                       shared && op == DT_INDEX_READ ? SHARED / 2 : s->numel);
}
