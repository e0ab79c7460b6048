/* Finding races: vector clocks, and what was last done to each range of memory. */
#include "race.h"
#include <algorithm>
#include "check.h"
#include "core.h"
#include "internal.h"

namespace sim {

/* The number of accesses that are kept of a range: the latest. */
enum { kKept = 64 };

static Races &races()
{
    return state().races;
}

static Watched &watched()
{
    Thread &me = thread();
    if (!me.watched) {
        Entry in(Entry::kNothing); /* or this thread has the lock */
        races().threads.emplace_back(new Watched);
        me.watched = races().threads.back().get();
    }
    return *me.watched;
}

/* --- clocks --- */

static void join(VectorClock &known, const VectorClock &other)
{
    if (known.size() < other.size())
        known.resize(other.size());
    for (size_t i = 0; i < other.size(); i++)
        known[i] = std::max(known[i], other[i]);
}

static void learn(VectorClock &known, unsigned stream, uint64_t time)
{
    if (known.size() <= stream)
        known.resize(stream + 1);
    known[stream] = std::max(known[stream], time);
}

static bool knows(const VectorClock &known, const Access &access)
{
    return access.stream < known.size() && known[access.stream] >= access.time;
}

void race_stream_waits(Stream &stream, const Moment &moment)
{
    if (races().mode)
        join(stream.known, moment.known);
}

void race_host_waits(const Stream &stream)
{
    if (races().mode && !thread().own_waits)
        join(races().host, stream.known);
}

void race_host_waits(const Moment &moment)
{
    if (races().mode && !thread().own_waits)
        join(races().host, moment.known);
}

OwnWait::OwnWait()
{
    thread().own_waits++;
}

OwnWait::~OwnWait()
{
    thread().own_waits--;
}

/* --- footprints --- */

static std::shared_ptr<const Footprint> bytes_from(char *low, size_t bytes)
{
    return std::make_shared<Footprint>(Footprint{low, low + bytes, (int64_t)bytes, {}});
}

/* The bytes of an extent; NULL if there are none. */
static std::shared_ptr<const Footprint> footprint_of(const dt_extent &extent,
                                                     const char *end)
{
    if (!extent.item)
        return end > extent.data
                   ? bytes_from((char *)extent.data, (size_t)(end - extent.data))
                   : nullptr;
    Footprint f = {(char *)extent.data, nullptr, extent.item, {}};
    for (int d = 0; d < extent.ndim; d++) {
        Footprint::Dim dim = {extent.shape[d], extent.strides[d]};
        if (dim.size <= 0)
            return nullptr;
        if (dim.size == 1 || !dim.stride)
            continue;
        if (dim.stride < 0) {
            f.low += (dim.size - 1) * dim.stride;
            dim.stride = -dim.stride;
        }
        f.dims.push_back(dim);
    }
    std::sort(f.dims.begin(), f.dims.end(),
              [](const Footprint::Dim &a, const Footprint::Dim &b) {
                  return a.stride < b.stride;
              });
    std::vector<Footprint::Dim> left;
    for (auto &dim : f.dims) {
        if (left.empty() && dim.stride <= f.run)
            f.run += (dim.size - 1) * dim.stride;
        else if (!left.empty() && dim.stride == left.back().size * left.back().stride)
            left.back().size *= dim.size;
        else
            left.push_back(dim);
    }
    f.dims = left;
    f.high = f.low + f.run;
    for (auto &dim : f.dims)
        f.high += (dim.size - 1) * dim.stride;
    return std::make_shared<Footprint>(f);
}

static bool same(const Footprint &a, const Footprint &b)
{
    return a.low == b.low && a.run == b.run && a.dims == b.dims;
}

/* f(from, to) for the runs that meet [low, high), until it returns true. */
template <class F>
static bool any_run(const Footprint &f, size_t dim, char *at, char *low, char *high,
                    F call)
{
    if (dim == 0) {
        char *from = std::max(at, low), *to = std::min(at + f.run, high);
        return from < to && call(from, to);
    }
    const Footprint::Dim &d = f.dims[dim - 1];
    int64_t inner = f.run; /* bytes that one step of this dimension spans */
    for (size_t i = 0; i + 1 < dim; i++)
        inner += (f.dims[i].size - 1) * f.dims[i].stride;
    int64_t first = low - at - inner < 0 ? 0 : (low - at - inner) / d.stride;
    for (int64_t i = first; i < d.size && at + i * d.stride < high; i++)
        if (any_run(f, dim - 1, at + i * d.stride, low, high, call))
            return true;
    return false;
}

/* Whether both have a byte of [low, high), which both span. */
static bool meet(const Footprint &a, const Footprint &b, char *low, char *high)
{
    if (a.dims.empty() && b.dims.empty())
        return true;
    if (b.dims.empty())
        return meet(b, a, low, high);
    auto found = [](char *, char *) { return true; };
    if (a.dims.empty())
        return any_run(b, b.dims.size(), b.low, low, high, found);
    if (same(a, b))
        return any_run(b, b.dims.size(), b.low, low, high, found);
    std::vector<bool> taken((size_t)(high - low));
    any_run(a, a.dims.size(), a.low, low, high, [&](char *from, char *to) {
        std::fill(taken.begin() + (from - low), taken.begin() + (to - low), true);
        return false;
    });
    return any_run(b, b.dims.size(), b.low, low, high, [&](char *from, char *to) {
        return std::find(taken.begin() + (from - low), taken.begin() + (to - low),
                         true) != taken.begin() + (to - low);
    });
}

/* --- reports --- */

static void report(const Access &first, const Access &second, char *low, char *high)
{
    dt_race race = {};
    race.first = first.description;
    race.second = second.description;
    race.fatal = races().mode >= Races::kError;
    const Owner &owner = second.touch.owner;
    race.reused = first.touch.owner.block != owner.block;
    race.device = owner.device;
    race.block = owner.bytes;
    race.offset = owner.block ? (size_t)(low - owner.base) : 0;
    race.bytes = (size_t)(high - low);
    watched().found.push_back(race);
}

/* --- the memory's history --- */

/* Makes `at` a border between ranges. */
static void cut(char *at)
{
    auto &ranges = races().ranges;
    auto found = entry_before(ranges, at);
    if (found == ranges.end() || found->first == at || found->second.end <= at)
        return;
    Races::Range rest = found->second;
    found->second.end = at;
    ranges[at] = rest;
}

void race_forget(char *base, size_t bytes)
{
    if (!races().mode)
        return;
    cut(base);
    cut(base + bytes);
    auto &ranges = races().ranges;
    ranges.erase(ranges.lower_bound(base), ranges.lower_bound(base + bytes));
}

/* Drops the accesses to [base, base + bytes) that `over` holds for. */
template <class F>
static void drop(char *base, size_t bytes, F over)
{
    cut(base);
    cut(base + bytes);
    auto &ranges = races().ranges;
    for (auto at = ranges.lower_bound(base);
         at != ranges.end() && at->first < base + bytes;) {
        auto &list = at->second.accesses;
        list.erase(std::remove_if(list.begin(), list.end(), over), list.end());
        at = list.empty() ? ranges.erase(at) : std::next(at);
    }
}

void race_block_awaits(void *pointer, size_t rounded, int device, cudaStream_t handle)
{
    Entry in;
    if (in.error || !races().mode)
        return;
    Stream *stream = handle ? stream_of(handle) : device_at(device).own_stream.get();
    if (stream)
        drop((char *)pointer, rounded,
             [stream](const AccessRef &a) { return knows(stream->known, *a); });
}

/* Compares an access with the range's history. What is over for both the host and this
 * access is dropped; what nothing orders is a race, reported once per access. */
static void compare(Races::Range &range, char *low, const Access &access,
                    VectorClock &known, bool *reported)
{
    auto &list = range.accesses;
    const bool dense = access.touch.footprint->dims.empty();
    for (size_t i = 0; i < list.size();) {
        const Access &old = *list[i];
        bool over = knows(races().host, old);
        if (!over && knows(known, old)) {
            over = (access.touch.writes || !old.touch.writes) &&
                   (dense || same(*access.touch.footprint, *old.touch.footprint));
        } else if (!over && (old.touch.writes || access.touch.writes) &&
                   meet(*old.touch.footprint, *access.touch.footprint, low,
                        range.end)) {
            if (!*reported)
                report(old, access, low, range.end);
            *reported = true;
            /* Told of once: as if the program waited here. */
            learn(known, old.stream, old.time);
        }
        if (over)
            list.erase(list.begin() + (long)i);
        else
            i++;
    }
}

static void note(const AccessRef &access, VectorClock &known)
{
    auto &ranges = races().ranges;
    char *low = access->touch.footprint->low, *high = access->touch.footprint->high;
    bool reported = false;
    cut(low);
    cut(high);
    Races::Range *before = nullptr; /* that holds this access alone */
    char *at = low;
    for (auto next = ranges.lower_bound(low); at < high;) {
        if (next == ranges.end() || next->first > at) {
            char *end = next == ranges.end() ? high : std::min(high, next->first);
            next = ranges.insert(next, {at, {end, {}}});
        }
        Races::Range &range = next->second;
        compare(range, next->first, *access, known, &reported);
        at = range.end;
        const bool alone = range.accesses.empty();
        if (alone && before) {
            before->end = range.end;
            next = ranges.erase(next);
            continue;
        }
        if (range.accesses.size() == kKept)
            range.accesses.erase(range.accesses.begin());
        range.accesses.push_back(access);
        before = alone ? &range : nullptr;
        ++next;
    }
}

/* --- work --- */

void race_queued(Stream &stream, Work &work)
{
    if (!races().mode || work.kind == Work::kHousekeeping)
        return;
    join(stream.known, races().host);
    if (work.kind == Work::kRecord)
        work.moment->known = stream.known;
    if (work.kind != Work::kRun)
        return;
    learn(stream.known, stream.number, 0);
    const uint64_t time = ++stream.known[stream.number];
    const Watched &me = watched();
    const char *name = work.replayed ? work.operation : me.name;
    const bool own = &stream == device_at(stream.device).own_stream.get();
    for (const Touch &touch : work.touches) {
        auto access = std::make_shared<Access>();
        access->description = {name ? name : work.name,
                               touch.reads,
                               touch.writes,
                               false,
                               stream.device,
                               own ? nullptr : (void *)&stream,
                               work.replayed ? work.line : me.line};
        access->touch = touch;
        access->stream = stream.number;
        access->time = time;
        note(access, stream.known);
    }
    if (races().mode != Races::kStrict)
        work.touches.clear();
}

void race_captured(Work &work)
{
    const Watched &me = watched();
    work.operation = me.name;
    work.line = me.line;
    work.replayed = true;
}

static void add(Work &work, std::shared_ptr<const Footprint> footprint, bool reads,
                bool writes, const Block *block)
{
    Owner owner;
    if (block)
        owner = {block->number, block->device, block->base, block->bytes};
    if (footprint && footprint->low < footprint->high)
        work.touches.push_back({std::move(footprint), reads, writes, owner});
}

/* The work's block that holds the pointer. */
static const Block *block_at(const Work &work, const char *p)
{
    for (auto &block : work.blocks)
        if (p >= block->base && (size_t)(p - block->base) < block->rounded)
            return block.get();
    return nullptr;
}

void race_touch(Work &work, const void *pointer, size_t bytes, bool reads, bool writes)
{
    if (!races().mode)
        return;
    char *p = (char *)pointer;
    const Block *block = block_at(work, p);
    if (!block && (thread().own_waits || !pinned_end(p)))
        return;
    add(work, bytes_from(p, bytes), reads, writes, block);
}

void race_pointer(Work &work, const void *pointer, size_t bytes, bool reads,
                  bool writes)
{
    if (!races().mode || !pointer)
        return;
    char *p = (char *)pointer;
    const Block *block = block_at(work, p);
    if (!block)
        return; /* of the host: the library's own */
    char *end = block->base + block->bytes;
    bool known = false;
    for (const dt_extent &extent : watched().operands) {
        if (extent.data < block->base || extent.data >= block->base + block->rounded)
            continue;
        known = true;
        bool listed = false; /* with an earlier pointer of this work */
        auto footprint = footprint_of(extent, end);
        for (auto &touch : work.touches)
            listed |= footprint && same(*touch.footprint, *footprint) &&
                      touch.reads == extent.reads && touch.writes == extent.writes;
        if (!listed)
            add(work, footprint, extent.reads, extent.writes, block);
    }
    if (!known && p < end)
        add(work, bytes_from(p, bytes ? bytes : (size_t)(end - p)), reads, writes,
            block);
}

/* --- holding kernels to what was said of them --- */

Concealed::Concealed(const Work &of, int on) : work(of), device(on)
{
    if (work.touches.empty())
        return;
    for (auto &block : work.blocks) {
        if (is_shared(*block))
            continue;
        char *seen = seen_from(block->base);
        Part part = {block, {seen, seen + block->bytes}, {}};
        part.said.resize(block->bytes);
        for (auto &touch : work.touches) {
            const Footprint &f = *touch.footprint;
            if (touch.owner.block == block->number)
                any_run(f, f.dims.size(), f.low, block->base,
                        block->base + block->bytes, [&](char *from, char *to) {
                            auto first = part.said.begin() + (from - block->base);
                            std::fill(first, first + (to - from), true);
                            return false;
                        });
        }
        for (size_t i = 0; i < block->bytes; i++)
            if (!part.said[i])
                seen[i] = (char)0xFF;
        parts.push_back(std::move(part));
    }
}

Concealed::~Concealed()
{
    for (auto &part : parts) {
        char *seen = seen_from(part.block->base);
        bool good = true;
        for (size_t i = 0; i < part.kept.size(); i++) {
            if (part.said[i])
                continue;
            good &= seen[i] == (char)0xFF;
            seen[i] = part.kept[i];
        }
        if (!good)
            blame(device, cudaErrorIllegalAddress,
                  format("%s wrote to memory that is not an operand of its operation",
                         work.title().c_str()));
    }
}

/* --- the host --- */

int race_host(const char *name, const std::vector<dt_extent> &extents)
{
    {
        Entry in(Entry::kNothing);
        if (in.error || !races().mode)
            return 0;
        for (auto &extent : extents) {
            const char *end = pinned_end(extent.data);
            auto footprint = end ? footprint_of(extent, end) : nullptr;
            if (!footprint)
                continue;
            Access access;
            access.touch = {footprint, extent.reads, extent.writes, {}};
            access.description = {name, extent.reads, extent.writes, true, -1, nullptr,
                                  -1};
            char *low = footprint->low, *high = footprint->high;
            bool reported = false;
            cut(low);
            cut(high);
            auto at = races().ranges.lower_bound(low);
            for (; at != races().ranges.end() && at->first < high; ++at)
                compare(at->second, at->first, access, races().host, &reported);
        }
    }
    if (watched().found.empty())
        return 0;
    const int line = core.line ? core.line() : -1;
    for (dt_race &race : watched().found)
        race.second.line = line;
    return race_answer(0);
}

/* Whether to report it: two lines get one warning. */
static bool is_new(const dt_race &race)
{
    Entry in(Entry::kNothing);
    return race.fatal || races()
                             .reported
                             .insert({race.first.name, race.first.line,
                                      race.second.name, race.second.line})
                             .second;
}

int race_answer(int status)
{
    while (check_has_warnings && status >= 0 && core.kernel_warning) {
        const long number = check_warning();
        if (number < 0)
            break;
        status = core.kernel_warning(number) < 0 ? -1 : status;
    }
    if (!thread().watched)
        return status;
    std::vector<dt_race> found;
    found.swap(watched().found);
    for (const dt_race &race : found)
        if (status >= 0 && core.race && is_new(race) && core.race(&race) < 0)
            status = -1;
    return status;
}

/* --- what the library reports of its operations --- */

static void collect(void *context, const dt_extent *extent)
{
    ((std::vector<dt_extent> *)context)->push_back(*extent);
}

static bool is_work(const dt_activity *activity)
{
    return activity->device.type == DT_CUDA && activity->kind < DT_ACTIVITY_WAIT;
}

static int begin_race(const dt_activity *activity, void **)
{
    std::vector<dt_extent> operands;
    const bool work = is_work(activity);
    if (!work && (activity->work == DT_WORK_NONE || activity->device.type == DT_CUDA))
        return 0;
    core.extents(activity->work, activity->name, activity->call, collect, &operands);
    if (!work)
        return race_host(activity->name, operands);
    const int line = core.line();
    Watched &me = watched();
    me.outer.push_back(std::move((WatchedOperation &)me));
    (WatchedOperation &)me = {activity->name, line, std::move(operands)};
    return 0;
}

static void end(const dt_activity *activity, void *, int)
{
    if (!is_work(activity))
        return;
    Watched &me = watched();
    (WatchedOperation &)me = {};
    if (me.outer.empty())
        return;
    (WatchedOperation &)me = std::move(me.outer.back());
    me.outer.pop_back();
}

const dt_observer *race_observer()
{
    static const dt_observer observer = {true, false, begin_race, end};
    return races().mode ? &observer : nullptr;
}

} /* namespace sim */
