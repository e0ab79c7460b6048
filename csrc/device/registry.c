#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gil.h"
#include "base/lock.h"
#include "device/activity.h"
#include "device/race.h"

const dt_backend *dt_backends[DT_NDEVICE_TYPES];

#define WHY_TEXT 1024
static struct {
    const dt_backend *cpu;
    char *libraries, *packages;
    int simulated, virtual_devices; /* -1: use the environment */
    bool opened;                    /* open_cuda has run, successfully or not */
    void *library;
    char why[WHY_TEXT];
} cuda = {.simulated = -1, .virtual_devices = -1};

static const char *const type_names[] = {
#define DEVICE_TYPE(ID, name) #name,
    DT_DEVICE_TYPES(DEVICE_TYPE)
#undef DEVICE_TYPE
};

char *dt_device_text(dt_device device, char *text)
{
    if (device.type == DT_CPU)
        snprintf(text, DT_DEVICE_TEXT, "cpu");
    else
        snprintf(text, DT_DEVICE_TEXT, "%s:%d", type_names[(int)device.type],
                 device.index);
    return text;
}

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
    free(cuda.libraries);
    free(cuda.packages);
    cuda.libraries = a;
    cuda.packages = b;
    dt_backends[DT_CPU] = cuda.cpu = cpu;
    dt_unlock(DT_LOCK_BACKENDS);
    return 0;
}

/* The number in text, given as `where`: -1 after dt_fail if it is not a number of
 * GPUs. */
static int count_from_text(const char *where, const char *text)
{
    char *end = NULL;
    errno = 0;
    long count = strtol(text, &end, 10);
    if (errno || end == text || *end || count < 0 || count > DT_MAX_SIMULATED)
        return dt_fail(DT_ERROR_VALUE,
                       "%s is %.40s; give a number of GPUs from 0 to %d", where, text,
                       DT_MAX_SIMULATED);
    return (int)count;
}

int dt_registry_choose(bool simulated, const char *where, const char *text)
{
    int status = 0, count = count_from_text(where, text);
    if (count < 0)
        return -1;
    dt_lock(DT_LOCK_BACKENDS);
    if (cuda.opened) {
        status =
            dt_fail(DT_ERROR_RUNTIME,
                    "the GPUs of this process are already chosen, because a device was "
                    "used or counted; choose them first, right after the import");
    } else {
        *(simulated ? &cuda.simulated : &cuda.virtual_devices) = count;
    }
    dt_unlock(DT_LOCK_BACKENDS);
    return status;
}

/* A device count from the environment: 0 if unset, -1 after writing cuda.why. */
static int count_from_environment(const char *name)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return 0;
    int count = count_from_text(name, text);
    if (count < 0) {
        snprintf(cuda.why, sizeof cuda.why, "%.900s.", dt_error_slot()->text);
        dt_error_clear();
    }
    return count;
}

/* The simulator holds its lock, which other threads take with the GIL. */
static int gemm_of_simulator(dt_stream stream, const dt_gemm *gemm)
{
    bool yielded = dt_gil_yield(false);
    /* Not that of dt_backends: the work of a simulated GPU is not recorded as the
     * CPU's. */
    int status = cuda.cpu->gemm(stream, gemm);
    dt_gil_yield(yielded);
    return status;
}

static int lapack_of_simulator(dt_stream stream, const struct dt_lapack_call *call)
{
    bool yielded = dt_gil_yield(false);
    int status = cuda.cpu->lapack(stream, call);
    dt_gil_yield(yielded);
    return status;
}

