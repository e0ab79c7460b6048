#include "cuda/runtime/cufft.h"

#include <stdio.h>

#include <array>

#include "cuda/runtime/backend.h"
#include "cuda/runtime/choices.h"
#include "device/fourier.h"

/* Its number is one less than CUDA's. */
dt_library cufft_library = {"cuFFT",
                            "transforms",
                            "libcufft",
                            DT_CUDA_MAJOR - 1,
                            "cufft",
                            "nvjitlink/libnvJitLink",
                            DT_CUFFT_ALLOC_FAILED};

#ifdef DT_SIMULATED

const dt_cufft *sim_cufft(void); /* sim/fft.cpp; NULL: there is none */

const dt_cufft *cufft_get(void)
{
    const dt_cufft *functions = sim_cufft();
    snprintf(cufft_library.path, sizeof cufft_library.path, "%s",
             functions ? "simulated" : "");
    cufft_library.version = 0;
    if (functions)
        functions->get_version(&cufft_library.version);
    return functions;
}

#else

const dt_cufft *cufft_get(void)
{
    static dt_cufft functions;
    static const dt_symbol symbols[] = {DT_CUFFT_FUNCTIONS(LIBRARY_FUNCTION)};
    if (!library_found(&cufft_library, symbols))
        return nullptr;
    if (!cufft_library.version)
        functions.get_version(&cufft_library.version);
    return &functions;
}

#endif

namespace {

struct Plan {
    int handle;
    size_t workspace; /* bytes that a call needs */
};
/* Device, kind, type, batch and sizes: a plan takes cuFFT longer than a transform. Plans
 * of streams are the same ones: each call sets its stream and its workspace. */
typedef std::array<int64_t, 4 + DT_FOURIER_DIMS> Key;

Key key_of(int device, const dt_fourier_call *c)
{
    Key key = {device, c->kind, c->dtype, c->batch};
    for (int d = 0; d < c->ndim; d++)
        key[4 + d] = c->sizes[d];
    return key;
}

int type_of(const dt_fourier_call *c)
{
    const bool wide = c->dtype == DT_COMPLEX128;
    return c->kind == DT_FOURIER_COMPLEX     ? wide ? DT_CUFFT_Z2Z : DT_CUFFT_C2C
           : c->kind == DT_FOURIER_FROM_REAL ? wide ? DT_CUFFT_D2Z : DT_CUFFT_R2C
           : wide                            ? DT_CUFFT_Z2D
                                             : DT_CUFFT_C2R;
}

int make(const dt_cufft *fft, const dt_fourier_call *c, Plan *plan)
{
    long long sizes[DT_FOURIER_DIMS];
    for (int d = 0; d < c->ndim; d++)
        sizes[d] = c->sizes[d];
    int status = fft->create(&plan->handle);
    if (status)
        return status;
    status = fft->set_own_workspace(plan->handle, 0);
    if (!status)
        status = fft->make(plan->handle, c->ndim, sizes, nullptr, 1, 0, nullptr, 1, 0,
                           type_of(c), c->batch, &plan->workspace);
    if (status)
        fft->destroy(plan->handle);
    return status;
}

/* NULL after dt_fail. */
const Plan *plan_for(const dt_cufft *fft, int device, const dt_fourier_call *c)
{
    static Choices<Key, Plan> plans;
    const Key key = key_of(device, c);
    if (const Plan *known = plans.find(key))
        return known;
    if (graphs_under_way()) {
        dt_fail(DT_ERROR_RUNTIME,
                "cuFFT cannot plan a transform while a graph is captured; call it once "
                "with the same shape on cuda:%d before the capture",
                device);
        return nullptr;
    }
    Plan plan = {};
    int status = 0;
    if (library_make(&cufft_library, device, &status,
                     [&] { return make(fft, c, &plan); }))
        return nullptr;
    if (status) {
        library_fail(&cufft_library, status, "planning a transform");
        return nullptr;
    }
    return plans.keep(key, plan, [=](Plan &old) { fft->destroy(old.handle); });
}

} /* namespace */

int dt_cuda_cufft_version(void)
{
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    return cufft_get() ? cufft_library.version : 0;
}

int dt_cuda_fourier(dt_stream stream, const dt_fourier_call *c)
{
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    const dt_cufft *fft = cufft_get();
    if (!fft)
        return dt_fail(DT_ERROR_RUNTIME,
                       "there is no cuFFT; install nvidia-cufft for transforms");
    const Plan *plan = plan_for(fft, stream.device, c);
    if (!plan)
        return -1;
    Scratch workspace(stream, plan->workspace ? plan->workspace : 1);
    if (!workspace.data)
        return -1;
    int status = fft->set_stream(plan->handle, (cudaStream_t)stream.handle);
    if (!status)
        status = fft->set_workspace(plan->handle, workspace.data);
    const bool wide = c->dtype == DT_COMPLEX128;
    const int direction = c->forward ? DT_CUFFT_FORWARD : DT_CUFFT_INVERSE;
    if (!status)
        status =
            c->kind == DT_FOURIER_COMPLEX ? (wide ? fft->complex128 : fft->complex64)(
                                                plan->handle, c->x, c->y, direction)
            : c->kind == DT_FOURIER_FROM_REAL
                ? (wide ? fft->from_float64 : fft->from_float32)(plan->handle, c->x,
                                                                 c->y)
                : (wide ? fft->to_float64 : fft->to_float32)(plan->handle, c->x, c->y);
    return status ? library_fail(&cufft_library, status, "transforming") : 0;
}
