#include "null_backend.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/runtime/cpu.h"

/* --- memory --- */

enum { BLOCKS = 4096 };
static struct {
    void *data; /* NULL: free */
    size_t bytes;
} blocks[BLOCKS];

static void open_memory(int protection)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].data)
            assert(!mprotect(blocks[i].data, blocks[i].bytes, protection));
}

static int allocate(dt_stream stream, size_t bytes, void **out)
{
    int i = 0;
    (void)stream;
    while (i < BLOCKS && blocks[i].data)
        i++;
    void *data = i == BLOCKS
                     ? MAP_FAILED
                     : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return dt_fail(DT_ERROR_DEVICE_MEMORY, "no memory for %zu bytes", bytes);
    blocks[i].data = *out = data;
    blocks[i].bytes = bytes;
    return 0;
}

static void release(int device, void *data, size_t bytes)
{
    (void)device;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].data == data) {
            munmap(data, bytes);
            blocks[i].data = NULL;
        }
}

/* --- copies --- */

static int copy(void *target, const void *source, size_t bytes)
{
    open_memory(PROT_READ | PROT_WRITE);
    memcpy(target, source, bytes);
    open_memory(PROT_NONE);
    return 0;
}

static int copy_bytes(dt_stream stream, void *target, const void *source, size_t bytes)
{
    (void)stream;
    return copy(target, source, bytes);
}

static int copy_peer(dt_stream to, void *target, dt_stream from, const void *source,
                     size_t bytes)
{
    (void)to;
    (void)from;
    return copy(target, source, bytes);
}

/* --- work --- */

/* It has no kernels of the program. */
static int refuse(const char *what)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED, "null: %s", what);
}

/* The CPU leaves these two to the core, which reads its memory. */
static int count_true(const dt_nonzero_call *c)
{
    dt_tiles t = dt_tiles_of(c->numel);
    int64_t *total = c->workspace + t.tiles + t.groups;
    *total = 0;
    for (int64_t i = 0; i < c->numel; i++)
        *total += c->holds[i].byte != 0;
    return 0;
}

static int write_true(const dt_nonzero_call *c)
{
    dt_tiles t = dt_tiles_of(c->numel);
    int64_t count = c->workspace[t.tiles + t.groups], found = 0;
    for (int64_t i = 0; i < c->numel; i++) {
        int64_t rest = i;
        for (int d = c->ndim - 1; c->holds[i].byte && d >= 0; d--) {
            c->out[d * count + found] = rest % c->shape[d];
            rest /= c->shape[d];
        }
        found += c->holds[i].byte != 0;
    }
    return 0;
}

#define DO(name, parameters, call)                                                     \
    static int run_##name parameters                                                   \
    {                                                                                  \
        (void)stream;                                                                  \
        open_memory(PROT_READ | PROT_WRITE);                                           \
        int status = call;                                                             \
        open_memory(PROT_NONE);                                                        \
        return status;                                                                 \
    }
#define WORK(name, parameters, arguments, ...)                                         \
    DO(name, parameters, dt_cpu_backend()->name arguments)
#define GPU_WORK(...)
#include "device/works.def"
DO(nonzero_count, (dt_stream stream, const dt_nonzero_call *c), count_true(c))
DO(nonzero_write, (dt_stream stream, const dt_nonzero_call *c), write_true(c))
DO(dropout_mask, (dt_stream stream, const struct dt_dropout_mask_call *c),
   ((void)c, refuse("attention has no dropout")))
DO(launch, (dt_stream stream, const struct dt_module_call *c),
   ((void)c, refuse("no kernel can be launched")))
DO(fourier, (dt_stream stream, const struct dt_fourier_call *c),
   ((void)c, refuse("there is no library of transforms")))
DO(collective, (dt_stream stream, const struct dt_collective_call *c),
   ((void)c, refuse("there are no ranks")))

/* --- the table --- */

static int device_count(void)
{
    return NULL_DEVICES;
}

static int device_properties(int device, dt_device_properties *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "null %d", device);
    return 0;
}

static const dt_backend *open_null(char why[DT_WHY_TEXT], void **library)
{
    static dt_backend own;
    (void)why;
    (void)library;
    own = *dt_cpu_backend();
    own.name = "null";
    own.device_count = device_count;
    own.device_properties = device_properties;
    own.allocate = allocate;
    own.release = release;
    own.copy_to_device = own.copy_to_host = copy_bytes;
    own.copy_peer = copy_peer;
#define WORK(member, ...) own.member = run_##member;
#include "device/works.def"
    return &own;
}

const dt_device_row null_row = {
    .name = "null",
    .title = "null",
    .without = "Use the CPU.",
    .open = open_null,
};
