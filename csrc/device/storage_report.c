/* The largest tensors of a device, in the message that its memory is used up. */
#include <inttypes.h>
#include <string.h>

#include "base/lock.h"
#include "device/memory_history.h"
#include "device/storage.h"

/* The number of groups that a report lists. */
#define LISTED 5

/* Live storages of one size, made for one dtype and shape. */
typedef struct group {
    dt_storage first;
    int64_t count;
} group;

static bool is_alike(const dt_storage *a, const dt_storage *b)
{
    return a->bytes == b->bytes && a->line == b->line &&
           a->asked.dtype == b->asked.dtype && a->asked.ndim == b->asked.ndim &&
           (a->asked.ndim == DT_ASKED_NOTHING ||
            !memcmp(a->asked.shape, b->asked.shape,
                    (size_t)a->asked.ndim * sizeof *a->asked.shape));
}

/* Counts the storage in its group if that is one of the largest, which come first. */
static void insert(group *list, const dt_storage *storage)
{
    int at = LISTED;
    for (int i = 0; i < LISTED && list[i].count; i++)
        if (is_alike(&list[i].first, storage)) {
            list[i].count++;
            return;
        }
    while (at && storage->bytes > list[at - 1].first.bytes)
        at--;
    if (at == LISTED)
        return;
    memmove(&list[at + 1], &list[at], (size_t)(LISTED - 1 - at) * sizeof *list);
    list[at] = (group){*storage, 1};
}

void dt_storages_append_largest(dt_device device, dt_storage *const *list)
{
    group largest[LISTED]; /* copies, because the lock is released before they are
                              printed */
    int64_t live = 0;
    memset(largest, 0, sizeof largest);
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    for (const dt_storage *s = *list; s; s = s->next) {
        live++;
        insert(largest, s);
    }
    dt_unlock(lock);
    char text[DT_DEVICE_TEXT], shape[DT_SHAPE_TEXT], line[DT_LINE_TEXT];
    dt_fail_append(" %" PRId64 " tensor%s alive on %s", live,
                   live == 1 ? "'s memory is" : "s' memories are",
                   dt_device_text(device, text));
    for (int i = 0; i < LISTED && largest[i].count; i++) {
        const dt_storage *s = &largest[i].first;
        dt_fail_append(i ? ", " : "; the largest: ");
        if (largest[i].count > 1)
            dt_fail_append("%" PRId64 " times ", largest[i].count);
        dt_fail_append("%.2f MiB", (double)s->bytes / (1 << 20));
        if (s->asked.ndim != DT_ASKED_NOTHING)
            dt_fail_append(
                " (%s %s)", dt_dtype_name((dt_dtype)s->asked.dtype),
                dt_shape_text(s->asked.ndim, s->asked.shape, shape, sizeof shape));
        if (*dt_activity_line_text(s->line, line))
            dt_fail_append(" of %s", line);
    }
    dt_fail_append(
        ". Free some (del x), use smaller batches, or move tensors to the CPU.");
    dt_device_properties properties;
    if (!dt_backend_of(device)->device_properties(device.index, &properties) &&
        properties.simulated)
        dt_fail_append(" A simulated GPU has 1 GiB, or what its card has, unless "
                       "PYDEVTENSOR_SIM_MEMORY or torch.cuda.simulate(memory='4G') "
                       "gives it more.");
}
