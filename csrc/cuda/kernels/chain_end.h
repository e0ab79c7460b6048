/* The ends of chains (device/chain.h): reductions, and operations on rows. */
#ifndef DT_CUDA_KERNELS_CHAIN_END_H
#define DT_CUDA_KERNELS_CHAIN_END_H

#include "device/chain.h"

/* Runs a chain with an end, in one kernel if it has room; or the steps, and then the end by
 * its own kernel. */
int chain_run_end(dt_stream stream, const dt_chain *chain, const dt_chain_end *end);
int chain_run_apart(dt_stream stream, const dt_chain *chain, const dt_chain_end *end);
/* Its steps, which store what the end takes: at an address that is as aligned. */
dt_chain chain_steps(const dt_chain *chain, const dt_chain_end *end);

#endif
