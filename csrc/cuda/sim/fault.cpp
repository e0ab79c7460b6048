/* A kernel that touches what it may not: the signal becomes the launch's error, and the
 * process lives on. Handlers are in place only while simulated work runs; a fault outside of
 * a kernel goes to whoever had them before. */
#include "internal.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

namespace sim {

static const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { kNumSignals = sizeof kSignals / sizeof *kSignals };

static bool armed;
static pthread_t runner;
static struct sigaction before[kNumSignals];
static stack_t stack_before;
static char stack[64 << 10]; /* a fiber that has overflowed its stack has none for a handler */

void describe_address(char *out, size_t size, const void *address)
{
    State &all = state();
    const size_t span = all.stride * all.devices.size();
    const uintptr_t p = (uintptr_t)address;
    if (p - (uintptr_t)all.held < span)
        snprintf(out, size, "%p, a device address that did not come to it as a pointer argument",
                 address);
    else if (p - (uintptr_t)all.seen < span)
        snprintf(out, size, "%p, beyond the memory of simulated cuda:%d", address,
                 (int)((p - (uintptr_t)all.seen) / all.stride));
    else
        snprintf(out, size, "%p, no device memory (or its stack is full)", address);
}

static void on_signal(int number, siginfo_t *info, void *)
{
    if (!in_kernel() || !pthread_equal(runner, pthread_self())) {
        for (int i = 0; i < kNumSignals; i++)
            if (kSignals[i] == number)
                sigaction(number, &before[i], nullptr);
        return; /* to fault again, now in the other's hands */
    }
    char what[160], text[400];
    if (number == SIGFPE)
        snprintf(what, sizeof what, "divided a whole number by zero");
    else {
        memcpy(what, "touched ", 8);
        describe_address(what + 8, sizeof what - 8, info->si_addr);
    }
    snprintf(text, sizeof text, "%s block (%u, %u, %u), thread (%u, %u, %u) %s",
             running_kernel(), blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
             threadIdx.z, what);
    abandon(number == SIGFPE ? cudaErrorLaunchFailure : cudaErrorIllegalAddress, text);
}

void arm_faults()
{
    if (armed)
        return;
    armed = true;
    runner = pthread_self();
    stack_t mine;
    memset(&mine, 0, sizeof mine);
    mine.ss_sp = stack;
    mine.ss_size = sizeof stack;
    sigaltstack(&mine, &stack_before);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    /* The handler leaves by switching stacks: nothing would unblock the signal again. */
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < kNumSignals; i++)
        sigaction(kSignals[i], &action, &before[i]);
}

void disarm_faults()
{
    if (!armed)
        return;
    armed = false;
    for (int i = 0; i < kNumSignals; i++)
        sigaction(kSignals[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
}

} /* namespace sim */
