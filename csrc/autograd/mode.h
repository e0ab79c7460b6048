/* Whether the calling thread records operations: grad mode. */
#ifndef DT_AUTOGRAD_MODE_H
#define DT_AUTOGRAD_MODE_H

#include <stdbool.h>

/* True at the start of every thread. */
extern _Thread_local bool dt_grad_enabled;

#endif
