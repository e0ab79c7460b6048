/* Attributes of the kernels of whole programs: shared memory and occupancy. */
#include <string.h>
#include <map>
#include <string>
#include "internal.h"
#include "program_calls.h"

namespace sim {

const dt_program_array *program_arrays;

/* The dynamic shared memory that kernels may have where the program has set it, by name;
 * "" is for all kernels, where the program did not name one. */
static std::map<std::string, size_t> &limits()
{
    static auto *all = new std::map<std::string, size_t>;
    return *all;
}

/* The threads of a block that __launch_bounds__ allows, of kernels that have it. */
static std::map<std::string, int> &bounds()
{
    static auto *all = new std::map<std::string, int>;
    return *all;
}

/* A kernel's name without its namespace and a template's arguments. */
static std::string base_of(const char *name)
{
    std::string base = std::string(name).substr(0, strcspn(name, "< "));
    const size_t colon = base.rfind(':');
    return colon == std::string::npos ? base : base.substr(colon + 1);
}

/* The bytes of a kernel's __shared__ arrays of fixed size. */
static size_t fixed_of(const std::string &base)
{
    for (const dt_program_array *each = program_arrays; each && each->kernel; each++)
        if (base == each->kernel)
            return each->bytes;
    return 0;
}

static size_t limit_of(const std::string &base)
{
    const size_t fixed = fixed_of(base);
    size_t limit = kSharedBytes - std::min<size_t>(kSharedBytes, fixed);
    for (const char *name : {base.c_str(), ""}) {
        auto found = limits().find(name);
        if (found != limits().end())
            limit = std::max(limit, found->second);
    }
    return limit;
}

/* A template's instance may have a bound of its own. */
static int bound_of(const char *name)
{
    for (const std::string &each : {std::string(name), base_of(name)}) {
        auto found = bounds().find(each);
        if (found != bounds().end())
            return found->second;
    }
    return kMaxThreads;
}

cudaError_t program_refuses_block(const char *name, const unsigned *block,
                                  size_t shared)
{
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    const uint64_t bound = (uint64_t)bound_of(name);
    const bool wide = threads > bound && threads <= kMaxThreads;
    if (!wide && (!shared || shared <= limit_of(base_of(name))))
        return cudaSuccess;
    Entry in(Entry::kNothing);
    char text[400];
    if (wide)
        snprintf(
            text, sizeof text,
            "%s may have %d threads in a block, as its __launch_bounds__ says, and "
            "is to have %d",
            name, (int)bound, (int)threads);
    else
        snprintf(text, sizeof text,
                 "%s may have %zu bytes of dynamic shared memory beside %zu of fixed "
                 "arrays, and is to have %zu; call cudaFuncSetAttribute for more",
                 name, limit_of(base_of(name)), fixed_of(base_of(name)), shared);
    explain(cudaErrorInvalidValue, text);
    return answer(cudaErrorInvalidValue);
}

} /* namespace sim */

using namespace sim;

cudaError_t dt_program_attribute(const char *kernel, int attribute, int value)
{
    enum { kDynamicShared = 8 };
    cudaDeviceProp facts;
    cudaError_t error = cudaGetDeviceProperties(&facts, thread().device);
    if (error || attribute != kDynamicShared)
        return error;
    const std::string base = base_of(kernel);
    if (value < 0 || (size_t)value + fixed_of(base) > facts.sharedMemPerBlockOptin)
        return answer(cudaErrorInvalidValue);
    Entry in(Entry::kNothing);
    limits()[base] = (size_t)value;
    return cudaSuccess;
}

int dt_program_bound(const char *kernel, int threads)
{
    return bounds()[kernel] = threads;
}

cudaError_t dt_program_shared(const char *kernel, size_t *fixed, int *dynamic,
                              int *threads)
{
    Entry in(Entry::kNothing);
    *threads = bound_of(kernel);
    *fixed = fixed_of(base_of(kernel));
    *dynamic = (int)limit_of(base_of(kernel));
    return cudaSuccess;
}

cudaError_t dt_program_occupancy(const char *kernel, int *blocks, int threads,
                                 size_t shared)
{
    cudaDeviceProp facts;
    cudaError_t error = cudaGetDeviceProperties(&facts, thread().device);
    if (error)
        return error;
    if (!blocks || threads <= 0)
        return answer(cudaErrorInvalidValue);
    const int warps = (threads + facts.warpSize - 1) / facts.warpSize;
    int most = facts.maxThreadsPerMultiProcessor / (warps * facts.warpSize);
    if (most > facts.maxBlocksPerMultiProcessor)
        most = facts.maxBlocksPerMultiProcessor;
    if (threads > bound_of(kernel))
        most = 0;
    const size_t kept = (size_t)kept_shared(10 * facts.major);
    const size_t each = shared + fixed_of(base_of(kernel)) + kept;
    if (each && (size_t)most > facts.sharedMemPerMultiprocessor / each)
        most = (int)(facts.sharedMemPerMultiprocessor / each);
    *blocks = most;
    return cudaSuccess;
}

cudaError_t dt_program_block(const char *kernel, int *grid, int *block, size_t shared,
                             int limit)
{
    cudaDeviceProp facts;
    cudaError_t error = cudaGetDeviceProperties(&facts, thread().device);
    int best = 0, most = limit > 0 && limit < 1024 ? limit : 1024;
    for (int size = most / 32 * 32; size >= 32 && !error; size -= 32) {
        int blocks;
        error = dt_program_occupancy(kernel, &blocks, size, shared);
        if (!error && blocks * size > best) {
            best = blocks * size;
            *block = size;
            *grid = blocks * facts.multiProcessorCount;
        }
    }
    return error;
}
