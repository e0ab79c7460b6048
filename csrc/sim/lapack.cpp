/* Simulated cuSOLVER: queues the CPU's LAPACK on the stream. */
#include "device/lapack.h"

#include "device/backend.h"
#include "sim/internal.h"
#include "sim/kernel.h"

static int (*cpu_lapack)(dt_stream stream, const dt_lapack_call *call);

void sim_lapack_set(int (*lapack)(dt_stream stream, const dt_lapack_call *call))
{
    cpu_lapack = lapack;
}

int sim_lapack(dt_stream stream, const dt_lapack_call *call, cudaError_t *error)
{
    const dt_stream host = {0, nullptr};
    dt_lapack_call probe = *call;
    probe.batch =
        0; /* a library that lacks the routine is found before work is queued */
    if (cpu_lapack(host, &probe))
        return -1;
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    const int count = dt_lapack_operands(call, operands);
    sim::Region used[DT_LAPACK_OPERANDS] = {};
    for (int i = 0; i < count; i++) {
        size_t item = operands[i].ints ? sizeof(int32_t) : dt_dtype_size(call->dtype);
        size_t bytes = (size_t)(call->batch * operands[i].size) * item;
        used[i] = {bytes ? call->operands[i] : nullptr, bytes};
    }
    const dt_lapack_call queued = *call;
    const int device = stream.device;
    *error =
        sim::enqueue((cudaStream_t)stream.handle, "cusolver",
                     {used[0], used[1], used[2], used[3], used[4]},
                     [queued, count, device](void *const *seen) {
                         dt_lapack_call run = queued;
                         for (int i = 0; i < count; i++)
                             run.operands[i] = seen[i];
                         sim::stand_in(device, "the CPU's LAPACK in place of cuSOLVER",
                                       [&] { return cpu_lapack({0, nullptr}, &run); });
                     });
    return 0;
}
