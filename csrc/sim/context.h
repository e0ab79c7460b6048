/* Execution contexts: a stack and the point at which it was left. */
#ifndef DT_SIM_CONTEXT_H
#define DT_SIM_CONTEXT_H

#include <stddef.h>

#if defined(__x86_64__) || defined(__aarch64__)
#define SIM_OWN_SWITCH 1
#else
#define SIM_OWN_SWITCH 0
#include <ucontext.h>
#endif

namespace sim {

struct Context {
#if SIM_OWN_SWITCH
    void *stack_pointer = nullptr;
#else
    ucontext_t machine;
#endif
};

/* The first switch to the context calls entry, which must not return. */
void context_make(Context *context, void *stack, size_t bytes, void (*entry)());
void context_switch(Context *from, Context *to);

} /* namespace sim */

#endif
