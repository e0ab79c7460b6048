/* Shared by the stand-ins of cuSOLVER and cuBLAS: the CPU's LAPACK as work on a
 * stream. */
#ifndef DT_SIM_SOLVER_H
#define DT_SIM_SOLVER_H

#include "cuda/runtime/cublas.h"
#include "device/lapack.h"
#include "sim/internal.h"
#include "sim/kernel.h"

namespace sim {

/* A column-major matrix in device memory; of a batch, they follow one another after
 * `step` elements, or the pointer is of a table of theirs. */
struct Matrix {
    const void *pointer;
    int64_t rows, columns, ld;
    int64_t step = 0;
    bool table = false;
    bool turned = false; /* square; in memory its conjugate transpose */
};

/* Device memory that a routine may overwrite, and host memory. */
struct Workspace {
    void *device;
    size_t bytes;
    void *host;
    size_t host_bytes;
};

/* The transposed form that routines here know; of complex matrices the conjugate one. */
template <dt_dtype D>
constexpr int TURNED =
    D == DT_COMPLEX64 || D == DT_COMPLEX128 ? DT_CUBLAS_OP_C : DT_CUBLAS_OP_T;
template <dt_dtype D>
bool wrong_turn(int trans)
{
    return trans != DT_CUBLAS_OP_N && trans != TURNED<D>;
}
template <dt_dtype D>
int turned(int trans)
{
    return trans == TURNED<D> ? DT_LAPACK_TRANSPOSED : 0;
}

/* Queues the call: its operands are the matrices of its batch, packed for the CPU's
 * routine and written back. The workspace is filled with rubbish. */
cudaError_t queue_lapack(cudaStream_t stream, const char *name, dt_lapack_call call,
                         const std::vector<Matrix> &matrices, Workspace work = {});

} /* namespace sim */

#endif
