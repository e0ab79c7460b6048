/* Kernels on simulated GPUs: indices, arguments, barriers, shuffles, and the
 * outcomes of faulty kernels. */
#include "sim_check.h"

struct Operand {
    float *data;
    long step;
};
struct Operands {
    Operand operand[3];
    int n;
};
POINTERS_OF(Operands, for (int i = 0; i < s.n; i++) f(s.operand[i].data);)
struct Extents {
    int of[3];
};
NO_POINTERS(Extents)
template <class T, int N>
struct Pack {
    T *data[N];
};
template <class T, int N, class F>
void each_pointer(Pack<T, N> &s, F f)
{
    for (T *&p : s.data)
        f(p);
}
struct Twice {
    template <class T>
    __device__ T operator()(T x) const
    {
        return x + x;
    }
};

__global__ void number(int *out)
{
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread =
        threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] +=
        1 + (int)(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z +
                  1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z);
}
__global__ void nothing() {}
__global__ void add(Operands o, Extents e)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < e.of[0])
        o.operand[0].data[i] = o.operand[1].data[i] + o.operand[2].data[i];
}
template <class T, int N>
__global__ void gather(Pack<T, N> from, T *to)
{
    T sum = 0;
    for (int i = 0; i < N; i++)
        sum += from.data[i][threadIdx.x];
    to[threadIdx.x] = sum;
}
template <class T, class Op>
__global__ void map(T *x, long n, Op op)
{
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = op(x[i]);
}
__global__ void block_sum(const float *x, float *out, long n)
{
    __shared__ float part[32];
    float v = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * (long)blockDim.x)
        v += x[i];
    for (int d = 16; d; d /= 2)
        v += __shfl_down_sync(0xffffffffu, v, (unsigned)d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / 32; w++)
            v += part[w];
        out[blockIdx.x] = v;
    }
}
/* Each thread passes its number to the next one; without the barrier, some get old
 * ones. */
template <bool Barrier>
__global__ void pass_on(int *out)
{
    DYNAMIC_SHARED(int, box);
    box[threadIdx.x] = (int)threadIdx.x;
    if (Barrier)
        __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        box[(threadIdx.x + (blockIdx.x & 1 ? blockDim.x - 1 : 1)) % blockDim.x];
}
template <class T>
__global__ void shuffles(T *out)
{
    unsigned i = threadIdx.x, n = blockDim.x;
    T v = (T)i;
    out[i] = __shfl_sync(~0u, v, 5);
    out[n + i] = __shfl_up_sync(~0u, v, 3);
    out[2 * n + i] = __shfl_down_sync(~0u, v, 3);
    out[3 * n + i] = __shfl_xor_sync(~0u, v, 6);
    out[4 * n + i] = __shfl_sync(~0u, v, 1, 8);
    out[5 * n + i] = __shfl_up_sync(~0u, v, 2, 8);
    out[6 * n + i] = __shfl_down_sync(~0u, v, 2, 8);
    out[7 * n + i] = __shfl_xor_sync(~0u, v, 12, 8);
}
__global__ void votes(unsigned *out)
{
    unsigned i = threadIdx.x;
    unsigned *mine = out + 2 * i;
    mine[0] = __ballot_sync(~0u, i % 3 == 0);
    __syncthreads();
    if (i % 32 < 16) /* each half of a warp by itself */
        mine[1] =
            __ballot_sync(0xffffu, i & 1) + (unsigned)__shfl_sync(0xffffu, (int)i, 2);
    else
        mine[1] = __ballot_sync(0xffff0000u, i & 2);
    __syncwarp();
}
__global__ void atomics(unsigned *u, unsigned long long *l, float *f, double *d)
{
    atomicAdd(u, 2u);
    atomicCAS(u + 1, threadIdx.x, threadIdx.x + 1);
    atomicAdd(l, 1ull << 40);
    atomicExch(l + 1, (unsigned long long)threadIdx.x);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
}
__global__ void half_waits(int *x)
{
    if (threadIdx.x < 10)
        __syncthreads();
    x[threadIdx.x] = 1;
}
__global__ void lanes_missing(int *x)
{
    if (threadIdx.x != 7)
        x[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1);
}
__global__ void left_out(int *x)
{
    x[threadIdx.x] = (int)__ballot_sync(1u, 1);
}
__global__ void two_kinds(int *x)
{
    if (threadIdx.x & 1)
        __syncwarp();
    else
        x[0] = (int)__ballot_sync(~0u, 1);
}
__global__ void traps()
{
    if (threadIdx.x == 3)
        __trap();
}
/* Faulty on purpose: UBSan would report it first. */
#define UNDEFINED __attribute__((no_sanitize("undefined")))
UNDEFINED __global__ void divides(int *x, int by)
{
    x[0] = 10 / by;
}
UNDEFINED __global__ void follows(float **table)
{
    table[0][0] = 1;
}
UNDEFINED __global__ void wild(float *x, long where)
{
    x[where] = 1;
}
/* Uses more stack than a thread has. */
__device__ int deep(int n)
{
    volatile char room[4096];
    room[n % 4096] = (char)n;
    return n > 0 ? deep(n - 1) + room[0] : (int)room[0];
}
__global__ void overflows(int *x, int n)
{
    x[0] = deep(n);
}
__global__ void too_much_shared()
{
    DYNAMIC_SHARED(char, bytes);
    bytes[100] = 1;
    __syncthreads();
}
struct Scale {
    float x, y;
};
NO_POINTERS(Scale)
__global__ void square(Scale *x, const Scale scale, dim3 d)
{
    x->x *= scale.x * (float)d.y;
}

