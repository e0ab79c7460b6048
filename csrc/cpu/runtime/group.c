#include "cpu/runtime/group_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"

/* --- the block --- */

static size_t align(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* The bytes of a block for `size` ranks. Given a block, points the group at its parts. */
static size_t lay_out(dt_group *group, int size, char *block)
{
    size_t n = (size_t)size, bell = align(sizeof(dt_group_count));
    size_t slots = align(n * sizeof(dt_group_slot));
    size_t counts = align(2 * n * n * sizeof(int64_t)),
           staging = n * 4 * DT_GROUP_PIECE;
    if (block) {
        group->bell = (dt_group_count *)(void *)block;
        group->slots = (dt_group_slot *)(void *)(block + bell);
        group->counts = (int64_t *)(void *)(block + bell + slots);
        group->staging = block + bell + slots + counts;
        group->channels = (dt_group_channel *)(void *)(group->staging + staging);
    }
    return bell + slots + counts + staging + n * n * sizeof(dt_group_channel);
}

/* Any rank may do this first: in a block of zeros all ranks are absent. */
static int enlarge(int descriptor, size_t bytes)
{
    struct stat found;
    if (fstat(descriptor, &found) < 0)
        return -1;
    return (size_t)found.st_size < bytes ? ftruncate(descriptor, (off_t)bytes) : 0;
}

int dt_group_create(int size)
{
    if (size < 0 || size > DT_GROUP_RANKS)
        return dt_fail(DT_ERROR_VALUE,
                       "a group of %d ranks; ranks of one machine are 1 to %d", size,
                       DT_GROUP_RANKS);
    int descriptor = memfd_create("pydevtensor group", MFD_CLOEXEC);
    /* Memory is taken when it is written to. */
    if (descriptor >= 0 && !(size && enlarge(descriptor, lay_out(NULL, size, NULL))))
        return descriptor;
    dt_fail(DT_ERROR_RUNTIME, "shared memory for %d ranks cannot be made: %s", size,
            strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

/* Byte `rank` of the block is locked as long as the rank's process lives: the system
 * unlocks it when the process ends, however it ends. */
static int lock_byte(const dt_group *group, int command, int rank, bool *locked)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    int status = fcntl(group->descriptor, command, &lock);
    if (locked)
        *locked = lock.l_type != F_UNLCK;
    return status;
}

bool dt_group_lives(const dt_group *group, int rank)
{
    bool locked = true;
    return lock_byte(group, F_GETLK, rank, &locked) < 0 || locked;
}

static void unmap(dt_group *group)
{
    if (group->bell)
        munmap(group->bell, group->bytes);
    close(group->descriptor);
    free(group->inboxes);
    free(group->stashes);
    free(group);
}

dt_group *dt_group_open(int descriptor, int rank, int size)
{
    dt_group *group = calloc(1, sizeof *group);
    if (!group) {
        close(descriptor);
        dt_fail(DT_ERROR_HOST_MEMORY, "no memory for a group of %d ranks", size);
        return NULL;
    }
    group->rank = rank;
    group->size = size;
    group->descriptor = descriptor;
    group->process = getpid();
    group->forks = dt_forks();
    group->crowded = size > sysconf(_SC_NPROCESSORS_ONLN);
    group->bytes = lay_out(NULL, size, NULL);
    group->inboxes = calloc((size_t)size, sizeof *group->inboxes);
    group->stashes = calloc((size_t)size, sizeof(dt_group_stash *));
    char *block = MAP_FAILED;
    if (!enlarge(descriptor, group->bytes))
        block =
            mmap(NULL, group->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (block != MAP_FAILED)
        lay_out(group, size, block);
    if (block == MAP_FAILED || !group->inboxes || !group->stashes ||
        lock_byte(group, F_SETLK, rank, NULL) < 0) {
        dt_fail(DT_ERROR_RUNTIME, "the shared memory of rank %d cannot be used: %s",
                rank, strerror(errno));
        unmap(group);
        return NULL;
    }
    for (int r = 0; r < size; r++)
        pthread_mutex_init(&group->inboxes[r], NULL);
    __atomic_store_n(&group->slots[rank].state, DT_GROUP_HERE, __ATOMIC_RELEASE);
    return group;
}

/* Copies text, cut to size. Writes no more than that: the block's pages come with use. */
static void copy_text(char *to, const char *text, size_t size)
{
    size_t length = strnlen(text, size - 1);
    memcpy(to, text, length);
    to[length] = 0;
}

void dt_group_leave(dt_group *group, const char *why)
{
    dt_group_slot *mine = &group->slots[group->rank];
    if (group->forks != dt_forks() || mine->state != DT_GROUP_HERE)
        return;
    copy_text(mine->why, why, sizeof mine->why);
    dt_group_state_set(group, DT_GROUP_LEFT);
}

void dt_group_close(dt_group *group)
{
    dt_group_leave(group, "");
    for (int r = 0; r < group->size; r++)
        for (dt_group_stash *next, *each = group->stashes[r]; each; each = next) {
            next = each->next;
            free(each);
        }
    unmap(group);
}

/* --- calls --- */

void dt_group_text_set(dt_group_text *text, const dt_group_call *call)
{
    copy_text(text->key, call->key, sizeof text->key);
    copy_text(text->line, call->line, sizeof text->line);
}

int dt_group_check_left(const dt_group *group)
{
    if (group->slots[group->rank].state != DT_GROUP_LEFT)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "this process has left the group with destroy_process_group()");
}

int dt_group_begin(dt_group *group, const dt_group_call *call)
{
    dt_group_slot *mine = &group->slots[group->rank];
    if (group->forks != dt_forks())
        return dt_fail(DT_ERROR_RUNTIME,
                       "the process group was made by process %d, and this is a fork "
                       "of it; call init_process_group() in the process that uses it",
                       (int)group->process);
    if (dt_group_check_left(group) < 0)
        return -1;
    if (mine->state == DT_GROUP_FAILED)
        return dt_fail(DT_ERROR_RUNTIME,
                       "an earlier call of this process group has failed; call "
                       "destroy_process_group(), and begin again with "
                       "init_process_group() on all ranks");
    dt_group_text_set(&mine->last, call);
    if (*call->name)
        snprintf(mine->last.key, sizeof mine->last.key, "%s%s", call->name, call->key);
    return 0;
}

const dt_group_functions dt_group_of_cpu = {
    .create = dt_group_create,
    .open = dt_group_open,
    .leave = dt_group_leave,
    .close = dt_group_close,
    .run = dt_group_run,
    .send = dt_group_send,
    .receive = dt_group_receive,
};
