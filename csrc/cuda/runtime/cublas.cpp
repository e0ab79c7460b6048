#include "cuda/runtime/cublas.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

dt_library cublas_library = {
    "cuBLAS", "matrix products",     "libcublas", DT_CUDA_MAJOR, "cublas",
    "",       DT_CUBLAS_ALLOC_FAILED};

#ifdef DT_SIMULATED

extern const dt_cublas sim_cublas; /* sim/blas.cpp */

const dt_cublas *cublas_get(void)
{
    snprintf(cublas_library.path, sizeof cublas_library.path, "simulated");
    return &sim_cublas;
}

#else

const dt_cublas *cublas_get(void)
{
    static dt_cublas functions;
    static const dt_symbol symbols[] = {
        DT_CUBLAS_FUNCTIONS(LIBRARY_FUNCTION, LIBRARY_TYPED)};
    return library_open(&cublas_library, symbols) ? nullptr : &functions;
}

#endif

/* --- workspaces --- */

/* The bytes that CUBLAS_WORKSPACE_CONFIG asks for, in the form :KIBIBYTES:COUNT, once or
 * several times; -1 without such a pair. */
static int64_t configured(const char *text)
{
    const long most = 1 << 20; /* of each number: their product fits */
    int64_t bytes = -1;
    while (text && (text = strchr(text, ':'))) {
        char *end;
        if (!isdigit((unsigned char)*++text))
            continue;
        const int64_t kibibytes = std::min(strtol(text, &end, 10), most);
        text = end;
        if (*end != ':' || !isdigit((unsigned char)end[1]))
            continue;
        const int64_t count = std::min(strtol(end + 1, &end, 10), most);
        text = end;
        bytes = (bytes < 0 ? 0 : bytes) + (kibibytes << 10) * count;
    }
    return bytes;
}

/* PyTorch's default: what NVIDIA recommends for Hopper and Blackwell, and for others what
 * :4096:2:16:8 is. The product that stands in for cuBLAS needs none. */
static size_t usual(int device)
{
#ifdef DT_SIMULATED
    (void)device;
    return (size_t)64 << 10;
#else
    dt_device_properties properties;
    if (dt_cuda_device_properties(device, &properties)) {
        dt_error_clear();
        properties.major = 0;
    }
    const bool large = properties.major == 9 || properties.major == 10;
    return large ? (size_t)32 << 20 : ((size_t)8 << 20) + ((size_t)128 << 10);
#endif
}

/* DT_LOCK_LIBRARY_CALLS is held. */
static size_t workspace_bytes(int device)
{
    static const int64_t wanted = configured(getenv("CUBLAS_WORKSPACE_CONFIG"));
    static size_t known[DT_MAX_DEVICES];
    if (wanted >= 0)
        return (size_t)wanted;
    if (!known[device])
        known[device] = usual(device);
    return known[device];
}

void cublas_prepare(dt_stream stream)
{
    const dt_cublas *cublas = cublas_get();
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    if (!cublas || !library_handle<dt_cublas_handle>(&cublas_library, cublas, stream))
        dt_error_clear(); /* a product in the capture says it */
}

/* A workspace of 0 bytes is not NULL, for which cuBLAS would take memory of its own. */
CublasHandle::CublasHandle(const dt_cublas *cublas, dt_stream stream)
    : handle(library_handle<dt_cublas_handle>(&cublas_library, cublas, stream)),
      bytes(handle ? workspace_bytes(stream.device) : 0),
      workspace(stream, bytes ? bytes : 1)
{
    int status = 0;
    if (handle && !cublas_library.version)
        cublas->get_version(handle, &cublas_library.version);
    if (handle && workspace.data)
        status = cublas->set_workspace(handle, workspace.data, bytes);
    if (status)
        library_fail(&cublas_library, status, "giving it memory");
    if (status || !workspace.data)
        handle = nullptr;
}
