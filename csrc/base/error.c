#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

static dt_error spare; /* used when calloc fails */

/* Allocated at a thread's first error: most threads never fail. */
static dt_error *own(void)
{
    dt_error *slot = dt_thread_slots[DT_THREAD_ERROR];
    if (slot)
        return slot;
    slot = calloc(1, sizeof *slot);
    if (!slot)
        return &spare;
    dt_thread_keep(DT_THREAD_ERROR, slot, free);
    return slot;
}

/* Set once, before the backend library that sets it calls anything else in this
 * file. */
static dt_error *(*current_slot)(void) = own;

dt_error *dt_error_slot(void)
{
    return current_slot();
}

void dt_error_share(dt_error *(*slot)(void))
{
    current_slot = slot;
}

void dt_error_clear(void)
{
    dt_error *error = dt_error_slot();
    error->code = DT_ERROR_NONE;
    error->text[0] = '\0';
}

int dt_fail(dt_error_code code, const char *format, ...)
{
    dt_error *error = dt_error_slot();
    va_list args;
    va_start(args, format);
    error->code = code;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return -1;
}

int dt_fail_prefix(const char *format, ...)
{
    dt_error *error = dt_error_slot();
    char old[DT_ERROR_TEXT];
    memcpy(old, error->text, sizeof old);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof error->text)
        snprintf(error->text + used, sizeof error->text - (size_t)used, "%s", old);
    return -1;
}

int dt_fail_append(const char *format, ...)
{
    dt_error *error = dt_error_slot();
    size_t used = strnlen(error->text, sizeof error->text);
    va_list args;
    va_start(args, format);
    vsnprintf(error->text + used, sizeof error->text - used, format, args);
    va_end(args);
    return -1;
}
