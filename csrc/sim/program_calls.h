/* Functions of the simulator's library that programs call beyond CUDA's runtime
 * (program.h). */
#ifndef DT_SIM_PROGRAM_CALLS_H
#define DT_SIM_PROGRAM_CALLS_H

#include "cuda_runtime.h"
#include "device/module.h"
#include "services.h"

/* Differs where a program and a library do not fit together: it was compiled with
 * another version. */
#define SIM_PROGRAM_ABI                                                                \
    (1000000 + 1000 * (int)sizeof(sim::Services) + (int)sizeof(cudaDeviceProp) +       \
     (int)sizeof(dt_module_kernel))
/* The bytes of a page, or of several. */
#if defined(__x86_64__)
#define SIM_PROGRAM_PAGE 4096
#else
#define SIM_PROGRAM_PAGE 65536
#endif

extern "C" {
#pragma GCC visibility push(default)
/* Before main: fills in the services, and takes the section of __device__ variables. */
int dt_program_start(sim::Services *services, int abi, char *begin, char *end);
/* Queues a kernel: strides says that its threads may use more than an element each. */
cudaError_t dt_program_launch(const dt_module_kernel *kernel, dim3 grid, dim3 block,
                              size_t shared, void *const *values, cudaStream_t stream,
                              int strides);
/* Kernels by address. */
void dt_program_enlist(const void *address, const dt_module_kernel *kernel);
const dt_module_kernel *dt_program_enlisted(const void *address);
/* Stores and returns an error. */
cudaError_t dt_program_answer(cudaError_t error);
cudaError_t dt_program_attribute(int attribute, int value);
cudaError_t dt_program_occupancy(int *blocks, int threads, size_t shared);
cudaError_t dt_program_block(int *grid, int *block, size_t shared, int limit);
/* The current device's memory for a __device__ variable. */
cudaError_t dt_program_symbol(void **out, const void *symbol, size_t bytes);
cudaError_t dt_program_managed(void **out, size_t bytes, unsigned flags);
/* Makes memory of the host's page-locked, and pageable again (0 bytes). */
cudaError_t dt_program_register(void *pointer, size_t bytes);
/* A failed assert(), of the host or a kernel. */
[[noreturn]] void dt_program_assert(const char *text, const char *file, unsigned line,
                                    const char *function);
#pragma GCC visibility pop
}

#endif
