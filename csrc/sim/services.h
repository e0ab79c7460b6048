/* The simulator as a module, a library with kernels of the program, reaches it. */
#ifndef DT_SIM_SERVICES_H
#define DT_SIM_SERVICES_H

namespace sim {

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
};

/* A __device__ or __constant__ variable of a module. */
struct Variable {
    const char *name;
    void *memory;
    size_t bytes;
};

} /* namespace sim */

#ifdef SIM_MODULE

/* Filled in when the module is loaded, or the program started. */
#ifndef SIM_PROGRAM
#define SIM_ONE
#else
#define SIM_ONE inline /* of all files of the program */
#endif
extern "C" {
SIM_ONE __attribute__((visibility("default"))) sim::Services dt_module_services;
}

#define threadIdx (*dt_module_services.thread)
#define blockIdx  (*dt_module_services.block)
#define blockDim  (*dt_module_services.block_dim)
#define gridDim   (*dt_module_services.grid_dim)

namespace sim {
inline __attribute__((always_inline)) uint64_t exchange(Exchange what, unsigned mask,
                                                        uint64_t value, unsigned source)
{
    return dt_module_services.exchange(what, mask, value, source);
}
inline unsigned lane()
{
    return dt_module_services.lane();
}
inline void barrier()
{
    dt_module_services.barrier();
}
[[noreturn]] inline void fail(const char *what)
{
    dt_module_services.fail(what);
    __builtin_unreachable();
}
[[noreturn]] inline void trap()
{
    fail("__trap was called");
}
inline void *dynamic_shared_memory()
{
    return dt_module_services.dynamic_shared_memory();
}
} /* namespace sim */

#endif
#endif
