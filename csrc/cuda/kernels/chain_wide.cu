#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/chain_wide.h"
#include "cuda/kernels/chain_machine.h"

namespace {

__global__ void __launch_bounds__(THREADS, 4)
    chain_wide_kernel(GRID_CONSTANT(Program) p)
{
    DYNAMIC_SHARED(WideWords, shared);
    run_in_grid(p, shared);
}

} // namespace

int chain_start_wide(dt_stream stream, const void *program, unsigned blocks,
                     unsigned threads, size_t shared)
{
    return start_result(
        "starting a fused kernel",
        (Relaxed(), LAUNCH(chain_wide_kernel, blocks, threads, shared,
                           (cudaStream_t)stream.handle, *(const Program *)program)));
}
