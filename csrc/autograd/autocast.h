/* Automatic mixed precision: while it is on, a call of an operation whose record has a flag
 * DT_CASTS_... gets its tensors in the type that the flag says. Each thread has a state of
 * its own. The casts are recorded, so gradients come back in the types of the inputs. */
#ifndef DT_AUTOGRAD_AUTOCAST_H
#define DT_AUTOGRAD_AUTOCAST_H

#include "tensor/call.h"

typedef struct dt_autocast_state {
    bool on; /* for one of the device types, and not inside of a call that is cast */
    struct {
        bool enabled;
        dt_dtype dtype; /* the lower one */
    } of[DT_MAX_DEVICE_TYPES];
    bool cache; /* keeps casts of parameters until the outermost block ends */
    int blocks; /* that the thread is in */
} dt_autocast_state;
extern _Thread_local dt_autocast_state dt_autocast;

void dt_autocast_set(int device_type, bool enabled, dt_dtype dtype);

/* Begins and ends a block, such as Python's `with autocast()`. */
void dt_autocast_enter(void);
void dt_autocast_leave(void);

/* Switches it off until dt_autocast_resume gets the result. */
static inline bool dt_autocast_pause(void)
{
    bool on = dt_autocast.on;
    dt_autocast.on = false;
    return on;
}
static inline void dt_autocast_resume(bool on)
{
    dt_autocast.on = on;
}

/* A recorded copy of t in another type, which the block may have already. */
int dt_autocast_cast(dt_tensor *made, const dt_tensor *t, dt_dtype dtype);

/* t as it is, or its recorded copy in *made, which the caller clears, in the type that
 * flags, DT_CASTS_LOWER... or DT_CASTS_FLOAT..., ask for on its device. NULL after
 * dt_fail. */
const dt_tensor *dt_autocast_as(dt_tensor *made, const dt_tensor *t, unsigned flags);

/* dt_dispatch of a call with a flag DT_CASTS_..., while dt_autocast.on. */
int dt_autocast_dispatch(dt_call *c, const dt_op_info *info);

#endif
