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
    int half;
} task;

static int64_t *counts_of(const task *t, int rank)
{
    const size_t n = (size_t)t->group->size;
    return &t->group->counts[((size_t)t->half * n + (size_t)rank) * n];
}

/* Says what this rank does, and how much. */
static void describe(task *t)
{
    dt_group_slot *mine = &t->group->slots[t->group->rank];
    int64_t *counts = counts_of(t, t->group->rank), largest = 0;
    for (int s = 0; s < t->x->segments; s++) {
        counts[s] = t->x->in ? t->x->in[s].bytes : 0;
        largest = counts[s] > largest ? counts[s] : largest;
    }
    mine->half[t->half].largest = largest;
    dt_group_text_set(&mine->half[t->half].call, t->call);
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

/* Arrives at the next step, and waits for all others. One that has arrived may have given
 * up since. */
static int meet(const task *t)
{
    dt_group *group = t->group;
    dt_group_count *mine = &group->slots[group->rank].steps;
    uint32_t step = mine->value + 1;
    dt_group_count_up(mine);
    for (int r = 0; r < group->size; r++)
        if (r != group->rank &&
            (dt_group_await(group, t->call, r, &group->slots[r].steps, step) < 0 ||
             dt_group_check(group, t->call, r) < 0))
            return -1;
    return 0;
}

/* Whether all ranks do the same. All find a difference, and none goes on. */
static int compare(const task *t)
{
    for (int r = 0; r < t->group->size; r++) {
        const dt_group_text *theirs = &t->group->slots[r].half[t->half].call;
        if (strncmp(theirs->key, t->call->key, sizeof theirs->key - 1))
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

/* Whether every rank gives what this one takes from it. */
static int compare_sizes(const task *t)
{
    for (int r = 0; t->x->out && t->x->combine == DT_GROUP_COPY && r < t->group->size;
         r++) {
        int64_t given = counts_of(t, r)[read_segment(t)];
        if (t->x->out[r].data && t->x->out[r].bytes != given)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: rank %d gives %lld bytes to rank %d, which has room for "
                "%lld; make the sizes of inputs and outputs agree",
                t->call->key, dt_group_name(t->call, r), (long long)given,
                dt_group_name(t->call, t->group->rank), (long long)t->x->out[r].bytes);
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

static int read_combined(const task *t, int64_t offset)
{
    const dt_group_span *out = &t->x->out[0];
    int64_t bytes = dt_group_smaller(out->bytes - offset, t->segment);
    if (!out->data || bytes <= 0)
        return 0;
    int64_t n = bytes / (int64_t)dt_dtype_size(t->x->dtype);
    char *to = (char *)out->data + offset, *from = NULL;
    int64_t begin = read_segment(t) * t->segment;
    for (int r = 0; r < t->group->size; r++) {
        char *piece = dt_group_piece(t->group, r, t->half) + begin;
        if (r > 0 && combine(t, to, from, piece, n) < 0)
            return -1;
        from = r == 0 ? piece : to;
    }
    if (t->group->size == 1)
        memcpy(to, from, (size_t)bytes);
    return 0;
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

int dt_group_run(dt_group *group, const dt_group_call *call,
                 const dt_group_exchange *exchange)
{
    if (dt_group_begin(group, call) < 0)
        return -1;
    task t = {group, call, exchange, 0, 0};
    /* A piece of every segment, whole elements. */
    t.segment = DT_GROUP_PIECE / exchange->segments & ~(int64_t)63;
    t.half = (int)(group->slots[group->rank].steps.value + 1) & 1;
    describe(&t);
    write_pieces(&t, 0);
    if (meet(&t) < 0 || compare(&t) < 0)
        return -1;
    int64_t largest = largest_of_all(&t);
    int status = compare_sizes(&t);
    for (int64_t offset = 0;;) {
        /* After an error of its own, a rank still takes part in the other steps. */
        if (!status)
            status = read_pieces(&t, offset);
        offset += t.segment;
        if (offset >= largest)
            return status;
        t.half = !t.half;
        write_pieces(&t, offset);
        if (meet(&t) < 0)
            return -1;
    }
}
