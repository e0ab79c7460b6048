/* The simulator's settings, failures on demand, counters, device properties, and
 * fork. */
#include "sim_check.h"

__global__ void first(int *x)
{
    *x = 1;
}
__global__ void second(int *x)
{
    *x = 2;
}

static int count_with(const char *name, const char *value)
{
    int status = in_child([=] {
        setenv(name, value, 1);
        int n = 0;
        cudaError_t error = cudaGetDeviceCount(&n);
        _exit(error == cudaSuccess ? n : error == cudaErrorNoDevice ? 50 : 60);
    });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void environment()
{
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", "3"), 3);
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", "0"), 50);
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", ""), 1);
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", "two"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", "33"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_GPUS", "-1"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_MEMORY", "lots"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_MEMORY", "99999999T"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_MEMORY", "64M"), 1);
    EQUAL(count_with("PYDEVTENSOR_SIM_SCHEDULE", "sometimes"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_SCHEDULE", "random:12"), 1);
    EQUAL(count_with("PYDEVTENSOR_SIM_PEER", "no"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_FAIL", "malloc"), 60);
    EQUAL(count_with("PYDEVTENSOR_SIM_FAIL", "malloc:2,copy:1"), 1);
    EQUAL(in_child([] { /* the complaint can be read, and every call returns the
                           error */
                        setenv("PYDEVTENSOR_SIM_SCHEDULE", "sometimes", 1);
                        void *p;
                        cudaError_t error = cudaMalloc(&p, 4);
                        _exit(error != cudaErrorInvalidValue ||
                              !strstr(cudaGetErrorString(error),
                                      "'sometimes' is not a schedule") ||
                              !strstr(dt_sim_complaint(), "sometimes"));
          }),
          0);
    EQUAL(in_child([] {
              setenv("PYDEVTENSOR_SIM_GPUS", "2", 1);
              setenv("PYDEVTENSOR_SIM_MEMORY", "2G", 1);
              setenv("PYDEVTENSOR_SIM_PEER", "0", 1);
              setenv("PYDEVTENSOR_SIM_FAIL", "malloc:2", 1);
              cudaDeviceProp p;
              int can = 1;
              void *m;
              bool good = !cudaGetDeviceProperties(&p, 1) &&
                          p.totalGlobalMem == (size_t)2 << 30 &&
                          !cudaDeviceCanAccessPeer(&can, 0, 1) && !can &&
                          !cudaMalloc(&m, 1) &&
                          cudaMalloc(&m, 1) == cudaErrorMemoryAllocation &&
                          !cudaMalloc(&m, (size_t)3 << 29);
              _exit(!good);
          }),
          0);
}

static void settings()
{
    EQUAL(dt_sim_set("devices", "2"), 0);
    EQUAL(dt_sim_set("devices", "-1"), -1);
    CHECK(strstr(dt_sim_complaint(), "0 to 32"));
    EQUAL(dt_sim_set("devices", "4"), 0);
    EQUAL((int)*dt_sim_complaint(), 0);
    EQUAL(dt_sim_set("memory", "1"), -1);
    EQUAL(dt_sim_set("memory", "1M"), 0);
    int n = 0;
    GOOD(cudaGetDeviceCount(&n));
    EQUAL(n, 4);
    EQUAL(dt_sim_set("devices", "2"), 0); /* counting devices does not use them */
    GOOD(cudaSetDevice(1));
    EQUAL((int)cudaSetDevice(2), (int)cudaErrorInvalidDevice);
    EQUAL(dt_sim_set("devices", "3"), -1);
    CHECK(strstr(dt_sim_complaint(), "before the first use"));
    EQUAL(dt_sim_set("devices", "2"), 0);
    EQUAL(dt_sim_set("memory", "2M"), -1);
    EQUAL(dt_sim_set("schedule", "often"), -1);
    EQUAL(dt_sim_set("failures", "disk:1"), -1);
    EQUAL(dt_sim_set("failures", "malloc:0"), -1);
    EQUAL(dt_sim_set("failures", "malloc:+"), -1);
    EQUAL(dt_sim_set("failures", "malloc:1++"), -1);
    EQUAL(dt_sim_set("failures", ""), 0);
    GOOD(cudaSetDevice(0));
    cudaGetLastError();
}

static void failures()
{
    void *p[4] = {}, *h = nullptr;
    char host[4] = {};
    cudaStream_t s = nullptr;
    cudaEvent_t e = nullptr;
    EQUAL(dt_sim_set("failures",
                     "malloc:3,host:1,copy:2,memset:1,launch:2,stream:1,event:1"),
          0);
    GOOD(cudaMalloc(&p[0], 4));
    GOOD(cudaMalloc(&p[1], 4));
    EQUAL((int)cudaMalloc(&p[2], 4), (int)cudaErrorMemoryAllocation);
    GOOD(cudaMalloc(&p[3], 4));
    EQUAL((int)cudaHostAlloc(&h, 4, 0), (int)cudaErrorMemoryAllocation);
    GOOD(cudaMemcpyAsync(p[0], host, 4, cudaMemcpyHostToDevice, nullptr));
    EQUAL((int)cudaMemcpyAsync(p[0], host, 4, cudaMemcpyHostToDevice, nullptr),
          (int)cudaErrorUnknown);
    GOOD(cudaMemcpyAsync(p[0], host, 4, cudaMemcpyHostToDevice, nullptr));
    EQUAL((int)cudaMemsetAsync(p[0], 0, 4, nullptr), (int)cudaErrorUnknown);
    cudaGetLastError();
    GOOD(LAUNCH(first, 1, 1, 0, nullptr, (int *)p[0]));
    EQUAL((int)LAUNCH(second, 1, 1, 0, nullptr, (int *)p[0]),
          (int)cudaErrorLaunchOutOfResources);
    EQUAL(fetch((int *)p[0], 1)[0], 1);
    EQUAL((int)cudaStreamCreateWithPriority(&s, 0, 0), (int)cudaErrorMemoryAllocation);
    EQUAL((int)cudaEventCreateWithFlags(&e, cudaEventDefault),
          (int)cudaErrorMemoryAllocation);
    GOOD(cudaDeviceSynchronize());
    EQUAL((int)cudaGetLastError(), (int)cudaErrorMemoryAllocation);
    EQUAL(dt_sim_set("failures", "malloc:1:46,launch:2:719"), 0);
    EQUAL((int)cudaMalloc(&p[2], 4), (int)cudaErrorDevicesUnavailable);
    cudaGetLastError();
    GOOD(LAUNCH(first, 1, 1, 0, nullptr, (int *)p[0]));
    EQUAL((int)LAUNCH(first, 1, 1, 0, nullptr, (int *)p[0]),
          (int)cudaErrorLaunchFailure);
    EQUAL(dt_sim_set("failures", "malloc:1:0"), -1);
    EQUAL(dt_sim_set("failures", "malloc:2+,record:1"), 0);
    GOOD(cudaMalloc(&p[2], 4));
    for (int i = 0; i < 2; i++)
        EQUAL((int)cudaMalloc(&h, 4), (int)cudaErrorMemoryAllocation);
    GOOD(cudaEventCreateWithFlags(&e, cudaEventDefault));
    EQUAL((int)cudaEventRecord(e, nullptr), (int)cudaErrorUnknown);
    GOOD(cudaEventRecord(e, nullptr));
    GOOD(cudaEventDestroy(e));
    EQUAL(dt_sim_set("failures", ""), 0);
    GOOD(cudaFree(p[2]));
    cudaGetLastError();
    EQUAL(dt_sim_set("failures", "malloc:1:x"), -1);
    for (int i : {0, 1, 3})
        GOOD(cudaFree(p[i]));
}

/* A fault that stays: all calls that need the device fail with it, others do not. */
static void sticky()
{
    int *x = on_device<int>(1);
    const cudaError_t lost = cudaErrorIllegalAddress;
    void *p;
    int current = 1;
    EQUAL(dt_sim_set("sticky", "yes"), -1);
    EQUAL(dt_sim_set("sticky", "1"), 0);
    GOOD(cudaMemsetAsync(x, 0, 1 << 20, nullptr));
    EQUAL((int)cudaDeviceSynchronize(), (int)lost);
    EQUAL((int)cudaDeviceSynchronize(), (int)lost);
    EQUAL((int)cudaMalloc(&p, 4), (int)lost);
    EQUAL((int)cudaFree(x), (int)lost);
    EQUAL((int)LAUNCH(first, 1, 1, 0, nullptr, x), (int)lost);
    GOOD(cudaGetDevice(&current));
    EQUAL(current, 0);
    GOOD(cudaSetDevice(1));
    GOOD(cudaDeviceSynchronize());
    EQUAL((int)cudaSetDevice(0), (int)lost);
    EQUAL(dt_sim_set("sticky", "0"), 0);
    GOOD(cudaSetDevice(0));
    GOOD(cudaFree(x));
    cudaGetLastError();
}

/* A device has a context once it was current; a count makes none, but starts the
 * runtime, which no child can use then. */
static void contexts()
{
    EQUAL(in_child([] {
              setenv("PYDEVTENSOR_SIM_GPUS", "2", 1);
              int n = 0, active[3] = {};
              unsigned flags;
              bool good = !cudaGetDeviceCount(&n) && n == 2 &&
                          !cuDevicePrimaryCtxGetState(1, &flags, &active[0]) &&
                          !cudaSetDevice(1) &&
                          !cuDevicePrimaryCtxGetState(1, &flags, &active[1]) &&
                          !cuDevicePrimaryCtxGetState(0, &flags, &active[2]);
              _exit(!good || active[0] || !active[1] || active[2]);
          }),
          0);
    EQUAL(in_child([] {
              int n = 0;
              bool good = !cudaGetDeviceCount(&n);
              int status = in_child([] {
                  int m = 0;
                  void *p;
                  _exit(cudaGetDeviceCount(&m) != cudaErrorInitializationError ||
                        cudaMalloc(&p, 4) != cudaErrorInitializationError);
              });
              _exit(!good || status);
          }),
          0);
}

static void counters()
{
    int *x = on_device<int>(2), *y = nullptr, host[2] = {};
    dt_sim_counters before[3];
    for (int d = -1; d < 2; d++)
        dt_sim_count(d, &before[d + 1]);
    auto counted = [&](int device) {
        dt_sim_counters c;
        dt_sim_count(device, &c);
#define COUNTER(name) c.name -= before[device + 1].name;
        DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
        return c;
    };
    GOOD(cudaSetDevice(1));
    GOOD(cudaMalloc(&y, 8));
    GOOD(LAUNCH(first, 1, 1, 0, nullptr, y));
    GOOD(cudaMemcpyPeerAsync(x, 0, y, 1, 4, nullptr));
    GOOD(cudaFree(y));
    GOOD(cudaSetDevice(0));
    GOOD(LAUNCH(second, 1, 1, 0, nullptr, x));
    GOOD(LAUNCH(second, 1, 1, 0, nullptr, x));
    GOOD(cudaMemcpyAsync(x, host, 8, cudaMemcpyHostToDevice, nullptr));
    GOOD(cudaMemcpyAsync(host, x, 4, cudaMemcpyDeviceToHost, nullptr));
    GOOD(cudaMemcpyAsync(x, x + 1, 4, cudaMemcpyDeviceToDevice, nullptr));
    GOOD(cudaMemcpyAsync(host, host + 1, 4, cudaMemcpyHostToHost, nullptr));
    GOOD(cudaMemsetAsync(x, 0, 8, nullptr));
    GOOD(cudaLaunchHostFunc(nullptr, [](void *) {}, nullptr));
    GOOD(cudaStreamSynchronize(nullptr));
    GOOD(cudaDeviceSynchronize());
    GOOD(LAUNCH(first, 1, 1, 0, nullptr, host));
    EQUAL((int)cudaDeviceSynchronize(), (int)cudaErrorIllegalAddress);
    dt_sim_counters c = counted(0);
    EQUAL(c.launches, 3);
    EQUAL(c.copies_to_device, 1);
    EQUAL(c.bytes_to_device, 8);
    EQUAL(c.copies_to_host, 1);
    EQUAL(c.bytes_to_host, 4);
    EQUAL(c.copies_on_device, 1);
    EQUAL(c.copies_between_devices, 1);
    EQUAL(c.bytes_between_devices, 4);
    EQUAL(c.copies_on_host, 1);
    EQUAL(c.memsets, 1);
    EQUAL(c.host_functions, 1);
    EQUAL(c.waits, 3);
    EQUAL(c.mallocs, 0);
    EQUAL(c.violations, 1);
    c = counted(1);
    EQUAL(c.launches, 1);
    EQUAL(c.mallocs, 1);
    EQUAL(c.frees, 1);
    EQUAL(counted(-1).launches, 4);
    GOOD(cudaFree(x));
    cudaGetLastError();
}

static void properties()
{
    cudaDeviceProp p, q;
    int value = 0;
    GOOD(cudaGetDeviceProperties(&p, 0));
    GOOD(cudaGetDeviceProperties(&q, 1));
    CHECK(!strcmp(p.name, "Simulated GPU"));
    CHECK(p.major == 8 && p.minor == 0 && p.warpSize == 32 &&
          p.totalGlobalMem == 1 << 20);
    CHECK(memcmp(&p.uuid, &q.uuid, 16) && p.pciDeviceID != q.pciDeviceID);
    GOOD(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    EQUAL(value, p.major);
    EQUAL((int)cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 2),
          (int)cudaErrorInvalidDevice);
    EQUAL((int)cudaGetDeviceProperties(&p, 2), (int)cudaErrorInvalidDevice);
    EQUAL((int)cudaGetDeviceProperties(&p, -1), (int)cudaErrorInvalidDevice);
    GOOD(cudaDriverGetVersion(&value));
    EQUAL(value, 13000);
    CHECK(
        !strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
    CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
    CHECK(!strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code"));
    int least, greatest;
    GOOD(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest < 0);
    cudaGetLastError();
}

/* In the child of a process that used devices, every call fails and none hangs. */
static void forks()
{
    int *x = on_device<int>(1);
    EQUAL(in_child([x] {
              alarm(10);
              void *p;
              int n;
              cudaStream_t s;
              const cudaError_t no = cudaErrorInitializationError;
              bool good =
                  cudaMalloc(&p, 4) == no && cudaFree(x) == no &&
                  cudaDeviceSynchronize() == no && cudaGetDeviceCount(&n) == no &&
                  cudaStreamCreateWithPriority(&s, 0, 0) == no &&
                  cudaSetDevice(0) == no && LAUNCH(first, 1, 1, 0, nullptr, x) == no &&
                  cudaStreamSynchronize(nullptr) == no && dt_sim_pending(-1) == 0;
              _exit(!good);
          }),
          0);
    GOOD(LAUNCH(first, 1, 1, 0, nullptr, x));
    GOOD(cudaFree(x));
}

int main()
{
    environment();
    contexts();
    settings();
    failures();
    sticky();
    counters();
    properties();
    forks();
    return finish();
}
