/* Simulated NCCL: its functions. A call queues work whose meeting nccl_meeting.cpp holds. */
#include "sim/nccl.h"

#include <string.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>

#include "base/shared_file.h"

using namespace sim;

namespace {

thread_local Description described; /* of this thread's calls */
thread_local std::string last_error;

int wrong(int status, const std::string &text)
{
    last_error = text;
    return status;
}

const char *const names[] = {"ncclAllReduce", "ncclBroadcast",     "ncclReduce",
                             "ncclAllGather", "ncclReduceScatter", "ncclSend",
                             "ncclRecv"};

/* --- calls --- */

thread_local int depth; /* of group_start */
struct Waiting {
    dt_nccl_comm comm;
    cudaStream_t stream;
    Item item;
};
thread_local std::vector<Waiting> waiting;

int queue(dt_nccl_comm comm, cudaStream_t handle, std::vector<Item> items)
{
    Entry in;
    if (in.error)
        return DT_NCCL_CUDA_ERROR;
    in.count();
    Stream *stream = stream_of(handle);
    if (!stream || stream->device != comm->device || comm->closing)
        return wrong(DT_NCCL_INVALID_USAGE,
                     "the stream is not one of the communicator's device");
    if (comm->status)
        return wrong(comm->status, comm->text);
    device_at(stream->device).counted.launches++;
    if (failure("launch", cudaErrorLaunchOutOfResources))
        return DT_NCCL_CUDA_ERROR;
    CallRef call = std::make_shared<Call>();
    call->comm = comm;
    call->open = comm->open;
    call->stream = stream;
    call->says = described;
    call->says.names = comm->names;
    Work work;
    work.name = names[items[0].op];
    work.check_canaries = true;
    work.cost.kind = Cost::kKernel;
    work.cost.threads = 1;
    work.meeting = call;
    int number = 0;
    for (Item &item : items) {
        void *seen = nullptr;
        if (item.given) {
            reach(work, {comm->device, true, true, false, "operand", ++number},
                  item.send, item.given, &seen);
            race_pointer(work, item.send, item.given, true, false);
            item.from = (char *)seen;
        }
        if (item.taken) {
            reach(work, {comm->device, true, true, false, "operand", ++number},
                  item.receive, item.taken, &seen);
            race_pointer(work, item.receive, item.taken, false, true);
            block_filled(work, item.receive);
            item.to = (char *)seen;
        }
    }
    call->items = std::move(items);
    if (!stream->capture) /* else replays make it */
        comm->calls.push_back(call);
    push(*stream, std::move(work));
    tell_meetings();
    return DT_NCCL_SUCCESS;
}

dt_dtype dtype_of(int type)
{
    switch (type) {
    case DT_NCCL_INT8:
        return DT_INT8;
    case DT_NCCL_UINT8:
        return DT_UINT8;
    case DT_NCCL_INT32:
        return DT_INT32;
    case DT_NCCL_INT64:
        return DT_INT64;
    case DT_NCCL_FLOAT16:
        return DT_FLOAT16;
    case DT_NCCL_FLOAT32:
        return DT_FLOAT32;
    case DT_NCCL_FLOAT64:
        return DT_FLOAT64;
    default:
        return DT_BFLOAT16;
    }
}

int call(dt_nccl_comm comm, cudaStream_t stream, dt_collective_op op, const void *send,
         void *receive, size_t count, int type, int reduction, int peer)
{
    if (type < 0 || type > DT_NCCL_BFLOAT16 || type == 3 || type == 5 ||
        reduction < 0 || reduction > DT_COLLECTIVE_AVERAGE || peer < 0 ||
        peer >= comm->ranks)
        return wrong(DT_NCCL_INVALID_ARGUMENT, "an argument is out of range");
    Item item = {};
    const size_t bytes = count * dt_dtype_size(dtype_of(type)),
                 all = (size_t)comm->ranks;
    const bool is_peer = peer == comm->rank;
    item.op = op;
    item.dtype = dtype_of(type);
    item.reduction = reduction;
    item.peer = peer;
    item.send = send;
    item.receive = receive;
    item.given = item.taken = bytes;
    switch (op) {
    case DT_COLLECTIVE_broadcast:
        item.given = is_peer ? bytes : 0;
        break;
    case DT_COLLECTIVE_reduce:
        item.taken = is_peer ? bytes : 0;
        break;
    case DT_COLLECTIVE_all_gather:
        item.taken = bytes * all;
        break;
    case DT_COLLECTIVE_reduce_scatter:
        item.given = bytes * all;
        break;
    case DT_COLLECTIVE_send:
        item.taken = 0;
        break;
    case DT_COLLECTIVE_receive:
        item.given = 0;
        break;
    default:
        break;
    }
    if (depth) {
        waiting.push_back({comm, stream, std::move(item)});
        return DT_NCCL_SUCCESS;
    }
    return queue(comm, stream, {std::move(item)});
}

int all_reduce(const void *send, void *receive, size_t count, int type, int reduction,
               dt_nccl_comm comm, cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_all_reduce, send, receive, count, type,
                reduction, 0);
}