/* Loads the chosen backend. On failure, cuda.why says what is wrong. */
static const dt_backend *open_cuda(void)
{
    int simulated = cuda.simulated, virtual_devices = cuda.virtual_devices;
    if (simulated < 0 &&
        (simulated = count_from_environment("PYDEVTENSOR_SIM_GPUS")) < 0)
        return NULL;
    if (virtual_devices < 0 &&
        (virtual_devices = count_from_environment("PYDEVTENSOR_VIRTUAL_GPUS")) < 0)
        return NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", cuda.libraries ? cuda.libraries : ".",
             simulated ? "_cuda_sim.so" : "_cuda.so");
    if (access(path, R_OK)) {
        snprintf(cuda.why, sizeof cuda.why,
                 simulated
                     ? "This installation has no simulator (%s is missing): install "
                       "pydevtensor again."
                     : "This pydevtensor was built without CUDA: install NVIDIA's "
                       "compiler (nvcc) and build it again, or choose simulated GPUs "
                       "with PYDEVTENSOR_SIM_GPUS=2.%.0s",
                 path);
        return NULL;
    }
    cuda.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!cuda.library) {
        snprintf(cuda.why, sizeof cuda.why,
                 "The CUDA part of pydevtensor does not load (%.600s): build it again "
                 "on this "
                 "machine.",
                 dlerror());
        return NULL;
    }
    void *symbol = dlsym(cuda.library, DT_BACKEND_OPEN_SYMBOL);
    dt_backend_open_fn open = NULL;
    memcpy(&open, &symbol,
           sizeof open); /* ISO C has no cast from object to function pointer */
    dt_host host = {
        .version = DT_BACKEND_VERSION,
        .error_slot = dt_error_slot,
        .locks = dt_locks,
        .cpu_gemm = gemm_of_simulator,
        .cpu_lapack = lapack_of_simulator,
        .place = dt_activity_place,
        .extents = dt_extents,
        .race = dt_race_found,
        .simulated_devices = simulated,
        .virtual_devices = virtual_devices,
        .library_directories = cuda.packages ? cuda.packages : "",
    };
    const dt_backend *backend = open ? open(&host) : NULL;
    if (!backend || backend->version != DT_BACKEND_VERSION) {
        const dt_error *error = dt_error_slot();
        snprintf(cuda.why, sizeof cuda.why,
                 error->code == DT_ERROR_VALUE /* a setting, which the message names */
                     ? "%.900s."
                     : "The CUDA part of pydevtensor does not start (%.600s): install "
                       "pydevtensor again.",
                 error->code ? error->text : "its version differs");
        dt_error_clear();
        return NULL;
    }
    return backend;
}

static void ensure_cuda(void)
{
    if (__atomic_load_n(&cuda.opened, __ATOMIC_ACQUIRE))
        return;
    const dt_observer *const *observers = NULL;
    dt_lock(DT_LOCK_BACKENDS);
    if (!cuda.opened) {
        const dt_backend *backend = open_cuda();
        dt_backends[DT_CUDA] = backend;
        observers = backend ? backend->observers : NULL;
        __atomic_store_n(&cuda.opened, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_BACKENDS);
    for (int i = 0; observers && i < 2; i++)
        if (observers[i])
            dt_observer_add(observers[i]);
}

const dt_backend *dt_backend_get(dt_device_type type)
{
    if (type == DT_CPU)
        return dt_backends[DT_CPU];
    ensure_cuda();
    if (!dt_backends[DT_CUDA])
        dt_fail(DT_ERROR_RUNTIME, "there is no CUDA device. %s", cuda.why);
    return dt_backends[DT_CUDA];
}

int dt_device_count(dt_device_type type)
{
    if (type == DT_CPU)
        return 1;
    ensure_cuda();
    return dt_backends[DT_CUDA] ? dt_backends[DT_CUDA]->device_count() : 0;
}

const char *dt_cuda_why(void)
{
    ensure_cuda();
    return dt_backends[DT_CUDA] ? dt_backends[DT_CUDA]->why_unavailable() : cuda.why;
}

int dt_device_check(dt_device device)
{
    if (device.type == DT_CPU)
        return 0;
    int count = dt_device_count(DT_CUDA);
    if (device.index >= 0 && device.index < count)
        return 0;
    char text[DT_DEVICE_TEXT];
    if (!count) {
        const char *why = dt_cuda_why();
        return dt_fail(DT_ERROR_RUNTIME,
                       "device %s cannot be used: there is no CUDA device. %s%sTo "
                       "continue without one, use device 'cpu' or try_gpu().",
                       dt_device_text(device, text), why, *why ? " " : "");
    }
    return dt_fail(
        DT_ERROR_ACCELERATOR,
        "device %s does not exist: this machine has %d CUDA device%s; use cuda:0%s%d",
        dt_device_text(device, text), count, count == 1 ? "" : "s",
        count == 1 ? ", that is index " : " to cuda:", count - 1);
}

void *dt_registry_cuda_library(void)
{
    ensure_cuda();
    return dt_backends[DT_CUDA] ? cuda.library : NULL;
}
