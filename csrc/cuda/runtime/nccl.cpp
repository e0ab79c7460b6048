#include "cuda/runtime/nccl.h"

#include <stdio.h>
#include <string.h>

#include "cuda/runtime/backend.h"

dt_library nccl_library = {"NCCL", "collective calls", "libnccl", 2, "nccl", "", 0,
                           true};

#ifdef DT_SIMULATED

const dt_nccl *sim_nccl(void); /* sim/nccl.cpp */
/* Gives the messages of this thread's next calls their words, of so many ranks. */
void sim_nccl_describe(const dt_group_call *call, int ranks);

static int open_functions(dt_nccl &functions)
{
    functions = *sim_nccl();
    snprintf(nccl_library.path, sizeof nccl_library.path, "simulated");
    return 0;
}

#else

static void sim_nccl_describe(const dt_group_call *, int) {}

static int open_functions(dt_nccl &functions)
{
    const dt_symbol symbols[] = {
        DT_NCCL_FUNCTIONS(LIBRARY_FUNCTION){"ncclGetErrorString",
                                            (void *)&functions.error_string, false},
        {"ncclGetLastError", (void *)&functions.last_error, true}};
    return library_open(&nccl_library, symbols);
}

#endif

const dt_nccl *nccl_get(void)
{
    static dt_nccl functions;
    static bool open;
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    if (!open && open_functions(functions))
        return nullptr;
    if (!open && functions.version(&nccl_library.version))
        nccl_library.version = 0;
    open = true;
    return &functions;
}

namespace {

struct Communicator {
    dt_nccl_comm handle;
    int device, rank, ranks;
};

/* Fails with the status of a call. comm: NULL where there is none yet. */
int fail(const dt_nccl *nccl, dt_nccl_comm comm, int status, const char *doing)
{
    const char *last = nccl->last_error ? nccl->last_error(comm) : nullptr;
    cudaGetLastError(); /* NCCL leaves it to be found by the next call */
    return dt_fail(DT_ERROR_RUNTIME,
                   "NCCL failed while %s: %s%s%s; the environment variable "
                   "NCCL_DEBUG=WARN lets it say more",
                   doing, nccl->error_string(status), last && *last ? ": " : "",
                   last ? last : "");
}

int type_of(dt_dtype dtype)
{
    switch (dtype) {
    case DT_INT8:
        return DT_NCCL_INT8;
    case DT_UINT8:
        return DT_NCCL_UINT8;
    case DT_INT32:
        return DT_NCCL_INT32;
    case DT_INT64:
        return DT_NCCL_INT64;
    case DT_FLOAT16:
        return DT_NCCL_FLOAT16;
    case DT_BFLOAT16:
        return DT_NCCL_BFLOAT16;
    case DT_FLOAT32:
        return DT_NCCL_FLOAT32;
    case DT_FLOAT64:
        return DT_NCCL_FLOAT64;
    default:
        return -1;
    }
}

int start_call(const dt_nccl *nccl, const Communicator *to, const dt_collective *c,
               cudaStream_t stream)
{
    const size_t count = (size_t)c->count;
    const int type = type_of(c->dtype);
    /* One that does not matter at this rank may not be NULL either. */
    const void *send = c->send ? c->send : c->receive;
    void *receive = c->receive ? c->receive : (void *)c->send;
    switch (c->op) {
    case DT_COLLECTIVE_all_reduce:
        return nccl->all_reduce(send, receive, count, type, c->reduction, to->handle,
                                stream);
    case DT_COLLECTIVE_broadcast:
        return nccl->broadcast(send, receive, count, type, c->peer, to->handle, stream);
    case DT_COLLECTIVE_reduce:
        return nccl->reduce(send, receive, count, type, c->reduction, c->peer,
                            to->handle, stream);
    case DT_COLLECTIVE_all_gather:
        return nccl->all_gather(send, receive, count, type, to->handle, stream);
    case DT_COLLECTIVE_reduce_scatter:
        return nccl->reduce_scatter(send, receive, count, type, c->reduction,
                                    to->handle, stream);
    case DT_COLLECTIVE_send:
        return nccl->send(send, count, type, c->peer, to->handle, stream);
    case DT_COLLECTIVE_receive:
        return nccl->receive(receive, count, type, c->peer, to->handle, stream);
    default:
        return DT_NCCL_INVALID_ARGUMENT;
    }
}

} /* namespace */

int dt_cuda_nccl_version(void)
{
    return nccl_get() ? nccl_library.version : -1;
}

int dt_cuda_communicator_id(char *out)
{
    const dt_nccl *nccl = nccl_get();
    dt_nccl_id id = {};
    if (!nccl)
        return -1;
    if (int status = nccl->id(&id))
        return fail(nccl, nullptr, status, "preparing a communicator");
    memcpy(out, id.bytes, sizeof id.bytes);
    return 0;
}

int dt_cuda_communicator_new(int device, const char *id, int ranks, int rank,
                             const dt_group_call *call, void **out)
{
    const dt_nccl *nccl = nccl_get();
    dt_nccl_id by;
    Communicator made = {nullptr, device, rank, ranks};
    if (!nccl || device_use(device))
        return -1;
    if (graphs_under_way())
        return dt_fail(DT_ERROR_RUNTIME,
                       "a communicator of NCCL cannot be made while a graph is "
                       "captured; make a call of the group before");
    memcpy(by.bytes, id, sizeof by.bytes);
    sim_nccl_describe(call, ranks);
    if (int status = nccl->init(&made.handle, ranks, by, rank))
        return fail(nccl, nullptr, status, "making a communicator");
    *out = new Communicator(made);
    return 0;
}

void dt_cuda_communicator_free(void *handle, bool abort)
{
    Communicator *made = (Communicator *)handle;
    const dt_nccl *nccl = nccl_get();
    if (device_use(made->device)) {
        dt_error_clear(); /* of a fork, where it is its parent's */
    } else {
        abort ? nccl->abort(made->handle) : nccl->destroy(made->handle);
        cudaGetLastError();
    }
    delete made;
}

int dt_cuda_communicator_check(void *handle, void *event)
{
    const Communicator *made = (Communicator *)handle;
    const dt_nccl *nccl = nccl_get();
    int status = 0;
    Relaxed mode;
    if (device_use(made->device))
        return -1;
    if (int failed = nccl->async_error(made->handle, &status))
        status = failed;
    if (status && status != DT_NCCL_IN_PROGRESS)
        return fail(nccl, made->handle, status, "exchanging with other ranks");
    return event ? dt_cuda_event_query(event) : 1;
}

int dt_cuda_collective(dt_stream stream, const dt_collective_call *c)
{
    const Communicator *to = (Communicator *)c->communicator;
    const dt_nccl *nccl = nccl_get();
    int status = 0;
    for (int i = 0; i < c->count; i++)
        if (type_of(c->items[i].dtype) < 0)
            return dt_fail(DT_ERROR_TYPE, "NCCL has no elements of the type %s",
                           dt_dtype_name(c->items[i].dtype));
    sim_nccl_describe(&c->call, c->ranks);
    if (c->count > 1)
        status = nccl->group_start();
    for (int i = 0; !status && i < c->count; i++)
        status = start_call(nccl, to, &c->items[i], (cudaStream_t)stream.handle);
    if (c->count > 1) {
        const int end = nccl->group_end();
        status = status ? status : end;
    }
    return status ? fail(nccl, to->handle, status, c->call.key) : 0;
}