static void indices()
{
    const int n = 2 * 3 * 2 * 4 * 2 * 3;
    for (bool barriers : {false, true}) {
        int *x = on_device<int>(n);
        GOOD(fill_now(x, 0, n * sizeof *x));
        dim3 grid(2, 3, 2), block(4, 2, 3);
        GOOD(barriers ? LAUNCH_BARRIERS(number, grid, block, 0, nullptr, x)
                      : LAUNCH(number, grid, block, 0, nullptr, x));
        std::vector<int> got = fetch(x, n);
        int i = 0;
        for (int bz = 0; bz < 2; bz++)
            for (int by = 0; by < 3; by++)
                for (int bx = 0; bx < 2; bx++)
                    for (int tz = 0; tz < 3; tz++)
                        for (int ty = 0; ty < 2; ty++)
                            for (int tx = 0; tx < 4; tx++)
                                EQUAL(got[(size_t)i++], 1 + tx + 10 * ty + 100 * tz +
                                                            1000 * bx + 10000 * by +
                                                            100000 * bz);
        GOOD(cudaFree(x));
    }
}

/* An error that nobody cleared shows at the next launch, as on a GPU. */
static void stale()
{
    void *p;
    EQUAL((int)cudaMalloc(&p, (size_t)-1), (int)cudaErrorMemoryAllocation);
    EQUAL((int)LAUNCH(nothing, 1, 1, 0, nullptr), (int)cudaErrorMemoryAllocation);
    GOOD(LAUNCH(nothing, 1, 1, 0, nullptr));
}

static void arguments()
{
    float *x = on_device<float>(300), *y = on_device<float>(300),
          *z = on_device<float>(300);
    std::vector<float> h(300);
    for (size_t i = 0; i < 300; i++)
        h[i] = (float)i;
    GOOD(copy_now(x, h.data(), 1200, cudaMemcpyHostToDevice));
    GOOD(copy_now(y, h.data(), 1200, cudaMemcpyHostToDevice));
    Operands o = {{{z, 1}, {x, 1}, {y, 1}}, 3};
    GOOD(LAUNCH(add, 2L, 256u, 0, nullptr, o, Extents{{300, 0, 0}}));
    EQUAL(fetch(z, 300)[299], 598);
    GOOD(LAUNCH((gather<float, 2>), 1, 300, 0, nullptr, Pack<float, 2>{{z, x}}, y));
    EQUAL(fetch(y, 300)[100], 300);
    GOOD(LAUNCH((map<float, Twice>), 2, 256, 0, nullptr, y, 300, Twice()));
    EQUAL(fetch(y, 300)[100], 600);
    /* A kernel chosen at run time, in a variable that is gone when the kernel runs. */
    schedule("lazy");
    {
        auto kernel = h[1] > 0 ? gather<float, 1> : nullptr;
        GOOD(LAUNCH(kernel, 1, 300, 0, nullptr, Pack<float, 1>{{x}}, y));
        kernel = nullptr;
    }
    GOOD(LAUNCH(nothing, 1, 1, 0, nullptr));
    EQUAL(fetch(y, 300)[100], 100);
    schedule("eager");
    Scale *v = on_device<Scale>(1);
    Scale one = {3, 1};
    GOOD(copy_now(v, &one, sizeof one, cudaMemcpyHostToDevice));
    GOOD(LAUNCH(square, 1, 1, 0, nullptr, v, one, dim3(1, 2)));
    EQUAL(fetch(v, 1)[0].x, 18);
    for (void *p : {(void *)x, (void *)y, (void *)z, (void *)v})
        GOOD(cudaFree(p));
}

