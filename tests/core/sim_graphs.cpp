/* Captures and graphs of simulated GPUs: what is captured, what is refused. */
#include <pthread.h>
#include "sim_check.h"

__global__ void set(int *x, int value)
{
    *x = value;
}
__global__ void bump(int *x)
{
    *x += 1;
}
__global__ void add(int *to, const int *from)
{
    *to += *from;
}

static cudaStream_t make()
{
    cudaStream_t stream = nullptr;
    GOOD(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
    return stream;
}
static cudaEvent_t mark()
{
    cudaEvent_t event = nullptr;
    GOOD(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}
static void wait_for(cudaStream_t waiting, cudaStream_t stream)
{
    cudaEvent_t event = mark();
    GOOD(cudaEventRecord(event, stream));
    GOOD(cudaStreamWaitEvent(waiting, event, 0));
    GOOD(cudaEventDestroy(event));
}

/* Ends the capture and makes the graph ready. */
static cudaGraphExec_t end(cudaStream_t stream)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    GOOD(cudaStreamEndCapture(stream, &graph));
    GOOD(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cudaGraphDestroy(graph));
    return exec;
}
static cudaError_t end_status(cudaStream_t stream)
{
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    CHECK((error == cudaSuccess) == (graph != nullptr));
    if (graph)
        GOOD(cudaGraphDestroy(graph));
    cudaGetLastError(); /* what was refused */
    return error;
}
static cudaStreamCaptureStatus status(cudaStream_t stream)
{
    cudaStreamCaptureStatus out = cudaStreamCaptureStatusNone;
    GOOD(cudaStreamIsCapturing(stream, &out));
    return out;
}

static void replays(const char *name)
{
    schedule(name);
    cudaStream_t s = make(), t = make();
    int *x = on_device<int>(1), *y = on_device<int>(1);
    GOOD(fill_now(x, 0, 4));
    GOOD(fill_now(y, 0, 4));
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GOOD(LAUNCH(bump, 1, 1, 0, s, x));
    GOOD(cudaMemsetAsync(y, 0, 4, s));
    wait_for(t, s);
    EQUAL((int)status(t), (int)cudaStreamCaptureStatusActive);
    GOOD(LAUNCH(add, 1, 1, 0, t, y, x));
    wait_for(s, t);
    GOOD(LAUNCH(add, 1, 1, 0, s, y, x));
    cudaGraphExec_t exec = end(s);
    EQUAL((int)status(t), (int)cudaStreamCaptureStatusNone);
    EQUAL(fetch(x, 1)[0], 0); /* nothing has run */
    for (int i = 1; i <= 5; i++) {
        GOOD(cudaGraphLaunch(exec, i % 2 ? s : t));
        GOOD(cudaDeviceSynchronize());
        EQUAL(fetch(x, 1)[0], i);
        EQUAL(fetch(y, 1)[0], 2 * i);
    }
    GOOD(cudaGraphLaunch(exec, s)); /* the second waits for the first */
    GOOD(cudaGraphLaunch(exec, t));
    GOOD(cudaGraphExecDestroy(exec));
    GOOD(cudaDeviceSynchronize());
    EQUAL(fetch(y, 1)[0], 14);
    GOOD(cudaFree(x));
    GOOD(cudaFree(y));
}

/* Each refused call loses the capture, and the streams work again after its end. */
template <class F>
static void refused(cudaStreamCaptureMode mode, cudaError_t wanted, F call)
{
    cudaStream_t s = make();
    int *x = on_device<int>(1);
    GOOD(cudaStreamBeginCapture(s, mode));
    GOOD(LAUNCH(set, 1, 1, 0, s, x, 3));
    EQUAL((int)call(s), (int)wanted);
    EQUAL((int)status(s), (int)cudaStreamCaptureStatusInvalidated);
    EQUAL((int)LAUNCH(set, 1, 1, 0, s, x, 3), (int)cudaErrorStreamCaptureInvalidated);
    EQUAL((int)end_status(s), (int)cudaErrorStreamCaptureInvalidated);
    GOOD(LAUNCH(set, 1, 1, 0, s, x, 4));
    GOOD(cudaStreamSynchronize(s));
    EQUAL(fetch(x, 1)[0], 4);
    GOOD(cudaFree(x));
}

static void refusals()
{
    const auto global = cudaStreamCaptureModeGlobal,
               relaxed = cudaStreamCaptureModeRelaxed;
    const auto unsupported = cudaErrorStreamCaptureUnsupported;
    cudaEvent_t event = mark();
    GOOD(cudaEventRecord(event, nullptr));
    refused(relaxed, unsupported,
            [](cudaStream_t s) { return cudaStreamSynchronize(s); });
    refused(relaxed, unsupported, [](cudaStream_t s) { return cudaStreamQuery(s); });
    refused(relaxed, unsupported, [](cudaStream_t) { return cudaDeviceSynchronize(); });
    refused(global, unsupported, [](cudaStream_t) {
        void *memory;
        return cudaMalloc(&memory, 8);
    });
    refused(global, unsupported, [=](cudaStream_t) { return cudaEventQuery(event); });
    refused(relaxed, cudaErrorStreamCaptureIsolation,
            [=](cudaStream_t s) { return cudaStreamWaitEvent(s, event, 0); });
    refused(relaxed, cudaErrorCapturedEvent, [=](cudaStream_t s) {
        cudaEvent_t own = mark();
        GOOD(cudaEventRecord(own, s));
        return cudaEventSynchronize(own);
    });
    refused(relaxed, cudaErrorStreamCaptureImplicit, [=](cudaStream_t s) {
        cudaEvent_t own = mark();
        GOOD(cudaEventRecord(own, s));
        return cudaStreamWaitEvent(nullptr, own, 0);
    });
    EQUAL((int)cudaStreamBeginCapture(nullptr, global), (int)unsupported);
    cudaStream_t s = make();
    cudaGraph_t none;
    EQUAL((int)cudaStreamEndCapture(s, &none), (int)cudaErrorIllegalState);
    cudaGetLastError();
    GOOD(cudaStreamBeginCapture(s, global));
    EQUAL((int)cudaStreamBeginCapture(s, global), (int)cudaErrorIllegalState);
    GOOD(end_status(s));
}

static void joins()
{
    cudaStream_t s = make(), t = make();
    int *x = on_device<int>(1);
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    wait_for(t, s);
    GOOD(LAUNCH(set, 1, 1, 0, t, x, 3));
    EQUAL((int)end_status(s), (int)cudaErrorStreamCaptureUnjoined);
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GOOD(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal));
    cudaEvent_t event = mark();
    GOOD(cudaEventRecord(event, s));
    EQUAL((int)cudaStreamWaitEvent(t, event, 0), (int)cudaErrorStreamCaptureMerge);
    EQUAL((int)end_status(s), (int)cudaErrorStreamCaptureInvalidated);
    EQUAL((int)end_status(t), (int)cudaErrorStreamCaptureInvalidated);
    EQUAL((int)cudaStreamWaitEvent(t, event, 0),
          (int)cudaErrorStreamCaptureInvalidated);
    GOOD(cudaFree(x));
}

