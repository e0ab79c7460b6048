/* The elementwise kernels of float16 and bfloat16: for both types and all layouts the
 * same, with each row in them once, computed as float32. */
#include "cuda/compute.h"
#include "cuda/elementwise_kernels.h"

/* Elements of a thread: a word of 8 bytes. */
enum { EACH = 4 };

/* A result as it lies in memory. */
static __device__ __forceinline__ uint16_t as_stored(float result, bool brain)
{
    return narrowed(result, brain);
}
static __device__ __forceinline__ uint16_t as_stored(bool result, bool)
{
    return result;
}

/* Keeps a compiler from writing a loop twice, once for each value of x. */
#ifdef __CUDA_ARCH__
#define KEEP(x) asm volatile("" : "+r"(x))
#else
#define KEEP(x) ((void)0)
#endif

/* An input that is NULL is its value. `words`: everything lies in one run, and words
 * are aligned; then a block whose elements are all there goes by words. */
template <typename R, int INPUTS>
__global__ void ENOUGH_BLOCKS half_kernel(int op, char *out, const char *a,
                                          const char *b, float a_value, float b_value,
                                          bool brain, bool words, int64_t n,
                                          GRID_CONSTANT(Layout<INPUTS + 1>) layout)
{
    constexpr int BITS = sizeof(R) == 1 ? 8 : 16;
    int64_t block = (int64_t)blockIdx.x * (BLOCK * EACH);
    int whole = words && block + BLOCK * EACH <= n;
    int64_t i = block + (whole ? threadIdx.x * EACH : threadIdx.x);
    uint64_t left = 0, right = 0, results = 0;
    if (whole) {
        left = a ? *(const uint64_t *)(a + 2 * i) : 0;
        right = b ? *(const uint64_t *)(b + 2 * i) : 0;
    }
    ROLLED
    for (int k = 0; k < EACH; k++) {
        int64_t at[INPUTS + 1] = {};
        KEEP(whole);
        if (!whole) {
            if (i >= n)
                return;
            layout_offsets(layout, (unsigned)i, at);
            left = a ? *(const uint16_t *)(a + at[1]) : 0;
            right = b ? *(const uint16_t *)(b + at[INPUTS]) : 0;
            i += BLOCK;
        }
        Pack<float, 1> x = {{a ? widened((uint16_t)left, brain) : a_value}};
        Pack<R, 1> result = {};
        if constexpr (INPUTS == 2) {
            Pack<float, 1> y = {{b ? widened((uint16_t)right, brain) : b_value}};
            binary_rows<float, R, 1>((dt_binary_op)op, x, y, result);
        } else {
            unary_rows<float, R, 1>((dt_unary_op)op, x, result);
        }
        uint16_t stored = as_stored(result.v[0], brain);
        left >>= 16;
        right >>= 16;
        results = results >> BITS | (uint64_t)stored << (64 - BITS);
        if (!whole && BITS == 8)
            *(uint8_t *)(out + at[0]) = (uint8_t)stored;
        else if (!whole)
            *(uint16_t *)(out + at[0]) = stored;
    }
    if (!whole)
        return;
    if (BITS == 8)
        *(uint32_t *)(out + i) = (uint32_t)(results >> 32);
    else
        *(uint64_t *)(out + 2 * i) = results;
}

static float number_of(const dt_operand &operand)
{
    return operand.immediate
               ? (float)dt_element_to_scalar(operand.dtype, operand.value.bytes).f
               : 0;
}

template <typename R, int INPUTS>
static int run_half(dt_queue queue, int op, const dt_plan *plan)
{
    return each_piece(plan, [&](const dt_plan *piece) {
        const dt_operand &a = piece->operands[1], &b = piece->operands[INPUTS];
        bool brain = (a.immediate ? b : a).dtype == DT_BFLOAT16;
        const char *at[2] = {(const char *)(a.immediate ? nullptr : a.data),
                             (const char *)(b.immediate ? nullptr : b.data)};
        char *out = (char *)piece->operands[0].data;
        bool words = piece->contiguous && is_aligned(out, sizeof(uint64_t)) &&
                     is_aligned(at[0], sizeof(uint64_t)) &&
                     is_aligned(at[1], sizeof(uint64_t));
        CUDA_TRY("starting an elementwise kernel",
                 LAUNCH((half_kernel<R, INPUTS>),
                        blocks_for((piece->numel + EACH - 1) / EACH), BLOCK, 0,
                        (cudaStream_t)queue.stream, op, out, at[0],
                        INPUTS == 2 ? at[1] : nullptr, number_of(a), number_of(b),
                        brain, words, piece->numel, layout_of<INPUTS + 1>(piece)));
        return 0;
    });
}

template <typename R>
static int run_half_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan)
{
    return run_half<R, 1>(queue, (int)op, plan);
}
template <typename R>
static int run_half_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan)
{
    return run_half<R, 2>(queue, (int)op, plan);
}

const elementwise_kernels elementwise_half = {
    {run_half_unary<float>, run_half_unary<bool>},
    {run_half_binary<float>, run_half_binary<bool>},
};
