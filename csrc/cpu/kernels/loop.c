#include "cpu/kernels/loop.h"

#include <string.h>
#include <unistd.h>

#include "cpu/runtime/pool.h"

#define DIMS (DT_MAX_NDIM + 1)
/* Elements of a strided run between two steps of the next dimension: their cache lines
 * stay. */
#define BLOCK      128
#define SHORT      16
#define HALF_BLOCK 1024
#define LONGEST    256 /* grains of a chunk, at most */

int64_t dt_loop_stream_bytes(void)
{
    static int64_t bytes;
    int64_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (!known) {
        long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
        known = cache > 0 ? cache / 2 : 8 << 20;
        __atomic_store_n(&bytes, known, __ATOMIC_RELAXED);
    }
    return known;
}

static dt_loop_kernel kernel_of(dt_kernel *kernel, const dt_plan *plan, bool widens)
{
    dt_loop_kernel k = {kernel, plan->noperands, 0, DT_FLOAT16};
    for (int i = 0; widens && i < plan->noperands; i++)
        if (dt_dtype_is_half(plan->operands[i].dtype)) {
            k.half = plan->operands[i].dtype;
            k.halves |= 1u << i;
        }
    return k;
}

/* Runs the kernel between conversions of a block of elements; four blocks fit the first
 * cache. A result may be the memory of an input: a block is read before it is written. */
static void call_half(const dt_loop_kernel *k, int64_t n, char *const *data,
                      const int64_t *strides)
{
    float blocks[DT_MAX_OPERANDS][HALF_BLOCK];
    char *at[DT_MAX_OPERANDS], *wide[DT_MAX_OPERANDS];
    int64_t steps[DT_MAX_OPERANDS];
    memcpy(at, data, (size_t)k->noperands * sizeof *at);
    for (; n > 0; n -= HALF_BLOCK) {
        int64_t some = n < HALF_BLOCK ? n : HALF_BLOCK;
        for (int i = 0; i < k->noperands; i++) {
            bool converts = k->halves >> i & 1;
            wide[i] = converts ? (char *)blocks[i] : at[i];
            steps[i] =
                converts && (strides[i] || !i) ? (int64_t)sizeof(float) : strides[i];
            if (converts && i)
                dt_convert(DT_FLOAT32, k->half, strides[i] ? some : 1, wide[i],
                           sizeof(float), at[i], strides[i]);
        }
        k->kernel(some, wide, steps);
        if (k->halves & 1)
            dt_convert(k->half, DT_FLOAT32, some, at[0], strides[0], blocks[0],
                       sizeof(float));
        for (int i = 0; i < k->noperands; i++)
            at[i] += some * strides[i];
    }
}

static inline void call(const dt_loop_kernel *k, int64_t n, char *const *data,
                        const int64_t *strides)
{
    if (k->halves)
        call_half(k, n, data, strides);
    else
        k->kernel(n, data, strides);
}

void dt_loop_call(const dt_loop_kernel *kernel, int64_t n, char *const *data,
                  const int64_t *strides)
{
    call(kernel, n, data, strides);
}

static char *place_of(const dt_operand *o)
{
    return o->scalar ? (char *)&o->value : o->data;
}

/* --- contiguous results --- */

typedef struct flat {
    dt_loop_kernel kernel;
    int noperands;
    bool stream;
    char *data[DT_MAX_OPERANDS];
    int64_t strides[DT_MAX_OPERANDS];
} flat;

