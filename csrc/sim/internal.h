/* Declarations shared by the simulator's files. One lock, taken by Entry, guards all
 * of this; kernels, copies and host functions also run under it, one at a time. */
#ifndef DT_SIM_INTERNAL_H
#define DT_SIM_INTERNAL_H

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>
#include "base/sanitizer.h"
#include "device/cuda_library.h"
#include "clock.h"
#include "cuda_runtime.h"
#include "race.h"
#include "sim.h"

namespace sim {

/* Limits of a block: threads, and bytes of shared memory. */
enum { kMaxThreads = 1024 };
static const size_t kSharedBytes = 48 << 10;
/* The shared memory that a block may have if its kernel asks. */
size_t shared_optin();
/* The threads that a multiprocessor holds, and the KiB of shared memory that a block may
 * have, in the tables of the CUDA C++ programming guide for compute capabilities. */
void limits_of(int capability, int *threads, int *shared);
/* Bytes of shared memory that a multiprocessor takes for a block beside its own. */
inline int kept_shared(int capability)
{
    return capability >= 80 ? 1024 : 0;
}

/* --- memory --- */

/* Bytes that work may access: an allocator's block or a whole cudaMalloc. */
struct Block {
    int device;
    char *base;   /* the program's address */
    size_t bytes; /* requested bytes; the rest up to rounded is a canary */
    size_t rounded;
    bool laid_out = false; /* poison and canary are written, in stream order */
    bool reused = false;   /* the memory has been laid out as another block */
    /* The blocks that had the memory before, until this one is laid out. */
    std::vector<std::shared_ptr<Block>> before = {};
    bool overtaken = false; /* one with it in `before` was written to */
    bool captured = false;  /* it was taken while its stream captured */
    bool filled = false;    /* something other than a checked kernel may have written */
    uint64_t born = 0;      /* the checks' time of its poison */
    uint64_t number = next_number();
    static uint64_t next_number();
};
using BlockRef = std::shared_ptr<Block>;

/* The entry of a map by address that is at or before p; end() if there is none. */
template <class Map>
auto entry_before(Map &map, const void *p)
{
    auto next = map.upper_bound((char *)p);
    return next == map.begin() ? map.end() : std::prev(next);
}

struct Segment { /* one cudaMalloc, or one of another process */
    BlockRef whole;
    bool carved = false; /* an allocator cuts blocks from it */
    bool shared = false; /* other processes may use it */
    int opened = 0;      /* how often, of another process's; 0: it is this one's */
};

/* Memory of a device that is to be mapped (mapping.cpp). */
struct Physical {
    size_t bytes;
    off_t offset;  /* in the device's file of these, or another process's */
    int file = -1; /* another process's */
    int mapped = 0;
    bool released = false, exportable = false, exported = false;
};

/* Pages of a file that are mapped in a device's window. */
struct Pages {
    size_t bytes;
    int file;
    off_t offset;
    std::string name = {};     /* of another process's allocation (ipc.cpp) */
    unsigned long long of = 0; /* else the number of the memory (mapping.cpp) */
    uint64_t reaching = 0;     /* a bit for each device that may access it */
};

struct Stream;
struct Capture;
using CaptureRef = std::shared_ptr<Capture>;
/* How many steps of each stream of a capture come before. */
using Steps = std::vector<size_t>;

/* A recording of an event; done when the stream reaches it. */
struct Moment {
    CaptureRef within; /* that it was recorded in: then it is never done */
    Steps before;
    Stream *stream = nullptr; /* valid until done */
    int device = 0;
    bool done = false;
    double seconds = 0;
    VectorClock known; /* what its stream knew */
    Times at;          /* of the clocks */
};
using MomentRef = std::shared_ptr<Moment>;

struct Stream;

/* Work that other processes take part in: its stream goes on when it is over. */
struct Meeting {
    bool over = false;
    virtual ~Meeting() = default;
    /* The same once more, for work that a replay of a graph queues next on a stream. NULL
     * and why if there can be none. */
    virtual std::shared_ptr<Meeting> again(Stream &stream, std::string *why) const = 0;
};

/* A unit of queued work. */
struct Work {
    enum Kind { kRun, kHousekeeping, kRecord, kWait } kind = kRun;
    const char *name = ""; /* a literal */
    size_t bytes = 0;      /* of a copy or memset */
    std::function<void()> run;
    std::vector<BlockRef> blocks;  /* blocks that it may access */
    std::vector<Touch> touches;    /* its reads and writes, until it is queued */
    Cost cost;                     /* for the clocks */
    std::shared_ptr<Cost> shared;  /* of captured work, whose operation settles it */
    std::shared_ptr<Cost> counted; /* of a kernel that counts its accesses as it runs */
    /* In a replay: the operation that queued it while it was captured, and its line. */
    const char *operation = nullptr;
    int line = -1;
    bool replayed = false;
    bool check_canaries = false;
    MomentRef moment; /* of kRecord and kWait */
    std::shared_ptr<Meeting>
        meeting; /* it is part of it: whose ranks run it (nccl.cpp) */
    cudaError_t fault = cudaSuccess; /* error found when it was queued; it is then
                                        not run */
    std::string fault_text;
    std::string title() const; /* its name in error texts */
};

struct Stream {
    int device = 0;
    bool destroyed = false;
    int drained = 0;       /* by so many threads */
    bool blocking = false; /* the default stream waits for it, and it for that one */
    int priority = 0;      /* as it was asked for, which changes nothing */
    /* Its units of work; those of the default stream that it waits for; its own that the
     * default stream waits for (program.cpp). */
    uint64_t pushed = 0, waited = 0, awaited = 0;
    std::deque<Work> queue;
    unsigned number = next_number(); /* its index in vector clocks; from 1 on */
    VectorClock known;
    static unsigned next_number();
    Times end;          /* of what is queued, on the clocks */
    CaptureRef capture; /* that takes its work; NULL: it runs */
};

struct Device {
    int index = 0;
    char *held =
        nullptr; /* the program's view of its memory; kernels see it at seen_from */
    int file = -1;
    size_t used = 0;
    std::map<char *, Segment> segments; /* by base */
    std::map<char *, Pages> pages;      /* the same, in the window */
    std::map<char *, size_t> reserved;  /* ranges of the window */
    std::map<unsigned long long, Physical> physical;
    int more = -1;                           /* the file that these are in */
    std::map<char *, BlockRef> taken;        /* live blocks in carved segments */
    std::map<char *, BlockRef> past;         /* released blocks, until the memory is
                                           reused */
    std::vector<BlockRef> captured;          /* blocks that replays use again */
    std::unordered_set<const void *> loaded; /* kernels */
    std::unique_ptr<Stream> own_stream;      /* the default stream */
    bool reaches[DT_MAX_SIMULATED] = {};
    bool context = false;            /* it was made current */
    cudaError_t fault = cudaSuccess; /* reported by the next synchronization */
    bool reported = false;           /* it was, and stays: "sticky" */
    std::string fault_text;
    dt_sim_counters counted = {};
};

enum Schedule { kEager, kLazy, kRandom };

struct Failure {
    long calls;        /* until the one that fails */
    bool always;       /* so do all after it */
    cudaError_t error; /* cudaSuccess: the usual one of its kind */
};

struct Options {
    bool read = false; /* the environment has been read */
    bool valid = true;
    int devices = 1;
    size_t memory = (size_t)1 << 30;
    bool memory_chosen = false;             /* else it is the card's */
    std::vector<const dt_sim_card *> cards; /* the first says what devices are like */
    Host host = kMeasured;
    Schedule schedule = kEager;
    std::string schedule_name = "eager";
    uint64_t random = 0;
    const Stream *favourite = nullptr; /* used by the random schedule; only compared,
                                          never dereferenced */
    bool peer = true;
    bool sticky = false;
    bool cudnn = true; /* there is one */
    bool cufft = true;
    bool manual = false; /* memory is reused although other streams may use it */
    std::map<std::string, Failure> failures; /* by kind */
};

struct State {
    Options options;
    bool open = false;    /* memory is mapped: devices are in use */
    unsigned started = 0; /* 1 + dt_forks of the process that started the runtime */
    char *held = nullptr, *seen = nullptr;
    /* From a device's addresses to the next one's: those for cudaMalloc, then the window,
     * addresses at which other pages than a cudaMalloc's are mapped. */
    size_t stride = 0, room = 0, window = 0;
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Stream>> streams;
    std::map<cudaEvent_t, struct Event *> events;
    std::map<char *, size_t> pinned;
    std::unordered_set<void *> managed; /* of pinned, by cudaMallocManaged */
    Races races;
    std::vector<CaptureRef> captures; /* that are under way */
    std::string violation;
    uint64_t violations = 0;
    std::set<std::string> kernels; /* lines with file and name of those loaded */
};
State &state(); /* never destroyed: threads may outlive main */
inline Device &device_at(int index)
{
    return *state().devices[(size_t)index];
}
/* The end of the page-locked memory that holds the byte at p; nullptr if none does. */
const char *pinned_end(const void *p);

/* --- entry and errors --- */

/* Takes the lock for a call of the runtime. error is set if the process was forked
 * after the runtime was started, even to count devices, if called from simulated work,
 * and if devices are needed but unavailable or, after a sticky fault, lost. */
class Entry {
  public:
    enum Need { kNothing, kRuntime, kDevices };
    explicit Entry(Need need = kDevices);
    ~Entry();
    Entry(const Entry &) = delete;
    void count(); /* the call */
    cudaError_t error;

