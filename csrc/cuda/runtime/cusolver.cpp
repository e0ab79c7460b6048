#include "cuda/runtime/cusolver.h"

#include <stdio.h>

/* Its number is one less than CUDA's. */
dt_library cusolver_library = {"cuSOLVER",
                               "factorizations",
                               "libcusolver",
                               DT_CUDA_MAJOR - 1,
                               "cusolver",
                               "nvjitlink/libnvJitLink cublas/libcublasLt "
                               "cublas/libcublas cusparse/libcusparse",
                               DT_CUSOLVER_ALLOC_FAILED,
                               0,
                               false,
                               ""};

#ifdef DT_SIMULATED

const dt_cusolver *sim_cusolver(void); /* sim/solver.cpp; NULL after dt_fail */

const dt_cusolver *cusolver_get(void)
{
    snprintf(cusolver_library.path, sizeof cusolver_library.path, "simulated");
    return sim_cusolver();
}

#else

const dt_cusolver *cusolver_get(void)
{
    static dt_cusolver functions;
    static const dt_symbol symbols[] = {
#define FUNCTION(name, symbol, parameters) {#symbol, (void *)&functions.name, false},
#define OPTIONAL(name, symbol, parameters) {#symbol, (void *)&functions.name, true},
#define TYPED(name, s, d, c, z, parameters)                                            \
    {#s, (void *)&functions.name[0], false}, {#d, (void *)&functions.name[1], false},  \
        {#c, (void *)&functions.name[2], false},                                       \
        {#z, (void *)&functions.name[3], false},
        DT_CUSOLVER_FUNCTIONS(FUNCTION, TYPED, OPTIONAL)
#undef FUNCTION
#undef OPTIONAL
#undef TYPED
    };
    return library_open(&cusolver_library, symbols, sizeof symbols / sizeof *symbols)
               ? nullptr
               : &functions;
}

#endif

dt_cusolver_handle cusolver_handle(const dt_cusolver *cusolver, dt_stream stream)
{
    dt_cusolver_handle handle =
        library_handle<dt_cusolver_handle>(&cusolver_library, cusolver, stream);
    if (handle && !cusolver_library.version)
        cusolver->get_version(&cusolver_library.version);
    return handle;
}