static void run_flat(void *context, int64_t begin, int64_t end)
{
    const flat *f = context;
    char *data[DT_MAX_OPERANDS];
    for (int i = 0; i < f->noperands; i++)
        data[i] = f->data[i] + begin * f->strides[i];
    int64_t n = end - begin;
    if (!f->stream) {
        call(&f->kernel, n, data, f->strides);
        return;
    }
    /* The kernel writes to a buffer in the first cache, from which whole lines are
     * streamed to memory. */
    _Alignas(64) char buffer[4096];
    const dt_copy_kernels *copy = dt_cpu_kernels.copy;
    int64_t size = f->strides[0], room = (int64_t)sizeof buffer / size;
    int64_t skew = (int64_t)((uintptr_t)data[0] & 63);
    int64_t head = skew ? (64 - skew) / size : 0;
    if (head > n)
        head = n;
    if (head)
        call(&f->kernel, head, data, f->strides);
    int64_t done = head;
    while (n - done >= 64 / size) {
        int64_t some = n - done > room ? room : (n - done) / (64 / size) * (64 / size);
        char *part[DT_MAX_OPERANDS] = {buffer};
        for (int i = 1; i < f->noperands; i++)
            part[i] = data[i] + done * f->strides[i];
        call(&f->kernel, some, part, f->strides);
        copy->stream(data[0] + done * size, buffer, some * size);
        done += some;
    }
    copy->stream_end();
    if (done < n) {
        for (int i = 0; i < f->noperands; i++)
            data[i] += done * f->strides[i];
        call(&f->kernel, n - done, data, f->strides);
    }
}

/* --- any layout --- */

typedef struct nest {
    dt_loop_kernel kernel;
    int noperands, ndim; /* ndim: of the outer dimensions */
    int64_t shape[DIMS];
    int64_t strides[DIMS][DT_MAX_OPERANDS];
    int64_t n, inner[DT_MAX_OPERANDS];
    int block_dim; /* the outer dimension that numbers blocks of the inner one; or -1 */
    int64_t block; /* elements of a block */
    char *data[DT_MAX_OPERANDS];
} nest;

static void run_nest(void *context, int64_t begin, int64_t end)
{
    const nest *t = context;
    int64_t at[DIMS], rest = begin;
    char *data[DT_MAX_OPERANDS];
    memcpy(data, t->data, sizeof data);
    for (int d = t->ndim - 1; d >= 0; d--) {
        at[d] = rest % t->shape[d];
        rest /= t->shape[d];
        for (int i = 0; i < t->noperands; i++)
            data[i] += at[d] * t->strides[d][i];
    }
    for (int64_t item = begin;;) {
        int64_t n = t->n;
        if (t->block_dim >= 0) {
            n -= at[t->block_dim] * t->block;
            n = n > t->block ? t->block : n;
        }
        call(&t->kernel, n, data, t->inner);
        if (++item == end)
            return;
        for (int d = t->ndim - 1;; d--) {
            for (int i = 0; i < t->noperands; i++)
                data[i] += t->strides[d][i];
            if (++at[d] < t->shape[d])
                break;
            for (int i = 0; i < t->noperands; i++)
                data[i] -= t->shape[d] * t->strides[d][i];
            at[d] = 0;
        }
    }
}

static void move_last(nest *t, int dim)
{
    int64_t size = t->shape[dim], strides[DT_MAX_OPERANDS];
    memcpy(strides, t->strides[dim], sizeof strides);
    for (int d = dim; d < t->ndim - 1; d++) {
        t->shape[d] = t->shape[d + 1];
        memcpy(t->strides[d], t->strides[d + 1], sizeof strides);
    }
    t->shape[t->ndim - 1] = size;
    memcpy(t->strides[t->ndim - 1], strides, sizeof strides);
}

/* Numbers the blocks of the inner dimension by one more outer dimension, put at
 * `place`. */
static void split_inner(nest *t, int64_t block, int place)
{
    for (int d = t->ndim; d > place; d--) {
        t->shape[d] = t->shape[d - 1];
        memcpy(t->strides[d], t->strides[d - 1], sizeof t->strides[d]);
    }
    t->ndim++;
    t->block = block;
    t->block_dim = place;
    t->shape[place] = (t->n + block - 1) / block;
    for (int i = 0; i < t->noperands; i++)
        t->strides[place][i] = t->inner[i] * block;
}

