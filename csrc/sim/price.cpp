/* The cost of a launch's accesses (docs/clock.md explains the model). */
#include <algorithm>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include "check_shadow.h"
#include "price.h"

namespace sim {

bool price_runs;

/* Cycles from a request of a warp until it has its data, from a multiprocessor's own memory
 * and more from beyond; requests of a warp that are under way at once; cycles that the
 * instructions of a request take: assumptions of the order that public microbenchmarks
 * report. */
static const double kNear = 30, kBeyond = 470, kAhead = 2, kIssue = 1;
/* Sectors that a multiprocessor's own memory gives in a cycle, and that the second-level
 * cache gives it. */
static const double kNearAtOnce = 4, kBeyondAtOnce = 0.6;
enum { kSampled = 16, kOfBlock = 1 << 16, kLeastOfThread = 16, kSector = 32 };

static struct {
    Cost *cost;
    Accesses sums;
    uint64_t blocks, counted; /* of the grid; whose accesses are counted */
    unsigned most;            /* of a thread's accesses, in a block */
    double seen, taken;       /* accesses of the counted blocks */
    bool in_block;
    /* The counted block's reads of device memory: requests, their sectors, and these once. */
    double reads, read_sectors;
    std::vector<uintptr_t> sectors;
    unsigned of_thread[kMaxThreads];
} price;

/* The second-level cache of the first card. An epoch ends when half of it has been filled,
 * and what was used in this epoch or in the one before is there. */
struct Marks {
    unsigned char read, written; /* the epoch in which a sector was last; 0: in none */
};
static struct {
    Marks *marks; /* of device memory */
    size_t bytes;
    const Cell *beside; /* the shadow memory */
    unsigned epoch, filled, half;
    double missed, once; /* sectors from device memory; and if all of them stayed */
} cache;
enum { kFirstEpoch = 2, kLastEpoch = 255 };

static bool map_marks()
{
    if (cache.marks && cache.beside == shadow.cells)
        return true;
    if (cache.marks)
        munmap(cache.marks, cache.bytes);
    cache.beside = shadow.cells;
    cache.bytes = (shadow.span / kSector + 1) * sizeof(Marks);
    void *memory = mmap(nullptr, cache.bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cache.marks = memory == MAP_FAILED ? nullptr : (Marks *)memory;
    return cache.marks != nullptr;
}

static Marks *marks_at(const char *p)
{
    return cache.marks + (size_t)(p - shadow.seen) / kSector;
}

/* f(mark) of all sectors of the operands. */
template <class F>
static void each_mark(F f)
{
    for (const Operand &operand : shadow.operands)
        if (operand.low < operand.high)
            for (Marks *at = marks_at(operand.low - operand.moved),
                       *last = marks_at(operand.high - 1 - operand.moved);
                 at <= last; at++)
                f(*at);
}

static void begin_epoch()
{
    cache.filled = 0;
    if (++cache.epoch <= kLastEpoch)
        return;
    each_mark([](Marks &marks) {
        marks = {(unsigned char)(marks.read != 0), (unsigned char)(marks.written != 0)};
    });
    cache.epoch = kFirstEpoch + 1;
}

static inline void use(unsigned char &mark)
{
    if (mark + 1u < cache.epoch) {
        cache.missed++;
        cache.once += !mark;
        if (++cache.filled >= cache.half)
            begin_epoch();
    }
    mark = (unsigned char)cache.epoch;
}

void price_begin(Cost *cost)
{
    cost->kind = Cost::kKernel;
    if (!map_marks())
        return;
    cache.epoch = kFirstEpoch;
    cache.half = (unsigned)(state().options.cards[0]->l2 << 20) / kSector / 2;
    cache.filled = 0;
    cache.missed = cache.once = 0;
    const unsigned threads = checked.block.x * checked.block.y * checked.block.z;
    price.cost = cost;
    price.sums = {};
    price.blocks = (uint64_t)checked.grid.x * checked.grid.y * checked.grid.z;
    price.counted = 0;
    price.most = std::max<unsigned>(kLeastOfThread, kOfBlock / threads);
    price.seen = price.taken = 0;
    price.in_block = false;
    price_runs = true;
}

/* The ends of a counted block: what a block reads again is near, if it is not written. */
static void end_block()
{
    std::sort(price.sectors.begin(), price.sectors.end());
    const double once =
        (double)(std::unique(price.sectors.begin(), price.sectors.end()) -
                 price.sectors.begin());
    price.sectors.clear();
    price.sums.sectors += once;
    if (price.reads)
        price.sums.waiting +=
            price.reads * (kNear + kBeyond * once / price.read_sectors);
    price.reads = price.read_sectors = 0;
}

bool price_block(uint64_t number, bool all)
{
    if (price.in_block)
        end_block();
    const uint64_t last = price.blocks - 1, gaps = kSampled - 1;
    /* All of a few blocks; of many the first, the last, and some between them. */
    price.in_block = all || price.blocks <= 2 * kSampled ||
                     (number * gaps + last - 1) / last * last / gaps == number;
    price.counted += price.in_block;
    memset(price.of_thread, 0, sizeof price.of_thread);
    return price.in_block;
}

bool price_takes(bool all)
{
    if (!price.in_block)
        return false;
    price.seen++;
    if (!all && price.of_thread[check_thread]++ >= price.most)
        return false;
    price.taken++;
    return true;
}

void price_touch(const Cell *cell, unsigned bytes, bool write)
{
    const size_t word = (size_t)(cell - shadow.cells);
    if (word >= shadow.span / 4) /* a variable of the module */
        return;
    const unsigned words = kSector / 4;
    Marks &first = cache.marks[word / words];
    Marks &last = cache.marks[(word + (bytes - 1) / 4) / words];
    use(write ? first.written : first.read);
    if (&first != &last)
        use(write ? last.written : last.read);
}

void price_request(bool shared, bool write, unsigned long long sectors,
                   unsigned long long waves, unsigned long long rounds)
{
    Accesses &sums = price.sums;
    sums.requests++;
    if (shared) {
        sums.waves += (double)std::max(waves, rounds);
        sums.waiting += kNear;
        return;
    }
    sums.waves += std::max({1.0, (double)sectors / kNearAtOnce, (double)rounds});
    if (write) {
        sums.sectors += (double)sectors;
    } else {
        price.reads++;
        price.read_sectors += (double)sectors;
    }
}

void price_reads(const std::vector<uintptr_t> &sectors)
{
    price.sectors.insert(price.sectors.end(), sectors.begin(), sectors.end());
}

void price_end()
{
    if (!price_runs)
        return;
    price_runs = false;
    if (price.in_block)
        end_block();
    Cost &cost = *price.cost;
    each_mark([](Marks &marks) { marks = {}; });
    cost.bytes = cache.missed * kSector;
    if (!price.counted)
        return;
    const double all = (double)price.blocks / (double)price.counted *
                       (price.taken ? price.seen / price.taken : 1);
    const Accesses &sums = price.sums;
    cost.accesses = {sums.requests * all, sums.waves * all,     sums.sectors * all,
                     sums.waiting * all,  cache.once * kSector, checked.shared_bytes};
    cost.kind = Cost::kCounted;
}

double price_bytes(const dt_sim_card &card, const Cost &cost)
{
    const double once = cost.accesses.once;
    return once <= (double)(card.l2 << 20) ? once : cost.bytes;
}

double price_accesses(const dt_sim_card &card, const Cost &cost)
{
    const Accesses &a = cost.accesses;
    int threads, shared;
    limits_of(10 * card.major + card.minor, &threads, &shared);
    const double warps = ceil(cost.threads / cost.blocks / 32);
    const double busiest = ceil(cost.blocks / card.sms); /* its blocks */
    const int kept = kept_shared(10 * card.major);
    const double fit = floor(std::min(
        threads / (32 * warps), (1024.0 * shared + kept) / ((double)a.shared + kept)));
    const double resident = warps * std::clamp(busiest, 1.0, std::max(fit, 1.0));
    const double cycles =
        std::max({a.requests * kIssue, a.waves, a.sectors / kBeyondAtOnce,
                  a.waiting / (resident * kAhead)});
    /* The clock follows from the FLOP/s: two for each core and cycle. */
    const int capability = 10 * card.major + card.minor;
    const double cores = capability <= 80 ? 64 : 128;
    const double gigahertz = 1e3 * card.float32 / (2 * cores * card.sms);
    return cycles * busiest / cost.blocks / gigahertz;
}

} /* namespace sim */