static void barriers()
{
    float *x = on_device<float>(1000), *out = on_device<float>(3);
    std::vector<float> ones(1000, 1.0f);
    GOOD(copy_now(x, ones.data(), 4000, cudaMemcpyHostToDevice));
    for (int threads : {32, 256, 1024}) {
        GOOD(LAUNCH_BARRIERS(block_sum, 3, threads, 0, nullptr, x, out, 1000));
        std::vector<float> got = fetch(out, 3);
        EQUAL(got[0] + got[1] + got[2], 1000);
    }
    int *box = on_device<int>(4 * 100);
    GOOD(LAUNCH_BARRIERS(pass_on<true>, 4, 100, 100 * sizeof(int), nullptr, box));
    std::vector<int> got = fetch(box, 400);
    for (int b = 0; b < 4; b++)
        for (int t = 0; t < 100; t++)
            EQUAL(got[(size_t)(b * 100 + t)], (t + (b & 1 ? 99 : 1)) % 100);
    /* Without the barrier it fails in blocks of either thread order. */
    GOOD(LAUNCH_BARRIERS(pass_on<false>, 4, 100, 100 * sizeof(int), nullptr, box));
    got = fetch(box, 400);
    int wrong = 0;
    for (int b = 0; b < 4; b++)
        for (int t = 0; t < 100; t++)
            wrong += got[(size_t)(b * 100 + t)] != (t + (b & 1 ? 99 : 1)) % 100;
    CHECK(wrong > 0);
    for (void *p : {(void *)x, (void *)out, (void *)box})
        GOOD(cudaFree(p));
}

template <class T>
static void shuffle()
{
    const int n = 64;
    T *x = on_device<T>(8 * n);
    for (int turn = 0; turn < 2; turn++) { /* forwards and backwards */
        GOOD(LAUNCH_BARRIERS(shuffles<T>, 1, n, 0, nullptr, x));
        std::vector<T> got = fetch(x, 8 * n);
        for (int i = 0; i < n; i++) {
            int lane = i % 32, w = i - lane, group = i / 8 * 8, in = i % 8;
            const T *g = got.data() + i;
            EQUAL(g[0], w + 5);
            EQUAL(g[n], lane < 3 ? i : i - 3);
            EQUAL(g[2 * n], lane > 28 ? i : i + 3);
            EQUAL(g[3 * n], w + (lane ^ 6));
            EQUAL(g[4 * n], group + 1);
            EQUAL(g[5 * n], in < 2 ? i : i - 2);
            EQUAL(g[6 * n], in > 5 ? i : i + 2);
            EQUAL(g[7 * n], (i ^ 12) > group + 7 ? i : i ^ 12);
        }
    }
    GOOD(cudaFree(x));
}

static void vote()
{
    const unsigned n = 96;
    unsigned *x = on_device<unsigned>(2 * n);
    for (int turn = 0; turn < 2; turn++) {
        GOOD(LAUNCH_BARRIERS(votes, 1, n, 0, nullptr, x));
        std::vector<unsigned> got = fetch(x, 2 * n);
        for (unsigned i = 0; i < n; i++) {
            unsigned w = i / 32 * 32, ballot = 0;
            for (unsigned l = 0; l < 32; l++)
                ballot |= ((w + l) % 3 == 0 ? 1u : 0u) << l;
            unsigned *g = &got[2 * i];
            EQUAL(g[0], ballot);
            EQUAL(__popc(ballot), w == 64 ? 10 : 11);
            EQUAL(g[1], i % 32 < 16 ? 0xaaaau + w + 2 : 0xcccc0000u);
        }
    }
    EQUAL(__popc(0u), 0);
    EQUAL(__popc(~0u), 32);
    GOOD(cudaFree(x));
}

static void atomic()
{
    unsigned *u = on_device<unsigned>(2);
    unsigned long long *l = on_device<unsigned long long>(2);
    float *f = on_device<float>(1);
    double *d = on_device<double>(1);
    for (void *p : {(void *)u, (void *)l, (void *)f, (void *)d})
        GOOD(fill_now(p, 0, p == f ? 4 : p == d || p == u ? 8 : 16));
    GOOD(LAUNCH(atomics, 1, 100, 0, nullptr, u, l, f, d));
    EQUAL(fetch(u, 2)[0], 200);
    EQUAL(fetch(u, 2)[1], 100);
    EQUAL(fetch(l, 2)[0], 100ull << 40);
    EQUAL(fetch(l, 2)[1], 99);
    EQUAL(fetch(f, 1)[0], 50);
    EQUAL(fetch(d, 1)[0], 25);
    for (void *p : {(void *)u, (void *)l, (void *)f, (void *)d})
        GOOD(cudaFree(p));
}