static int run_strided(const dt_loop_kernel *kernel, const dt_plan *plan, int64_t grain)
{
    nest t;
    t.kernel = *kernel;
    t.noperands = plan->noperands;
    t.ndim = plan->ndim;
    t.block_dim = -1;
    size_t sizes[DT_MAX_OPERANDS];
    for (int i = 0; i < plan->noperands; i++) {
        const dt_operand *o = &plan->operands[i];
        t.data[i] = place_of(o);
        sizes[i] = dt_dtype_size(o->dtype);
        for (int d = 0; d < plan->ndim; d++)
            t.strides[d][i] = o->scalar ? 0 : o->strides[d];
    }
    memcpy(t.shape, plan->shape, (size_t)plan->ndim * sizeof *t.shape);
    /* A short inner dimension would spend the time on stepping: run along the longest.
     */
    int last = t.ndim - 1, longest = last;
    if (t.shape[last] < SHORT) {
        for (int d = 0; d < last; d++)
            if (t.shape[d] > t.shape[longest])
                longest = d;
        if (t.shape[longest] >= 4 * t.shape[last])
            move_last(&t, longest);
    }
    t.ndim--;
    t.n = t.shape[t.ndim];
    memcpy(t.inner, t.strides[t.ndim], sizeof t.inner);
    /* Where some operand leaps along the inner dimension and is dense along another,
     * blocks of the one are taken through all of the other. */
    int dense = -1;
    for (int i = 0; i < t.noperands && dense < 0; i++)
        if (t.inner[i] >= 64 || t.inner[i] <= -64)
            for (int d = 0; d < t.ndim; d++)
                if (t.strides[d][i] == (int64_t)sizes[i] && t.shape[d] > 1)
                    dense = d;
    if (dense >= 0 && t.n > BLOCK) {
        move_last(&t, dense);
        split_inner(&t, BLOCK, t.ndim - 1);
    } else if (t.n > 2 * grain) {
        split_inner(&t, grain, t.ndim);
    }
    int64_t items = 1;
    for (int d = 0; d < t.ndim; d++)
        items *= t.shape[d];
    if (plan->numel <= 2 * grain) {
        run_nest(&t, 0, items);
        return 0;
    }
    int64_t each = t.block_dim >= 0 && t.n > t.block ? t.block : t.n;
    return dt_pool_try(run_nest, &t, items, (grain + each - 1) / each);
}

int dt_loop_run(dt_kernel *kernel, const dt_plan *plan, int weight, bool widens)
{
    dt_loop_kernel k = kernel_of(kernel, plan, widens);
    if (plan->contiguous) {
        flat f;
        for (int i = 0; i < plan->noperands; i++) {
            const dt_operand *o = &plan->operands[i];
            f.data[i] = place_of(o);
            f.strides[i] = o->scalar ? 0 : (int64_t)dt_dtype_size(o->dtype);
        }
        int64_t grain = DT_LOOP_GRAIN / weight;
        if (plan->numel < 2 * grain) {
            call(&k, plan->numel, f.data, f.strides);
            return 0;
        }
        f.kernel = k;
        f.noperands = plan->noperands;
        f.stream = plan->numel * f.strides[0] >= dt_loop_stream_bytes() &&
                   ((uintptr_t)f.data[0] & (uintptr_t)(f.strides[0] - 1)) == 0;
        for (int i = 1; i < plan->noperands; i++)
            if (f.data[i] == f.data[0])
                f.stream = false; /* in place: the lines are in the cache already */
        /* Some eight chunks a thread even out what else the machine does; those of a very
         * large tensor are shorter, since an interrupt is answered between chunks. */
        int64_t chunk = plan->numel / ((int64_t)dt_pool_threads() * 8);
        chunk = chunk < grain ? grain : (chunk + 1023) & ~(int64_t)1023;
        chunk = chunk > LONGEST * grain ? LONGEST * grain : chunk;
        return dt_pool_try(run_flat, &f, plan->numel, chunk);
    }
    return run_strided(&k, plan, DT_LOOP_GRAIN / weight);
}
