#include "cuda/runtime/cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"

static struct {
    char *directories;
    dt_cublas functions;
    bool loaded;
    char path[1024];
} library = {nullptr, {}, false, ""};

void cublas_set_search(const char *directories)
{
    dt_lock(DT_LOCK_CUBLAS);
    free(library.directories);
    library.directories = strdup(directories ? directories : "");
    dt_unlock(DT_LOCK_CUBLAS);
}

const char *cublas_path(void)
{
    return library.path;
}

#ifdef DT_SIMULATED

extern const dt_cublas sim_cublas; /* sim/blas.cpp */

const dt_cublas *cublas_get(void)
{
    snprintf(library.path, sizeof library.path, "simulated");
    return &sim_cublas;
}

#else

/* The library's version is the major version of the runtime of this build. */
#define MAJOR (CUDART_VERSION / 1000)

static void *try_open(const char *path, int flags)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (handle)
        snprintf(library.path, sizeof library.path, "%s", path);
    return handle;
}

static void *try_folder(const char *folder, size_t length, const char *under,
                        const char *name)
{
    char path[1024];
    if (!length || snprintf(path, sizeof path, "%.*s/%s/%s", (int)length, folder, under,
                            name) >= (int)sizeof path)
        return nullptr;
    return try_open(path, 0);
}

static void *find(void)
{
    char name[64];
    snprintf(name, sizeof name, "libcublas.so.%d", MAJOR);
    void *handle = try_open(name, RTLD_NOLOAD);
    char package[32];
    snprintf(package, sizeof package, "nvidia/cu%d/lib", MAJOR);
    for (const char *at = library.directories; !handle && at && *at;) {
        size_t length = strcspn(at, ":");
        handle = try_folder(at, length, package, name);
        if (!handle)
            handle = try_folder(at, length, "nvidia/cublas/lib", name);
        at += length + (at[length] == ':');
    }
    const char *conda = getenv("CONDA_PREFIX");
    if (!handle && conda)
        handle = try_folder(conda, strlen(conda), "lib", name);
    if (!handle)
        handle = try_open(name, 0);
    static const char *const homes[] = {"CUDA_PATH", "CUDA_HOME"};
    for (const char *home : homes) {
        const char *folder = getenv(home);
        if (!handle && folder)
            handle = try_folder(folder, strlen(folder), "lib64", name);
    }
    static const char usual[] = "/usr/local/cuda";
    if (!handle)
        handle = try_folder(usual, sizeof usual - 1, "lib64", name);
    if (!handle)
        dt_fail(
            DT_ERROR_RUNTIME,
            "matrix products on a GPU need cuBLAS (%s), which was not found; install "
            "it with pip install 'pydevtensor[cuda%d]', or with the CUDA toolkit",
            name, MAJOR);
    return handle;
}

static int load(void)
{
    void *handle = find();
    if (!handle)
        return -1;
#define FUNCTION(name, symbol, parameters)                                             \
    {                                                                                  \
        void *found = dlsym(handle, #symbol);                                          \
        if (!found)                                                                    \
            return dt_fail(                                                            \
                DT_ERROR_RUNTIME,                                                      \
                "the cuBLAS at %s has no function %s; install the version for "        \
                "CUDA %d",                                                             \
                library.path, #symbol, MAJOR);                                         \
        memcpy(&library.functions.name, &found, sizeof found);                         \
    }
    DT_CUBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return 0;
}

const dt_cublas *cublas_get(void)
{
    int status = 0;
    if (__atomic_load_n(&library.loaded, __ATOMIC_ACQUIRE))
        return &library.functions;
    dt_lock(DT_LOCK_CUBLAS);
    if (!library.loaded) {
        status = load();
        if (!status)
            __atomic_store_n(&library.loaded, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_CUBLAS);
    return status ? nullptr : &library.functions;
}

#endif
