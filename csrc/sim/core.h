/* The core's functions, which stand-ins of libraries and the race detector call. */
#ifndef DT_SIM_CORE_H
#define DT_SIM_CORE_H

#include "device/backend.h"

namespace sim {

/* All NULL in a program without the core. */
extern __attribute__((visibility("hidden"))) dt_host core;

} /* namespace sim */

#endif
