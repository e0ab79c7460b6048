#include "autograd/mode.h"

_Thread_local bool dt_grad_enabled = true;
