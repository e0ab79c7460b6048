/* Memory faults in kernels: turns the signal into the launch's error. The handlers
 * are installed at the first kernel and stay, since installing them for each would
 * cost more than a small kernel does; faults outside of kernels are passed to the
 * previous handlers. */
#include "internal.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <atomic>

namespace sim {

/* SIGILL: compilers trap where a program of undefined behaviour comes to. */
static const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { kNumSignals = sizeof kSignals / sizeof *kSignals };

static struct sigaction before[kNumSignals];
static bool passed_on[kNumSignals];

/* A fiber that has overflowed its stack cannot run a handler on it, so each thread
 * that runs kernels gets an alternate stack, unless it has one. */
struct SpareStack {
    void *memory = nullptr;
    enum { kBytes = 64 << 10 };

    SpareStack()
    {
        stack_t now_set, mine;
        if (sigaltstack(nullptr, &now_set) || !(now_set.ss_flags & SS_DISABLE))
            return;
        memory = malloc(kBytes);
        if (!memory)
            return;
        memset(&mine, 0, sizeof mine);
        mine.ss_sp = memory;
        mine.ss_size = kBytes;
        sigaltstack(&mine, nullptr);
    }
    ~SpareStack()
    {
        stack_t now_set, none;
        memset(&none, 0, sizeof none);
        none.ss_flags = SS_DISABLE;
        if (memory && !sigaltstack(nullptr, &now_set) && now_set.ss_sp == memory)
            sigaltstack(&none, nullptr);
        free(memory);
    }
};

void describe_address(char *out, size_t size, const void *address)
{
    State &all = state();
    const size_t span = all.stride * all.devices.size();
    const uintptr_t p = (uintptr_t)address;
    if (p - (uintptr_t)all.held < span)
        snprintf(out, size, "%p, a device address that was not a pointer argument",
                 address);
    else if (p - (uintptr_t)all.seen < span)
        snprintf(out, size, "%p, not allocated on simulated cuda:%d", address,
                 (int)((p - (uintptr_t)all.seen) / all.stride));
    else
        snprintf(out, size, "%p, not device memory (or its stack overflowed)", address);
}

/* Reinstalls the previous handler for the next fault; the second time the default
 * one, so that two handlers cannot pass a fault back and forth. */
static void pass_on(int number)
{
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    for (int i = 0; i < kNumSignals; i++)
        if (kSignals[i] == number) {
            sigaction(number, passed_on[i] ? &plain : &before[i], nullptr);
            passed_on[i] = true;
        }
}

/* The instruction that a signal interrupted. */
const void *code_of(const void *context)
{
#if defined(__x86_64__)
    return (const void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    return (void)context, nullptr;
#endif
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (!in_kernel()) {
        program_crashed(number, info->si_addr, code_of(context));
        pass_on(number);
        return; /* fault again */
    }
    if (number == SIGSEGV && program_opens(info->si_addr))
        return; /* and try again */
    char what[160], text[400];
    if (number == SIGFPE)
        snprintf(what, sizeof what, "divided an integer by zero");
    else if (number == SIGILL)
        snprintf(what, sizeof what, "came to code of undefined behaviour");
    else {
        memcpy(what, "touched ", 8);
        describe_address(what + 8, sizeof what - 8, info->si_addr);
    }
    const Indices &at = running_indices();
    snprintf(text, sizeof text, "%s block (%u, %u, %u), thread (%u, %u, %u) %s",
             running_kernel(), at.block.x, at.block.y, at.block.z, at.thread.x,
             at.thread.y, at.thread.z, what);
    abandon(number == SIGFPE || number == SIGILL ? cudaErrorLaunchFailure
                                                 : cudaErrorIllegalAddress,
            text, code_of(context));
}

void arm_faults()
{
    static thread_local SpareStack spare;
    (void)spare.memory;
    static thread_local bool unblocked;
    if (!unblocked) { /* the CPU's workers block all signals */
        sigset_t faults;
        sigemptyset(&faults);
        for (int number : kSignals)
            sigaddset(&faults, number);
        unblocked = pthread_sigmask(SIG_UNBLOCK, &faults, nullptr) == 0;
    }
    static std::atomic<bool> armed;
    if (armed.exchange(true))
        return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    /* The handler leaves by switching stacks, so the signal must not stay blocked. */
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < kNumSignals; i++)
        sigaction(kSignals[i], &action, &before[i]);
}

} /* namespace sim */
