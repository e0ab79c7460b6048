#include "cuda/runtime/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *search;

void library_set_search(const char *directories)
{
    dt_lock(DT_LOCK_LIBRARIES);
    free(search);
    search = strdup(directories ? directories : "");
    dt_unlock(DT_LOCK_LIBRARIES);
}

static void *try_open(dt_library *library, const char *path, int flags)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (handle)
        snprintf(library->path, sizeof library->path, "%s", path);
    return handle;
}

/* NVIDIA's packages for CUDA 12 have a folder each, and a library finds those that it
 * needs in the others' only if they are loaded before. */
static void load_siblings(const dt_library *library, const char *folder, size_t length)
{
    for (const char *at = library->siblings; *at;) {
        char path[1024];
        int package = (int)strcspn(at, "/"), whole = (int)strcspn(at, " ");
        int written =
            snprintf(path, sizeof path, "%.*s/nvidia/%.*s/lib%.*s.so.%d", (int)length,
                     folder, package, at, whole - package, at + package, DT_CUDA_MAJOR);
        if (written < (int)sizeof path)
            dlopen(path, RTLD_NOW | RTLD_LOCAL); /* it stays */
        at += whole + (at[whole] == ' ');
    }
}

static void *try_folder(dt_library *library, const char *folder, size_t length,
                        const char *under, const char *name)
{
    char path[1024];
    if (!length || snprintf(path, sizeof path, "%.*s/%s/%s", (int)length, folder, under,
                            name) >= (int)sizeof path)
        return nullptr;
    return try_open(library, path, 0);
}

static void *find(dt_library *library)
{
    char name[64];
    snprintf(name, sizeof name, "%s.so.%d", library->stem, library->number);
    void *handle = try_open(library, name, RTLD_NOLOAD);
    /* The packages for CUDA 13 share a folder, those for CUDA 12 have one each. */
    char shared[32], own[32];
    snprintf(shared, sizeof shared, "nvidia/cu%d/lib", DT_CUDA_MAJOR);
    snprintf(own, sizeof own, "nvidia/%s/lib", library->package);
    for (char *dash; (dash = strchr(own, '-'));)
        *dash = '_'; /* as packages are imported */
    for (const char *at = search; !handle && at && *at;) {
        size_t length = strcspn(at, ":");
        handle = try_folder(library, at, length, shared, name);
        if (!handle) {
            load_siblings(library, at, length);
            handle = try_folder(library, at, length, own, name);
        }
        at += length + (at[length] == ':');
    }
    const char *conda = getenv("CONDA_PREFIX");
    if (!handle && conda)
        handle = try_folder(library, conda, strlen(conda), "lib", name);
    if (!handle)
        handle = try_open(library, name, 0);
    static const char *const homes[] = {"CUDA_PATH", "CUDA_HOME"};
    for (const char *home : homes) {
        const char *folder = getenv(home);
        if (!handle && folder)
            handle = try_folder(library, folder, strlen(folder), "lib64", name);
    }
    static const char usual[] = "/usr/local/cuda";
    if (!handle)
        handle = try_folder(library, usual, sizeof usual - 1, "lib64", name);
    if (!handle)
        dt_fail(DT_ERROR_RUNTIME,
                "%s on a GPU need %s (%s), which was not found; install it with pip "
                "install nvidia-%s%s, or with the CUDA toolkit",
                library->purpose, library->title, name, library->package,
                DT_CUDA_MAJOR == 12 ? "-cu12"
                : library->numbered ? "-cu13"
                                    : "");
    return handle;
}

const char *library_lacks(void *opened, const dt_symbol *symbols, int count)
{
    for (int i = 0; i < count; i++) {
        void *found = dlsym(opened, symbols[i].name);
        if (!found && !symbols[i].optional)
            return symbols[i].name;
        memcpy(symbols[i].function, &found, sizeof found);
    }
    return nullptr;
}

static int load(dt_library *library, const dt_symbol *symbols, int count)
{
    void *handle = find(library);
    if (!handle)
        return -1;
    const char *lacks = library_lacks(handle, symbols, count);
    return lacks
               ? dt_fail(
                     DT_ERROR_RUNTIME,
                     "the %s at %s has no function %s; install the version for CUDA %d",
                     library->title, library->path, lacks, DT_CUDA_MAJOR)
               : 0;
}

int library_open(dt_library *library, const dt_symbol *symbols, int count)
{
    int status = 0;
    if (__atomic_load_n(&library->loaded, __ATOMIC_ACQUIRE))
        return 0;
    dt_lock(DT_LOCK_LIBRARIES);
    if (!library->loaded) {
        status = load(library, symbols, count);
        if (!status)
            __atomic_store_n(&library->loaded, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_LIBRARIES);
    return status;
}

bool library_lacks_memory(const dt_library *library, int status)
{
    const int not_initialized = 1;
    return status == library->allocation_failed || status == not_initialized;
}

int library_fail(const dt_library *library, int status, const char *doing)
{
    cudaGetLastError(); /* the library leaves it to be found by the next call */
    return dt_fail(DT_ERROR_ACCELERATOR, "%s failed while %s: status %d%s",
                   library->title, doing, status,
                   library_lacks_memory(library, status)
                       ? " (no memory for its workspace); free tensors of this device"
                       : "; look for the cause in the operations before this one");
}
