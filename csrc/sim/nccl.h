/* Shared by nccl.cpp and nccl_meeting.cpp: simulated NCCL. */
#ifndef DT_SIM_NCCL_H
#define DT_SIM_NCCL_H

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuda/runtime/nccl.h"
#include "sim/core.h"
#include "sim/internal.h"

struct ncclComm;

namespace sim {

/* The words of this thread's calls. */
struct Description {
    std::string name, key = "a call of NCCL", line;
    double seconds = 1800;
    std::vector<int> names; /* of the communicator's ranks, from its start on */

    dt_group_call call() const
    {
        return {name.c_str(), key.c_str(), line.c_str(), seconds,
                names.empty() ? nullptr : names.data()};
    }
};

/* One function's call, at this rank. */
struct Item {
    dt_collective_op op;
    dt_dtype dtype;
    int reduction, peer;
    size_t given, taken; /* bytes */
    const void *send;
    void *receive;
    char *from = nullptr, *to = nullptr; /* the addresses that work uses */
    std::vector<char> in, out;
};

/* Functions that start together. */
struct Call : Meeting {
    ncclComm *comm = nullptr;
    std::shared_ptr<const bool> open; /* whether there is the communicator */
    Stream *stream = nullptr;
    Description says;
    std::vector<Item> items;

    std::shared_ptr<Meeting> again(Stream &on, std::string *why) const override;
};
using CallRef = std::shared_ptr<Call>;

} /* namespace sim */

/* All but the group is guarded by the simulator's lock. */
struct ncclComm {
    dt_group *group = nullptr;
    int rank = 0, ranks = 0, device = 0;
    std::thread thread; /* that takes part in meetings */
    std::deque<sim::CallRef> calls;
    std::vector<int> names;
    std::shared_ptr<bool> open = std::make_shared<bool>(true);
    bool closing = false, aborted = false, ended = false;
    int status = DT_NCCL_SUCCESS;
    std::string text; /* of the status */

    void run();
    void begin(sim::Call &call, bool *done);
    void finish(const sim::CallRef &call, bool good, const char *why);
    bool exchange(sim::Call &call, std::string *why);
    bool collect(sim::Item &item, const dt_group_call &call);
    bool pass_messages(sim::Call &call, std::string *why);
};

#endif
