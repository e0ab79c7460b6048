/* The counts of kernel.report() and of the clock: the accesses of a checked kernel, by
 * location in the code.
 *
 * Threads run one after another, so the lanes of a warp do not access memory together. A
 * request of a warp is taken to be what its lanes do at one location the same number of
 * times since the last barrier: so lanes that are out of a loop sooner, or on the other
 * side of a condition, are idle. */
#include <algorithm>
#include <map>
#include <string.h>
#include "check_shadow.h"
#include "count.h"
#include "price.h"
#include "runner.h"

namespace sim {

bool count_runs;

namespace {

enum : unsigned { kSector = 32, kBanks = 32, kBank = 4, kMost = 1u << 23 };

struct LaneAccess {
    uintptr_t address;
    uint32_t at; /* the address in the module, or the line of an atomic */
    uint16_t thread;
    uint8_t bytes, how;
};
enum How : uint8_t { kWrite = 1, kInShared = 2, kOfAtomic = 4 };

struct Counts {
    unsigned long long runs, bytes; /* of threads */
    unsigned long long requests, lanes, idle;
    unsigned long long sectors, least; /* of global memory; the least for these bytes */
    unsigned long long waves, parts;   /* of shared memory; and without conflicts */
    unsigned long long changes, rounds; /* of atomics; rounds: the most at an address */
};

bool reports; /* all blocks are counted, for kernel.report() */
std::vector<LaneAccess> accesses;
void *counted_module; /* of the launch */
std::map<std::pair<uint32_t, uint8_t>, Counts> counted;

/* The lanes' addresses of one request. */
struct Request {
    uintptr_t address[32];
    unsigned lanes, bytes;
};

unsigned distinct(std::vector<uintptr_t> &values)
{
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return (unsigned)values.size();
}

void count_sectors(const LaneAccess &like, const Request &request, Counts &counts)
{
    std::vector<uintptr_t> sectors, bytes;
    for (unsigned l = 0; l < request.lanes; l++) {
        const uintptr_t from = request.address[l], to = from + request.bytes - 1;
        for (uintptr_t s = from / kSector; s <= to / kSector; s++)
            sectors.push_back(s);
        bytes.push_back(from);
    }
    counts.sectors += distinct(sectors);
    if (price_runs && !(like.how & (kWrite | kOfAtomic)))
        price_reads(sectors);
    counts.least += ((size_t)distinct(bytes) * request.bytes + kSector - 1) / kSector;
}

/* Lanes that read 8 or 16 bytes do so in two or four parts of a warp. In each, a bank gives
 * one word at a time. */
void count_waves(const Request &request, Counts &counts)
{
    const unsigned words = std::max(1u, request.bytes / kBank);
    const unsigned each = 32 / words;
    for (unsigned first = 0; first < request.lanes; first += each) {
        std::vector<uintptr_t> banks[kBanks];
        for (unsigned l = first; l < std::min(first + each, request.lanes); l++)
            for (unsigned w = 0; w < words; w++) {
                const uintptr_t word = request.address[l] / kBank + w;
                banks[word % kBanks].push_back(word);
            }
        unsigned most = 0;
        for (auto &bank : banks)
            most = std::max(most, distinct(bank));
        counts.waves += most;
        counts.parts++;
    }
}

void count_rounds(const Request &request, Counts &counts)
{
    unsigned most = 0;
    for (unsigned l = 0; l < request.lanes; l++)
        most = std::max(most, (unsigned)std::count(request.address,
                                                   request.address + request.lanes,
                                                   request.address[l]));
    counts.changes++;
    counts.rounds += most;
}

void count_request(const LaneAccess &like, const Request &request, unsigned warp)
{
    const unsigned threads = checked.block.x * checked.block.y * checked.block.z;
    Counts &counts = counted[{like.at, like.how}];
    const Counts before = counts;
    counts.requests++;
    counts.runs += request.lanes;
    counts.bytes += (size_t)request.lanes * request.bytes;
    const unsigned lanes = std::min(32u, threads - 32 * warp);
    counts.lanes += lanes;
    counts.idle += lanes - request.lanes;
    if (like.how & kOfAtomic)
        count_rounds(request, counts);
    if (like.how & kInShared)
        count_waves(request, counts);
    else
        count_sectors(like, request, counts);
    if (price_runs)
        price_request(like.how & kInShared, like.how & (kWrite | kOfAtomic),
                      counts.sectors - before.sectors, counts.waves - before.waves,
                      counts.rounds - before.rounds);
}

bool goes_before(const LaneAccess &a, const LaneAccess &b)
{
    const unsigned warp = a.thread / 32, other = b.thread / 32;
    if (warp != other)
        return warp < other;
    if (a.at != b.at)
        return a.at < b.at;
    if (a.how != b.how)
        return a.how < b.how;
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.thread < b.thread;
}

bool are_one(const LaneAccess &a, const LaneAccess &b)
{
    return a.thread / 32 == b.thread / 32 && a.at == b.at && a.how == b.how &&
           a.bytes == b.bytes;
}

/* The requests of a warp at one location, from the accesses of its lanes in order. */
void count_place(const LaneAccess *from, const LaneAccess *end)
{
    const LaneAccess *next[33];
    unsigned lanes = 0;
    for (const LaneAccess *a = from; a < end; a++)
        if (a == from || a->thread != a[-1].thread)
            next[lanes++] = a;
    next[lanes] = end;
    for (size_t turn = 0;; turn++) {
        Request request = {{}, 0, from->bytes};
        for (unsigned l = 0; l < lanes; l++)
            if (next[l] + turn < next[l + 1])
                request.address[request.lanes++] = next[l][turn].address;
        if (!request.lanes)
            return;
        count_request(*from, request, from->thread / 32);
    }
}

} /* namespace */

void count_settle()
{
    counted_module = checked.launch->module->handle;
    std::stable_sort(accesses.begin(), accesses.end(), goes_before);
    const LaneAccess *at = accesses.data(), *end = at + accesses.size();
    while (at < end) {
        const LaneAccess *next = at;
        while (next < end && are_one(*at, *next))
            next++;
        count_place(at, next);
        at = next;
    }
    accesses.clear();
}

void count_block()
{
    if (count_runs)
        count_settle();
    const uint3 at = first_runner.indices.block;
    const dim3 grid = checked.grid;
    const bool priced =
        price_runs &&
        price_block(at.x + (uint64_t)grid.x * (at.y + (uint64_t)grid.y * at.z),
                    reports);
    if (!reports && priced && !count_runs)
        counted.clear();
    count_runs = reports || priced;
}

void count_access(Space space, const void *address, unsigned bytes, bool write,
                  bool atomic, Place place)
{
    if (space != kGlobal && space != kShared)
        return;
    if (price_runs && !price_takes(reports))
        return;
    const unsigned how = (write ? kWrite : 0) | (space == kShared ? kInShared : 0) |
                         (atomic ? kOfAtomic : 0);
    accesses.push_back({(uintptr_t)address,
                        place.line ? (uint32_t)place.line : (uint32_t)place.at,
                        (uint16_t)check_thread, (uint8_t)bytes, (uint8_t)how});
    if (accesses.size() >= kMost)
        count_settle();
}

void count_begin()
{
    accesses.clear();
    counted.clear();
    counted_module = nullptr;
    count_runs = reports = true;
}

std::string count_rows(size_t first)
{
    count_runs = reports = false;
    std::string text = format("%zu\n", (size_t)counted_module);
    size_t number = 0;
    for (const auto &each : counted) {
        if (number++ < first)
            continue;
        const Counts &c = each.second;
        text += format("%u %u %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu\n",
                       each.first.first, each.first.second, c.runs, c.bytes, c.requests,
                       c.lanes, c.idle, c.sectors, c.least, c.waves, c.parts, c.changes,
                       c.rounds);
        if (text.size() > 50000)
            break;
    }
    return text;
}

} /* namespace sim */
