/* A short pause in a loop that looks at memory which another thread writes. */
#ifndef DT_BASE_RELAX_H
#define DT_BASE_RELAX_H

#if defined(__x86_64__)
#define DT_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
/* Takes about as long as x86's pause; on most processors yield does nothing. */
#define DT_RELAX() __asm__ volatile("isb")
#else
#define DT_RELAX() ((void)0)
#endif

#endif
