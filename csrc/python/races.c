/* The message for a race on simulated GPUs: device/race.h. */
#include "device/race.h"

#include <string.h>

#include "device/device.h"
#include "python/errors.h"
#include "python/source_lines.h"
#include "python/threads.h"

enum { RACE_TEXT = 2048, STREAM_TEXT = 96 };

/* "stream 0x55d0 of cuda:0" */
static const char *stream_text(const dt_race_access *access, char text[STREAM_TEXT])
{
    if (access->stream)
        snprintf(text, STREAM_TEXT, "stream %p of cuda:%d", access->stream,
                 access->device);
    else
        snprintf(text, STREAM_TEXT, "the default stream of cuda:%d", access->device);
    return text;
}

static const char *verb(const dt_race_access *access)
{
    return !access->writes ? "reads" : access->reads ? "reads and writes" : "writes";
}

/* "\n  add writes them on s1, stream 0x55d0 of cuda:0, at train.py:12" */
static void append_access(char *text, const dt_race_access *access, const char *stream)
{
    char line[DT_LINE_TEXT], where[STREAM_TEXT];
    size_t used = strlen(text);
    dt_source_line_text(access->line, line);
    if (access->host)
        snprintf(text + used, RACE_TEXT - used, "\n  the host %s them in %s%s%s",
                 verb(access), access->name, *line ? ", at " : "", line);
    else
        snprintf(text + used, RACE_TEXT - used, "\n  %s %s them on %s, %s%s%s",
                 access->name, verb(access), stream, stream_text(access, where),
                 *line ? ", at " : "", line);
}

/* Between which lines something is missing: " between a.py:3 and a.py:5". */
static void append_advice(char *text, const dt_race *race)
{
    char first[DT_LINE_TEXT], second[DT_LINE_TEXT];
    size_t used = strlen(text);
    dt_source_line_text(race->first.line, first);
    dt_source_line_text(race->second.line, second);
    char between[2 * DT_LINE_TEXT + 32];
    if (*first && *second)
        snprintf(between, sizeof between, "between %s and %s", first, second);
    else
        snprintf(between, sizeof between, "between the two");
    char *to = text + used;
    size_t room = RACE_TEXT - used;
    if (race->second.host)
        snprintf(to, room,
                 "\nThe host does not wait for s1. Missing %s: s1.synchronize(), or "
                 "event.synchronize() of an event recorded on s1 after the first",
                 between);
    else if (race->reused)
        snprintf(
            to, room,
            "\nThe memory was freed and given to another tensor before s1 was done "
            "with it. Missing before the first tensor is freed: "
            "tensor.record_stream(s1)");
    else
        snprintf(to, room,
                 "\nNothing orders the two. Missing %s: s2.wait_stream(s1), or "
                 "s2.wait_event(event) for an event recorded on s1 after the first",
                 between);
}

static void describe(const dt_race *race, char text[RACE_TEXT])
{
    const char *hazard = !race->first.writes  ? "WAR"
                         : race->second.reads ? "RAW"
                                              : "WAW";
    if (race->device < 0)
        snprintf(text, RACE_TEXT,
                 "race (%s hazard) on %zu bytes of pinned memory:", hazard,
                 race->bytes);
    else
        snprintf(
            text, RACE_TEXT,
            "race (%s hazard) on bytes %zu to %zu of a tensor's block of %zu bytes "
            "on cuda:%d:",
            hazard, race->offset, race->offset + race->bytes - 1, race->block,
            race->device);
    append_access(text, &race->first, "s1");
    append_access(text, &race->second, "s2");
    append_advice(text, race);
}

static int found(const dt_race *race)
{
    if (!PyGILState_GetThisThreadState())
        return dt_fail(DT_ERROR_RUNTIME,
                       "a race on a thread that Python does not know");
    DT_WITH_GIL;
    char text[RACE_TEXT];
    describe(race, text);
    int status = race->fatal ? dt_fail(DT_ERROR_RUNTIME, "%s", text)
                             : PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
    if (status < 0 && !race->fatal)
        dt_fail(DT_ERROR_RUNTIME, "the warning became an error");
    return status;
}

static int warn_of_kernel(long number)
{
    if (!PyGILState_GetThisThreadState())
        return 0;
    DT_WITH_GIL;
    DT_REF done =
        dt_python_call("pydevtensor.cuda._kernel_checks", "warn", "(l)", number);
    return done ? 0 : dt_fail(DT_ERROR_RUNTIME, "the warning became an error");
}

int dt_setup_races(PyObject *Py_UNUSED(module))
{
    dt_kernel_warning_handler_set(warn_of_kernel);
    dt_race_handler_set(found);
    return 0;
}