/* Calls that allocate or wait, also of what no capture takes. */
typedef cudaError_t Call();

static cudaError_t allocate()
{
    void *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, 8);
    return error ? error : cudaFree(memory);
}
static cudaError_t allocate_pinned()
{
    void *memory = nullptr;
    cudaError_t error = cudaHostAlloc(&memory, 8, 0);
    return error ? error : cudaFreeHost(memory);
}
static cudaError_t wait_for_an_event()
{
    static cudaEvent_t event;
    if (!event)
        event = mark();
    GOOD(cudaEventRecord(event, nullptr));
    return cudaEventSynchronize(event);
}
static cudaError_t wait_for_a_stream()
{
    return cudaStreamSynchronize(nullptr);
}
static cudaError_t copy_pageable()
{
    static int *x = on_device<int>(1);
    static int value;
    return cudaMemcpyAsync(x, &value, 4, cudaMemcpyHostToDevice, nullptr);
}
template <int N>
__global__ void cold(int *x)
{
    *x = N;
}
/* A kernel at its first launch. */
static cudaError_t load_a_kernel()
{
    static int *x = on_device<int>(1);
    static void (*const kernels[])(int *) = {cold<0>, cold<1>, cold<2>, cold<3>};
    static int next;
    cudaError_t error = LAUNCH(kernels[next], 1, 1, 0, nullptr, x);
    next += !error;
    return error;
}

