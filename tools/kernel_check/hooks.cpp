/* What the library's own kernels call when they are compiled with checks: as
 * csrc/sim/check_module.h has it for kernels of the program, in the library itself. */
#define SIM_CHECKED
#include "check.h"
#include "intrinsics.h"
#include "kernel.h"
#include "services.h"

extern "C" {
sim::Services dt_module_services;
}

/* Not inline: one file has them, and csrc/sim/intrinsics.h declares them in others. */
#undef SIM_QUIET
#define SIM_QUIET __attribute__((noinline))
#include "check_module.h"

/* Of shared_ptr's counts, in the host's code of the same files. */
extern "C" __attribute__((visibility("hidden"))) int
__tsan_atomic32_fetch_add(volatile int *at, int value, int)
{
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}

namespace sim {

/* Before other constructors, whose accesses call the hooks too. */
__attribute__((constructor(101))) static void start()
{
    serve(&dt_module_services);
}

uint3 thread_index()
{
    return indices().thread;
}
uint3 block_index()
{
    return indices().block;
}
dim3 block_extent()
{
    return indices().block_dim;
}
dim3 grid_extent()
{
    return indices().grid_dim;
}
/* Of a kernel whose threads run in a loop. */
void set_thread(uint3 index)
{
    indices().thread = index;
    check_thread =
        index.x + indices().block_dim.x * (index.y + indices().block_dim.y * index.z);
}

} /* namespace sim */
