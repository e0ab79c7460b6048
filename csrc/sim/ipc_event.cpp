/* Events that processes share. A process has a table of its events' marks, in a file that
 * others map: how often each was recorded, and up to which of these times it is reached.
 * Each process has a thread for each table that it uses. Whoever waits says so there, and
 * the thread of the process that recorded runs the work before the event, as a card would
 * have by itself: under each schedule the work runs late, if it may. */
#include "base/lock.h"
#include "base/shared_file.h"
#include "internal.h"
#include <algorithm>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace sim {

static const uint32_t kMarks = 4096;
static const long kLook =
    20000000; /* ns after which is looked whether a process ended */

/* In memory of all processes that use the table; every member is read and written by
 * atomic operations. */
struct SharedMark {
    uint32_t recorded, reached;
    uint32_t wanted;  /* somebody waits */
    int32_t recorder; /* the process that recorded last */
};
struct SharedTable {
    uint32_t changes; /* grows with every change, and wakes */
    SharedMark marks[kMarks];
};

template <class T>
static T load(const T &from)
{
    return __atomic_load_n(&from, __ATOMIC_SEQ_CST);
}
template <class T>
static void store(T &to, T value)
{
    __atomic_store_n(&to, value, __ATOMIC_SEQ_CST);
}

static void announce(SharedTable &table)
{
    __atomic_add_fetch(&table.changes, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &table.changes, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

struct Table {
    std::string name;
    SharedTable *shared = nullptr;
    bool own = false, served = false;
    std::vector<Mark *> marks; /* that this process uses */
    bool used[kMarks] = {};    /* of the process's own table */
};

/* Work that waits for a recording. */
struct Awaited : Meeting {
    MarkRef mark;
    uint32_t number = 0;
    int device = 0;
    std::shared_ptr<Meeting> again(Stream &, std::string *why) const override
    {
        *why = "waits for an event of another process";
        return nullptr;
    }
};

struct Mark : std::enable_shared_from_this<Mark> {
    Table *table = nullptr;
    uint32_t number = 0;
    MomentRef moment; /* of this process's last recording */
    std::vector<std::shared_ptr<Awaited>> awaited;
    SharedMark &shared() const { return table->shared->marks[number]; }
    bool is_reached(uint32_t time) const
    {
        return (int32_t)(load(shared().reached) - time) >= 0;
    }
    void reach(uint32_t time)
    {
        if (!is_reached(time))
            store(shared().reached, time);
        announce(*table->shared);
    }
    ~Mark();
};

/* The contents of an event's handle. */
struct MarkHandle {
    char file[DT_SHARED_FILE];
    uint32_t number;
    char rest[12];
};
static_assert(sizeof(MarkHandle) == sizeof(cudaIpcEventHandle_t), "the handle's size");

/* Never destroyed, as threads use them. */
static std::vector<Table *> &tables()
{
    static std::vector<Table *> *all = new std::vector<Table *>;
    return *all;
}

Mark::~Mark()
{
    auto &all = table->marks;
    all.erase(std::find(all.begin(), all.end(), this));
    if (table->own) { /* else another process would wait forever */
        reach(load(shared().recorded));
        table->used[number] = false;
    }
}

/* --- the threads --- */

/* Runs what others wait for, and ends the waits that are over. Whether anything was done;
 * *left: somebody still waits. */
static bool serve(Mark &mark, bool *left)
{
    SharedMark &shared = mark.shared();
    bool done = false;
    const uint32_t recorded = load(shared.recorded);
    if (load(shared.wanted) && mark.moment && !mark.moment->done) {
        while (!mark.moment->done && advance(*mark.moment->stream))
            done = true;
        *left |= !mark.moment->done;
    }
    if (!mark.awaited.empty() && !mark.is_reached(recorded) &&
        !dt_process_runs(load(shared.recorder))) {
        blame(
            mark.awaited[0]->device, cudaErrorUnknown,
            format("process %d ended before its work that an event waits for was done",
                   load(shared.recorder)));
        mark.reach(recorded);
    }
    auto over = [&](const std::shared_ptr<Awaited> &each) {
        each->over = mark.is_reached(each->number);
        return each->over;
    };
    auto from = std::remove_if(mark.awaited.begin(), mark.awaited.end(), over);
    done |= from != mark.awaited.end();
    mark.awaited.erase(from, mark.awaited.end());
    *left |= !mark.awaited.empty();
    return done;
}

static void run_table(Table &table)
{
    for (;;) {
        const uint32_t seen = load(table.shared->changes);
        bool left = false;
        {
            Entry in(Entry::kNothing);
            for (bool again = true; again;) {
                again = left = false;
                /* Others' waits may be over too, now that some are. */
                for (Table *each : tables())
                    for (size_t i = 0; i < each->marks.size(); i++) {
                        /* Its work may be all that keeps it. */
                        MarkRef mark = each->marks[i]->shared_from_this();
                        again |= serve(*mark, &left);
                    }
                if (again && state().options.schedule == kEager)
                    each_stream(run_ready);
            }
            tell_meetings();
        }
        const struct timespec limit = {0, kLook};
        syscall(SYS_futex, &table.shared->changes, FUTEX_WAIT, seen,
                left ? &limit : nullptr, nullptr, 0);
    }
}

static void start_thread(Table &table)
{
    if (!table.served)
        std::thread(run_table, std::ref(table)).detach();
    table.served = true;
}

/* --- tables and marks --- */

static SharedTable *map_table(int file)
{
    void *at =
        mmap(nullptr, sizeof(SharedTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? nullptr : (SharedTable *)at;
}

/* The table of a file, or the process's own; NULL with errno. */
static Table *table_of(const char *file)
{
    for (Table *each : tables())
        if (file ? each->name == file : each->own)
            return each;
    char name[DT_SHARED_FILE] = {};
    struct stat facts;
    int opened =
        file ? dt_shared_file_open(file)
             : dt_shared_file_new("simulated-events", sizeof(SharedTable), name);
    if (opened < 0 || fstat(opened, &facts) ||
        facts.st_size != (off_t)sizeof(SharedTable)) {
        if (opened >= 0)
            close(opened);
        return nullptr;
    }
    SharedTable *shared = map_table(opened);
    if (file || !shared)
        close(opened); /* the process's own stays open for others */
    if (!shared)
        return nullptr;
    Table *made = new Table;
    made->name = file ? file : name;
    made->own = !file;
    made->shared = shared;
    tables().push_back(made);
    return made;
}

static MarkRef make_mark(Table *table, uint32_t number)
{
    MarkRef mark = std::make_shared<Mark>();
    mark->table = table;
    mark->number = number;
    table->marks.push_back(mark.get());
    return mark;
}

MarkRef new_mark()
{
    Table *table = table_of(nullptr);
    for (uint32_t i = 0; table && i < kMarks; i++)
        if (!table->used[i]) {
            table->used[i] = true;
            store(table->shared->marks[i].wanted, 0u);
            return make_mark(table, i);
        }
    return nullptr;
}

cudaError_t export_mark(const Mark &mark, cudaIpcEventHandle_t *out)
{
    MarkHandle made = {};
    memcpy(made.file, mark.table->name.c_str(), mark.table->name.size() + 1);
    made.number = mark.number;
    memcpy(out, &made, sizeof made);
    start_thread(*mark.table);
    return cudaSuccess;
}

MarkRef open_mark(const cudaIpcEventHandle_t &handle)
{
    MarkHandle given;
    memcpy(&given, &handle, sizeof given);
    given.file[sizeof given.file - 1] = '\0';
    Table *table = given.number < kMarks ? table_of(given.file) : nullptr;
    if (!table)
        return nullptr;
    start_thread(*table);
    return make_mark(table, given.number);
}

MomentRef record_mark(const MarkRef &mark, Stream &stream)
{
    const uint32_t number =
        __atomic_add_fetch(&mark->shared().recorded, 1, __ATOMIC_SEQ_CST);
    store(mark->shared().recorder, (int32_t)getpid());
    Work work;
    work.kind = Work::kHousekeeping;
    work.run = [mark, number] { mark->reach(number); };
    push(stream, std::move(work));
    mark->moment = record_moment(stream);
    return mark->moment;
}

bool is_foreign(const Mark &mark)
{
    return load(mark.shared().recorder) != getpid();
}

std::shared_ptr<Meeting> await_mark(const MarkRef &mark, int device)
{
    SharedMark &shared = mark->shared();
    const uint32_t recorded = load(shared.recorded);
    if (mark->is_reached(recorded))
        return nullptr;
    for (auto &each : mark->awaited)
        if (each->number == recorded)
            return each;
    std::shared_ptr<Awaited> made = std::make_shared<Awaited>();
    made->mark = mark;
    made->number = recorded;
    made->device = device;
    mark->awaited.push_back(made);
    store(shared.wanted, 1u);
    announce(*mark->table->shared);
    return made;
}

} /* namespace sim */