int broadcast(const void *send, void *receive, size_t count, int type, int root,
              dt_nccl_comm comm, cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_broadcast, send, receive, count, type, 0,
                root);
}

int reduce(const void *send, void *receive, size_t count, int type, int reduction,
           int root, dt_nccl_comm comm, cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_reduce, send, receive, count, type,
                reduction, root);
}

int all_gather(const void *send, void *receive, size_t count, int type,
               dt_nccl_comm comm, cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_all_gather, send, receive, count, type, 0,
                0);
}

int reduce_scatter(const void *send, void *receive, size_t count, int type,
                   int reduction, dt_nccl_comm comm, cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_reduce_scatter, send, receive, count, type,
                reduction, 0);
}

int send(const void *from, size_t count, int type, int peer, dt_nccl_comm comm,
         cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_send, from, nullptr, count, type, 0, peer);
}

int receive(void *to, size_t count, int type, int peer, dt_nccl_comm comm,
            cudaStream_t stream)
{
    return call(comm, stream, DT_COLLECTIVE_receive, nullptr, to, count, type, 0, peer);
}

int group_start()
{
    depth++;
    return DT_NCCL_SUCCESS;
}

int group_end()
{
    if (!depth)
        return wrong(DT_NCCL_INVALID_USAGE, "there is no ncclGroupStart before it");
    if (--depth)
        return DT_NCCL_SUCCESS;
    std::vector<Waiting> all = std::move(waiting);
    waiting.clear();
    int status = DT_NCCL_SUCCESS;
    for (size_t i = 0; i < all.size(); i++) {
        if (!all[i].comm)
            continue;
        const Waiting first = all[i];
        std::vector<Item> items;
        for (size_t k = i; k < all.size(); k++)
            if (all[k].comm == first.comm) {
                items.push_back(std::move(all[k].item));
                all[k].comm = nullptr;
            }
        const int found = queue(first.comm, first.stream, std::move(items));
        status = status ? status : found;
    }
    return status;
}

/* --- communicators --- */

/* An id is the name of the memory (base/shared_file.h). The memory of those that this
 * process has made the ids of, and not opened, and those that it has a rank of: by the id. */
std::mutex ids_guard;
std::map<std::string, int> made;
std::set<std::string> joined;

int get_version(int *version)
{
    *version = 23203;
    return DT_NCCL_SUCCESS;
}

int get_id(dt_nccl_id *out)
{
    const int descriptor = core.groups->create(0);
    if (descriptor < 0) {
        wrong(0, dt_error_slot()->text);
        dt_error_clear();
        return DT_NCCL_SYSTEM_ERROR;
    }
    memset(out, 0, sizeof *out);
    if (dt_shared_file_name(descriptor, out->bytes)) {
        close(descriptor);
        return wrong(DT_NCCL_SYSTEM_ERROR, "the memory of the id has no name");
    }
    std::lock_guard<std::mutex> hold(ids_guard);
    made[out->bytes] = descriptor;
    return DT_NCCL_SUCCESS;
}

/* The descriptor of the memory; -1: there is none. */
int descriptor_of(const std::string &id)
{
    std::lock_guard<std::mutex> hold(ids_guard);
    auto own = made.find(id);
    if (own == made.end())
        return dt_shared_file_open(id.c_str());
    const int descriptor = own->second;
    made.erase(own);
    return descriptor;
}

