/* Switches contexts without a system call: pushes the callee-saved registers and
 * exchanges the stack pointer. Other architectures use ucontext. */
#include "context.h"
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

/* void dt_sim_switch(void **save [rdi], void *to [rsi]) */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dt_sim_switch\n"
        ".hidden dt_sim_switch\n"
        ".type dt_sim_switch, @function\n"
        "dt_sim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size dt_sim_switch, .-dt_sim_switch\n");

/* Words of a saved context, and where execution continues. Above that is the return
 * address of entry, 0, which keeps the stack aligned as after a call. */
enum { kWords = 8, kContinue = 6 };

#elif defined(__aarch64__)

/* void dt_sim_switch(void **save [x0], void *to [x1]) */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl dt_sim_switch\n"
        ".hidden dt_sim_switch\n"
        ".type dt_sim_switch, %function\n"
        "dt_sim_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size dt_sim_switch, .-dt_sim_switch\n");

enum { kWords = 20, kContinue = 11 }; /* x30 */

#endif

#if SIM_OWN_SWITCH
extern "C" void dt_sim_switch(void **save, void *to)
    __attribute__((visibility("hidden")));
#endif

namespace sim {

void context_make(Context *context, void *stack, size_t bytes, void (*entry)())
{
#if SIM_OWN_SWITCH
    uintptr_t *top = (uintptr_t *)(((uintptr_t)stack + bytes) & ~(uintptr_t)15);
    top -= kWords;
    memset(top, 0, kWords * sizeof *top);
    top[kContinue] = (uintptr_t)entry;
    context->stack_pointer = top;
#else
    getcontext(&context->machine);
    context->machine.uc_stack.ss_sp = stack;
    context->machine.uc_stack.ss_size = bytes;
    context->machine.uc_link = nullptr;
    makecontext(&context->machine, entry, 0);
#endif
}

void context_switch(Context *from, Context *to)
{
#if SIM_OWN_SWITCH
    dt_sim_switch(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->machine, &to->machine);
#endif
}

} /* namespace sim */
