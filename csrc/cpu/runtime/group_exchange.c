#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/backend.h"
#include "cpu/runtime/group_block.h"
#include "ops/elementwise_ops.h"

/* An exchange under way, at this rank. */
typedef struct task {
    dt_group *group;
    const dt_group_call *call;
    const dt_group_exchange *x;
    int64_t segment; /* bytes of a segment of the staging area */
    uint64_t key;    /* of the call's text */
    int half;
} task;

static int64_t *counts_of(const task *t, int rank)
{
    const size_t n = (size_t)t->group->size;
    return &t->group->counts[((size_t)t->half * n + (size_t)rank) * n];
}

/* FNV-1a, of 64 bits. */
static uint64_t hash(const char *text)
{
    uint64_t found = 0xcbf29ce484222325;
    for (; *text; text++)
        found = (found ^ (unsigned char)*text) * 0x100000001b3;
    return found;
}

/* Publishes this rank's call and the sizes of its segments, for the others to compare. */
static void describe(task *t)
{
    dt_group_slot *mine = &t->group->slots[t->group->rank];
    int64_t *counts = counts_of(t, t->group->rank), largest = 0;
    for (int s = 0; t->x->in && s < t->x->segments; s++) {
        if (t->x->segments > 1)
            counts[s] = t->x->in[s].bytes;
        largest = t->x->in[s].bytes > largest ? t->x->in[s].bytes : largest;
    }
    if (!t->x->in && t->x->segments > 1)
        memset(counts, 0, (size_t)t->x->segments * sizeof *counts);
    mine->half[t->half].largest = largest;
    mine->half[t->half].key = t->key;
    dt_group_text_set(&mine->call[t->half], t->call);
}

static void write_pieces(const task *t, int64_t offset)
{
    char *piece = dt_group_piece(t->group, t->group->rank, t->half);
    for (int s = 0; t->x->in && s < t->x->segments; s++) {
        int64_t bytes = dt_group_smaller(t->x->in[s].bytes - offset, t->segment);
        if (bytes > 0)
            memcpy(piece + s * t->segment, (char *)t->x->in[s].data + offset,
                   (size_t)bytes);
    }
}

/* Fails if the ranks make different calls: on every rank, so that none waits for another. */
static int compare(const task *t)
{
    for (int r = 0; r < t->group->size; r++) {
        const dt_group_text *theirs = &t->group->slots[r].call[t->half];
        if (t->group->slots[r].half[t->half].key != t->key)
            return dt_fail(DT_ERROR_RUNTIME,
                           "rank %d calls %s%s%s, and rank %d calls %s%s%s; all ranks "
                           "of a group have to make the same calls in the same order",
                           dt_group_name(t->call, t->group->rank), t->call->key,
                           dt_group_at(t->call->line), t->call->line,
                           dt_group_name(t->call, r), theirs->key,
                           dt_group_at(theirs->line), theirs->line);
    }
    return 0;
}

static int read_segment(const task *t)
{
    return t->x->segments == 1 ? 0 : t->group->rank;
}

/* Fails if a rank gives another number of bytes than this one takes from it. */
static int compare_sizes(const task *t)
{
    for (int r = 0; t->x->out && t->x->combine == DT_GROUP_COPY && r < t->group->size;
         r++) {
        const dt_group_slot *theirs = &t->group->slots[r];
        const char *line = theirs->call[t->half].line;
        int64_t given = t->x->segments > 1 ? counts_of(t, r)[t->group->rank]
                                           : theirs->half[t->half].largest;
        if (t->x->out[r].data && t->x->out[r].bytes != given)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: rank %d gives %lld bytes%s%s to rank %d, which has room for "
                "%lld%s%s; make the sizes of inputs and outputs agree",
                t->call->key, dt_group_name(t->call, r), (long long)given,
                dt_group_at(line), line, dt_group_name(t->call, t->group->rank),
                (long long)t->x->out[r].bytes, dt_group_at(t->call->line),
                t->call->line);
    }
    return 0;
}

/* out = a op b, of n elements. */
static int combine(const task *t, void *out, void *a, void *b, int64_t n)
{
    dt_dtype dtype = t->x->dtype;
    int64_t stride = (int64_t)dt_dtype_size(dtype);
    dt_plan plan;
    plan.ndim = 1;
    plan.noperands = 3;
    plan.numel = plan.shape[0] = n;
    plan.contiguous = true;
    void *const data[] = {out, a, b};
    for (int i = 0; i < 3; i++) {
        plan.operands[i].data = data[i];
        plan.operands[i].strides[0] = stride;
        plan.operands[i].dtype = dtype;
        plan.operands[i].scalar = false;
    }
    return dt_cpu_elementwise((dt_stream){0, NULL}, (dt_elementwise_op)t->x->combine,
                              &plan);
}

