/* Storages that saved tensors ask for instead of keeping them. */
#include "autograd/recall.h"

#include <stdlib.h>

_Thread_local dt_recall *dt_recalls;

int dt_recall_begin(const dt_tensor *t, dt_recall_fn bring,
                    void (*free_context)(void *), void *context)
{
    dt_recall *recall = calloc(1, sizeof *recall);
    if (!recall)
        dt_fail(DT_ERROR_HOST_MEMORY, "no memory left to record a recall; free some");
    else
        recall->stand_in = dt_storage_new(dt_tensor_device(t), 0);
    if (!recall || !recall->stand_in)
        goto fail;
    recall->references = 1;
    recall->storage = t->storage;
    recall->bytes = t->storage->bytes;
    recall->bring = bring;
    recall->free = free_context;
    recall->context = context;
    recall->next = dt_recalls;
    dt_recalls = recall;
    return 0;
fail:
    free(recall);
    free_context(context);
    return -1;
}

void dt_recall_end(void)
{
    dt_recall *recall = dt_recalls;
    dt_recalls = recall->next;
    recall->next = NULL;
    dt_recall_release(recall);
}

dt_recall *dt_recall_instead(dt_tensor *saved)
{
    for (dt_recall *recall = dt_recalls; recall; recall = recall->next) {
        if (recall->storage != saved->storage)
            continue;
        dt_storage_release(saved->storage);
        saved->storage = dt_storage_retain(recall->stand_in);
        dt_count_up(&recall->references);
        return recall;
    }
    return NULL;
}

int dt_recall_bring(const dt_recall *recall, dt_tensor *alias)
{
    dt_storage *storage = recall->bring(recall->context);
    if (!storage)
        return -1;
    if (storage->bytes < recall->bytes ||
        !dt_device_equal(storage->device, recall->stand_in->device)) {
        dt_fail(DT_ERROR_RUNTIME,
                "backward: a saved tensor of %zu bytes has come back with %zu, or on "
                "another device; give back what was saved",
                recall->bytes, storage->bytes);
        dt_storage_release(storage);
        return -1;
    }
    dt_storage_release(alias->storage);
    alias->storage = storage;
    return 0;
}

void dt_recall_release(dt_recall *recall)
{
    if (!recall || !dt_count_down(&recall->references))
        return;
    dt_storage_release(recall->stand_in);
    recall->free(recall->context);
    free(recall);
}
