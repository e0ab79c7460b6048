#include "device/cuda_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gil.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "device/activity.h"
#include "device/memory_settings.h"
#include "device/race.h"

static struct {
    int simulated, virtual_devices; /* -1: use the environment */
    bool opened;                    /* successfully or not */
} chosen = {.simulated = -1, .virtual_devices = -1};

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

int dt_cuda_choose(bool simulated, const char *where, const char *text)
{
    int status = 0, count = count_from_text(where, text);
    if (count < 0)
        return -1;
    dt_lock(DT_LOCK_BACKENDS);
    if (chosen.opened) {
        status =
            dt_fail(DT_ERROR_RUNTIME,
                    "the GPUs of this process are already chosen, because a device was "
                    "used or counted; choose them first, right after the import");
    } else {
        *(simulated ? &chosen.simulated : &chosen.virtual_devices) = count;
    }
    dt_unlock(DT_LOCK_BACKENDS);
    return status;
}

/* A device count from the environment: 0 if unset, -1 after writing to why. */
static int count_from_environment(const char *name, char why[DT_WHY_TEXT])
{
    const char *text = getenv(name);
    if (!text || !*text)
        return 0;
    int count = count_from_text(name, text);
    if (count < 0) {
        snprintf(why, DT_WHY_TEXT, "%.900s.", dt_error_slot()->text);
        dt_error_clear();
    }
    return count;
}

/* The simulator holds its lock, which other threads take with the GIL. The work of a
 * simulated GPU is not recorded as the CPU's. */
#define OF_SIMULATOR(name, type)                                                       \
    static int name##_of_simulator(dt_stream stream, const type *call)                 \
    {                                                                                  \
        bool yielded = dt_gil_yield(false);                                            \
        int status = dt_registry_given.cpu->name(stream, call);                        \
        dt_gil_yield(yielded);                                                         \
        return status;                                                                 \
    }
OF_SIMULATOR(gemm, dt_gemm)
OF_SIMULATOR(convolution, struct dt_convolution)
OF_SIMULATOR(lapack, struct dt_lapack_call)

static void parallel_of_simulator(void (*task)(void *context, int64_t begin,
                                               int64_t end),
                                  void *context, int64_t count)
{
    bool yielded = dt_gil_yield(false);
    dt_registry_given.cpu->parallel(task, context, count, 1);
    dt_gil_yield(yielded);
}

static void *load(bool simulated, char why[DT_WHY_TEXT])
{
    const char *folder = dt_registry_given.libraries;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".",
             simulated ? "_cuda_sim.so" : "_cuda.so");
    if (access(path, R_OK)) {
        snprintf(why, DT_WHY_TEXT,
                 simulated
                     ? "This installation has no simulator (%s is missing): install "
                       "pydevtensor again."
                     : "This pydevtensor was built without CUDA: install NVIDIA's "
                       "compiler (nvcc) and build it again, or choose simulated GPUs "
                       "with PYDEVTENSOR_SIM_GPUS=2.%.0s",
                 path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(why, DT_WHY_TEXT,
                 "The CUDA part of pydevtensor does not load (%.600s): build it again "
                 "on this "
                 "machine.",
                 dlerror());
    return library;
}

static const dt_backend *open_chosen(char why[DT_WHY_TEXT], void **library)
{
    int simulated = chosen.simulated, virtual_devices = chosen.virtual_devices;
    chosen.opened = true;
    if (simulated < 0 &&
        (simulated = count_from_environment("PYDEVTENSOR_SIM_GPUS", why)) < 0)
        return NULL;
    if (virtual_devices < 0 &&
        (virtual_devices = count_from_environment("PYDEVTENSOR_VIRTUAL_GPUS", why)) < 0)
        return NULL;
    *library = load(simulated, why);
    if (!*library)
        return NULL;
    void *symbol = dlsym(*library, DT_BACKEND_OPEN_SYMBOL);
    dt_backend_open_fn open = NULL;
    memcpy(&open, &symbol,
           sizeof open); /* ISO C has no cast from object to function pointer */
    const char *packages = dt_registry_given.packages;
    dt_host host = {
        .version = DT_BACKEND_VERSION,
        .error_slot = dt_error_slot,
        .locks = dt_locks,
        .cpu_gemm = gemm_of_simulator,
        .cpu_convolution = convolution_of_simulator,
        .cpu_lapack = lapack_of_simulator,
        .cpu_parallel = parallel_of_simulator,
        .groups = dt_registry_given.cpu->groups,
        .interrupted = dt_interrupt_check,
        .line = dt_activity_line,
        .extents = dt_extents,
        .race = dt_race_found,
        .kernel_warning = dt_kernel_warning,
        .simulated_devices = simulated,
        .virtual_devices = virtual_devices,
        .library_directories = packages ? packages : "",
    };
    const dt_backend *backend = open ? open(&host) : NULL;
    if (backend && backend->version == DT_BACKEND_VERSION) {
        dt_memory_open_library(*library);
        return backend;
    }
    const dt_error *error = dt_error_slot();
    snprintf(why, DT_WHY_TEXT,
             error->code == DT_ERROR_VALUE /* a setting, which the message names */
                 ? "%.900s."
                 : "The CUDA part of pydevtensor does not start (%.600s): install "
                   "pydevtensor again.",
             error->code ? error->text : "its version differs");
    dt_error_clear();
    return NULL;
}

const dt_device_row dt_cuda_row = {
    .name = "cuda",
    .title = "CUDA",
    .without = "To continue without one, use device 'cpu' or try_gpu().",
    .streams = true,
    .open = open_chosen,
};
