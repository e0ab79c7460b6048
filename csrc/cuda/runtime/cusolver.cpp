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
                               DT_CUSOLVER_ALLOC_FAILED};

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
        DT_CUSOLVER_FUNCTIONS(LIBRARY_FUNCTION, LIBRARY_TYPED, LIBRARY_OPTIONAL)};
    return library_open(&cusolver_library, symbols) ? nullptr : &functions;
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