/* Each is reported at the next synchronization, once, and the next launch works. */
#define WRONG(launch, error, words)                                                    \
    do {                                                                               \
        GOOD(launch);                                                                  \
        EQUAL((int)cudaDeviceSynchronize(), (int)error);                               \
        CHECK(said(words));                                                            \
        CHECK(strstr(cudaGetErrorString(error), words));                               \
        EQUAL((int)cudaGetLastError(), (int)error);                                    \
        GOOD(cudaDeviceSynchronize());                                                 \
        GOOD(LAUNCH_BARRIERS(pass_on<true>, 2, 64, 256, nullptr, x));                  \
        EQUAL(fetch(x, 64)[62], 63);                                                   \
    } while (0)

static void wrong()
{
    int *x = on_device<int>(200);
    const cudaError_t launch = cudaErrorLaunchFailure,
                      address = cudaErrorIllegalAddress;
    for (const char *when : {"eager", "lazy", "random:7"}) {
        schedule(when);
        WRONG(LAUNCH_BARRIERS(half_waits, 2, 64, 0, nullptr, x), launch,
              "10 wait at a __sync");
        WRONG(LAUNCH_BARRIERS(lanes_missing, 1, 32, 0, nullptr, x), launch,
              "0xffffffff");
        WRONG(LAUNCH_BARRIERS(lanes_missing, 1, 40, 0, nullptr, x), launch,
              "lanes_missing");
        WRONG(LAUNCH_BARRIERS(left_out, 1, 32, 0, nullptr, x), launch,
              "excludes the caller");
        WRONG(LAUNCH_BARRIERS(two_kinds, 1, 32, 0, nullptr, x), launch,
              "must all reach");
        WRONG(LAUNCH_BARRIERS(traps, 1, 32, 0, nullptr), launch,
              "thread (3, 0, 0): __trap");
        WRONG(LAUNCH(traps, 1, 32, 0, nullptr), launch, "__trap");
        WRONG(LAUNCH(half_waits, 1, 32, 0, nullptr, x), launch,
              "needs LAUNCH_BARRIERS");
        WRONG(LAUNCH(left_out, 1, 32, 0, nullptr, x), launch, "needs LAUNCH_BARRIERS");
#ifdef __x86_64__ /* other architectures give a number, as on a GPU */
        WRONG(LAUNCH(divides, 1, 1, 0, nullptr, x, 0), launch, "by zero");
#endif
        WRONG(LAUNCH(wild, 1, 1, 0, nullptr, nullptr, 4), address, "not device memory");
        WRONG(LAUNCH_BARRIERS(wild, 1, 64, 0, nullptr, nullptr, 4), address, "wild");
    }
    schedule("eager");
    /* Pointers in device memory are not translated. */
    float **table = on_device<float *>(1);
    float *inner = on_device<float>(1 << 20); /* on its own pages */
    GOOD(copy_now(table, &inner, sizeof inner, cudaMemcpyHostToDevice));
    WRONG(LAUNCH(follows, 1, 1, 0, nullptr, table), address,
          "was not a pointer argument");
    if (!sanitized) {
        WRONG(LAUNCH(wild, 1, 1, 0, nullptr, inner, (long)1 << 40), address, "wild");
        WRONG(LAUNCH_BARRIERS(too_much_shared, 1, 1, 100, nullptr), address,
              "shared memory");
        WRONG(LAUNCH_BARRIERS(overflows, 1, 64, 0, nullptr, x, 1000), address, "stack");
        WRONG(LAUNCH(overflows, 1, 64, 0, nullptr, x, 10000), address, "stack");
    }
    GOOD(cudaFree(table));
    GOOD(cudaFree(inner));
    GOOD(cudaFree(x));
}

static void extents()
{
    const int bad = cudaErrorInvalidConfiguration;
    EQUAL((int)LAUNCH(nothing, 0, 1, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1, 0, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, -5, 1, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1L << 33, 1, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1, 1025, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, dim3(1, 65536), 1, 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1, dim3(1, 1, 65), 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1, dim3(32, 32, 2), 0, nullptr), bad);
    EQUAL((int)LAUNCH(nothing, 1, 1, 49153, nullptr), (int)cudaErrorInvalidValue);
    cudaGetLastError();
}

/* A struct with undeclared pointers does not compile. */
#ifdef SIM_CUDA
struct Forgotten {
    float *data;
};
static_assert(!sim::says_pointers<Forgotten>::value &&
              sim::says_pointers<Operands>::value &&
              sim::says_pointers<Extents>::value &&
              sim::says_pointers<Pack<int, 3>>::value);
#endif

int main()
{
    indices();
    stale();
    arguments();
    barriers();
    shuffle<int>();
    shuffle<unsigned>();
    shuffle<float>();
    shuffle<double>();
    shuffle<long long>();
    shuffle<unsigned long long>();
    vote();
    atomic();
    wrong();
    extents();
    return finish();
}