struct Elsewhere {
    Call *call;
    cudaError_t error;
};
static cudaError_t call_elsewhere(Call *call)
{
    pthread_t thread;
    Elsewhere it = {call, cudaSuccess};
    auto run = [](void *given) -> void * {
        Elsewhere *own = (Elsewhere *)given;
        own->error = own->call();
        return nullptr;
    };
    pthread_create(&thread, nullptr, run, &it);
    pthread_join(thread, nullptr);
    return it.error;
}

/* The mode of a capture and that of a thread say who refuses which call. */
static void modes(Call *call)
{
    const cudaError_t refused = cudaErrorStreamCaptureUnsupported;
    const cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal,
                                local = cudaStreamCaptureModeThreadLocal;
    cudaStream_t s = make();
    GOOD(cudaStreamBeginCapture(s, local));
    GOOD(call_elsewhere(call));
    GOOD(end_status(s));
    GOOD(cudaStreamBeginCapture(s, local));
    EQUAL((int)call(), (int)refused);
    EQUAL((int)end_status(s), (int)cudaErrorStreamCaptureInvalidated);
    GOOD(cudaStreamBeginCapture(s, global));
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    GOOD(cudaThreadExchangeStreamCaptureMode(&mode));
    EQUAL((int)mode, (int)global);
    GOOD(call());
    GOOD(cudaThreadExchangeStreamCaptureMode(&mode));
    EQUAL((int)call_elsewhere(call), (int)refused);
    EQUAL((int)end_status(s), (int)cudaErrorStreamCaptureInvalidated);
    GOOD(cudaStreamDestroy(s));
}

/* A replay that uses memory that was freed since is a fault. */
static void freed()
{
    schedule("lazy");
    cudaStream_t s = make();
    int *x = on_device<int>(1);
    GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    GOOD(LAUNCH(set, 1, 1, 0, s, x, 3));
    cudaGraphExec_t exec = end(s);
    GOOD(cudaFree(x));
    GOOD(cudaGraphLaunch(exec, s));
    EQUAL((int)cudaStreamSynchronize(s), (int)cudaErrorIllegalAddress);
    CHECK(said("a replay of set uses a block of 4 bytes"));
    GOOD(cudaGraphExecDestroy(exec));
    EQUAL((int)cudaGraphLaunch(exec, s), (int)cudaErrorInvalidValue);
    cudaGetLastError();
}

/* Loads the kernels. */
static void warm_up()
{
    int *x = on_device<int>(1);
    GOOD(LAUNCH(set, 1, 1, 0, nullptr, x, 1));
    GOOD(LAUNCH(bump, 1, 1, 0, nullptr, x));
    GOOD(LAUNCH(add, 1, 1, 0, nullptr, x, x));
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaFree(x));
}

int main()
{
    warm_up();
    for (const char *name : {"eager", "lazy", "random:3"})
        replays(name);
    refusals();
    joins();
    for (Call *call : {allocate, allocate_pinned, wait_for_an_event, wait_for_a_stream,
                       copy_pageable, load_a_kernel})
        modes(call);
    freed();
    return finish();
}
