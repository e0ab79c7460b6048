/* Memory that processes share: the driver's handles of whole allocations, and pages of segments
 * that grow. */
#include "cuda/runtime/backend.h"
#include "cuda/runtime/mapping.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <string>

#include "base/lock.h"

/* The first byte of a handle: its kind, the driver's own or one of pages. */
static const char WHOLE = 'c', PAGES = 'e';
static_assert(sizeof(cudaIpcMemHandle_t) <= DT_IPC_MEMORY - 1 &&
                  sizeof(SharedPages) <= DT_IPC_MEMORY - 1,
              "the handle's size");

/* --- the sender --- */

static int export_pages(int device, void *data, char *out, size_t *offset)
{
    SharedPages made;
    if (device_use(device))
        return -1;
    if (!heap_give_pages(device, data, &made, offset))
        return dt_fail(DT_ERROR_RUNTIME,
                       "the driver does not let other processes map memory of an "
                       "expandable segment; make the tensor, or a clone() of it, after "
                       "torch._C._accelerator_setAllocatorSettings("
                       "'expandable_segments:False')");
    out[0] = PAGES;
    memcpy(out + 1, &made, sizeof made);
    return 0;
}

int dt_cuda_ipc_export(int device, void *data, char *out_handle, size_t *out_offset)
{
    char *segment = (char *)heap_segment(device, data);
    cudaIpcMemHandle_t made;
    if (!segment)
        return dt_fail(DT_ERROR_RUNTIME,
                       "the memory is not of this process's allocator; clone() the "
                       "tensor before it is sent");
    if (heap_grows(device, data))
        return export_pages(device, data, out_handle, out_offset);
    if (device_use(device))
        return -1;
    CUDA_TRY("making a handle of memory for other processes",
             cudaIpcGetMemHandle(&made, segment));
    out_handle[0] = WHOLE;
    memcpy(out_handle + 1, &made, sizeof made);
    *out_offset = (size_t)((char *)data - segment);
    return 0;
}

/* --- the receiver --- */

struct Opened {
    Mapped range;
    std::string handle; /* the same handle on the same device has the same address */
    int device, count;
};

/* By address. Never destroyed: tensors may outlive the library's static objects. */
static std::map<void *, Opened> &opened_pages()
{
    static auto *all = new std::map<void *, Opened>;
    return *all;
}

struct Descriptors {
    std::vector<int> all;
    ~Descriptors()
    {
        for (int each : all)
            close(each);
    }
};

/* Descriptors of this process for pages of another one. */
static int take_descriptors(const SharedPages &given, Descriptors *out)
{
    const int process = dt_shared_file_maker(given.table);
    const int table = dt_shared_file_open(given.table);
    for (uint32_t i = 0; table >= 0 && i < given.count; i++) {
        const off_t at = (off_t)(((uint64_t)given.first + i) * sizeof(int));
        int number = -1;
        if (pread(table, &number, sizeof number, at) != sizeof number)
            break;
        const int taken = dt_shared_file_take(process, number);
        if (taken < 0)
            break;
        out->all.push_back(taken);
    }
    const int error = errno;
    if (table >= 0)
        close(table);
    if (given.count && out->all.size() == given.count)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "memory of an expandable segment of process %d was not opened (%s): "
                   "it has to run until then, as the same user, and the system has to "
                   "allow pidfd_getfd (kernel.yama.ptrace_scope=0)",
                   process, strerror(error));
}

static int open_pages(int device, const char *handle, void **out)
{
    const std::string name(handle, DT_IPC_MEMORY);
    dt_locked guard(DT_LOCK_DEVICE_TABLE);
    for (auto &each : opened_pages())
        if (each.second.device == device && each.second.handle == name) {
            each.second.count++;
            *out = each.first;
            return 0;
        }
    SharedPages given;
    Descriptors descriptors;
    memcpy(&given, handle + 1, sizeof given);
    given.table[sizeof given.table - 1] = '\0';
    if (take_descriptors(given, &descriptors))
        return -1;
    Opened made = {{}, name, device, 1};
    CUDA_TRY("opening memory of another process",
             made.range.take(device_ordinal(device), given.page, descriptors.all));
#ifdef DT_SIMULATED
    sim::block_opened(made.range.base, made.range.bytes);
#endif
    *out = made.range.base;
    opened_pages().emplace(*out, std::move(made));
    return 0;
}

/* False: there are no such pages. */
static bool close_pages(void *opened)
{
    dt_locked guard(DT_LOCK_DEVICE_TABLE);
    auto found = opened_pages().find(opened);
    if (found == opened_pages().end())
        return false;
    if (--found->second.count)
        return true;
    Mapped &range = found->second.range;
    if (cuda_succeeds(range.unmap(range.base, range.mapped)))
        range.free();
    opened_pages().erase(found);
    return true;
}

/* A handle that is opened again gives the same address. CUDA counts how often. */
int dt_cuda_ipc_open(int device, const char *handle, void **out)
{
    cudaIpcMemHandle_t given;
    memcpy(&given, handle + 1, sizeof given);
    if (device_use(device))
        return -1;
    if (handle[0] == PAGES)
        return open_pages(device, handle, out);
    CUDA_TRY("opening memory of another process",
             cudaIpcOpenMemHandle(out, given, cudaIpcMemLazyEnablePeerAccess));
    return 0;
}

void dt_cuda_ipc_close(int device, void *opened)
{
    if (device_use(device))
        dt_error_clear();
    else if (!close_pages(opened))
        cuda_succeeds(cudaIpcCloseMemHandle(opened));
}
