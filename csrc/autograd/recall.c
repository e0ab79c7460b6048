/* Saved tensors that ask for their contents instead of keeping them. */
#include "autograd/recall.h"

#include <stdlib.h>

#include "autograd/variable.h"
#include "tensor/ops/copy.h"

_Thread_local dt_recall *dt_recalls;

/* Takes over context. NULL after dt_fail. */
static dt_recall *recall_new(dt_recall_fn bring, void (*free_context)(void *),
                             void *context)
{
    dt_recall *recall = calloc(1, sizeof *recall);
    if (!recall) {
        free_context(context);
        dt_fail(DT_ERROR_HOST_MEMORY, "no memory left to record a recall; free some");
        return NULL;
    }
    recall->references = 1;
    recall->bring = bring;
    recall->free = free_context;
    recall->context = context;
    return recall;
}

static int stand_in_for(dt_recall *recall, const dt_tensor *t)
{
    recall->stand_in = dt_storage_new(dt_tensor_device(t), 0);
    return recall->stand_in ? 0 : -1;
}

static void begin_recall(dt_recall *recall)
{
    recall->next = dt_recalls;
    dt_recalls = recall;
}

int dt_recall_begin(const dt_tensor *t, dt_recall_fn bring,
                    void (*free_context)(void *), void *context)
{
    dt_recall *recall = recall_new(bring, free_context, context);
    if (!recall || stand_in_for(recall, t) < 0) {
        dt_recall_release(recall);
        return -1;
    }
    recall->storage = t->storage;
    recall->bytes = t->storage->bytes;
    begin_recall(recall);
    return 0;
}

int dt_recall_begin_hooks(dt_pack_fn pack, dt_recall_fn bring,
                          void (*free_context)(void *), void *context)
{
    dt_recall *recall = recall_new(bring, free_context, context);
    if (!recall)
        return -1;
    recall->pack = pack;
    begin_recall(recall);
    return 0;
}

void dt_recall_end(void)
{
    dt_recall *recall = dt_recalls;
    dt_recalls = recall->next;
    recall->next = NULL;
    dt_recall_release(recall);
}

/* The own recall of t, which hooks have packed. NULL after dt_fail. */
static dt_recall *packed(dt_recall *hooks, const dt_tensor *saved, const dt_tensor *t)
{
    const unsigned version = saved->storage->version;
    const bool mode = dt_grad_enabled;
    dt_count_up(&hooks->references); /* pack may end them */
    dt_grad_enabled = false;
    void *context = hooks->pack(hooks->context, t);
    dt_grad_enabled = mode;
    dt_recall *recall = context ? recall_new(hooks->bring, hooks->free, context) : NULL;
    dt_recall_release(hooks);
    if (recall && saved->storage->version != version) {
        dt_fail(DT_ERROR_RUNTIME,
                "saved_tensors_hooks: pack_hook has modified its argument in place; "
                "let it write to a clone()");
    } else if (recall && !stand_in_for(recall, saved)) {
        return recall;
    }
    dt_recall_release(recall);
    return NULL;
}

int dt_recall_instead(dt_tensor *saved, const dt_tensor *t, dt_recall **found)
{
    for (dt_recall *recall = dt_recalls; recall; recall = recall->next) {
        if (recall->pack)
            recall = *found = packed(recall, saved, t);
        else if (recall->storage != saved->storage)
            continue;
        else
            dt_count_up(&recall->references), *found = recall;
        if (!recall)
            return -1;
        dt_storage_release(saved->storage);
        saved->storage = dt_storage_retain(recall->stand_in);
        return 0;
    }
    *found = NULL;
    return 0;
}

/* Gives the alias the storage of a larger tensor. */
static int bring_storage(const dt_recall *recall, dt_tensor *alias)
{
    DT_LOCAL(found);
    if (recall->bring(recall->context, &found) < 0)
        return -1;
    if (found.storage->bytes < recall->bytes ||
        !dt_device_equal(found.storage->device, recall->stand_in->device))
        return dt_fail(DT_ERROR_RUNTIME,
                       "backward: a saved tensor of %zu bytes has come back with %zu, "
                       "or on another device; give back what was saved",
                       recall->bytes, found.storage->bytes);
    dt_storage_release(alias->storage);
    alias->storage = dt_storage_retain(found.storage);
    return 0;
}

int dt_recall_bring(dt_recall *recall, dt_tensor *alias)
{
    if (recall->storage)
        return bring_storage(recall, alias);
    dt_tensor *found = &recall->found;
    if (!found->storage && recall->bring(recall->context, found) < 0)
        return -1;
    if (!dt_device_equal(dt_tensor_device(found), dt_tensor_device(alias)) ||
        !dt_shape_equal(found->ndim, found->shape, alias->ndim, alias->shape)) {
        char is[DT_SHAPE_TEXT], was[DT_SHAPE_TEXT], here[DT_DEVICE_TEXT],
            there[DT_DEVICE_TEXT];
        return dt_fail(
            DT_ERROR_RUNTIME,
            "backward: unpack_hook gave a Tensor of shape %s on %s, and pack_hook got "
            "one of shape %s on %s; give back what was packed",
            dt_shape_text(found->ndim, found->shape, is, sizeof is),
            dt_device_text(dt_tensor_device(found), here),
            dt_shape_text(alias->ndim, alias->shape, was, sizeof was),
            dt_device_text(dt_tensor_device(alias), there));
    }
    const dt_dtype dtype = (dt_dtype)alias->dtype; /* formulas rely on it */
    dt_tensor_clear(alias);
    if (found->dtype != dtype)
        return dt_to(alias, found, dtype, dt_tensor_device(found));
    dt_tensor_alias(alias, found);
    return 0;
}

void dt_recall_release(dt_recall *recall)
{
    if (!recall || !dt_count_down(&recall->references))
        return;
    if (recall->stand_in)
        dt_storage_release(recall->stand_in);
    dt_tensor_clear(&recall->found);
    recall->free(recall->context);
    free(recall);
}
