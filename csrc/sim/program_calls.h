/* Functions of the simulator's library that programs call beyond CUDA's runtime
 * (program.h). */
#ifndef DT_SIM_PROGRAM_CALLS_H
#define DT_SIM_PROGRAM_CALLS_H

#include "cuda_runtime.h"
#include "device/module.h"
#include "services.h"

/* Differs between a program and a library of another version, which do not fit together. */
#define SIM_PROGRAM_ABI                                                                \
    (2000000 + 1000 * (int)sizeof(sim::Services) + (int)sizeof(cudaDeviceProp) +       \
     (int)sizeof(dt_module_kernel))
/* A multiple of the size of a page. */
#if defined(__x86_64__)
#define SIM_PROGRAM_PAGE 4096
#else
#define SIM_PROGRAM_PAGE 65536
#endif

/* The __shared__ arrays of fixed size of a kernel. */
struct dt_program_array {
    const char *kernel; /* NULL ends the list */
    size_t bytes;
};

extern "C" {
#pragma GCC visibility push(default)
/* Called before main: fills in the services, and takes over the section of __device__
 * variables. */
int dt_program_start(sim::Services *services, int abi, char *begin, char *end,
                     const dt_program_array *arrays);
/* Queues a kernel. strides: its threads may use several elements each. */
cudaError_t dt_program_launch(const dt_module_kernel *kernel, dim3 grid, dim3 block,
                              size_t shared, void *const *values, cudaStream_t stream,
                              int strides);
/* Kernels by address. */
void dt_program_enlist(const void *address, const dt_module_kernel *kernel);
const dt_module_kernel *dt_program_enlisted(const void *address);
/* The threads that __launch_bounds__ allows a block of a kernel. */
int dt_program_bound(const char *kernel, int threads);
/* Stores and returns an error. */
cudaError_t dt_program_answer(cudaError_t error);
/* Attributes of the kernel of a name; "" where the name is not known. */
cudaError_t dt_program_attribute(const char *kernel, int attribute, int value);
cudaError_t dt_program_shared(const char *kernel, size_t *fixed, int *dynamic,
                              int *threads);
cudaError_t dt_program_occupancy(const char *kernel, int *blocks, int threads,
                                 size_t shared);
cudaError_t dt_program_block(const char *kernel, int *grid, int *block, size_t shared,
                             int limit);
/* Sets *out to the current device's memory of a __device__ variable. */
cudaError_t dt_program_symbol(void **out, const void *symbol, size_t bytes);
cudaError_t dt_program_managed(void **out, size_t bytes, unsigned flags);
/* Page-locks memory of the host; with 0 bytes, undoes that. */
cudaError_t dt_program_register(void *pointer, size_t bytes);
/* A failed assert(), of the host or a kernel. */
[[noreturn]] void dt_program_assert(const char *text, const char *file, unsigned line,
                                    const char *function);
#pragma GCC visibility pop
}

namespace sim {
extern const dt_program_array *program_arrays;
/* The error of a launch with more threads in a block, or more dynamic shared memory, than
 * the kernel may have. */
cudaError_t program_refuses_block(const char *name, const unsigned *block,
                                  size_t shared);
} /* namespace sim */

#endif