  private:
    bool locked;
};

/* Begins a function of the runtime: returns the entry's error. */
#define SIM_ENTER(...)                                                                 \
    Entry in{__VA_ARGS__};                                                             \
    in.count();                                                                        \
    if (in.error)                                                                      \
    return answer(in.error)

struct Thread {
    int device = 0;
    bool inside = false; /* inside a call of the runtime */
    cudaError_t last = cudaSuccess;
    cudaError_t reported = cudaSuccess; /* the error that `text` describes */
    char text[1024] = {};
    unsigned calls = 0, explained = 0; /* of the runtime; the one that set `text` */
    char words[1536] = {};             /* what cudaGetErrorString returns */
    char complaint[512] = {};
    Watched *watched = nullptr; /* the state's, once races are looked for */
    int own_waits = 0;          /* see OwnWait */
    cudaStreamCaptureMode capturing = cudaStreamCaptureModeGlobal;
};
Thread &thread();

/* Sets this thread's last error and returns it. */
cudaError_t answer(cudaError_t error);
/* Sets the details that cudaGetErrorString adds to an error; the call returns it next. */
void explain(cudaError_t error, const char *text);
/* Records a fault of queued work; the device's next synchronization reports it. */
void blame(int device, cudaError_t error, const std::string &text);
/* Runs queued work on the CPU instead of in a library for GPUs. Its failure is the
 * device's: an error that waits in the thread's slot, where it may run, stays there. */
void stand_in(int device, const char *what, const std::function<int()> &call);
/* The result of a call that synchronized with or queried a device: the device's
 * fault, else any fault on another device since `before` (state().violations), else
 * `otherwise`. */
cudaError_t verdict(int device, uint64_t before, cudaError_t otherwise = cudaSuccess);
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
/* Counts down to a failure on demand: the error that this call must return, which is
 * `usual` unless another was demanded, or cudaSuccess. */
cudaError_t failure(const char *kind, cudaError_t usual);
/* Tells this thread of the device's fault. */
cudaError_t report_fault(Device &device);

cudaError_t
read_options(); /* once; cudaErrorInvalidValue if the environment is malformed */
cudaError_t open_devices();

/* --- memory (memory.cpp, block.cpp) --- */
Device *device_of(const void *pointer); /* NULL: not a device address */
inline char *seen_from(const void *held)
{
    return (char *)held + (state().seen - state().held);
}
cudaError_t map_devices();
/* An empty file for a device's memory, whose name says the device and how much memory it
 * has: pydevtensor/_top.py reads it. */
int new_file(int device);
/* Counts an allocation, which no capture allows, and fails it on demand. */
cudaError_t begin_malloc(Device &device);
/* cudaMalloc's work. */
cudaError_t take(Device &device, size_t bytes, char **out);
/* Free addresses of a device's window; NULL: there are none. */
char *free_window(Device &device, size_t bytes);
/* Maps pages at addresses of the window, accessible to work or not yet, and takes them
 * away. */
cudaError_t map_pages(Device &device, char *base, Pages pages, bool accessible);
void unmap_pages(Device &device, char *base);
/* The reservation that has the address; end() if none does. */
std::map<char *, size_t>::iterator reservation_of(Device &device, const void *at);
/* Whether work of a device may access the block; true where its memory was not mapped by
 * the program. */
bool may_reach(const Block &block, int device);
/* Whether queued work may use memory of [base, base + bytes). */
bool is_in_queue(const char *base, size_t bytes);
/* Maps the memory that is seen at `first` once more, at another address. */
bool map_again(Device &device, const char *first, size_t bytes, char *at);
/* The segment's memory is no longer its blocks'. */
void forget_segment(Device &device, Segment &segment);
/* Whether other processes may use a block's memory. */
bool is_shared(const Block &block);
/* Memory is freed after all work that may use it, and in no capture. */
cudaError_t wait_to_free();
void close_pages(char *seen, size_t bytes);
void open_pages(char *seen, size_t bytes);
void lay_out(Block &block); /* writes poison and canary */
/* A replay comes to where its capture took the block. */
void lay_out_again(const BlockRef &block);
/* Work of a stream that does not wait has used the block before it was laid out: what it
 * wrote, a race, stays inside of it, and the ends of the blocks before do not count. */
void overtake(Block &block);
/* Whether the memory is still what it was when the work was queued. */
bool is_live(const Block &block);
/* Work writes to the block that holds the pointer. */
void block_filled(const Work &work, const void *pointer);
/* Whether the canary is intact; if not, blames `who` and repairs it. */
bool check_canary(Block &block, const std::string &who, int blamed, bool all);
void forget_blocks(Device &device, char *base, size_t bytes);

struct Reach {
    int device;        /* the stream's device */
    bool through_peer; /* other devices' memory needs peer access */
    bool range;        /* check `bytes` from pointer on; else the block as a whole */
    bool pinned;       /* accept page-locked host memory */
    const char *role;  /* for the error text: the ROLE [NUMBER] of WORK */
    int number;        /* 0: none */
};
/* The work's first error; it is then not run. */
void set_fault(Work &work, const std::string &text);
/* Finds the block that holds `pointer` and adds it to the work; *seen is the address
 * that work uses. On failure the work gets a fault. NULL is valid if there is no
 * range. */
void reach(Work &work, const Reach &how, const void *pointer, size_t bytes,
           void **seen);

/* --- events that processes share (ipc_event.cpp) --- */
struct Mark;
using MarkRef = std::shared_ptr<Mark>;
MarkRef new_mark(); /* NULL: there are too many */
cudaError_t export_mark(const Mark &mark, cudaIpcEventHandle_t *out);
MarkRef open_mark(const cudaIpcEventHandle_t &handle); /* NULL: there is none */
/* Records the event. */
MomentRef record_mark(const MarkRef &mark, Stream &stream);
bool is_foreign(const Mark &mark); /* another process recorded it last, or none */
/* The meeting that is over when the last recording is reached; NULL: it has been. A failure is
 * blamed on the device. */
std::shared_ptr<Meeting> await_mark(const MarkRef &mark, int device);

/* --- streams (stream.cpp) --- */
/* NULL if the handle is not a live stream. */
Stream *stream_of(cudaStream_t handle);
void push(Stream &stream, Work work);
/* Mark a moment of a stream, and let a stream wait for one. */
MomentRef record_moment(Stream &stream);
void wait_for_moment(Stream &stream, const MomentRef &moment);
/* Runs one unit of work, of this stream or one it waits for. False: there is none, or it
 * has to wait for a meeting. */
bool advance(Stream &stream);
void run_ready(Stream &stream); /* all that waits for no meeting */
/* Runs all. False: Ctrl-C came in a meeting, and its work is left. */
bool drain(Stream &stream);
/* Waits, in an Entry and without the lock, for another thread to end a meeting or to change
 * what is queued. */
void sleep_until_told();
/* The same, and looks for Ctrl-C: false if it came. */
bool await_meeting();
void tell_meetings(); /* ends these waits */
/* f(stream) for all streams, each device's own first. */
template <class F>
void each_stream(F f)
{
    for (auto &device : state().devices)
        f(*device->own_stream);
    for (auto &stream : state().streams)
        f(*stream);
}
bool drain_device(int device); /* as drain */
void drain_all();
void nudge();    /* runs some work under the random schedule */
uint64_t roll(); /* the next number of the random schedule */
void execute(Work &work, int device);
double now();

/* --- whole programs (program.cpp) --- */
/* A program that `pydevtensor nvcc` compiled has started the simulator: all functions below
 * do nothing without one. */
extern bool program_runs;
/* Whether the call has to fail because its work would, which cudaGetErrorString
 * describes. */
bool program_refuses(const Work &work);
/* Streams wait for the default stream, and that one for them. */
void program_orders(Stream &stream);
/* A copy between devices in the default stream waits for the default streams of both, and
 * later work of these (`after`) for it. */
void program_orders_peers(Stream &stream, const void *to, const void *from, bool after);
/* Before and after work runs on a device: its __device__ variables are there. */
void program_enters(int device);
void program_leaves();
/* In a signal handler: whether a kernel may use this address, by a pointer that it did not
 * get as an argument; it can then. */
bool program_opens(const void *address);
/* The same: describes a fault of the host's code. */
void program_crashed(int signal, const void *address, const void *code);
/* The source line of an instruction of the program, as "file:line"; "" if unknown. */
const char *program_line(const void *code);

/* --- graphs (graph.cpp) --- */
/* Fails if work cannot be queued on the stream: its capture is lost. */
cudaError_t check_capture(const Stream &stream);
/* Takes a stream's work into its capture. */
void capture(Stream &stream, Work work);
/* The stream, which captures or not, waits for a moment of a capture, or captures and
 * waits for one of none. */
cudaError_t capture_wait(Stream &stream, const MomentRef &moment);
/* A call that CUDA refuses while a capture is under way, in the modes that say so, or
 * because it is of a stream or a device that captures. The capture is lost. */
cudaError_t refuse_while_capturing();
/* The start of a library, which synchronizes in every mode of the calling thread. */
cudaError_t refuse_library();
/* The same for waits and queries, also of what does not capture. */
cudaError_t refuse_of_stream(const Stream &stream);
cudaError_t refuse_of_device(int device);
cudaError_t refuse_of_moment(const Moment *moment);
void capture_forgets(const Stream &stream); /* it is destroyed */

/* --- kernels (kernel.cpp, grid.cpp, fiber.cpp, fault.cpp) --- */
struct Outcome {
    cudaError_t error;
    char text[512];
    const void *code = nullptr; /* the instruction of a fault */
};
/* Runs a grid to its end or its first error. An error without a text only ends it: a
 * warning has said why. */
void run_grid(const Launch &launch, Body &body, Outcome *outcome);
/* Abandons the running kernel. */
[[noreturn]] void abandon(cudaError_t error, const char *text,
                          const void *code = nullptr);
/* The same, of the running thread, which `what` is said of. */
[[noreturn]] void abandon_block(const char *what);
/* Where a signal found the thread: NULL where that is not known. */
const void *code_of(const void *context);
/* The code of the library that a function is in. */
Code library_of(const void *function);
/* Around a grid of the program's: its threads take turns. */
void turns_begin(const Launch &launch);
void turns_end();
/* Abandons the running kernel if Ctrl-C has come since it began. */
void end_if_stopped();
/* Another thread of the block continues, or another block. */
void next_turn();
/* Waits until another thread of the block calls tell_change(). */
void await_change();
void tell_change();
bool in_kernel(); /* the caller is a kernel */
const char *running_kernel();
const Indices &running_indices();
void arm_faults(); /* from now on a kernel's SIGSEGV, SIGBUS and SIGFPE become its
                      outcome */
/* Describes the address of a fault. */
void describe_address(char *out, size_t size, const void *address);

} /* namespace sim */

#endif
