#include "cuda/runtime/backend.h"

#include <map>
#include <vector>

namespace {

/* Locking pages is slow, so blocks have power-of-two sizes and are never unlocked. */
const int kClasses = 48;
const int kSmallest = 9;

/* The last copy from or to the block that was queued on a stream. */
struct Use {
    cudaStream_t stream;
    cudaEvent_t event;
    int device;
};

struct Block {
    char *data;
    int order; /* the size is 2^order */
    std::vector<Use> uses;
};

struct Heap {
    std::map<char *, Block *> blocks;
    std::vector<Block *> free[kClasses];
    std::vector<Block *> waiting; /* released while copies may still use them */
};

/* Never destroyed: tensors may outlive the library's static objects at exit. */
Heap &heap(void)
{
    static Heap *only = new Heap;
    return *only;
}

/* Drops the uses that are done; true if none is left. */
bool settle(Block *block)
{
    size_t kept = 0;
    for (const Use &use : block->uses) {
        cudaError_t error = cudaEventQuery(use.event);
        if (error != cudaSuccess)
            cudaGetLastError();
        /* Other errors belong to the stream; its next user will see them. */
        if (error == cudaErrorNotReady)
            block->uses[kept++] = use;
        else
            cuda_succeeds(cudaEventDestroy(use.event));
    }
    block->uses.resize(kept);
    return !kept;
}

void settle_waiting(Heap &all)
{
    size_t kept = 0;
    for (Block *block : all.waiting) {
        if (settle(block))
            all.free[block->order].push_back(block);
        else
            all.waiting[kept++] = block;
    }
    all.waiting.resize(kept);
}

/* The block that holds an address, or NULL. */
Block *block_of(Heap &all, const void *data)
{
    auto next = all.blocks.upper_bound((char *)data);
    if (next == all.blocks.begin())
        return nullptr;
    Block *block = (--next)->second;
    size_t offset = (size_t)((char *)data - block->data);
    return offset < (size_t)1 << block->order ? block : nullptr;
}

/* Records a queued copy from or to the block. */
int note_use(Block *block, dt_stream stream)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    for (const Use &use : block->uses)
        if (use.stream == handle && use.device == stream.device) {
            CUDA_TRY("recording an event", cudaEventRecord(use.event, handle));
            return 0;
        }
    cudaEvent_t event = nullptr;
    CUDA_TRY("creating an event",
             cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t error = cudaEventRecord(event, handle);
    if (error != cudaSuccess) {
        cudaEventDestroy(event);
        return cuda_fail(error, "recording an event");
    }
    block->uses.push_back({handle, event, stream.device});
    return 0;
}

/* Copies from or to the block that holds `inside`. */
int copy(dt_stream stream, void *target, const void *source, size_t bytes,
         cudaMemcpyKind kind, const void *inside, const char *doing)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    Heap &all = heap();
    dt_locked guard(DT_LOCK_PINNED);
    Block *block = block_of(all, inside);
    CUDA_TRY(doing, cudaMemcpyAsync(target, source, bytes, kind, handle));
    if (block && !note_use(block, stream))
        return 0;
    /* Nothing keeps the memory alive until the copy is done, so synchronize. */
    CUDA_TRY(doing, cudaStreamSynchronize(handle));
    return block ? -1 : 0;
}

} /* namespace */

int dt_cuda_pinned_allocate(int device, size_t bytes, void **out)
{
    int order = kSmallest;
    while (order < kClasses && (size_t)1 << order < bytes)
        order++;
    if (order == kClasses)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "no page-locked memory for %zu bytes; pin smaller tensors",
                       bytes);
    if (device_use(device))
        return -1;
    Heap &all = heap();
    dt_locked guard(DT_LOCK_PINNED);
    settle_waiting(all);
    if (all.free[order].empty()) {
        void *data = nullptr;
        CUDA_TRY("allocating pinned memory",
                 cudaHostAlloc(&data, (size_t)1 << order, cudaHostAllocPortable));
        Block *block = new Block{(char *)data, order, {}};
        all.blocks[block->data] = block;
        *out = data;
        return 0;
    }
    *out = all.free[order].back()->data;
    all.free[order].pop_back();
    return 0;
}

void dt_cuda_pinned_release(void *data)
{
    Heap &all = heap();
    dt_locked guard(DT_LOCK_PINNED);
    Block *block = block_of(all, data);
    if (block && block->uses.empty())
        all.free[block->order].push_back(block);
    else if (block)
        all.waiting.push_back(block);
}

int dt_cuda_pinned_to_device(dt_stream stream, void *target, const void *source,
                             size_t bytes)
{
    return copy(stream, target, source, bytes, cudaMemcpyHostToDevice, source,
                "copying to a device");
}

int dt_cuda_pinned_to_host(dt_stream stream, void *target, const void *source,
                           size_t bytes)
{
    return copy(stream, target, source, bytes, cudaMemcpyDeviceToHost, target,
                "copying from a device");
}
