/* A device whose memory is a range of addresses and whose work is nothing: operations
 * check their arguments, find the shape of their result and allocate it, as on any device,
 * and no kernel runs. Reading an element is an error. */
#include "device/meta.h"

#include <string.h>

#include "device/device.h"

/* Most functions do not read their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* NOLINTBEGIN(misc-unused-parameters) */

static int device_count(void)
{
    return 1;
}

static const char *why_unavailable(void)
{
    return "";
}

static int device_properties(int device, dt_device_properties *out)
{
    memset(out, 0, sizeof *out);
    out->physical = device;
    strcpy(out->name, "meta");
    return 0;
}

static void facts(dt_fact_visitor visit, void *context) {}

static bool can_access_peer(int device, int peer)
{
    return device == peer;
}

static int empty_cache(int device)
{
    return 0;
}

static int device_synchronize(int device)
{
    return 0;
}

/* --- memory --- */

/* Addresses, none twice, that no memory is at: a program has less than half of them. They
 * differ, since operations ask whether their operands overlap. */
static int allocate(dt_stream stream, size_t bytes, void **out)
{
    static uintptr_t next = (uintptr_t)1 << 62;
    const size_t room = (bytes + 63) / 64 * 64;
    if (bytes > (size_t)1 << 60)
        return dt_fail(DT_ERROR_DEVICE_MEMORY,
                       "a tensor of %zu bytes is too large, even without data; make it "
                       "smaller",
                       bytes);
    *out = (void *)__atomic_fetch_add(&next, room, __ATOMIC_RELAXED); /* NOLINT */
    return 0;
}

static void release(int device, void *data, size_t bytes) {}

static int memory_info(int device, size_t *out_free, size_t *out_total)
{
    *out_free = *out_total = 0;
    return 0;
}

static void memory_stats(int device, dt_memory_stats *out)
{
    memset(out, 0, sizeof *out);
}

static void reset_peaks(int device) {}

/* --- copies --- */

static int copy_to_device(dt_stream stream, void *target, const void *source,
                          size_t bytes)
{
    return 0;
}

static int copy_to_host(dt_stream stream, void *target, const void *source,
                        size_t bytes)
{
    return dt_fail(
        DT_ERROR_NOT_IMPLEMENTED,
        "a tensor on the device meta has no data that could be read or "
        "copied; make one with data by torch.empty_like(x, device='cpu'), or "
        "of a module by module.to_empty(device='cpu')");
}

static int copy_peer(dt_stream to, void *target, dt_stream from, const void *source,
                     size_t bytes)
{
    return copy_to_device(to, target, source, bytes);
}

/* --- work --- */

/* In sizeof alone: the arguments count as used. */
int dt_meta_given(dt_stream stream, ...);
#define WORK(name, parameters, arguments, ...)                                         \
    static int meta_##name parameters                                                  \
    {                                                                                  \
        (void)sizeof(dt_meta_given arguments);                                         \
        return 0;                                                                      \
    }
#define GPU_WORK(...)
#include "device/works.def"

static int unknown_size(dt_stream stream, const dt_nonzero_call *c)
{
    return dt_fail(
        DT_ERROR_NOT_IMPLEMENTED,
        "the shape of the result depends on the elements, and a tensor on the "
        "device meta has none; call it on the CPU or a GPU");
}

static int draw_nothing(dt_stream stream, const struct dt_dropout_mask_call *c)
{
    return 0;
}

static int refuse_launch(dt_stream stream, const struct dt_module_call *c)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "a kernel cannot be launched on the device meta; give a GPU");
}

const dt_backend dt_meta_backend = {
    .version = DT_BACKEND_VERSION,
    .name = "meta",
#define MEMBER(name) .name = name,
    DT_BACKEND_MEMBERS(MEMBER) MEMBER(copy_to_device) MEMBER(copy_to_host)
        MEMBER(copy_peer)
#undef MEMBER
#define WORK(name, ...) .name = meta_##name,
#define GPU_WORK(...)
#include "device/works.def"
            .nonzero_count = unknown_size,
    .nonzero_write = unknown_size,
    .dropout_mask = draw_nothing,
    .launch = refuse_launch,
    .halves = true,
};

static const dt_backend *open_meta(char why[DT_WHY_TEXT], void **library)
{
    return &dt_meta_backend;
}

/* NOLINTEND(misc-unused-parameters) */

const dt_device_row dt_meta_row = {
    .name = "meta",
    .title = "meta",
    .without = "",
    .single = true,
    .no_data = true,
    .open = open_meta,
};
