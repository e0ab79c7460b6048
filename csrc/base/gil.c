#include "base/gil.h"

static void *(*release_gil)(void);
static void (*take_gil)(void *state);
static _Thread_local bool yielding;
static int released; /* by how many threads; touched with the GIL */

void dt_gil_start(void *(*release)(void), void (*take)(void *state))
{
    release_gil = release;
    take_gil = take;
}

bool dt_gil_yield(bool yields)
{
    bool before = yielding;
    yielding = yields;
    return before;
}

void *dt_gil_release(void)
{
    if (!yielding || !release_gil)
        return NULL;
    yielding = false;
    released++;
    return release_gil();
}

void dt_gil_take(void *state)
{
    take_gil(state);
    released--;
    yielding = true;
}

void dt_gil_count(int change)
{
    released += change;
}

bool dt_gil_is_released(void)
{
    return released > 0;
}
