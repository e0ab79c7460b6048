/* The ends of chains (device/chain.h): reductions, and operations on rows. */
#ifndef DT_CUDA_KERNELS_CHAIN_END_H
#define DT_CUDA_KERNELS_CHAIN_END_H

#include "device/chain.h"

/* Runs a chain and its end in one kernel where shared memory allows. 0, or -1 after dt_fail. */
int chain_run_end(dt_stream stream, const dt_chain *chain, const dt_chain_end *end);
/* Runs the steps, and then the end in a kernel of its own. Returns what dt_cuda_chain does. */
int chain_run_apart(dt_stream stream, const dt_chain *chain, const dt_chain_end *end);
/* The chain without its end: the steps, which store the end's input at an address of the
 * same alignment. */
dt_chain chain_steps(const dt_chain *chain, const dt_chain_end *end);

#endif
