/* A chain runs tile by tile: each step calls the kernel of its row on the tile, so that what
 * steps pass on stays in the nearest caches, and the ends take it from there. */
#include "cpu/kernels/chain_end.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/loop.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

#define LEAST                                                                          \
    16384 /* elements of a step, which the memory's speed limits from there on */
#define TILE  8192                                 /* bytes of a tile, at most */
#define SLOTS (DT_CHAIN_STEPS + DT_MAX_INPUTS + 1) /* of tiles */
#define FULLS 4                                    /* of them, for numbers at most */

/* Where the result of a step is while the tile is worked on. */
typedef struct place {
    int slot;    /* -1: in the step's memory */
    bool stream; /* from the slot past the caches to memory */
} place;

typedef struct run {
    const dt_chain *chain;
    int64_t tile; /* elements, at most */
    /* With ends: elements and number of the pieces that tiles are cut from. A piece is
     * whole rows, or a block of one, of which each row has `blocks`. */
    int64_t piece, blocks;
    int nsums;
    dt_chain_sum sums[DT_CHAIN_ENDS];
    int free; /* the first slot for inputs that are gathered */
    int nfull;
    const dt_chain_input *full[FULLS]; /* numbers of which there are tiles */
    place places[DT_CHAIN_STEPS];
    dt_loop_kernel kernels[DT_CHAIN_STEPS];
} run;

/* --- what a chain may have --- */

/* Whether a tile of it is made of runs that are worth a call each. */
static bool is_in_runs(const dt_plan *plan, const dt_operand *o)
{
    const int last = plan->ndim - 1;
    return plan->shape[last] >= 32 &&
           (!o->strides[last] || o->strides[last] == (int64_t)dt_dtype_size(o->dtype));
}

bool dt_cpu_chain_step(int op, const dt_plan *plan)
{
    if (plan->numel < LEAST)
        return false;
    for (int i = 1; i < plan->noperands; i++) {
        const dt_operand *o = &plan->operands[i];
        if (!o->scalar && !dt_plan_is_one(plan, o) && !dt_plan_is_dense(plan, o) &&
            !is_in_runs(plan, o))
            return false;
    }
    if (op == (int)DT_CHAIN_CONVERT)
        return true;
    const dt_class *class = &dt_elementwise_rows[op].class_;
    const dt_kind kind = dt_dtype_kind(dt_plan_type(plan, class->choice));
    /* Integers are divided one by one: a divisor of 0 is an error. */
    return class->takes[kind] &&
           (class->rule != DT_RULE_DIVISOR || kind == DT_KIND_FLOAT);
}

/* --- before the tiles --- */

static dt_loop_kernel kernel_of(const dt_chain_step *step)
{
    const bool converts = step->op == DT_CHAIN_CONVERT;
    dt_loop_kernel k = {converts
                            ? dt_cpu_kernels.copy->convert[step->result][step->type]
                            : (*dt_cpu_kernels.elementwise)[step->type][step->op],
                        step->ninputs + 1, 0, DT_FLOAT16};
    if (converts || !dt_dtype_is_half(step->type))
        return k;
    k.half = step->type;
    k.halves = dt_dtype_is_half(step->result);
    for (int i = 0; i < step->ninputs; i++)
        k.halves |= (unsigned)dt_dtype_is_half(step->inputs[i].dtype) << (i + 1);
    return k;
}

static bool reads_memory(const dt_chain *chain, const void *data)
{
    for (int s = 0; s < chain->nsteps; s++)
        for (int i = 0; i < chain->steps[s].ninputs; i++)
            if (chain->steps[s].inputs[i].data == data)
                return true;
    return false;
}

static bool feeds(const dt_chain *chain, int step)
{
    for (int e = 0; e < chain->nends; e++)
        if (chain->ends[e].wanted && chain->ends[e].step == step)
            return true;
    return false;
}

static bool streams(const dt_chain *chain, const dt_chain_step *step)
{
    return step->out &&
           chain->numel * (int64_t)dt_dtype_size(step->result) >=
               dt_loop_stream_bytes() &&
           ((uintptr_t)step->out & 63) == 0 && !reads_memory(chain, step->out);
}

/* Gives each step a slot. Steps share one if the earlier result is no longer needed; so a
 * result may overwrite an input of its size. */
static void plan_slots(run *r)
{
    const dt_chain *chain = r->chain;
    int until[SLOTS], size[SLOTS];
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step *step = &chain->steps[s];
        place *p = &r->places[s];
        const int bytes = (int)dt_dtype_size(step->result);
        p->slot = -1;
        p->stream = streams(chain, step);
        if (!step->wanted || (step->out && !p->stream))
            continue;
        int slot = 0;
        while (slot < r->free &&
               (until[slot] > s || (until[slot] == s && size[slot] != bytes)))
            slot++;
        if (slot == r->free)
            r->free++;
        p->slot = slot;
        until[slot] = feeds(chain, s) ? chain->nsteps : dt_chain_last_use(chain, s);
        size[slot] = bytes;
        if (until[slot] == s)
            until[slot]++; /* it is stored after its own step */
    }
}

