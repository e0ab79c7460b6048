/* Products of matrices of 16 bits by the tensor cores of a warpgroup, four warps of which
 * the first is a multiple of four (wgmma, compute capability 9.0 alone), and what threads
 * wait with for one another beside them.
 *
 * A tile of shared memory is panels of 64 columns: rows of 128 bytes, whose chunks of 16
 * bytes are permuted among eight rows (panel_place; PTX ISA, "128-Byte swizzling mode").
 * A panel begins at a multiple of 1024 bytes.
 *
 * WarpgroupProducts: c += a @ b, where a has 64 rows and 16 columns and b has 16 and N.
 * The fragments of warp w are those of mma.h for rows 16 * w to 16 * w + 15: of a, 16
 * bits, and of eight columns of c after another. start() returns before anything is read:
 * c, the fragment of a and the tiles are the tensor cores' own until await(). Between
 * what threads write to shared memory and products that read it are release_to_products()
 * by the writer and a barrier, or a barrier and release_to_products() by the reader.
 *
 * Simulated GPUs have the instructions in sim/warpgroup.h. */
#ifndef DT_CUDA_KERNELS_WARPGROUP_H
#define DT_CUDA_KERNELS_WARPGROUP_H

#include "cuda/kernels/layout.h"
#include "cuda/kernels/mma.h"
#ifdef SIM_CUDA
#include "sim/warpgroup.h"
#endif

/* Whether the code that is compiled may have the instructions. */
#if defined(SIM_CUDA) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUPS true
#else
#define HAS_WARPGROUPS false
#endif
#if HAS_WARPGROUPS && !defined(SIM_CUDA)
#define WARPGROUP_ASM(...) asm volatile(__VA_ARGS__)
#else
#define WARPGROUP_ASM(...) ((void)0)
#endif

#define PANEL_COLUMNS 64

/* Where a chunk of 8 elements is in a panel, in elements. */
static __device__ __forceinline__ int panel_place(int row, int chunk)
{
    return row * PANEL_COLUMNS + (chunk ^ (row & 7)) * 8;
}

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
#ifdef SIM_CUDA
    return sim::shared_address(p);
#else
    return (unsigned)__cvta_generic_to_shared(p);
#endif
}

/* A matrix in shared memory as wgmma reads it: from which element on, and how far panels
 * and groups of eight rows are apart, in bytes. */
static __device__ __forceinline__ uint64_t matrix_at(const void *first, unsigned panels)
{
    const uint64_t swizzled = (uint64_t)1 << 62, groups = (uint64_t)(1024 >> 4) << 32;
    return swizzled | groups | (uint64_t)((panels & 0x3FFFF) >> 4) << 16 |
           (shared_address(first) & 0x3FFFF) >> 4;
}

/* Products may read the shared memory that this thread has written, or copied and awaited,
 * or waited for another one to write. */
static __device__ __forceinline__ void release_to_products()
{
    WARPGROUP_ASM("fence.proxy.async.shared::cta;" : : : "memory");
}

/* A barrier of `threads` threads of a block that are whole warps: one of 15 beside that of
 * __syncthreads. */
static __device__ __forceinline__ void meet(int barrier, int threads)
{
#ifdef SIM_CUDA
    sim::meet_at((unsigned)barrier, (unsigned)threads, true);
#else
    WARPGROUP_ASM("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
#endif
}
/* The same for a thread that does not wait. */
static __device__ __forceinline__ void pass(int barrier, int threads)
{
#ifdef SIM_CUDA
    sim::meet_at((unsigned)barrier, (unsigned)threads, false);
#else
    WARPGROUP_ASM("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
#endif
}

/* Registers of each thread of the calling warpgroup from here on, a multiple of 8. */
template <int MORE>
static __device__ __forceinline__ void take_registers()
{
    WARPGROUP_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(MORE));
}
template <int LESS>
static __device__ __forceinline__ void give_registers()
{
    WARPGROUP_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(LESS));
}

/* A barrier in shared memory (mbarrier) whose phases end each after so many arrivals. */
struct PhaseBarrier {
    uint64_t state;

