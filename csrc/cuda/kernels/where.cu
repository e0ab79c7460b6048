#include "cuda/kernels/where.h"

#include "cuda/runtime/device.h"
#include "cuda/kernels/layout.h"

/* Elements are moved by their size. An operand that is NULL is immediate. */
template <typename T>
__global__ void where_flat(T *out, const bool *c, const T *a, const T *b, bool c_value,
                           T a_value, T b_value, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (c ? c[i] : c_value) ? (a ? a[i] : a_value) : (b ? b[i] : b_value);
}

template <typename T>
__global__ void where_strided(char *out, const char *c, const char *a, const char *b,
                              bool c_value, T a_value, T b_value, unsigned n,
                              GRID_CONSTANT(Layout<4>) layout)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int64_t at[4];
    layout_offsets(layout, i, at);
    bool holds = c ? *(const bool *)(c + at[1]) : c_value;
    if (holds)
        *(T *)(out + at[0]) = a ? *(const T *)(a + at[2]) : a_value;
    else
        *(T *)(out + at[0]) = b ? *(const T *)(b + at[3]) : b_value;
}

template <typename T>
static int run(dt_queue queue, const dt_plan *plan)
{
    cudaStream_t stream = (cudaStream_t)queue.stream;
    T a_value, b_value;
    bool c_value = plan->operands[1].value.bytes[0] != 0;
    __builtin_memcpy(&a_value, plan->operands[2].value.bytes, sizeof(T));
    __builtin_memcpy(&b_value, plan->operands[3].value.bytes, sizeof(T));
    return each_piece(plan, [&](const dt_plan *piece) {
        const void *data[4];
        for (int k = 0; k < 4; k++)
            data[k] = piece->operands[k].immediate ? nullptr : piece->operands[k].data;
        if (piece->contiguous) {
            CUDA_TRY("starting where",
                     LAUNCH((where_flat<T>), blocks_for(piece->numel), BLOCK, 0, stream,
                            (T *)piece->operands[0].data, (const bool *)data[1],
                            (const T *)data[2], (const T *)data[3], c_value, a_value,
                            b_value, piece->numel));
            return 0;
        }
        CUDA_TRY("starting where",
                 LAUNCH((where_strided<T>), blocks_for(piece->numel), BLOCK, 0, stream,
                        (char *)piece->operands[0].data, (const char *)data[1],
                        (const char *)data[2], (const char *)data[3], c_value, a_value,
                        b_value, (unsigned)piece->numel, layout_of<4>(piece)));
        return 0;
    });
}

int where_run(dt_queue queue, const dt_plan *plan)
{
    if (device_use(queue.device))
        return -1;
    switch (dt_dtype_size(plan->operands[0].dtype)) {
    case 1:
        return run<uint8_t>(queue, plan);
    case 2:
        return run<uint16_t>(queue, plan);
    case 4:
        return run<uint32_t>(queue, plan);
    default:
        return run<uint64_t>(queue, plan);
    }
}
