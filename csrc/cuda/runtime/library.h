/* NVIDIA's libraries for GPUs: found and opened on first use, with a handle for each
 * device. */
#ifndef DT_CUDA_RUNTIME_LIBRARY_H
#define DT_CUDA_RUNTIME_LIBRARY_H

#include "cuda/runtime/graph.h"

/* CUDA's major version, which a library has to be for: that of this build's runtime. */
#define DT_CUDA_MAJOR (CUDART_VERSION / 1000)

typedef struct dt_library {
    const char *title;   /* "cuBLAS" */
    const char *purpose; /* what needs it */
    const char *stem;    /* "libcublas": its file is libcublas.so.NUMBER */
    int number;
    const char *package; /* "cublas": NVIDIA's Python package nvidia-cublas has it */
    /* "nvjitlink/libnvJitLink ...": packages and libraries that it needs, in the order in
     * which they need each other */
    const char *siblings;
    int allocation_failed; /* the status for lack of memory */
    bool numbered = false; /* its package for CUDA 13 has the number in its name, too */
    int version = 0;       /* 0 before the first use */
    bool loaded = false, missing = false;
    char path[1024] = ""; /* "" before it is opened */
} dt_library;

typedef struct dt_symbol {
    const char *name;
    void *function; /* address of the pointer to the function */
    bool optional;  /* NULL where an old library lacks it */
} dt_symbol;

/* Symbols of a table of functions, whose pointers the struct `functions` has: one, one of
 * newer libraries, and those of four element types. */
#define LIBRARY_FUNCTION(name, symbol, parameters)                                     \
    {#symbol, (void *)&functions.name, false},
#define LIBRARY_OPTIONAL(name, symbol, parameters)                                     \
    {#symbol, (void *)&functions.name, true},
#define LIBRARY_TYPED(name, s, d, c, z, parameters)                                    \
    {#s, (void *)&functions.name[0], false}, {#d, (void *)&functions.name[1], false},  \
        {#c, (void *)&functions.name[2], false},                                       \
        {#z, (void *)&functions.name[3], false},

/* Directories of Python packages, colon-separated, copied. Call once, before the
 * first use. */
void library_set_search(const char *directories);

/* A factor as a library reads it: a double where sums are doubles, else a float. */
struct LibraryScalar {
    LibraryScalar(bool is_wide, double number)
        : wide(number), single((float)number),
          at(is_wide ? (const void *)&wide : &single)
    {
    }
    LibraryScalar(const LibraryScalar &) = delete;
    double wide;
    float single;
    const void *at;
};

/* Looks up symbols in a handle of dlopen(). Returns the name of the first one that is missing
 * and not optional, or NULL. */
const char *library_lacks(void *opened, const dt_symbol *symbols, int count);

/* Opens the library, on the first call, and finds its functions. -1 after dt_fail,
 * which says what to install. */
int library_open(dt_library *library, const dt_symbol *symbols, int count);

template <int count>
const char *library_lacks(void *opened, const dt_symbol (&symbols)[count])
{
    return library_lacks(opened, symbols, count);
}

template <int count>
int library_open(dt_library *library, const dt_symbol (&symbols)[count])
{
    return library_open(library, symbols, count);
}

/* The same for a library that need not be there, which is looked for once: false, without
 * an error, where it is missing. */
template <int count>
bool library_found(dt_library *library, const dt_symbol (&symbols)[count])
{
    if (!library->missing && library_open(library, symbols)) {
        dt_error_clear();
        library->missing = true;
    }
    return !library->missing;
}

/* Fails with the status of a call; clears CUDA's last error. Returns -1. */
int library_fail(const dt_library *library, int status, const char *doing);

/* Whether a handle was not made for want of memory: a driver without any lets a library
 * say either. */
bool library_lacks_memory(const dt_library *library, int status);

/* Stores the status of make(), which makes something of the library's: if there was too
 * little memory, of a second call, with what the allocator caches given back. -1 after
 * dt_fail. */
template <class Make>
int library_make(const dt_library *library, int device, int *status, Make make)
{
    *status = make();
    if (!library_lacks_memory(library, *status))
        return 0;
    cudaGetLastError();
    if (dt_cuda_empty_cache(device))
        return -1;
    *status = make();
    return 0;
}

/* The library's handle for a device, set to the stream; NULL after dt_fail. The caller
 * gives each call its own workspace, so that streams may share a handle. Handles live as
 * long as the process. Creating one synchronizes, so it fails while a graph is captured:
 * see cublas_prepare(). DT_LOCK_LIBRARY_CALLS is held. */
template <class Handle, class Functions>
Handle library_handle(const dt_library *library, const Functions *functions,
                      dt_stream stream)
{
    static Handle made[DT_MAX_DEVICES];
    Handle handle = made[stream.device];
    int status = 0;
    if (!handle) {
        if (graphs_under_way()) {
            dt_fail(DT_ERROR_RUNTIME,
                    "%s cannot start while a graph is captured; call an operation that "
                    "uses it on cuda:%d before the capture",
                    library->title, stream.device);
            return nullptr;
        }
        if (library_make(library, stream.device, &status,
                         [&] { return functions->create(&handle); }))
            return nullptr;
    }
    if (!status)
        status = functions->set_stream(handle, (cudaStream_t)stream.handle);
    if (!status)
        return made[stream.device] = handle;
    if (handle && !made[stream.device])
        functions->destroy(handle);
    library_fail(library, status, "starting");
    return nullptr;
}

#endif
