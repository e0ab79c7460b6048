#include "autograd/autocast_cache.h"

#include <stdlib.h>

#include "autograd/recall.h"
#include "autograd/variable.h"
#include "device/graph.h"
#include "device/stream.h"

typedef struct entry {
    dt_tensor parameter;
    unsigned version; /* of the parameter's storage when it was cast */
    bool recorded;    /* gradients flow through the cast */
    void *stream;     /* that the cast was queued on */
    dt_tensor cast;
} entry;

static _Thread_local struct {
    entry *entries;
    int count, room;
} kept;

static void drop(int i)
{
    entry old = kept.entries[i];
    kept.entries[i] = kept.entries[--kept.count];
    /* Releasing may run Python code, which may come here. */
    dt_tensor_clear(&old.cast);
    dt_tensor_clear(&old.parameter);
}

bool dt_autocast_cache_takes(const dt_tensor *t)
{
    const dt_variable *v = dt_variable_of(t);
    return v && v->requires_grad && !v->base && t->dtype == DT_FLOAT32 && !dt_recalls &&
           !dt_graph_is_capturing(dt_tensor_device(t));
}

bool dt_autocast_cache_find(dt_tensor *out, const dt_tensor *t, dt_dtype dtype)
{
    for (int i = 0; i < kept.count; i++) {
        const entry *e = &kept.entries[i];
        if (e->parameter.history != t->history || e->cast.dtype != dtype ||
            e->recorded != dt_recording(t) ||
            e->stream != dt_stream_current(dt_tensor_device(t)).handle)
            continue;
        if (e->version == t->storage->version &&
            dt_tensor_is_same_view(&e->parameter, t)) {
            dt_variable_alias(out, &e->cast);
            return true;
        }
        drop(i);
        return false;
    }
    return false;
}

/* Makes room for one more, if need be by dropping parameters that were freed. */
static int make_room(void)
{
    if (kept.count < kept.room)
        return 0;
    for (int i = kept.count - 1; i >= 0; i--)
        if (i < kept.count && kept.entries[i].parameter.storage->references == 1)
            drop(i);
    if (kept.count < kept.room)
        return 0;
    int room = kept.room ? 2 * kept.room : 16;
    entry *longer = realloc(kept.entries, (size_t)room * sizeof *longer);
    if (!longer)
        return dt_variable_no_memory();
    kept.entries = longer;
    kept.room = room;
    return 0;
}

int dt_autocast_cache_keep(const dt_tensor *t, const dt_tensor *cast)
{
    if (make_room() < 0)
        return -1;
    entry *e = &kept.entries[kept.count++];
    e->version = t->storage->version;
    e->recorded = dt_recording(t);
    e->stream = dt_stream_current(dt_tensor_device(t)).handle;
    dt_variable_alias(&e->parameter, t);
    dt_variable_alias(&e->cast, cast);
    return 0;
}

void dt_autocast_cache_clear(void)
{
    while (kept.count > 0)
        drop(kept.count - 1);
    free(kept.entries);
    kept.entries = NULL;
    kept.room = 0;
}
