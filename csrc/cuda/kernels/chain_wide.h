/* The machine (chain_machine.h) for wide chains. */
#ifndef DT_CUDA_KERNELS_CHAIN_WIDE_H
#define DT_CUDA_KERNELS_CHAIN_WIDE_H

#include <stddef.h>

#include "device/backend.h"

/* program: a Program with `groups` set. */
int chain_start_wide(dt_stream stream, const void *program, unsigned blocks,
                     unsigned threads, size_t shared);

#endif
