/* Meetings of simulated NCCL. The ranks of a communicator are processes of this machine,
 * which exchange host memory by the CPU backend's groups. A call is a unit of work of its
 * stream that takes part in a meeting of all ranks: a thread of the communicator's copies
 * what is sent, under the lock, exchanges without the lock, and writes what came. */
#include "sim/nccl.h"

#include <string.h>

#include <map>
#include <mutex>

#include "base/half.h"
#include "ops/elementwise_ops.h"

using namespace sim;

namespace {

bool is_message(const Item &item)
{
    return item.op == DT_COLLECTIVE_send || item.op == DT_COLLECTIVE_receive;
}

dt_group_span span_of(std::vector<char> &memory, size_t at, size_t bytes)
{
    return {bytes ? memory.data() + at : nullptr, (int64_t)bytes};
}

/* Divides sums by the number of ranks. */
template <class T, class Widen, class Narrow>
void divide(std::vector<char> &sums, int by, Widen widen, Narrow narrow)
{
    for (size_t at = 0; at < sums.size(); at += sizeof(T)) {
        T element;
        memcpy(&element, sums.data() + at, sizeof element);
        element = (T)narrow(widen(element) / (decltype(widen(element)))by);
        memcpy(sums.data() + at, &element, sizeof element);
    }
}

void average(std::vector<char> &sums, dt_dtype dtype, int by)
{
    auto same = [](auto x) { return x; };
    switch (dtype) {
    case DT_FLOAT16:
        return divide<uint16_t>(sums, by, dt_float16_widen, dt_float16_narrow);
    case DT_BFLOAT16:
        return divide<uint16_t>(sums, by, dt_bfloat16_widen, dt_bfloat16_narrow);
    case DT_FLOAT32:
        return divide<float>(sums, by, same, same);
    case DT_INT8: /* means of integers are rounded towards 0 */
        return divide<int8_t>(sums, by, same, same);
    case DT_UINT8:
        return divide<uint8_t>(sums, by, same, same);
    case DT_INT32:
        return divide<int32_t>(sums, by, same, same);
    case DT_INT64:
        return divide<int64_t>(sums, by, same, same);
    default:
        return divide<double>(sums, by, same, same);
    }
}

int combination(int reduction)
{
    switch (reduction) {
    case DT_COLLECTIVE_PRODUCT:
        return DT_OP_mul;
    case DT_COLLECTIVE_MAX:
        return DT_OP_maximum;
    case DT_COLLECTIVE_MIN:
        return DT_OP_minimum;
    default:
        return DT_OP_add;
    }
}

} /* namespace */

/* --- the exchange, without the lock --- */

bool ncclComm::collect(Item &item, const dt_group_call &call)
{
    const size_t n = (size_t)ranks, part = item.given / n;
    const bool scatters = item.op == DT_COLLECTIVE_reduce_scatter;
    const bool reduces = item.op == DT_COLLECTIVE_all_reduce ||
                         item.op == DT_COLLECTIVE_reduce || scatters;
    std::vector<dt_group_span> in(scatters ? n : 1), out(reduces ? 1 : n);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = scatters ? span_of(item.in, i * part, part)
                         : span_of(item.in, 0, item.given);
    if (item.op == DT_COLLECTIVE_broadcast)
        out[(size_t)item.peer] = span_of(item.out, 0, item.taken);
    else if (item.op == DT_COLLECTIVE_all_gather)
        for (size_t i = 0; i < n; i++)
            out[i] = span_of(item.out, i * item.taken / n, item.taken / n);
    else
        out[0] = span_of(item.out, 0, item.taken);
    const dt_group_exchange x = {
        (int)in.size(), in.data(),
        out.data(),     reduces ? combination(item.reduction) : DT_GROUP_COPY,
        item.dtype,     item.op == DT_COLLECTIVE_all_reduce};
    if (core.groups->run(group, &call, &x) < 0)
        return false;
    if (reduces && item.reduction == DT_COLLECTIVE_AVERAGE)
        average(item.out, item.dtype, ranks);
    return true;
}

/* All that is sent to a rank has a thread, as the other one may send as much before it
 * receives. */
