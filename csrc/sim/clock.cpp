/* The clock: a roofline for each unit of work, engines that do one thing at a time, and
 * the host's time. */
#include "clock.h"
#include "internal.h"
#include "price.h"
#include <algorithm>
#include <math.h>

namespace sim {

bool clock_started;
thread_local bool clock_hidden;

/* The share of the specified figures that public measurements reach: of a GPU's
 * bandwidth in a plain loop, of its FLOP/s in products of large matrices. */
static const double kBandwidthReached = 0.85, kFlopsReached = 0.8;

/* Nanoseconds, of the order that public microbenchmarks report. */
enum {
    kLeastKernel =
        1500,          /* of a kernel that does nothing, and on top of what others do */
    kWake = 3000,      /* of the host, from the end of the work that it waits for */
    kAsk = 500,        /* of a query, or of a wait for what is done */
    kOperation = 5000, /* of the program's code between operations, if kFixed */
};

/* --- engines --- */

namespace {

/* A part of a device that does one thing at a time. Work takes the first gap that is
 * long enough: what is queued later may begin earlier. */
class Engine {
  public:
    int64_t first_gap(int64_t ready, int64_t lasts) const
    {
        for (const Span &span : busy) {
            if (span.begin - ready >= lasts)
                break;
            ready = std::max(ready, span.end);
        }
        return ready;
    }
    void take(int64_t begin, int64_t end)
    {
        auto at = busy.end();
        while (at != busy.begin() && std::prev(at)->begin > begin)
            --at;
        at = busy.insert(at, {begin, end});
        if (std::next(at) != busy.end() && std::next(at)->begin == at->end) {
            at->end = std::next(at)->end;
            at = std::prev(busy.erase(std::next(at)));
        }
        if (at != busy.begin() && std::prev(at)->end == at->begin) {
            std::prev(at)->end = at->end;
            busy.erase(at);
        }
    }
    /* Nothing will be taken before `time`. */
    void forget(int64_t time)
    {
        while (!busy.empty() && busy.front().end <= time)
            busy.pop_front();
    }

