#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/group_block.h"

int dt_group_send(dt_group *group, const dt_group_call *call, int to, int64_t tag,
                  dt_group_span data)
{
    if (dt_group_begin(group, call) < 0)
        return -1;
    dt_group_channel *way = dt_group_way(group, group->rank, to);
    int64_t offset = 0;
    do {
        uint32_t packet = way->sent.value;
        int half = (int)(packet & 1);
        if (dt_group_await(group, call, to, &way->taken, packet - 1) < 0)
            return -1;
        int64_t bytes = dt_group_smaller(data.bytes - offset, DT_GROUP_PACKET);
        if (!offset) {
            dt_group_text_set(&way->half[half].call, call);
            way->half[half].tag = tag;
            way->half[half].bytes = data.bytes;
        }
        if (bytes)
            memcpy(way->data[half], (char *)data.data + offset, (size_t)bytes);
        offset += bytes;
        dt_group_count_up(&way->sent);
    } while (offset < data.bytes);
    return 0;
}

/* Reads a message of this many bytes from the channel into `to`; NULL: drops it. */
static int take(dt_group *group, const dt_group_call *call, int from, char *to,
                int64_t total)
{
    dt_group_channel *way = dt_group_way(group, from, group->rank);
    int64_t offset = 0;
    do {
        uint32_t packet = way->taken.value;
        if (dt_group_await(group, call, from, &way->sent, packet + 1) < 0)
            return -1;
        int64_t bytes = dt_group_smaller(total - offset, DT_GROUP_PACKET);
        if (to && bytes)
            memcpy(to + offset, way->data[packet & 1], (size_t)bytes);
        offset += bytes;
        dt_group_count_up(&way->taken);
    } while (offset < total);
    return 0;
}

static int differs(const dt_group *group, const dt_group_call *call, int from,
                   const dt_group_text *theirs)
{
    return dt_fail(
        DT_ERROR_RUNTIME,
        "rank %d receives %s%s%s, and rank %d has sent %s%s%s; give a Tensor "
        "of the size and type that is sent",
        dt_group_name(call, group->rank), call->key, dt_group_at(call->line),
        call->line, dt_group_name(call, from), theirs->key, dt_group_at(theirs->line),
        theirs->line);
}

/* Looks for the tag among the messages that came before. 1: it is in data now; 0: there is
 * none; -1 after dt_fail. */
static int take_stashed(dt_group *group, const dt_group_call *call, int from,
                        int64_t tag, dt_group_span data)
{
    for (dt_group_stash **link = &group->stashes[from]; *link; link = &(*link)->next) {
        dt_group_stash *found = *link;
        if (found->tag != tag)
            continue;
        int status = 1;
        if (strncmp(found->call.key, call->key, sizeof found->call.key - 1))
            status = differs(group, call, from, &found->call);
        else if (found->bytes)
            memcpy(data.data, found->data, (size_t)found->bytes);
        *link = found->next;
        free(found);
        return status;
    }
    return 0;
}

/* Keeps the channel's message for a later call, which asks for its tag. */
static int stash(dt_group *group, const dt_group_call *call, int from,
                 const dt_group_stash *head)
{
    dt_group_stash **end = &group->stashes[from];
    dt_group_stash *kept = malloc(sizeof *kept + (size_t)head->bytes);
    if (!kept)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "%s: no memory for a message of %lld bytes from rank %d, which "
                       "came before the one with the tag that was asked for",
                       call->key, (long long)head->bytes, from);
    *kept = *head;
    kept->next = NULL;
    if (take(group, call, from, kept->data, head->bytes) < 0) {
        free(kept);
        return -1;
    }
    while (*end)
        end = &(*end)->next;
    *end = kept;
    return 0;
}

/* Receives without waiting. 1: data is the message; 0: `from` has not sent it yet. The caller
 * holds the inbox. */
static int receive_now(dt_group *group, const dt_group_call *call, int from,
                       int64_t tag, dt_group_span data)
{
    dt_group_channel *way = dt_group_way(group, from, group->rank);
    int status = take_stashed(group, call, from, tag, data);
    while (!status) {
        uint32_t packet = way->taken.value;
        if (__atomic_load_n(&way->sent.value, __ATOMIC_SEQ_CST) == packet)
            return 0;
        const int half = (int)(packet & 1);
        dt_group_stash head = {.call = way->half[half].call,
                               .tag = way->half[half].tag,
                               .bytes = way->half[half].bytes};
        if (head.tag != tag) {
            status = stash(group, call, from, &head);
        } else if (strncmp(head.call.key, call->key, sizeof head.call.key - 1)) {
            status = take(group, call, from, NULL, head.bytes);
            return status < 0 ? -1 : differs(group, call, from, &head.call);
        } else {
            status = take(group, call, from, data.data, head.bytes) < 0 ? -1 : 1;
        }
    }
    return status;
}

/* Receives, waiting for the packets. */
static int receive_from(dt_group *group, const dt_group_call *call, int from,
                        int64_t tag, dt_group_span data)
{
    dt_group_channel *way = dt_group_way(group, from, group->rank);
    int status;
    do {
        pthread_mutex_lock(&group->inboxes[from]);
        status = receive_now(group, call, from, tag, data);
        uint32_t packet = way->taken.value;
        pthread_mutex_unlock(&group->inboxes[from]);
        if (!status && dt_group_await(group, call, from, &way->sent, packet + 1) < 0)
            return -1;
    } while (!status);
    return status;
}

int dt_group_receive(dt_group *group, const dt_group_call *call, int from, int64_t tag,
                     dt_group_span data, int *sender)
{
    if (dt_group_begin(group, call) < 0)
        return -1;
    *sender = from;
    if (from >= 0)
        return receive_from(group, call, from, tag, data) < 0 ? -1 : 0;
    if (group->size == 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s%s: the group has no other rank that could send; give src "
                       "in a group of several",
                       call->name, call->key);
    for (double start = 0;;) {
        for (int r = 0; r < group->size; r++) {
            if (r == group->rank || pthread_mutex_trylock(&group->inboxes[r]))
                continue;
            int status = receive_now(group, call, r, tag, data);
            pthread_mutex_unlock(&group->inboxes[r]);
            *sender = r;
            if (status)
                return status < 0 ? -1 : 0;
        }
        if (dt_group_look(group, call, !group->rank, &start) < 0)
            return -1;
    }
}
