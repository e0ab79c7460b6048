/* The header of the kernels that chain_compiled.h writes.
 * tools/build/products.py expands its includes into one file, which is installed. */
#ifndef DT_CUDA_KERNELS_CHAIN_KERNEL_H
#define DT_CUDA_KERNELS_CHAIN_KERNEL_H

#ifdef __CUDACC_RTC__
#include "cuda/kernels/standard_names.h"
#endif
#include "cuda/kernels/chain_memory.h"
#include "cuda/kernels/chain_rows.h"

namespace {

/* Their arguments except pointers. */
template <int STEPS, int INPUTS, int LAYOUTS>
struct Given {
    unsigned numel;
    uint64_t numbers[STEPS][INPUTS]; /* as words of wide chains */
    Strides layouts[LAYOUTS];
};

} // namespace

#endif
