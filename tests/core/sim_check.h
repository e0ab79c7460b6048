/* Helpers for the tests of the simulated runtime. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include "check.h"
#include "cuda/runtime/launch.h"
#include "sim/sim.h"

/* Whether AddressSanitizer, which detects reads outside of a kernel's blocks, watches. */
#ifdef __SANITIZE_ADDRESS__
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

#define GOOD(call) EQUAL((int)(call), (int)cudaSuccess)

/* Whether the last violation's text contains the words. */
static inline bool said(const char *words)
{
    char text[1024];
    dt_sim_violation(text, sizeof text);
    if (strstr(text, words))
        return true;
    printf("the violation says: %s\n", text);
    return false;
}

/* Runs f in a child process and returns its wait status. Drops its output. */
template <class F>
static int in_child(F f)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        f();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static inline void schedule(const char *text)
{
    EQUAL(dt_sim_set("schedule", text), 0);
}

/* Copies and fills that are done on return. */
static inline cudaError_t copy_now(void *to, const void *from, size_t bytes,
                                   cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}
static inline cudaError_t fill_now(void *to, int value, size_t bytes)
{
    cudaError_t error = cudaMemsetAsync(to, value, bytes, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}

template <class T>
static T *on_device(size_t n)
{
    T *p = nullptr;
    GOOD(cudaMalloc(&p, n * sizeof(T)));
    return p;
}
template <class T>
static std::vector<T> fetch(const T *p, size_t n)
{
    std::vector<T> out(n);
    GOOD(copy_now(out.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
}

#endif
