/* Races: accesses to the same bytes that no stream order, event or wait puts in order.
 *
 * Each stream and the host have a vector clock: for each stream, up to where its work
 * is known to be done. Queueing work joins the host's clock into the stream's, waiting
 * for an event joins the clock that was recorded with it, and a wait of the host joins
 * the stream's clock into the host's. The program's calls decide all of that, so a race
 * is found under each schedule, whether or not it did harm. */
#ifndef DT_SIM_RACE_H
#define DT_SIM_RACE_H

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>
#include "cuda_runtime.h"
#include "device/activity.h"
#include "device/race.h"

namespace sim {

struct Block;
struct Moment;
struct Stream;
struct Work;

/* The time up to which the work of each stream, by its number, is known to be over. */
using VectorClock = std::vector<uint64_t>;

/* Bytes: runs of `run` bytes, at low plus a multiple of each dimension's stride. */
struct Footprint {
    struct Dim {
        int64_t size, stride;
        bool operator==(const Dim &o) const
        {
            return size == o.size && stride == o.stride;
        }
    };
    char *low, *high; /* of all runs */
    int64_t run;
    std::vector<Dim> dims; /* none: all bytes from low to high */
};

/* Whose memory it is. */
struct Owner {
    uint64_t block = 0; /* its number; 0: pinned memory of the host */
    int device = -1;
    char *base = nullptr;
    size_t bytes = 0;
};

/* An access of a unit of work to a range of memory. */
struct Touch {
    std::shared_ptr<const Footprint> footprint;
    bool reads, writes;
    Owner owner;
};

struct Access {
    Touch touch;
    unsigned stream; /* its number */
    uint64_t time;   /* how much work the stream had had */
    dt_race_access description;
};
using AccessRef = std::shared_ptr<const Access>;

/* An operation that the library runs, and its operands. */
struct WatchedOperation {
    const char *name = nullptr;
    int line = -1;
    std::vector<dt_extent> operands;
};

/* The state of a thread. */
struct Watched : WatchedOperation {
    /* The operations that were begun and let this one, a fused kernel, run first. */
    std::vector<WatchedOperation> outer;
    std::vector<dt_race> found; /* that its call completed, not yet reported */
};

struct Races {
    enum Mode { kOff, kWarn, kError, kStrict } mode = kOff;
    VectorClock host;
    std::vector<std::unique_ptr<Watched>> threads;
    /* The accesses that later ones may race with, by the first byte of a range. */
    struct Range {
        char *end;
        std::vector<AccessRef> accesses;
    };
    std::map<char *, Range> ranges;
    /* Names and lines of what was warned of. */
    std::set<std::tuple<std::string, int, std::string, int>> reported;
};

/* --- what streams, events and copies call; each does nothing while nothing is wanted
 * --- */

/* The work is queued: it comes after what the host knows, and touches its memory. */
void race_queued(Stream &stream, Work &work);
/* The work is captured: races of its replays name the operation that runs now. */
void race_captured(Work &work);
void race_stream_waits(Stream &stream, const Moment &moment);
/* The host has waited for all work of the stream, or up to the event. */
void race_host_waits(const Stream &stream);
void race_host_waits(const Moment &moment);

/* The work reads or writes [pointer, pointer + bytes). */
void race_touch(Work &work, const void *pointer, size_t bytes, bool reads, bool writes);
/* The kernel has a pointer: it touches the operation's operands in its block, or else
 * all from there to the block's end. */
void race_pointer(Work &work, const void *pointer, size_t bytes, bool reads,
                  bool writes);

/* The memory is another's now: no queued work uses it. */
void race_forget(char *base, size_t bytes);

/* While it lives, the bytes of the work's blocks outside of its touches hold poison,
 * and a write to them is a fault: this checks that the core lists every operand of a
 * kernel. Does nothing unless "races" is "strict". */
class Concealed {
  public:
    Concealed(const Work &work, int device);
    ~Concealed();
    Concealed(const Concealed &) = delete;

  private:
    struct Part {
        std::shared_ptr<Block> block;
        std::vector<char> kept;
        std::vector<bool> said;
    };
    const Work &work;
    int device;
    std::vector<Part> parts;
};

/* --- what the backend calls --- */

/* The host reads or writes memory: 0, or -1 if that is a race that was raised. */
int race_host(const char *name, const std::vector<dt_extent> &extents);

/* Hands the races that this thread's call completed to the core; `status`, or -1 if one
 * was raised. */
int race_answer(int status);
/* The observer of the library's operations, or NULL if races are not looked for. */
const dt_observer *race_observer();

} /* namespace sim */

#endif
