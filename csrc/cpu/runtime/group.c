#include "cpu/runtime/group_block.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/interrupt.h"

/* --- the block --- */

static size_t align(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Bytes of the block, whose parts the group points to if it has one. */
static size_t lay_out(dt_group *group, int size, char *block)
{
    size_t n = (size_t)size, slots = align(n * sizeof(dt_group_slot));
    size_t counts = align(2 * n * n * sizeof(int64_t)),
           staging = n * 2 * DT_GROUP_PIECE;
    if (block) {
        group->slots = (dt_group_slot *)(void *)block;
        group->counts = (int64_t *)(void *)(block + slots);
        group->staging = block + slots + counts;
        group->channels = (dt_group_channel *)(void *)(group->staging + staging);
    }
    return slots + counts + staging + n * n * sizeof(dt_group_channel);
}

/* Zeros are a block whose ranks are absent, so that whoever comes first may do it. */
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
 * unlocks it when the process ends, however that comes. */
static int lock_byte(const dt_group *group, int command, int rank, bool *locked)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    int status = fcntl(group->descriptor, command, &lock);
    if (locked)
        *locked = lock.l_type != F_UNLCK;
    return status;
}

static void unmap(dt_group *group)
{
    if (group->slots)
        munmap(group->slots, group->bytes);
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

static void wake(dt_group_count *count)
{
    if (__atomic_load_n(&count->sleepers, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &count->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Wakes all that may wait for this rank, so that they look at its state. */
static void set_state(dt_group *group, dt_group_state state)
{
    __atomic_store_n(&group->slots[group->rank].state, state, __ATOMIC_RELEASE);
    wake(&group->slots[group->rank].steps);
    for (int r = 0; r < group->size; r++) {
        wake(&dt_group_way(group, group->rank, r)->sent);
        wake(&dt_group_way(group, r, group->rank)->taken);
    }
}

void dt_group_leave(dt_group *group)
{
    if (group->process == getpid() && group->slots[group->rank].state == DT_GROUP_HERE)
        set_state(group, DT_GROUP_LEFT);
}

void dt_group_close(dt_group *group)
{
    dt_group_leave(group);
    for (int r = 0; r < group->size; r++)
        for (dt_group_stash *next, *each = group->stashes[r]; each; each = next) {
            next = each->next;
            free(each);
        }
    unmap(group);
}

/* --- calls --- */

/* Copies text, cut to size, into memory that is not all written. */
static void copy_text(char *to, const char *text, size_t size)
{
    size_t length = strnlen(text, size - 1);
    memcpy(to, text, length);
    to[length] = 0;
}

void dt_group_text_set(dt_group_text *text, const dt_group_call *call)
{
    copy_text(text->key, call->key, sizeof text->key);
    copy_text(text->line, call->line, sizeof text->line);
}

static int check_left(const dt_group *group)
{
    if (group->slots[group->rank].state != DT_GROUP_LEFT)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "this process has left the group with destroy_process_group()");
}

int dt_group_begin(dt_group *group, const dt_group_call *call)
{
    dt_group_slot *mine = &group->slots[group->rank];
    if (group->process != getpid())
        return dt_fail(DT_ERROR_RUNTIME,
                       "the process group was made by process %d, and this is a fork "
                       "of it; call init_process_group() in the process that uses it",
                       (int)group->process);
    if (check_left(group) < 0)
        return -1;
    if (mine->state == DT_GROUP_FAILED)
        return dt_fail(DT_ERROR_RUNTIME,
                       "an earlier call of this process group has failed; call "
                       "destroy_process_group(), and begin again with "
                       "init_process_group() on all ranks");
    snprintf(mine->last.key, sizeof mine->last.key, "%s%s", call->name, call->key);
    copy_text(mine->last.line, call->line, sizeof mine->last.line);
    return 0;
}

/* --- waiting --- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Fails a call of this rank because of another one. The group cannot be used any more: no
 * rank knows how far the others have come. */
static int give_up(dt_group *group, const dt_group_call *call, int rank,
                   const char *problem)
{
    dt_group_text last = group->slots[rank].last; /* it may be writing it */
    last.key[sizeof last.key - 1] = last.line[sizeof last.line - 1] = 0;
    set_state(group, DT_GROUP_FAILED);
    return dt_fail(
        DT_ERROR_RUNTIME,
        "rank %d %s, while rank %d waits for it in %s%s%s%s; its last call %s%s%s%s",
        dt_group_name(call, rank), problem, dt_group_name(call, group->rank),
        call->name, call->key, dt_group_at(call->line), call->line,
        *last.key ? "was " : "is not made yet", last.key, dt_group_at(last.line),
        last.line);
}

static const char given_up[] = "has given up after an error of its own";

/* Why a rank will not come; NULL: it may. */
static const char *problem_of(const dt_group *group, int rank)
{
    bool alive = true;
    switch (__atomic_load_n(&group->slots[rank].state, __ATOMIC_ACQUIRE)) {
    case DT_GROUP_LEFT:
        return "has left the process group";
    case DT_GROUP_FAILED:
        return given_up;
    case DT_GROUP_HERE:
        if (rank != group->rank && !lock_byte(group, F_GETLK, rank, &alive) && !alive)
            return "has ended without leaving the process group";
        break;
    default:
        break;
    }
    return NULL;
}

static int check_time(dt_group *group, const dt_group_call *call, int rank,
                      double start)
{
    char problem[80];
    if (now() - start < call->seconds)
        return 0;
    snprintf(problem, sizeof problem, "has not come within %g seconds", call->seconds);
    return give_up(group, call, rank, problem);
}

/* Whether this rank itself is to wait no longer. */
static int check_self(dt_group *group)
{
    if (check_left(group) < 0)
        return -1;
    if (!dt_interrupt_check())
        return 0;
    set_state(group, DT_GROUP_FAILED);
    return -1;
}

void dt_group_count_up(dt_group_count *count)
{
    __atomic_fetch_add(&count->value, 1, __ATOMIC_SEQ_CST);
    wake(count);
}

static bool reached(dt_group_count *count, uint32_t target)
{
    return (int32_t)(__atomic_load_n(&count->value, __ATOMIC_SEQ_CST) - target) >= 0;
}

/* Looks for some microseconds before it sleeps: waking takes longer. */
static bool spin(const dt_group *group, dt_group_count *count, uint32_t target)
{
    double limit = now() + (group->crowded ? 2e-6 : 1e-4);
    do {
        for (int i = 0; i < 20; i++) {
            if (reached(count, target))
                return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    } while (now() < limit);
    return false;
}

static void sleep_until_changed(dt_group_count *count, uint32_t target)
{
    struct timespec limit = {.tv_nsec = 50000000};
    __atomic_fetch_add(&count->sleepers, 1, __ATOMIC_SEQ_CST);
    uint32_t value = __atomic_load_n(&count->value, __ATOMIC_SEQ_CST);
    if ((int32_t)(value - target) < 0)
        syscall(SYS_futex, &count->value, FUTEX_WAIT, value, &limit, NULL, 0);
    __atomic_fetch_sub(&count->sleepers, 1, __ATOMIC_SEQ_CST);
}

int dt_group_await(dt_group *group, const dt_group_call *call, int rank,
                   dt_group_count *count, uint32_t target)
{
    if (spin(group, count, target))
        return 0;
    double start = now();
    for (;;) {
        sleep_until_changed(count, target);
        /* In this order, since a rank may leave right after it has arrived. */
        const char *problem = problem_of(group, rank);
        if (reached(count, target))
            return 0;
        if (problem)
            return give_up(group, call, rank, problem);
        if (check_time(group, call, rank, start) < 0 || check_self(group) < 0)
            return -1;
    }
}

int dt_group_check(dt_group *group, const dt_group_call *call, int rank)
{
    dt_group_state state = __atomic_load_n(&group->slots[rank].state, __ATOMIC_ACQUIRE);
    return state == DT_GROUP_FAILED ? give_up(group, call, rank, given_up) : 0;
}

int dt_group_look(dt_group *group, const dt_group_call *call, int rank, double *start)
{
    struct timespec step = {.tv_nsec = 100000};
    if (*start == 0)
        *start = now();
    nanosleep(&step, NULL);
    return check_time(group, call, rank, *start) < 0 ? -1 : check_self(group);
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