  private:
    struct Span {
        int64_t begin, end;
    };
    std::deque<Span> busy; /* in order, with gaps between them */
};

enum { kCompute, kIn, kOut, kLinkIn, kLinkOut, kEngines };

struct ClockedDevice {
    Engine engines[kEngines];
    int64_t end = 0; /* of all that is queued */
    /* Nanoseconds of kernels beyond their least time, by what limits them; their least
     * times; and of copies. */
    int64_t by_bandwidth = 0, by_flops = 0, by_accesses = 0, least = 0, copying = 0;
};

struct CardClock {
    const dt_sim_card *card;
    int64_t host = 0, waited = 0;
    std::vector<ClockedDevice> devices;
};

/* A thread's requests to the backend. */
struct Shared {
    bool open = false;
    double bytes = 0, flops = 0; /* that no work has done yet */
    dt_dtype dtype = DT_FLOAT32;
    int64_t begin = -1, end = -1; /* of its work, on the first clock */
};

/* A unit of work that waits for its times: its part of the operation's bytes and FLOPs
 * is known when the operation ends. */
struct Queued {
    Stream *stream;
    Cost cost;
    Shared *of; /* nullptr: no operation */
    Times ready;
    std::shared_ptr<Cost> captured; /* gets the cost; no clock runs it */
    bool known = false;             /* its cost: of a replay */
};

thread_local Shared operation;
thread_local std::vector<Shared> outer; /* that let it run first */

struct {
    Host host;
    int64_t left; /* when the host left the simulator, in its own time */
    int64_t kernels, copies, waits;
    std::vector<CardClock> clocks;
    std::vector<Queued> queued; /* by one operation, if any */
} all;

} /* namespace */

static int64_t wall()
{
    return (int64_t)(now() * 1e9);
}

void clock_start(const std::vector<const dt_sim_card *> &cards, Host host, int devices)
{
    all.host = host;
    all.left = wall();
    all.kernels = all.copies = all.waits = 0;
    all.clocks.clear();
    for (const dt_sim_card *card : cards) {
        CardClock clock;
        clock.card = card;
        clock.devices.resize((size_t)devices);
        all.clocks.push_back(clock);
    }
    clock_started = !cards.empty();
}

template <class F>
static void each_clock(F f)
{
    for (size_t i = 0; i < all.clocks.size(); i++)
        f(all.clocks[i], i);
}

static void pass(int64_t nanoseconds)
{
    each_clock([nanoseconds](CardClock &clock, size_t) { clock.host += nanoseconds; });
}

void clock_enter()
{
    if (all.host == kMeasured)
        pass(std::max<int64_t>(wall() - all.left, 0));
}

void clock_leave()
{
    all.left = wall();
}

void clock_stage(size_t bytes)
{
    if (all.host == kFixed)
        each_clock([bytes](CardClock &clock, size_t) {
            clock.host += llround((double)bytes / clock.card->pageable);
        });
}

/* When all that is queued on the stream's device is done. */
static int64_t &device_end(CardClock &clock, const Stream &stream)
{
    return clock.devices[(size_t)stream.device].end;
}

/* --- how long work takes --- */

static double product_rate(const dt_sim_card &card, dt_dtype dtype, bool tf32)
{
    switch (dtype) {
    case DT_FLOAT64:
        return card.wide;
    case DT_FLOAT16:
        return card.half;
    case DT_BFLOAT16:
        return card.major >= 8 ? card.half : card.float32;
    default:
        return tf32 ? card.tf32 : card.float32;
    }
}

Cost product_cost(double m, double n, double k, double batch, dt_dtype dtype, bool tf32)
{
    /* Columns and rows of what one block computes, and terms of its sums: where blocks
     * are few, libraries divide the sums too. */
    const double tile = 64, terms = 512;
    Cost cost;
    cost.kind = Cost::kProduct;
    cost.blocks = ceil(m / tile) * ceil(n / tile) * ceil(k / terms) * batch;
    cost.bytes = (double)dt_dtype_size(dtype) * batch * (m * k + k * n + m * n);
    cost.flops = 2 * m * n * k * batch;
    cost.dtype = dtype;
    cost.tf32 = tf32;
    return cost;
}

static int64_t kernel_time(const dt_sim_card &card, const Cost &cost,
                           ClockedDevice &device)
{
    /* Kernels of 16 bits that compute much multiply on tensor cores. */
    const double rate = cost.kind == Cost::kProduct || dt_dtype_is_half(cost.dtype)
                            ? product_rate(card, cost.dtype, cost.tf32)
                        : cost.dtype == DT_FLOAT64 ? card.float64
                                                   : card.float32;
    /* Blocks too few for all multiprocessors. */
    const double part = cost.blocks > 0 ? std::min(1.0, cost.blocks / card.sms) : 1.0;
    const bool counted = cost.kind == Cost::kCounted;
    const double bytes = counted ? price_bytes(card, cost) : cost.bytes;
    const double moving = bytes / (card.memory * kBandwidthReached * part);
    const double computing = counted ? price_accesses(card, cost)
                                     : cost.flops / (1e3 * rate * kFlopsReached * part);
    const int64_t more = llround(std::max(moving, computing));
    (moving >= computing ? device.by_bandwidth
     : counted           ? device.by_accesses
                         : device.by_flops) += more;
    device.least += kLeastKernel;
    return kLeastKernel + more;
}

/* The engines that a copy between a device and another end needs, and its GB/s. */
static double copy_path(CardClock &clock, const Cost &cost, Engine *path[2])
{
    const dt_sim_card &card = *clock.card;
    auto engine = [&clock](int device, int which) {
        return &clock.devices[(size_t)device].engines[which];
    };
    if (cost.source == kOnHost || cost.target == kOnHost) {
        if (cost.target != kOnHost)
            path[0] = engine(cost.target, kIn);
        else if (cost.source != kOnHost)
            path[0] = engine(cost.source, kOut);
        return cost.pinned ? card.pinned : card.pageable;
    }
    const bool direct = device_at(cost.target).reaches[cost.source] ||
                        device_at(cost.source).reaches[cost.target];
    const bool linked = direct && card.nvlink;
    path[0] = engine(cost.target, linked ? kLinkIn : kIn);
    path[1] = engine(cost.source, linked ? kLinkOut : kOut);
    return linked ? card.peer : direct ? card.pinned : card.pinned / 2;
}

/* Gives one unit of work its time on one clock. */
static void place(CardClock &clock, size_t number, const Queued &work)
{
    const Cost &cost = work.cost;
    ClockedDevice &device = clock.devices[(size_t)work.stream->device];
    int64_t &end = work.stream->end.of[number];
    int64_t begin = std::max(work.ready.of[number], end), lasts = 0;
    Engine *path[2] = {nullptr, nullptr};
    const bool across = cost.kind == Cost::kCopy && cost.target != cost.source;
    if (across) {
        const double rate = copy_path(clock, cost, path);
        lasts = clock.card->copy + llround(cost.bytes / rate);
        device.copying += lasts;
    } else if (cost.kind != Cost::kNothing) {
        path[0] = &device.engines[kCompute];
        lasts = kernel_time(*clock.card, cost, device);
    }
    for (Engine *engine : path)
        if (engine)
            engine->forget(work.ready.of[number]); /* nothing later is ready before */
    for (int64_t before = -1; begin != before;) {
        before = begin;
        for (Engine *engine : path)
            if (engine)
                begin = engine->first_gap(begin, lasts);
    }
    end = begin + lasts;
    for (Engine *engine : path)
        if (engine && lasts)
            engine->take(begin, end);
    device.end = std::max(device.end, end);
    if (work.of && !number) {
        work.of->begin = work.of->begin < 0 ? begin : std::min(work.of->begin, begin);
        work.of->end = std::max(work.of->end, end);
    }
}

/* --- operations --- */

/* Divides what an operation moves and computes among its kernels, by their threads,
 * less what its products do, which say it themselves. */
static void share(std::vector<Queued> &queued, Shared &whole)
{
    double bytes = whole.bytes, flops = whole.flops, threads = 0;
    for (const Queued &work : queued) {
        if (work.known) {
            continue;
        } else if (work.cost.kind == Cost::kProduct) {
            bytes -= work.cost.bytes;
            flops -= work.cost.flops;
        } else if (work.cost.kind == Cost::kKernel) {
            threads += work.cost.threads;
        }
    }
    for (Queued &work : queued) {
        if (work.known || work.cost.kind != Cost::kKernel)
            continue;
        const double part = work.cost.threads / threads;
        work.cost.bytes = std::max(bytes, 0.0) * part;
        work.cost.flops = std::max(flops, 0.0) * part;
        work.cost.dtype = whole.dtype;
    }
    whole.bytes = whole.flops = 0;
}

/* Gives times to all that has none yet. */
void clock_settle()
{
    if (all.queued.empty())
        return;
    std::vector<Queued> queued;
    queued.swap(all.queued);
    if (queued[0].of)
        share(queued, *queued[0].of);
    for (const Queued &work : queued) {
        if (work.captured)
            *work.captured = work.cost;
        else
            each_clock([&work](CardClock &clock, size_t i) { place(clock, i, work); });
    }
}

void clock_begin_operation(double bytes, double flops, dt_dtype dtype, bool asked)
{
    clock_settle();
    outer.push_back(operation);
    operation = {true, bytes, flops, dtype, -1, -1};
    if (all.host == kFixed && asked)
        pass(kOperation);
}

void clock_end_operation()
{
    clock_settle();
    operation.open = false;
    if (outer.empty())
        return;
    if (outer.back().open)
        operation = outer.back();
    outer.pop_back();
}

bool clock_span(int64_t *begin, int64_t *end)
{
    clock_settle();
    *begin = operation.begin;
    *end = operation.end;
    return *begin >= 0;
}

/* --- queueing --- */

static Queued queued_of(Stream &stream, const Work &work)
{
    Queued queued = {&stream, work.cost, operation.open ? &operation : nullptr, {}, {}};
    if (work.cost.kind == Cost::kKernel && !operation.open)
        for (auto &block : work.blocks) /* no more is known of it */
            queued.cost.bytes += (double)block->bytes;
    return queued;
}

/* Work may wait in the list until its operation ends. */
static void enlist(const Queued &queued)
{
    if (!all.queued.empty() && all.queued[0].of != queued.of)
        clock_settle();
    all.queued.push_back(queued);
    if (!queued.of)
        clock_settle();
}

static void queue_run(Stream &stream, const Work &work)
{
    Queued queued = queued_of(stream, work);
    Cost &cost = queued.cost;
    queued.known = work.shared != nullptr;
    if (queued.known)
        cost = *work.shared;
    if (work.counted && work.counted->kind == Cost::kCounted)
        cost = *work.counted;
    each_clock([&](CardClock &clock, size_t i) {
        clock.host += queued.known ? 0 : clock.card->launch;
        queued.ready.of[i] = clock.host + clock.card->latency;
    });
    (cost.kind == Cost::kCopy && cost.target != cost.source ? all.copies
                                                            : all.kernels)++;
    enlist(queued);
}

void clock_launch()
{
    each_clock([](CardClock &clock, size_t) { clock.host += clock.card->launch; });
}

void clock_capture(Stream &stream, Work &work)
{
    Queued queued = queued_of(stream, work);
    queued.captured = work.shared = std::make_shared<Cost>(work.cost);
    clock_launch();
    enlist(queued);
}

void clock_queue(Stream &stream, Work &work)
{
    switch (work.kind) {
    case Work::kRun:
        queue_run(stream, work);
        return;
    case Work::kRecord:
        clock_settle();
        each_clock([&](CardClock &clock, size_t i) {
            work.moment->at.of[i] = std::max(stream.end.of[i], clock.host);
        });
        return;
    case Work::kWait:
    case Work::kHousekeeping:
        return;
    }
}

void clock_order(Stream &stream, const Moment &moment)
{
    clock_settle();
    each_clock([&](CardClock &clock, size_t i) {
        int64_t &end = stream.end.of[i], &all_ends = device_end(clock, stream);
        end = std::max(end, moment.at.of[i]);
        all_ends = std::max(all_ends, end);
    });
}

int64_t clock_ready(const Stream *stream)
{
    clock_settle();
    CardClock &first = all.clocks[0];
    if (!stream)
        return first.host;
    clock_launch();
    return std::max(first.host + first.card->latency, stream->end.of[0]);
}

/* --- waits --- */

static void wait(CardClock &clock, int64_t until)
{
    if (until <= clock.host) {
        clock.host += kAsk;
        return;
    }
    clock.waited += until - clock.host;
    clock.host = until + kWake;
}

static void wait(const Times &until)
{
    all.waits++;
    each_clock([&until](CardClock &clock, size_t i) { wait(clock, until.of[i]); });
}

/* Devices from first on, before last. */
static void wait_devices(size_t first, size_t last)
{
    clock_settle();
    Times until;
    each_clock([&](CardClock &clock, size_t i) {
        for (size_t d = first; d < last; d++)
            until.of[i] = std::max(until.of[i], clock.devices[d].end);
    });
    wait(until);
}

void clock_wait(const Stream &stream)
{
    clock_settle();
    wait(stream.end);
}

void clock_wait(const Moment &moment)
{
    clock_settle();
    wait(moment.at);
}

void clock_wait(int device)
{
    wait_devices((size_t)device, (size_t)device + 1);
}

void clock_wait_all()
{
    wait_devices(0, state().devices.size());
}

int64_t clock_meet(Stream *stream, int64_t time)
{
    clock_settle();
    CardClock &first = all.clocks[0];
    const int64_t came = stream ? std::max(first.host, stream->end.of[0]) : first.host;
    if (!stream) {
        all.waits++;
        wait(first, time);
    } else {
        int64_t &end = stream->end.of[0], &all_ends = device_end(first, *stream);
        end = std::max(end, time);
        all_ends = std::max(all_ends, end);
    }
    return came;
}

static bool reached(const Times &when)
{
    pass(kAsk);
    return when.of[0] <= all.clocks[0].host;
}

bool clock_reached(const Stream &stream)
{
    clock_settle();
    return reached(stream.end);
}

bool clock_reached(const Moment &moment)
{
    clock_settle();
    return reached(moment.at);
}

float clock_between(const Moment &from, const Moment &to)
{
    return (float)(1e-6 * (double)(to.at.of[0] - from.at.of[0]));
}

/* --- reading --- */

int64_t clock_now()
{
    clock_settle();
    return all.clocks[0].host;
}

std::string clock_report()
{
    clock_settle();
    auto number = [](const char *name, int64_t value) {
        return format("\"%s\": %lld, ", name, (long long)value);
    };
    std::string text = "{" + number("kernels", all.kernels) +
                       number("copies", all.copies) + number("waits", all.waits) +
                       "\"cards\": [";
    each_clock([&](CardClock &clock, size_t i) {
        text += format("%s{\"name\": \"%s\", ", i ? ", " : "", clock.card->name);
        text += number("memory", (int64_t)clock.card->gib << 30);
        text += number("now", clock.host) + number("waited", clock.waited);
        text += "\"devices\": [";
        for (size_t d = 0; d < clock.devices.size(); d++) {
            const ClockedDevice &device = clock.devices[d];
            text += d ? ", {" : "{";
            text +=
                number("end", device.end) + number("bandwidth", device.by_bandwidth);
            text += number("flops", device.by_flops) + number("least", device.least);
            text += number("accesses", device.by_accesses);
            text += format("\"copies\": %lld}", (long long)device.copying);
        }
        text += "]}";
    });
    return text + "]}";
}

} /* namespace sim */