/* Combines `bytes` bytes of the staging areas of all ranks, from `begin` on, into `to`. */
static int combine_ranks(const task *t, char *to, int64_t begin, int64_t bytes)
{
    const int64_t n = bytes / (int64_t)dt_dtype_size(t->x->dtype);
    char *from = dt_group_piece(t->group, 0, t->half) + begin;
    for (int r = 1; r < t->group->size; r++) {
        if (combine(t, to, from, dt_group_piece(t->group, r, t->half) + begin, n) < 0)
            return -1;
        from = to;
    }
    if (t->group->size == 1)
        memcpy(to, from, (size_t)bytes);
    return 0;
}

static int read_combined(const task *t, int64_t offset)
{
    const dt_group_span *out = &t->x->out[0];
    int64_t bytes = dt_group_smaller(out->bytes - offset, t->segment);
    if (!out->data || bytes <= 0)
        return 0;
    return combine_ranks(t, (char *)out->data + offset, read_segment(t) * t->segment,
                         bytes);
}

static int read_pieces(const task *t, int64_t offset)
{
    if (!t->x->out)
        return 0;
    if (t->x->combine != DT_GROUP_COPY)
        return read_combined(t, offset);
    int64_t begin = read_segment(t) * t->segment;
    for (int r = 0; r < t->group->size; r++) {
        const dt_group_span *out = &t->x->out[r];
        int64_t bytes = dt_group_smaller(out->bytes - offset, t->segment);
        if (out->data && bytes > 0)
            memcpy((char *)out->data + offset,
                   dt_group_piece(t->group, r, t->half) + begin, (size_t)bytes);
    }
    return 0;
}

static int64_t largest_of_all(const task *t)
{
    int64_t largest = 0;
    for (int r = 0; r < t->group->size; r++) {
        int64_t bytes = t->group->slots[r].half[t->half].largest;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* The bytes of a rank's share of a piece, which begins at *begin. */
static int64_t share_of(const task *t, int rank, int64_t bytes, int64_t *begin)
{
    int64_t size = (bytes / t->group->size + 63) & ~(int64_t)63;
    *begin = dt_group_smaller(rank * size, bytes);
    return dt_group_smaller(size, bytes - *begin);
}

/* Each rank combines a share of every piece, which the others copy: two ranks read each
 * byte, instead of all. A step publishes the next piece and the shares of the piece before
 * it. A rank writes its share of a half only after the step in which the others have read
 * the last one there. */
static int run_by_shares(task *t, int64_t total)
{
    dt_group *group = t->group;
    const dt_group_span *out = &t->x->out[0];
    for (int64_t begin, offset = 0; offset < total; offset += t->segment) {
        const int64_t bytes = dt_group_smaller(total - offset, t->segment);
        int64_t mine = share_of(t, group->rank, bytes, &begin);
        if (mine && combine_ranks(t, dt_group_share(group, group->rank, t->half), begin,
                                  mine) < 0) {
            dt_group_state_set(group, DT_GROUP_FAILED); /* the others need the share */
            return -1;
        }
        const int half = t->half;
        t->half = !half;
        write_pieces(t, offset + t->segment);
        if (dt_group_meet(group, t->call) < 0)
            return -1;
        for (int r = 0; r < group->size; r++) {
            int64_t given = share_of(t, r, bytes, &begin);
            if (given)
                memcpy((char *)out->data + offset + begin,
                       dt_group_share(group, r, half), (size_t)given);
        }
    }
    return 0;
}

/* Called when every rank has written its first piece. */
static int run_by_pieces(task *t, int64_t total)
{
    int status = compare_sizes(t);
    for (int64_t offset = 0;;) {
        /* After an error of its own, a rank takes part in the remaining steps: the others
         * wait for it. */
        if (!status)
            status = read_pieces(t, offset);
        offset += t->segment;
        if (offset >= total)
            return status;
        t->half = !t->half;
        write_pieces(t, offset);
        if (dt_group_meet(t->group, t->call) < 0)
            return -1;
    }
}

int dt_group_run(dt_group *group, const dt_group_call *call,
                 const dt_group_exchange *exchange)
{
    if (dt_group_begin(group, call) < 0)
        return -1;
    task t = {group, call, exchange, 0, hash(call->key), 0};
    /* The bytes of each segment in a piece: a multiple of every element's size. */
    t.segment = DT_GROUP_PIECE / exchange->segments & ~(int64_t)63;
    t.half = (int)(group->slots[group->rank].steps.value + 1) & 1;
    describe(&t);
    write_pieces(&t, 0);
    if (dt_group_meet(group, call) < 0 || compare(&t) < 0)
        return -1;
    const int64_t total = largest_of_all(&t);
    const bool shares = exchange->whole && group->size > 2 && total > DT_GROUP_SHARED;
    return shares ? run_by_shares(&t, total) : run_by_pieces(&t, total);
}
