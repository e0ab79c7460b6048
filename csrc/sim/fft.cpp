/* Simulated cuFFT, unless PYDEVTENSOR_SIM_CUFFT is 0: each function queues a transform by
 * the host on the stream, in double. It takes a workspace of a known size, which it spoils,
 * and spoils the input of transforms to real elements, as cuFFT may. */
#include "cuda/runtime/cufft.h"

#include <string.h>

#include <complex>
#include <map>
#include <vector>

#include "device/fourier.h"
#include "sim/core.h"
#include "sim/internal.h"

namespace {

enum { INVALID_PLAN = 1, INVALID_VALUE = 4, EXEC_FAILED = 6, NOT_IMPLEMENTED = 14 };
enum { WORKSPACE = 512 };
typedef std::complex<double> Number;
typedef std::vector<Number> Numbers;

struct Plan {
    int type = 0;
    std::vector<int64_t> sizes;
    int64_t batch = 0;
    bool own_workspace = true;
    void *workspace = nullptr;
    cudaStream_t stream = nullptr;

    bool is_wide() const
    {
        return type == DT_CUFFT_Z2Z || type == DT_CUFFT_D2Z || type == DT_CUFFT_Z2D;
    }
    bool from_real() const { return type == DT_CUFFT_R2C || type == DT_CUFFT_D2Z; }
    bool to_real() const { return type == DT_CUFFT_C2R || type == DT_CUFFT_Z2D; }
    /* Numbers of an array: real ones, or complex ones that are stored. */
    int64_t numel(bool real) const
    {
        int64_t n = 1;
        for (int64_t size : sizes)
            n *= size;
        return real || !(from_real() || to_real()) ? n : n / 2 + 1;
    }
    size_t bytes(bool real) const
    {
        return (size_t)(batch * numel(real)) * (real ? 1 : 2) * (is_wide() ? 8 : 4);
    }
};

std::map<int, Plan> &plans()
{
    static std::map<int, Plan> all;
    return all;
}
/* NULL: there is none of that number. */
Plan *find(int number)
{
    const auto found = plans().find(number);
    return found == plans().end() ? nullptr : &found->second;
}

int create(int *number)
{
    static int last;
    sim::Entry in(sim::Entry::kNothing);
    if (sim::failure("cufft", cudaErrorMemoryAllocation) || sim::refuse_library())
        return DT_CUFFT_ALLOC_FAILED;
    plans()[ *number = ++last] = {};
    return 0;
}
int destroy(int number)
{
    return plans().erase(number) ? 0 : INVALID_PLAN;
}
int set_own_workspace(int number, int own)
{
    Plan *plan = find(number);
    if (!plan || plan->batch)
        return INVALID_PLAN;
    plan->own_workspace = own;
    return 0;
}
int make(int number, int ndim, long long *sizes, long long *in_sizes, long long in_step,
         long long in_next, long long *out_sizes, long long out_step,
         long long out_next, int type, long long batch, size_t *workspace)
{
    Plan *plan = find(number);
    (void)in_step, (void)in_next, (void)out_step, (void)out_next;
    if (!plan || plan->batch)
        return INVALID_PLAN;
    if (ndim < 1 || ndim > DT_FOURIER_DIMS || batch < 1)
        return INVALID_VALUE;
    plan->type = type;
    if (in_sizes || out_sizes || plan->own_workspace ||
        (ndim > 1 && (plan->from_real() || plan->to_real())))
        return NOT_IMPLEMENTED;
    for (int d = 0; d < ndim; d++)
        if (sizes[d] < 1)
            return INVALID_VALUE;
    plan->sizes.assign(sizes, sizes + ndim);
    plan->batch = batch;
    *workspace = WORKSPACE;
    return 0;
}
int set_stream(int number, cudaStream_t stream)
{
    Plan *plan = find(number);
    if (plan)
        plan->stream = stream;
    return plan ? 0 : INVALID_PLAN;
}
int set_workspace(int number, void *workspace)
{
    Plan *plan = find(number);
    if (plan)
        plan->workspace = workspace;
    return plan ? 0 : INVALID_PLAN;
}
int get_version(int *version)
{
    *version = 12000;
    return 0;
}

/* --- transforms --- */

/* The transform of n numbers that are `step` apart, by the factors of n (Cooley and Tukey,
 * 1965). turns has e^(sign 2 pi i k / whole) for all k, whole being n * step. */
void transform(const Number *x, int64_t step, int64_t n, const Numbers &turns,
               Number *y)
{
    int64_t p = 2;
    while (n % p && p * p <= n)
        p++;
    if (n % p)
        p = n;
    if (n == 1) {
        y[0] = x[0];
        return;
    }
    const int64_t m = n / p, whole = (int64_t)turns.size();
    Numbers parts((size_t)n);
    for (int64_t r = 0; r < p; r++)
        transform(x + r * step, step * p, m, turns, &parts[(size_t)(r * m)]);
    for (int64_t k = 0; k < n; k++) {
        y[k] = 0;
        for (int64_t r = 0; r < p; r++)
            y[k] += parts[(size_t)(r * m + k % m)] *
                    turns[(size_t)(r * k % n * (whole / n))];
    }
}

/* Transforms arrays along the dimension of size n whose neighbours are `apart`. */
void transform_along(Numbers &numbers, int64_t n, int64_t apart, bool forward)
{
    const double turn = (forward ? -2 : 2) * 3.14159265358979323846 / (double)n;
    Numbers turns((size_t)n), line((size_t)n), made((size_t)n);
    for (int64_t k = 0; k < n; k++)
        turns[(size_t)k] = std::polar(1.0, turn * (double)k);
    for (int64_t i = 0; i < (int64_t)numbers.size(); i++) {
        if (i / apart % n)
            continue;
        for (int64_t k = 0; k < n; k++)
            line[(size_t)k] = numbers[(size_t)(i + k * apart)];
        transform(line.data(), 1, n, turns, made.data());
        for (int64_t k = 0; k < n; k++)
            numbers[(size_t)(i + k * apart)] = made[(size_t)k];
    }
}

template <typename T>
void take(const Plan &plan, const T *x, Numbers &whole)
{
    const int64_t n = plan.numel(true), half = plan.numel(false);
    for (int64_t i = 0; i < (int64_t)whole.size(); i++) {
        const int64_t row = i / n, k = i % n;
        if (plan.from_real()) {
            whole[(size_t)i] = x[i];
        } else {
            /* The second half are the conjugates of the first; the imaginary parts of what
             * is its own conjugate do not count. */
            const bool mirrored = k >= half;
            const T *at = x + 2 * (row * half + (mirrored ? n - k : k));
            const bool real = plan.to_real() && k == (n - k) % n;
            whole[(size_t)i] = {at[0], real ? 0 : mirrored ? -at[1] : at[1]};
        }
    }
}

template <typename T>
void give(const Plan &plan, const Numbers &whole, T *y)
{
    const int64_t n = plan.numel(true), half = plan.numel(false);
    for (int64_t i = 0; i < (int64_t)whole.size(); i++) {
        const int64_t row = i / n, k = i % n;
        if (plan.to_real()) {
            y[i] = (T)whole[(size_t)i].real();
        } else if (k < half) {
            y[2 * (row * half + k)] = (T)whole[(size_t)i].real();
            y[2 * (row * half + k) + 1] = (T)whole[(size_t)i].imag();
        }
    }
}

template <typename T>
void transform_array(const Plan &plan, bool forward, const void *x, void *y)
{
    Numbers whole((size_t)(plan.batch * plan.numel(true)));
    take(plan, (const T *)x, whole);
    int64_t apart = 1;
    for (size_t d = plan.sizes.size(); d--; apart *= plan.sizes[d])
        transform_along(whole, plan.sizes[d], apart, forward);
    give(plan, whole, (T *)y);
}

int queue(int number, int type, void *x, void *y, bool forward)
{
    const Plan *plan = find(number);
    if (!plan || plan->type != type || !plan->workspace)
        return INVALID_PLAN;
    const size_t x_bytes = plan->bytes(plan->from_real());
    const cudaError_t error =
        sim::enqueue(plan->stream, "cufftExec",
                     {{x, x_bytes, plan->to_real()},
                      {y, plan->bytes(plan->to_real()), true},
                      {plan->workspace, WORKSPACE, true}},
                     [of = *plan, forward, x_bytes](void *const *seen) {
                         memset(seen[2], 0xff, WORKSPACE);
                         if (of.is_wide())
                             transform_array<double>(of, forward, seen[0], seen[1]);
                         else
                             transform_array<float>(of, forward, seen[0], seen[1]);
                         if (of.to_real())
                             memset(seen[0], 0xff, x_bytes);
                     });
    return error == cudaSuccess ? 0 : EXEC_FAILED;
}

template <int TYPE>
int of_complex(int number, void *x, void *y, int direction)
{
    return queue(number, TYPE, x, y, direction == DT_CUFFT_FORWARD);
}
template <int TYPE, bool FORWARD>
int of_real(int number, void *x, void *y)
{
    return queue(number, TYPE, x, y, FORWARD);
}

} /* namespace */

const dt_cufft *sim_cufft(void)
{
    static const dt_cufft functions = {create,
                                       destroy,
                                       set_own_workspace,
                                       make,
                                       set_stream,
                                       set_workspace,
                                       of_complex<DT_CUFFT_C2C>,
                                       of_complex<DT_CUFFT_Z2Z>,
                                       of_real<DT_CUFFT_R2C, true>,
                                       of_real<DT_CUFFT_D2Z, true>,
                                       of_real<DT_CUFFT_C2R, false>,
                                       of_real<DT_CUFFT_Z2D, false>,
                                       get_version};
    return sim::state().options.cufft ? &functions : nullptr;
}
