#include "device/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "device/activity.h"
#include "device/cuda_library.h"
#include "device/device.h"
#include "device/meta.h"
#include "device/released.h"

static const dt_device_row cpu_row = {
    .name = "cpu", .title = "CPU", .without = "", .host_memory = true, .single = true};

/* A type of devices that PyTorch knows and nothing serves here. Programs name it, compare
 * with it, and then use another. */
#define ABSENT(number, name_, title_)                                                  \
    [DT_MAX_BACKENDS + (number)] =                                                     \
        &(const dt_device_row){.name = name_,                                          \
                               .title = title_,                                        \
                               .without = "Use the CPU, or GPUs of the type 'cuda'."}

const dt_device_row *dt_device_rows[DT_MAX_DEVICE_TYPES] = {
    [DT_CPU] = &cpu_row,
    [DT_CUDA] = &dt_cuda_row,
    [DT_META] = &dt_meta_row,
    ABSENT(0, "mps", "MPS"),
    ABSENT(1, "xpu", "XPU"),
    ABSENT(2, "hpu", "HPU"),
    ABSENT(3, "mtia", "MTIA"),
    ABSENT(4, "xla", "XLA"),
    ABSENT(5, "ipu", "IPU"),
    ABSENT(6, "vulkan", "Vulkan"),
    ABSENT(7, "privateuseone", "privateuseone"),
    [DT_RELEASED] = &dt_released_row,
};
const dt_backend *dt_backends[DT_MAX_DEVICE_TYPES];
dt_registry dt_registry_given;

static struct {
    bool opened; /* successfully or not */
    void *library;
    char why[DT_WHY_TEXT];
} states[DT_MAX_DEVICE_TYPES];

int dt_registry_start(const dt_backend *cpu, const char *libraries,
                      const char *packages)
{
    char *a = strdup(libraries), *b = strdup(packages);
    if (!a || !b) {
        free(a);
        free(b);
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the library directories");
    }
    dt_lock(DT_LOCK_BACKENDS);
    free(dt_registry_given.libraries);
    free(dt_registry_given.packages);
    dt_registry_given = (dt_registry){cpu, a, b};
    dt_backends[DT_CPU] = cpu;
    dt_backends[DT_RELEASED] = dt_released_backend();
    dt_unlock(DT_LOCK_BACKENDS);
    return 0;
}

int dt_registry_add(const dt_device_row *row)
{
    int type = 0;
    if (dt_device_type_find(row->name, strlen(row->name)) >= 0)
        return dt_fail(DT_ERROR_VALUE,
                       "there is a type of devices called %.40s already; give this one "
                       "another name",
                       row->name);
    while (type < DT_MAX_BACKENDS && dt_device_rows[type])
        type++;
    if (type == DT_MAX_BACKENDS)
        return dt_fail(DT_ERROR_RUNTIME,
                       "there is no room for devices of type %.40s: at most %d types "
                       "can be registered",
                       row->name, DT_MAX_BACKENDS);
    dt_device_rows[type] = row;
    return type;
}

/* In the text of each device that a program names, so without calls of the C library. */
static bool is_name(const char *known, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (known[i] != name[i])
            return false;
    return !known[length];
}

int dt_device_type_find(const char *name, size_t length)
{
    for (int type = 0; type < DT_RELEASED; type++)
        if (dt_device_rows[type] && is_name(dt_device_rows[type]->name, name, length))
            return type;
    return -1;
}

static void ensure(dt_device_type type)
{
    const dt_device_row *row = dt_device_rows[type];
    if (!row->open || __atomic_load_n(&states[type].opened, __ATOMIC_ACQUIRE))
        return;
    const dt_observer *const *observers = NULL;
    dt_lock(DT_LOCK_BACKENDS);
    if (!states[type].opened) {
        const dt_backend *backend = row->open(states[type].why, &states[type].library);
        dt_backends[type] = backend;
        observers = backend ? backend->observers : NULL;
        __atomic_store_n(&states[type].opened, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_BACKENDS);
    for (int i = 0; observers && i < 2; i++)
        if (observers[i])
            dt_observer_add(observers[i]);
}

const dt_backend *dt_backend_get(dt_device_type type)
{
    ensure(type);
    if (!dt_backends[type])
        dt_fail(DT_ERROR_RUNTIME, "there is no %s device. %s",
                dt_device_rows[type]->title, states[type].why);
    return dt_backends[type];
}

int dt_device_count(dt_device_type type)
{
    ensure(type);
    return dt_backends[type] ? dt_backends[type]->device_count() : 0;
}

const char *dt_device_why(dt_device_type type)
{
    ensure(type);
    return dt_backends[type] ? dt_backends[type]->why_unavailable() : states[type].why;
}

void *dt_device_library(dt_device_type type)
{
    ensure(type);
    return dt_backends[type] ? states[type].library : NULL;
}

char *dt_device_text(dt_device device, char *text)
{
    const char *name = dt_device_rows[(int)device.type]->name;
    if (dt_device_is_single(device))
        snprintf(text, DT_DEVICE_TEXT, "%s", name);
    else
        snprintf(text, DT_DEVICE_TEXT, "%s:%d", name, device.index);
    return text;
}

int dt_device_check(dt_device device)
{
    if (dt_device_is_cpu(device))
        return 0;
    const dt_device_type type = (dt_device_type)device.type;
    const dt_device_row *row = dt_device_rows[type];
    const int count = dt_device_count(type);
    if (device.index >= 0 && device.index < count)
        return 0;
    char text[DT_DEVICE_TEXT], last[DT_DEVICE_TEXT];
    dt_device_text(device, text);
    if (!count) {
        const char *why = dt_device_why(type);
        return dt_fail(DT_ERROR_RUNTIME,
                       "device %s cannot be used: there is no %s device. %s%s%s", text,
                       row->title, why, *why ? " " : "", row->without);
    }
    if (count == 1)
        return dt_fail(DT_ERROR_ACCELERATOR,
                       "device %s does not exist: this machine has 1 %s device; use "
                       "%s:0, that is index 0",
                       text, row->title, row->name);
    return dt_fail(DT_ERROR_ACCELERATOR,
                   "device %s does not exist: this machine has %d %s devices; use %s:0 "
                   "to %s",
                   text, count, row->title, row->name,
                   dt_device_text(dt_device_make(type, count - 1), last));
}
