/* The header that kernels of chains are compiled with (chain_compiled.h).
 * tools/build/products.py expands its includes into one file, which is installed. */
#ifndef DT_CUDA_KERNELS_CHAIN_KERNEL_H
#define DT_CUDA_KERNELS_CHAIN_KERNEL_H

#ifdef __CUDACC_RTC__
#include "cuda/kernels/standard_names.h"
#endif
#include "cuda/kernels/chain_memory.h"
#include "cuda/kernels/chain_rows.h"

namespace {

/* The arguments of such a kernel beside pointers. */
template <int STEPS, int INPUTS, int LAYOUTS>
struct Given {
    unsigned numel;
    float numbers[STEPS][INPUTS];
    Strides layouts[LAYOUTS];
};

} // namespace

#endif
