#include "cuda/runtime/nvml.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/library.h"

#ifdef DT_SIMULATED
extern const dt_nvml sim_nvml; /* sim/device.cpp */

static bool open_nvml(dt_nvml &functions)
{
    functions = sim_nvml;
    return true;
}
#else
static bool open_nvml(dt_nvml &functions)
{
    const dt_symbol symbols[] = {DT_NVML_FUNCTIONS(LIBRARY_FUNCTION)};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library && !library_lacks(library, symbols);
}
#endif

/* How many of `count` GPUs the list leaves: those before the first number that is out of
 * range. 0 if it is not a list of different numbers. */
static int count_visible(const char *text, int count)
{
    uint64_t seen = 0;
    int used = 0;
    if (!text)
        return count;
    for (char *end = nullptr;; text = end + 1, used++) {
        long gpu = strtol(text, &end, 10);
        if (end == text || (*end && *end != ','))
            return 0;
        if (gpu < 0 || gpu >= count)
            return used;
        if (gpu >= 64 || seen >> gpu & 1)
            return 0;
        seen |= (uint64_t)1 << gpu;
        if (!*end)
            return used + 1;
    }
}

static int count_usable(const dt_nvml *nvml, bool (*runs_on)(int capability),
                        const char *visible)
{
    int driver = 0;
    unsigned count = 0;
    if (nvml->driver_version(&driver) || driver / 1000 < CUDART_VERSION / 1000 ||
        nvml->count(&count))
        return 0;
    for (unsigned i = 0; i < count; i++) {
        dt_nvml_device gpu;
        int major = 0, minor = 0;
        unsigned divided = 0, pending = 0;
        if (nvml->device(i, &gpu) || nvml->capability(gpu, &major, &minor) ||
            !runs_on(10 * major + minor))
            return 0;
        /* Fails for a GPU that cannot be divided. */
        if (!nvml->mig_mode(gpu, &divided, &pending) && divided)
            return 0;
    }
    return count_visible(visible, (int)count);
}

int nvml_count(bool (*runs_on)(int capability), const char *visible)
{
    dt_nvml nvml;
    if (!open_nvml(nvml) || nvml.init())
        return 0;
    int count = count_usable(&nvml, runs_on, visible);
    nvml.shutdown();
    return count;
}