int init(dt_nccl_comm *out, int ranks, dt_nccl_id id, int rank)
{
    id.bytes[sizeof id.bytes - 1] = '\0';
    const std::string by = id.bytes;
    if (ranks < 1 || ranks > DT_GROUP_RANKS || rank < 0 || rank >= ranks)
        return wrong(DT_NCCL_INVALID_ARGUMENT, "the rank is out of range");
    if (!dt_shared_file_maker(by.c_str()))
        return wrong(DT_NCCL_INVALID_ARGUMENT, "the id is not one of ncclGetUniqueId");
    {
        std::lock_guard<std::mutex> hold(ids_guard);
        if (!joined.insert(by).second)
            return wrong(DT_NCCL_INVALID_USAGE,
                         "simulated NCCL takes one rank of a communicator a process");
    }
    int device;
    {
        Entry in;
        if (in.error)
            return DT_NCCL_CUDA_ERROR;
        device = sim::thread().device;
    }
    std::unique_ptr<ncclComm> comm(new ncclComm);
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = device;
    comm->names = described.names;
    comm->names.resize((size_t)ranks);
    const int descriptor = descriptor_of(by);
    const dt_group_call says = described.call();
    const dt_group_exchange nothing = {1,        nullptr, nullptr, DT_GROUP_COPY,
                                       DT_UINT8, false};
    if (descriptor < 0)
        return wrong(DT_NCCL_SYSTEM_ERROR,
                     "the rank that made the id has ended, or is on another machine");
    comm->group = core.groups->open(descriptor, rank, ranks);
    if (!comm->group || core.groups->run(comm->group, &says, &nothing) < 0) {
        wrong(0, dt_error_slot()->text);
        dt_error_clear();
        if (comm->group)
            core.groups->close(comm->group);
        return DT_NCCL_SYSTEM_ERROR;
    }
    *out = comm.release();
    (*out)->thread = std::thread([](ncclComm *mine) { mine->run(); }, *out);
    return DT_NCCL_SUCCESS;
}

int end(dt_nccl_comm comm, bool abort)
{
    {
        Entry in(Entry::kNothing);
        comm->closing = true;
        *comm->open = false;
        tell_meetings();
        while (!comm->ended) {
            if (abort && !comm->aborted) {
                comm->aborted = true;
                core.groups->leave(comm->group, "");
            }
            abort = !await_meeting() || abort; /* Ctrl-C */
        }
    }
    comm->thread.join();
    core.groups->close(comm->group);
    delete comm;
    return DT_NCCL_SUCCESS;
}

int destroy(dt_nccl_comm comm)
{
    return end(comm, false);
}

int abort_comm(dt_nccl_comm comm)
{
    return end(comm, true);
}

int async_error(dt_nccl_comm comm, int *error)
{
    Entry in(Entry::kNothing);
    *error = comm->status;
    return DT_NCCL_SUCCESS;
}

const char *error_string(int status)
{
    switch (status) {
    case DT_NCCL_CUDA_ERROR:
        return "unhandled cuda error";
    case DT_NCCL_SYSTEM_ERROR:
        return "unhandled system error";
    case DT_NCCL_INVALID_ARGUMENT:
        return "invalid argument";
    case DT_NCCL_INVALID_USAGE:
        return "invalid usage";
    default:
        return "remote process exited or there was a network error";
    }
}

const char *get_last_error(dt_nccl_comm comm)
{
    if (comm && comm->status)
        last_error = comm->text;
    return last_error.c_str();
}

} /* namespace */

void sim_nccl_describe(const dt_group_call *call, int ranks)
{
    described = {call->name,
                 call->key,
                 call->line,
                 call->seconds,
                 {call->names, call->names + ranks}};
}

const dt_nccl *sim_nccl(void)
{
    static const dt_nccl functions = {
        get_version,  get_id,         init,           destroy,    abort_comm,
        async_error,  group_start,    group_end,      all_reduce, broadcast,
        reduce,       all_gather,     reduce_scatter, send,       receive,
        error_string, get_last_error,
    };
    return &functions;
}
