#include "device/released.h"

#include "device/meta.h"

/* Most functions do not read their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* NOLINTBEGIN(misc-unused-parameters) */

int dt_released_refuse(void)
{
    return dt_fail(
        DT_ERROR_RUNTIME,
        "the tensor's storage has no memory, since it was resized to 0 bytes; "
        "give it some with x.untyped_storage().resize_(bytes) and write the "
        "elements before you use them");
}

static int allocate(dt_stream stream, size_t bytes, void **out)
{
    return dt_released_refuse();
}

static int copy_from_host(dt_stream stream, void *target, const void *source,
                          size_t bytes)
{
    return dt_released_refuse();
}

static int copy_peer(dt_stream to, void *target, dt_stream from, const void *source,
                     size_t bytes)
{
    return dt_released_refuse();
}

/* In sizeof alone: the arguments count as used. */
int dt_released_given(dt_stream stream, ...);
#define WORK(name, parameters, arguments, ...)                                         \
    static int refuse_##name parameters                                                \
    {                                                                                  \
        (void)sizeof(dt_released_given arguments);                                     \
        return dt_released_refuse();                                                   \
    }
#include "device/works.def"

/* NOLINTEND(misc-unused-parameters) */

const dt_backend *dt_released_backend(void)
{
    static dt_backend own;
    own = dt_meta_backend;
    own.allocate = allocate;
    own.copy_to_device = own.copy_to_host = copy_from_host;
    own.copy_peer = copy_peer;
#define WORK(name, ...) own.name = refuse_##name;
#include "device/works.def"
    return &own;
}

const dt_device_row dt_released_row = {
    .name = "no device", .title = "", .without = "", .single = true, .no_data = true};