    /* One thread calls it, before a barrier of all. */
    __device__ __forceinline__ void begin(unsigned arrivals)
    {
#ifdef SIM_CUDA
        sim::phase_begin(&state, arrivals);
#else
        WARPGROUP_ASM(
            "mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(&state)),
            "r"(arrivals) : "memory");
#endif
    }
    __device__ __forceinline__ void arrive()
    {
#ifdef SIM_CUDA
        sim::phase_arrive(&state);
#else
        WARPGROUP_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(
            shared_address(&state)) : "memory");
#endif
    }
    /* Until the phase whose number has this parity has ended; the one before phase 0 has. */
    __device__ __forceinline__ void await(unsigned parity)
    {
#ifdef SIM_CUDA
        sim::phase_await(&state, parity);
#else
        WARPGROUP_ASM("{\n"
                      ".reg .pred ended;\n"
                      "again:\n"
                      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
                      "@!ended bra again;\n"
                      "}" : : "r"(shared_address(&state)),
                      "r"(parity) : "memory");
#endif
    }
};

/* The text and operands of wgmma: c has N / 2 registers, after which come those of a, b
 * and the number that says whether c is added to. */
#define C_4(i)  "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define C_16(i) C_4(i), C_4(i + 1), C_4(i + 2), C_4(i + 3)
#define C_32(i) C_16(i), C_16(i + 4)
#define C_64(i) C_32(i), C_32(i + 8)
#define TEXT_32                                                                        \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "      \
    "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TEXT_64                                                                        \
    TEXT_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "      \
            "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "   \
            "%59, %60, %61, %62, %63"
#define WGMMA(N, type, c_text, a_text, rest, b_down, adds, ...)                        \
    WARPGROUP_ASM("{\n.reg .pred adds;\nsetp.ne.b32 adds, " adds ", 0;\n"              \
                  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type      \
                  " {" c_text "}, " a_text ", " rest ", adds, 1, 1" b_down             \
                  ";\n}" : __VA_ARGS__)
#define WGMMA_TYPES(N, ...)                                                            \
    do {                                                                               \
        if constexpr (std::is_same_v<T, dt_float16>)                                   \
            WGMMA(N, "f16", __VA_ARGS__);                                              \
        else                                                                           \
            WGMMA(N, "bf16", __VA_ARGS__);                                             \
    } while (0)
#define SHARED_A "l"(a), "l"(b), "r"(adds)
#define HELD_A   "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds)

class WarpgroupProducts {
#ifdef SIM_CUDA
    sim::Products products;
#endif

  public:
    /* Orders what threads did with registers before what products do with them. */
    __device__ __forceinline__ void begin()
    {
        WARPGROUP_ASM("wgmma.fence.sync.aligned;" : : : "memory");
    }
    /* a and b in shared memory, the elements of one column of b next to each other. c is
     * not read unless `adds`. */
    template <typename T, int M>
    __device__ __forceinline__ void start(float (&c)[M][4], uint64_t a, uint64_t b,
                                          int adds)
    {
#ifdef SIM_CUDA
        products.start<T>(c, a, b, adds);
#else
        static_assert(M == 8 || M == 16, "");
        if constexpr (M == 8)
            WGMMA_TYPES(64, TEXT_32, "%32", "%33", ", 0, 0", "%34", C_32(0) : SHARED_A);
        else
            WGMMA_TYPES(128, TEXT_64, "%64", "%65", ", 0, 0", "%66",
                        C_64(0) : SHARED_A);
#endif
    }
    /* a is a fragment, b in shared memory, the elements of one row next to each other. */
    template <typename T, int M>
    __device__ __forceinline__ void start_down(float (&c)[M][4], const unsigned (&a)[4],
                                               uint64_t b)
    {
#ifdef SIM_CUDA
        products.start_down<T>(c, a, b);
#else
        static_assert(M == 8 || M == 16, "");
        const int adds = 1;
        if constexpr (M == 8)
            WGMMA_TYPES(64, TEXT_32, "{%32, %33, %34, %35}", "%36", ", 1", "%37",
                        C_32(0) : HELD_A);
        else
            WGMMA_TYPES(128, TEXT_64, "{%64, %65, %66, %67}", "%68", ", 1", "%69",
                        C_64(0) : HELD_A);
#endif
    }
    /* All that was started since the last commit is one group. */
    __device__ __forceinline__ void commit()
    {
#ifdef SIM_CUDA
        products.commit();
#else
        WARPGROUP_ASM("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
    }
    /* Until all but the last LEFT groups are done, of which c is a result. */
    template <int LEFT, int M>
    __device__ __forceinline__ void await(float (&c)[M][4])
    {
#ifdef SIM_CUDA
        products.await(LEFT);
        (void)c;
#else
        WARPGROUP_ASM("wgmma.wait_group.sync.aligned %0;" : : "n"(LEFT) : "memory");
#endif
        UNROLL
        for (int i = 0; i < M; i++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                WARPGROUP_ASM("" : "+f"(c[i][e]) : : "memory");
        }
    }
};

#endif