bool ncclComm::pass_messages(Call &call, std::string *why)
{
    std::map<int, std::vector<Item *>> sent;
    std::vector<std::thread> threads;
    std::mutex guard;
    bool good = true;
    auto pass = [&](Item &item, bool sends) {
        Description says = call.says;
        const size_t bytes = sends ? item.given : item.taken;
        says.name = sends ? "send of " : "recv of ";
        says.key = format("%zu %s", bytes / dt_dtype_size(item.dtype),
                          dt_dtype_name(item.dtype));
        const dt_group_call as = says.call();
        int from = item.peer;
        const int result =
            sends ? core.groups->send(group, &as, item.peer, 0,
                                      span_of(item.in, 0, bytes))
                  : core.groups->receive(group, &as, item.peer, 0,
                                         span_of(item.out, 0, bytes), &from);
        if (result < 0) {
            std::lock_guard<std::mutex> hold(guard);
            if (good)
                *why = dt_error_slot()->text;
            good = false;
            dt_error_clear();
        }
        return !result;
    };
    std::deque<Item *> to_self;
    for (Item &item : call.items)
        if (item.op == DT_COLLECTIVE_send && item.peer == rank)
            to_self.push_back(&item);
        else if (item.op == DT_COLLECTIVE_send)
            sent[item.peer].push_back(&item);
    for (auto &to : sent)
        threads.emplace_back([&pass, &to] {
            for (Item *item : to.second)
                if (!pass(*item, true))
                    return;
        });
    for (Item &item : call.items)
        if (item.op == DT_COLLECTIVE_receive && item.peer == rank) {
            if (!to_self.empty())
                item.out = to_self.front()->in;
            item.out.resize(item.taken);
            if (!to_self.empty())
                to_self.pop_front();
        } else if (item.op == DT_COLLECTIVE_receive && !pass(item, false)) {
            break;
        }
    for (auto &each : threads)
        each.join();
    return good;
}

bool ncclComm::exchange(Call &call, std::string *why)
{
    const dt_group_call says = call.says.call();
    const dt_group_exchange nothing = {1,        nullptr, nullptr, DT_GROUP_COPY,
                                       DT_UINT8, false};
    bool messages = false, good = true;
    for (Item &item : call.items)
        messages = messages || is_message(item);
    /* All ranks make the call, and compare it. */
    if (messages && call.says.name.empty())
        good = core.groups->run(group, &says, &nothing) == 0;
    for (Item &item : call.items)
        if (good && !is_message(item))
            good = collect(item, says);
    if (!good) {
        *why = dt_error_slot()->text;
        dt_error_clear();
        return false;
    }
    return !messages || pass_messages(call, why);
}

std::shared_ptr<Meeting> Call::again(Stream &on, std::string *why) const
{
    if (!*open) {
        *why = "calls a communicator that has been destroyed after the capture";
        return nullptr;
    }
    CallRef next = std::make_shared<Call>(*this);
    next->stream = &on;
    next->says.line += " in a graph";
    comm->calls.push_back(next);
    tell_meetings();
    return next;
}

/* --- the communicator's thread --- */

/* Copies what is sent; *done: the work's operands are valid. */
void ncclComm::begin(Call &call, bool *done)
{
    Work &work = call.stream->queue.front();
    work.run = [&call, done] {
        for (Item &item : call.items) {
            item.in.assign(item.from, item.from + item.given);
            item.out.resize(item.taken);
        }
        *done = true;
    };
    execute(work, device);
}

void ncclComm::finish(const CallRef &call, bool good, const char *why)
{
    Stream &stream = *call->stream;
    Work &work = stream.queue.front();
    work.run = [call] {
        for (Item &item : call->items)
            if (item.taken)
                memcpy(item.to, item.out.data(), item.taken);
    };
    if (good)
        execute(work, device);
    else if (*why)
        blame(device, cudaErrorUnknown, why);
    if (!good && !status) {
        status = DT_NCCL_REMOTE_ERROR;
        text = why;
    }
    call->over = true;
    calls.pop_front();
    if (state().options.schedule == kEager)
        each_stream(run_ready);
    tell_meetings();
}

void ncclComm::run()
{
    sim::thread().device = device;
    for (;;) {
        CallRef call;
        bool good = false;
        std::string why;
        {
            Entry in(Entry::kNothing);
            while (calls.empty() && !closing)
                sleep_until_told();
            if (calls.empty())
                break;
            call = calls.front();
            while (call->stream->queue.front().meeting != call)
                if (!advance(*call->stream))
                    sleep_until_told();
            if (status) /* after a failure there is nothing to exchange */
                why = text;
            else
                begin(*call, &good);
        }
        if (good)
            good = exchange(*call, &why);
        else
            core.groups->leave(group, "");
        Entry in(Entry::kNothing);
        finish(call, good, aborted ? "" : why.c_str());
    }
    Entry in(Entry::kNothing);
    ended = true;
    tell_meetings();
}