/* --- in a tile --- */

/* Elements begin to begin+n-1 of an input with a layout. */
static void gather(const dt_chain_layout *layout, const dt_chain_input *input,
                   int64_t begin, int64_t n, char *out)
{
    const int64_t size = (int64_t)dt_dtype_size(input->dtype);
    const int last = layout->ndim - 1;
    int64_t at[DT_MAX_NDIM], rest = begin;
    const char *from = input->data;
    for (int d = last; d >= 0; d--) {
        at[d] = rest % layout->shape[d];
        rest /= layout->shape[d];
        from += at[d] * layout->strides[d];
    }
    for (;;) {
        int64_t some = layout->shape[last] - at[last];
        some = some < n ? some : n;
        if (layout->strides[last])
            memcpy(out, from, (size_t)(some * size));
        else
            dt_convert(input->dtype, input->dtype, some, out, size, from, 0);
        out += some * size;
        n -= some;
        if (!n)
            return;
        from -= at[last] * layout->strides[last];
        at[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            from += layout->strides[d];
            if (++at[d] < layout->shape[d])
                break;
            from -= at[d] * layout->strides[d];
            at[d] = 0;
        }
    }
}

static void store(char *out, const char *tile, int64_t bytes)
{
    int64_t head = (int64_t)(-(uintptr_t)out & 63);
    head = head < bytes ? head : bytes;
    const int64_t lines = (bytes - head) & ~(int64_t)63, rest = head + lines;
    memcpy(out, tile, (size_t)head);
    dt_cpu_kernels.copy->stream(out + head, tile + head, lines);
    memcpy(out + rest, tile + rest, (size_t)(bytes - rest));
}

/* The kernels have vectors for numbers behind their first input alone: a first one that is
 * a number is a tile full of it. */
static void plan_numbers(run *r)
{
    for (int s = 0; s < r->chain->nsteps && r->nfull < FULLS; s++) {
        const dt_chain_step *step = &r->chain->steps[s];
        const dt_chain_input *first = &step->inputs[0];
        if (step->wanted && step->ninputs > 1 && first->step < 0 && !first->data)
            r->full[r->nfull++] = first;
    }
}

static void fill_numbers(const run *r, char (*slots)[TILE])
{
    for (int k = 0; k < r->nfull; k++) {
        const dt_chain_input *input = r->full[k];
        dt_convert(input->dtype, input->dtype, r->tile, slots[SLOTS + k],
                   (int64_t)dt_dtype_size(input->dtype), (const char *)&input->number,
                   0);
    }
}

/* Where the tile of a step's result is that begins at an element. */
static char *value_of(const run *r, int step, int64_t begin, char (*slots)[TILE])
{
    const int slot = r->places[step].slot;
    const dt_chain_step *s = &r->chain->steps[step];
    return slot < 0 ? (char *)s->out + begin * (int64_t)dt_dtype_size(s->result)
                    : slots[slot];
}

static void run_tile(const run *r, int64_t begin, int64_t n, char (*slots)[TILE])
{
    const dt_chain *chain = r->chain;
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step *step = &chain->steps[s];
        if (!step->wanted)
            continue;
        char *data[DT_MAX_OPERANDS];
        int64_t strides[DT_MAX_OPERANDS];
        int gathered = r->free, full = 0;
        for (int i = 0; i < step->ninputs; i++) {
            const dt_chain_input *input = &step->inputs[i];
            const int64_t size = (int64_t)dt_dtype_size(input->dtype);
            const int from = input->step;
            char *at = (char *)(uintptr_t)&input->number;
            if (from >= 0) {
                at = value_of(r, from, begin, slots);
            } else if (input->layout >= 0) {
                at = slots[gathered++];
                gather(&chain->layouts[input->layout], input, begin, n, at);
            } else if (input->data) {
                at = (char *)(uintptr_t)input->data + begin * size;
            }
            data[i + 1] = at;
            strides[i + 1] = from < 0 && !input->data ? 0 : size;
        }
        while (full < r->nfull && r->full[full] != step->inputs)
            full++;
        if (full < r->nfull) {
            data[1] = slots[SLOTS + full];
            strides[1] = (int64_t)dt_dtype_size(step->inputs[0].dtype);
        }
        const place *p = &r->places[s];
        strides[0] = (int64_t)dt_dtype_size(step->result);
        data[0] = p->slot < 0 ? (char *)step->out + begin * strides[0] : slots[p->slot];
        dt_loop_call(&r->kernels[s], n, data, strides);
        if (p->stream)
            store((char *)step->out + begin * strides[0], data[0], n * strides[0]);
    }
}

static void run_tiles(void *context, int64_t begin, int64_t end)
{
    const run *r = context;
    _Alignas(64) char slots[SLOTS + FULLS][TILE];
    fill_numbers(r, slots);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t first = tile * r->tile, rest = r->chain->numel - first;
        run_tile(r, first, rest < r->tile ? rest : r->tile, slots);
    }
    dt_cpu_kernels.copy->stream_end();
}

