/* The process around the interpreter: signals that interrupt long work. */
#include <unistd.h>

#include "base/gil.h"
#include "base/interrupt.h"
#include "python/module.h"

/* Whether a signal handler has raised an exception. Only the main thread runs handlers;
 * others must not ask, as they may compute after the interpreter has ended. */
static bool is_interrupted(void)
{
    if (gettid() != getpid())
        return false;
    bool yielded = dt_gil_yield(false);
    PyGILState_STATE state = PyGILState_Ensure();
    bool raised = !PyErr_Occurred() && PyErr_CheckSignals() < 0;
    PyGILState_Release(state);
    dt_gil_yield(yielded);
    return raised;
}

int dt_setup_process(PyObject *module)
{
    (void)module;
    dt_interrupt_start(is_interrupted);
    return 0;
}
