/* Elements chosen by index tensors. Several values for one place are taken in row-major
 * order, the last one staying: the result is the same each time. */
#include <inttypes.h>
#include <string.h>

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
    const uint64_t span = (uint64_t)(size - low);
    bool found = stride != sizeof(int64_t); /* those are compared one by one */
    if (!found)
        for (int64_t i = 0; i < n; i++)
            found |= (uint64_t)(((const int64_t *)p)[i] - low) >= span;
    for (int64_t i = 0; found && i < n; i++) {
        const int64_t *each = (const int64_t *)(p + i * stride);
        if ((uint64_t)(*each - low) >= span)
            return each;
    }
    return nullptr;
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
        if (const int64_t *bad = first_outside(p, stride, n, low, index->size))
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
    if (nindices == 1) { /* the commonest */
        const dt_index_dims index = *r->indices[0];
        const char *at = r->at[0];
        const int64_t stride = r->strides[0];
        if (!table_stride && stride == sizeof(int64_t) && index.stride == sizeof(T) &&
            value_stride == sizeof(T)) {
            for (int64_t i = 0; i < n; i++)
                f((T *)table + element_of(index.size, (const int64_t *)at + i),
                  (T *)values + i);
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
    int64_t apart; /* rows that one thread writes */
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

void run_in_chunks(const job *j, row r)
{
    for (int64_t left = r.n; left > 0 && !dt_pool_is_stopping(); left -= r.n) {
        r.n = left < CHUNK ? left : CHUNK;
        run_chunk(j, &r);
        r.table += r.n * r.table_stride;
        r.values += r.n * r.value_stride;
        for (int k = 0; k < r.nindices; k++)
            r.at[k] += r.n * r.strides[k];
    }
}

void run_few_rows(const job *j, int64_t begin, int64_t end)
{
    const dt_index_call *s = j->s;
    int inner = s->ndim - 1;
    row r;
    r.n = s->shape[inner];
    r.table_stride = s->table_strides[inner];
    r.value_stride = s->value_strides[inner];
    for (int64_t number = begin; number < end; number++) {
        int64_t at[DT_MAX_NDIM], left = number;
        r.table = (char *)s->table;
        r.values = (char *)s->values;
        r.nindices = 0;
        for (int d = inner - 1; d >= 0; d--) {
            at[d] = left % s->shape[d];
            left /= s->shape[d];
            r.table += at[d] * s->table_strides[d];
            r.values += at[d] * s->value_strides[d];
        }
        for (int k = 0; k < s->nindices; k++) {
            const dt_index_dims *index = &s->indices[k];
            const char *p = (const char *)index->data;
            for (int d = 0; d < inner; d++)
                p += at[d] * index->strides[d];
            if (!index->strides[inner]) {
                r.table += offset_of(index, p);
                continue;
            }
            r.indices[r.nindices] = index;
            r.strides[r.nindices] = index->strides[inner];
            r.at[r.nindices++] = p;
        }
        if (r.n > CHUNK)
            run_in_chunks(j, r);
        else
            run_chunk(j, &r);
    }
}

void run_rows(void *context, int64_t begin, int64_t end)
{
    const job *j = (const job *)context;
    int64_t chunk = CHUNK / j->s->shape[j->s->ndim - 1] + 1;
    for (; end - begin > chunk && !dt_pool_is_stopping(); begin += chunk)
        run_few_rows(j, begin, begin + chunk);
    run_few_rows(j, begin, end - begin < chunk ? end : begin + chunk);
}

void run_parts(void *context, int64_t begin, int64_t end)
{
    const job *j = (const job *)context;
    run_rows(context, begin * j->apart, end * j->apart);
}

/* Elements from which on a call is shared among threads. */
constexpr int64_t SHARED = 32768;

/* The rows of a part of the outermost dimension longer than 1, if its parts of the
 * table have no element in common, so that several threads may write them; else 0. */
int64_t rows_apart(const dt_index_call *s, int64_t size)
{
    int outer = 0;
    while (outer < s->ndim - 1 && s->shape[outer] == 1)
        outer++;
    if (outer == s->ndim - 1)
        return 0;
    int64_t reach = size, rows = 1;
    for (int d = outer + 1; d < s->ndim; d++) {
        reach += (s->shape[d] - 1) * s->table_strides[d];
        rows *= d < s->ndim - 1 ? s->shape[d] : 1;
    }
    for (int k = 0; k < s->nindices; k++)
        reach += (s->indices[k].size - 1) * s->indices[k].stride;
    return reach <= s->table_strides[outer] ? rows : 0;
}

} // namespace

int dt_cpu_index(dt_stream, dt_index_op op, const dt_index_call *s)
{
    DT_WITHOUT_GIL(s->numel > 4096);
    for (int k = 0; k < s->nindices; k++)
        if (check_index(s, &s->indices[k]))
            return -1;
    int64_t inner = s->shape[s->ndim - 1], rows = s->numel / inner;
    job j = {s, op, nullptr, (int64_t)dt_dtype_size(s->dtype), 0};
    int power = __builtin_ctzll((unsigned long long)j.size);
    j.run = op == DT_INDEX_READ    ? reads[power]
            : op == DT_INDEX_WRITE ? writes[power]
                                   : accumulates[op - DT_INDEX_ADD][s->dtype];
    bool shared = s->numel >= SHARED;
    if (shared && op != DT_INDEX_READ)
        j.apart = rows_apart(s, j.size);
    if (j.apart)
        return dt_pool_try(run_parts, &j, rows / j.apart,
                           SHARED / 2 / (j.apart * inner) + 1);
    int64_t grain = rows;
    if (shared && op == DT_INDEX_READ)
        grain = inner < SHARED / 2 ? SHARED / 2 / inner : 1;
    return dt_pool_try(run_rows, &j, rows, grain);
}