static void run_alone(run *r)
{
    const int64_t tiles = (r->chain->numel + r->tile - 1) / r->tile;
    const int64_t grain = tiles / ((int64_t)dt_pool_threads() * 8);
    dt_pool_run(run_tiles, r, tiles, grain > 4 ? grain : 4);
}

/* --- with ends --- */

/* whole: of a row that is longer than a tile, what came before. */
static void feed_rows(const run *r, const dt_chain_end *end, int64_t begin, int64_t n,
                      const char *x, char *whole)
{
    const int64_t row = r->chain->row, size = (int64_t)dt_dtype_size(end->rows.dtype);
    if (row <= r->tile) {
        dt_cpu_nn_rows(&end->rows, end->operand, x, begin / row, (begin + n) / row);
        return;
    }
    memcpy(whole + begin % row * size, x, (size_t)(n * size));
    if ((begin + n) % row == 0)
        dt_cpu_nn_rows(&end->rows, end->operand, whole, begin / row, begin / row + 1);
}

/* The first element of a piece. */
static int64_t first_of(const run *r, int64_t piece)
{
    return r->blocks > 1
               ? piece / r->blocks * r->chain->row + piece % r->blocks * r->piece
               : piece * r->piece;
}

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    const run *r = context;
    const dt_chain *chain = r->chain;
    const int64_t row = chain->row;
    _Alignas(64) char slots[SLOTS + FULLS][TILE];
    _Alignas(64) char whole[DT_CHAIN_ROW];
    dt_chain_part parts[DT_CHAIN_ENDS];
    fill_numbers(r, slots);
    const int64_t stop = first_of(r, end);
    const int64_t last = stop < chain->numel ? stop : chain->numel;
    for (int64_t at = first_of(r, begin), n; at < last; at += n) {
        /* Tiles end where rows do; their lengths are a multiple of a leaf's. */
        n = row > r->tile ? row - at % row : r->tile / row * row;
        n = n < r->tile ? n : r->tile;
        n = n < last - at ? n : last - at;
        run_tile(r, at, n, slots);
        for (int k = 0; k < r->nsums; k++)
            dt_chain_sum_take(&r->sums[k], &parts[k], at, n,
                              value_of(r, r->sums[k].end->step, at, slots));
        for (int e = 0; e < chain->nends; e++)
            if (chain->ends[e].wanted && chain->ends[e].work == DT_WORK_nn)
                feed_rows(r, &chain->ends[e], at, n,
                          value_of(r, chain->ends[e].step, at, slots), whole);
    }
    dt_cpu_kernels.copy->stream_end();
}

/* Whether somebody wants the results of an end; of one of rows. */
static bool has_ends(const dt_chain *chain, bool of_rows)
{
    for (int e = 0; e < chain->nends; e++)
        if (chain->ends[e].wanted && (!of_rows || chain->ends[e].work == DT_WORK_nn))
            return true;
    return false;
}

static void run_with_ends(run *r)
{
    const dt_chain *chain = r->chain;
    const int64_t row = chain->row;
    const bool cut = row > DT_CHAIN_BLOCK && !has_ends(chain, true);
    r->blocks = cut ? (row + DT_CHAIN_BLOCK - 1) / DT_CHAIN_BLOCK : 1;
    r->piece = cut                    ? DT_CHAIN_BLOCK
               : row > DT_CHAIN_BLOCK ? row
                                      : DT_CHAIN_BLOCK / row * row;
    for (int e = 0; e < chain->nends; e++)
        if (chain->ends[e].wanted && chain->ends[e].work != DT_WORK_nn)
            r->sums[r->nsums++] =
                dt_chain_sum_of(&chain->ends[e], row, cut ? DT_CHAIN_BLOCK : row);
    const int64_t pieces =
        cut ? chain->numel / row * r->blocks : (chain->numel + r->piece - 1) / r->piece;
    dt_pool_run(run_pieces, r, pieces, pieces / ((int64_t)dt_pool_threads() * 8));
    for (int k = 0; k < r->nsums; k++)
        dt_chain_sum_finish(&r->sums[k]);
}

static int64_t larger(int64_t size, dt_dtype dtype)
{
    const int64_t other = (int64_t)dt_dtype_size(dtype);
    return other > size ? other : size;
}

int dt_cpu_chain(dt_stream stream, const dt_chain *chain)
{
    (void)stream;
    run r = {.chain = chain};
    int64_t size = 1;
    for (int s = 0; s < chain->nsteps; s++) {
        const dt_chain_step *step = &chain->steps[s];
        size = larger(size, step->result);
        size = larger(size, step->type);
        for (int i = 0; i < step->ninputs; i++)
            size = larger(size, step->inputs[i].dtype);
        r.kernels[s] = kernel_of(step);
    }
    r.tile = TILE / size;
    plan_slots(&r);
    plan_numbers(&r);
    if (has_ends(chain, false))
        run_with_ends(&r);
    else
        run_alone(&r);
    for (int e = 0; e < chain->nends; e++)
        free(chain->ends[e].partials);
    return 0;
}
