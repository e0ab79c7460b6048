#include "cuda/runtime/cublas.h"

#include <stdio.h>

dt_library cublas_library = {"cuBLAS",
                             "matrix products",
                             "libcublas",
                             DT_CUDA_MAJOR,
                             "nvidia/cublas/lib",
                             DT_CUBLAS_ALLOC_FAILED,
                             0,
                             false,
                             ""};

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
#define FUNCTION(name, symbol, parameters) {#symbol, (void *)&functions.name, false},
#define TYPED(name, single, twofold, parameters)                                       \
    {#single, (void *)&functions.name[0], false},                                      \
        {#twofold, (void *)&functions.name[1], false},
        DT_CUBLAS_FUNCTIONS(FUNCTION, TYPED)
#undef FUNCTION
#undef TYPED
    };
    return library_open(&cublas_library, symbols, sizeof symbols / sizeof *symbols)
               ? nullptr
               : &functions;
}

#endif

dt_cublas_handle cublas_handle(const dt_cublas *cublas, dt_stream stream)
{
    dt_cublas_handle handle =
        library_handle<dt_cublas_handle>(&cublas_library, cublas, stream);
    if (handle && !cublas_library.version)
        cublas->get_version(handle, &cublas_library.version);
    return handle;
}
