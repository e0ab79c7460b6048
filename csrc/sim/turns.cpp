/* Turns: threads of the program's kernels may wait in a loop for what other threads or
 * blocks do. A timer interrupts the kernel, which then goes on with another thread
 * (fiber.cpp), and Ctrl-C ends it. In a checked kernel an access may end a turn too
 * (check.cpp). */
#include "check.h"
#include "internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <mutex>

namespace sim {

/* When a kernel is interrupted first, and how often from then on, in nanoseconds: few
 * kernels get there. */
static const long kFirst = 20000000, kNext = 1000000;
static const int kSignal = SIGURG; /* which no default action follows */

static const Launch *launched;
static volatile sig_atomic_t stopped;
static struct sigaction before_turn, before_stop;
static bool stops; /* on_stop is installed */

/* --- where a module's code is --- */

struct Search {
    ElfW(Addr) base;
    Code found;
};

static int on_library(dl_phdr_info *info, size_t, void *data)
{
    auto *search = (Search *)data;
    if (info->dlpi_addr != search->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto &part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && part.p_flags & PF_X)
            search->found = {(const char *)(info->dlpi_addr + part.p_vaddr),
                             part.p_memsz};
    }
    return 1;
}

Code library_of(const void *function)
{
    static std::mutex lock;
    static std::map<const void *, Code> known; /* modules stay loaded */
    std::lock_guard<std::mutex> hold(lock);
    auto found = known.find(function);
    if (found != known.end())
        return found->second;
    Dl_info info;
    Search search = {0, {}};
    if (dladdr(function, &info)) {
        search.base = (ElfW(Addr))info.dli_fbase;
        dl_iterate_phdr(on_library, &search);
    }
    return known[function] = search.found;
}

/* --- signals --- */

void end_if_stopped()
{
    if (stopped)
        abandon_block("was interrupted");
}

static void pass_on(const struct sigaction &to, int number, siginfo_t *info,
                    void *context)
{
    if (to.sa_flags & SA_SIGINFO)
        to.sa_sigaction(number, info, context);
    else if (to.sa_handler != SIG_DFL && to.sa_handler != SIG_IGN)
        to.sa_handler(number);
}

/* Whether the thread is in the module's own code: a library's might hold a lock. */
static bool in_module(const void *context)
{
    const auto at = (const char *)code_of(context);
    return (size_t)(at - launched->code.begin) < launched->code.bytes;
}

static void on_turn(int number, siginfo_t *info, void *context)
{
    if (info->si_code != SI_TIMER) {
        pass_on(before_turn, number, info, context);
        return;
    }
    if (!in_kernel() || !launched || !in_module(context))
        return;
    const int error = errno;
    end_if_stopped();
    if (!check_runs)
        next_turn();
    errno = error;
}

static void on_stop(int number, siginfo_t *info, void *context)
{
    stopped = 1;
    pass_on(before_stop, number, info, context);
}

static void install(int number, void (*handler)(int, siginfo_t *, void *), int flags,
                    struct sigaction *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, before);
}

/* A timer that interrupts the thread that made it. */
struct Timer {
    timer_t handle;
    bool made = false;

    Timer()
    {
        sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = kSignal;
#ifdef sigev_notify_thread_id
        event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
#else
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
#endif
        made = timer_create(CLOCK_MONOTONIC, &event, &handle) == 0;
    }
    ~Timer()
    {
        if (made)
            timer_delete(handle);
    }
    void set(long first, long next) const
    {
        const itimerspec times = {{0, next}, {0, first}};
        if (made)
            timer_settime(handle, 0, &times, nullptr);
    }
};

static const Timer &timer()
{
    static thread_local Timer own;
    static thread_local pid_t process = getpid();
    if (process != getpid()) { /* forked: timers stay behind */
        process = getpid();
        own.made = false;
        new (&own) Timer;
    }
    return own;
}

void turns_begin(const Launch &launch)
{
    static bool installed;
    stopped = 0;
    if (!launch.code.begin)
        return;
    if (!installed) {
        install(kSignal, on_turn, SA_NODEFER, &before_turn);
        installed = true;
    }
    launched = &launch;
    struct sigaction now;
    sigaction(SIGINT, nullptr, &now);
    stops = now.sa_flags & SA_SIGINFO ||
            (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
    if (stops)
        install(SIGINT, on_stop, SA_ONSTACK, &before_stop);
    timer().set(kFirst, kNext);
}

void turns_end()
{
    if (!launched)
        return;
    timer().set(0, 0);
    launched = nullptr;
    struct sigaction now;
    if (!stops)
        return;
    sigaction(SIGINT, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_stop)
        sigaction(SIGINT, &before_stop, nullptr);
}

} /* namespace sim */
