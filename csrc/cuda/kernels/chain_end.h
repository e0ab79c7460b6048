/* The ends of chains (device/chain.h): reductions, and operations on rows. */
#ifndef DT_CUDA_KERNELS_CHAIN_END_H
#define DT_CUDA_KERNELS_CHAIN_END_H

#include "device/chain.h"

/* Runs a chain with an end. */
int chain_run_end(dt_stream stream, const dt_chain *chain, const dt_chain_end *end);

#endif
