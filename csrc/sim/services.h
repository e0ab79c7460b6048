/* The simulator as a module, a library with kernels of the program, reaches it. */
#ifndef DT_SIM_SERVICES_H
#define DT_SIM_SERVICES_H

namespace sim {

/* The functions that checked kernels call (check.h). how: bytes, and kWrites and
 * kVolatile, or kBlockScope of an atomic's; from: a return address. */
enum : unsigned { kBytes = 0xFF, kWrites = 0x100, kVolatile = 0x200 };
struct Checks {
    void (*access)(const void *address, unsigned how, const void *from);
    void (*range)(const void *address, size_t bytes, unsigned how, const void *from);
    void (*atomic)(const void *address, unsigned how, int line);
    void (*changed)(); /* an atomic has changed its word */
    void (*fence)(bool of_block);
    void (*at)(int line); /* where the next barrier or shuffle is */
    void (*index)(int line, long long index, const char *array);
    void (*misaligned)(int line, const void *address, unsigned alignment,
                       const char *type);
};

struct Services {
    /* The running thread. */
    const uint3 *thread, *block;
    const dim3 *block_dim, *grid_dim;
    /* See intrinsics.h. */
    uint64_t (*exchange)(Exchange what, unsigned mask, uint64_t value, unsigned source);
    unsigned (*lane)();
    void (*barrier)();
    void *(*dynamic_shared_memory)();
    /* Abandons the kernel. `what` is a sentence without its subject, the thread. */
    void (*fail)(const char *what);
    Checks checks;
};

/* A __device__ or __constant__ variable of a module. */
struct Variable {
    const char *name;
    void *memory;
    size_t bytes;
};

} /* namespace sim */

#ifdef SIM_MODULE

#ifdef SIM_CHECKED
namespace sim {
/* Constructors run before the simulator is there, without checks. */
inline void ignore(const void *, unsigned, const void *) {}
inline void ignore_range(const void *, size_t, unsigned, const void *) {}
} /* namespace sim */
#define SIM_CHECKS {sim::ignore, sim::ignore_range}
#else
#define SIM_CHECKS                                                                     \
    {                                                                                  \
    }
#endif
/* Filled in when the module is loaded, or the program started. */
#ifndef SIM_PROGRAM
#define SIM_ONE
#else
#define SIM_ONE inline /* of all files of the program */
#endif
extern "C" {
SIM_ONE __attribute__((visibility("default"))) sim::Services dt_module_services = {
    {}, {}, {}, {}, {}, {}, {}, {}, {}, SIM_CHECKS};
}

/* Functions of ours whose accesses are not the program's. */
#ifdef SIM_CHECKED
#define SIM_QUIET                                                                      \
    inline __attribute__((noinline, no_sanitize("thread", "bounds", "alignment")))
#define SIM_QUIET_INDEX SIM_QUIET __attribute__((pure))
#define threadIdx       (sim::thread_index())
#define blockIdx        (sim::block_index())
#define blockDim        (sim::block_extent())
#define gridDim         (sim::grid_extent())
namespace sim {
SIM_QUIET_INDEX uint3 thread_index()
{
    return *dt_module_services.thread;
}
SIM_QUIET_INDEX uint3 block_index()
{
    return *dt_module_services.block;
}
SIM_QUIET_INDEX dim3 block_extent()
{
    return *dt_module_services.block_dim;
}
SIM_QUIET_INDEX dim3 grid_extent()
{
    return *dt_module_services.grid_dim;
}
} /* namespace sim */
#include "check_module.h"
#else
#define SIM_QUIET inline
#define threadIdx (*dt_module_services.thread)
#define blockIdx  (*dt_module_services.block)
#define blockDim  (*dt_module_services.block_dim)
#define gridDim   (*dt_module_services.grid_dim)
#endif

namespace sim {
inline __attribute__((always_inline)) uint64_t exchange(Exchange what, unsigned mask,
                                                        uint64_t value, unsigned source)
{
    return dt_module_services.exchange(what, mask, value, source);
}
SIM_QUIET unsigned lane()
{
    return dt_module_services.lane();
}
SIM_QUIET void barrier()
{
    dt_module_services.barrier();
}
[[noreturn]] SIM_QUIET void fail(const char *what)
{
    dt_module_services.fail(what);
    __builtin_unreachable();
}
[[noreturn]] inline void trap()
{
    fail("__trap was called");
}
SIM_QUIET void *dynamic_shared_memory()
{
    return dt_module_services.dynamic_shared_memory();
}
} /* namespace sim */

#endif
#endif
