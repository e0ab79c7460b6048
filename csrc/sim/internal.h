/* What the simulator's files share. Everything here is used with the one lock held,
 * which an Entry takes; kernels, copies and host functions run under it too, one at a
 * time. */
#ifndef DT_SIM_INTERNAL_H
#define DT_SIM_INTERNAL_H

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "cuda_runtime.h"
#include "sim.h"

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifndef SIM_ASAN
#define SIM_ASAN 0
#endif

namespace sim {

/* --- memory --- */

/* Bytes that work may touch: a block that an allocator took, or a whole cudaMalloc. */
struct Block {
    int device = 0;
    char *base = nullptr; /* as the program holds it */
    size_t bytes = 0; /* that were asked for; what follows up to rounded is a canary */
    size_t rounded = 0;
    bool laid_out = false; /* poison and canary are written, in stream order */
    bool reused = false;   /* its memory has been laid out again as another block */
};
using BlockRef = std::shared_ptr<Block>;

struct Segment { /* one cudaMalloc */
    BlockRef whole;
    bool carved = false; /* an allocator hands out parts of it */
};

struct Stream;
/* One recording of an event, done when the stream has come to it. */
struct Moment {
    Stream *stream = nullptr; /* valid until done */
    int device = 0;
    bool done = false;
    double seconds = 0;
};
using MomentRef = std::shared_ptr<Moment>;

/* A piece of queued work. */
struct Work {
    enum Kind { kRun, kHousekeeping, kRecord, kWait } kind = kRun;
    const char *name = ""; /* a constant */
    size_t bytes = 0;      /* of a copy or memset */
    std::function<void()> run;
    std::vector<BlockRef> blocks; /* that it may touch */
    bool check_canaries = false;
    MomentRef moment;                /* of kRecord and kWait */
    cudaError_t fault = cudaSuccess; /* found when it was queued; then it is not run */
    std::string fault_text;
    std::string title() const; /* how an error names it */
};

struct Stream {
    int device = 0;
    int priority = 0;
    bool destroyed = false;
    std::deque<Work> queue;
};

struct Device {
    int index = 0;
    char *held =
        nullptr; /* where programs hold its memory; seen_from gives what kernels see */
    int file = -1;
    size_t used = 0;
    std::map<char *, Segment> segments; /* by base */
    std::map<char *, BlockRef> taken;   /* live blocks of carved segments */
    std::map<char *, BlockRef> past;    /* given back, not yet taken again */
    std::unique_ptr<Stream> own_stream; /* the default one */
    bool reaches[DT_SIM_MAX_DEVICES] = {};
    cudaError_t fault = cudaSuccess; /* to be reported by the next wait */
    std::string fault_text;
    dt_sim_counters counted = {};
    std::map<const char *, int64_t> kernels; /* by the address of their name */
};

enum Schedule { kEager, kLazy, kRandom };

struct Options {
    bool read = false; /* the environment has been */
    bool valid = true;
    int devices = 1;
    size_t memory = (size_t)1 << 30;
    Schedule schedule = kEager;
    uint64_t random = 0;
    const Stream *favourite = nullptr; /* of the random schedule; only compared */
    bool peer = true;
    std::map<std::string, long> failures; /* kind -> calls until one fails */
};

struct State {
    Options options;
    bool open = false; /* memory is mapped: devices are in use */
    char *held = nullptr, *seen = nullptr;
    size_t stride = 0;
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Stream>> streams;
    std::map<cudaEvent_t, struct Event *> events;
    std::map<char *, size_t> pinned;
    std::map<const void *, int> shared_limits; /* cudaFuncSetAttribute */
    std::string violation;
    uint64_t violations = 0;
};
State &state(); /* never destroyed: threads may outlive main */

/* --- entry and errors --- */

/* Takes the lock for a call of the runtime. error is set in a process that was forked
 * from one that used devices, when called from within simulated work, and, where
 * devices are needed, when they cannot be had. */
class Entry {
  public:
    enum Need { kNothing, kDevices };
    explicit Entry(Need need = kDevices);
    ~Entry();
    Entry(const Entry &) = delete;
    cudaError_t error;

  private:
    bool locked;
};

struct Thread {
    int device = 0;
    bool inside = false; /* a call of the runtime */
    cudaError_t last = cudaSuccess;
    cudaError_t told = cudaSuccess; /* the fault that `text` tells about */
    char text[1024] = {};
    char words[1536] = {}; /* what cudaGetErrorString lends */
    char complaint[256] = {};
};
Thread &thread();

/* Notes an error as this thread's last one; gives it back. */
cudaError_t answer(cudaError_t error);
/* Notes what work did wrong; the device's next wait reports it. */
void blame(int device, cudaError_t error, const std::string &text);
/* The answer of a call that waited for a device, or asked it: its fault, then anything
 * that has gone wrong since `before` (state().violations) elsewhere, else `otherwise`.
 */
cudaError_t verdict(int device, uint64_t before, cudaError_t otherwise = cudaSuccess);
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
/* Counts down to a failure on demand; true when this call is to fail. */
bool fails(const char *kind);

cudaError_t
read_options(); /* once; cudaErrorInvalidValue if the environment makes no sense */
cudaError_t open_devices();

/* --- memory (memory.cpp, block.cpp) --- */
Device *device_of(const void *pointer); /* NULL: no device address */
inline char *seen_from(const void *held)
{
    return (char *)held + (state().seen - state().held);
}
cudaError_t map_devices();
void close_pages(char *seen, size_t bytes);
void open_pages(char *seen, size_t bytes);
void lay_out(Block &block); /* poison and canary */
/* Whether the canary is whole; if not, blames `who` and repairs it. */
bool check_canary(Block &block, const std::string &who, int blamed, bool all);
void forget_blocks(Device &device, char *base, size_t bytes);

struct Reach {
    int device;        /* whose stream */
    bool through_peer; /* memory of other devices only with peer access */
    bool range;  /* bytes from pointer on, to be checked; else its block as a whole */
    bool pinned; /* page-locked memory of the host will do */
    const char *role; /* for the error: the ROLE [NUMBER] of WORK */
    int number;       /* 0: none */
};
/* Finds the block that `pointer` lies in and adds it to the work; *seen is where work
 * can touch it. Otherwise the work is marked as faulty. NULL is no fault if no range is
 * given. */
void reach(Work &work, const Reach &how, const void *pointer, size_t bytes,
           void **seen);

/* --- streams (stream.cpp) --- */
/* NULL if the handle is none, or not of a live stream. */
Stream *stream_of(cudaStream_t handle);
void push(Stream &stream, Work work);
bool advance(Stream &stream); /* runs one piece, of it or of what it waits for */
void drain(Stream &stream);
void drain_device(int device);
void drain_all();
void nudge(); /* the random schedule's turn */
void execute(Work &work, int device);
double now();

/* --- kernels (kernel.cpp, fiber.cpp, fault.cpp) --- */
struct Outcome {
    cudaError_t error;
    char text[512];
};
/* Runs a grid, to the end or to the first thing that it does wrong. */
void run_grid(const Launch &launch, Body &body, Outcome *outcome);
/* Leaves the kernel that is running, for good. */
[[noreturn]] void abandon(cudaError_t error, const char *text);
bool in_kernel(); /* one is running, on the thread that holds the lock */
const char *running_kernel();
void arm_faults(); /* from now on a kernel's SIGSEGV, SIGBUS and SIGFPE are outcomes */
/* What is wrong at an address that a kernel touched. */
void describe_address(char *out, size_t size, const void *address);

} /* namespace sim */

#endif
