#include "device/race.h"

#include "base/error.h"

static int (*handler)(const dt_race *race);

void dt_race_handler_set(int (*wanted)(const dt_race *race))
{
    handler = wanted;
}

int dt_race_found(const dt_race *race)
{
    if (handler)
        return handler(race);
    return dt_fail(
        DT_ERROR_RUNTIME,
        "nothing orders %s and %s, which use the same memory: make the second "
        "wait for the first",
        race->first.name, race->second.name);
}

static int (*warning_handler)(long number);

void dt_kernel_warning_handler_set(int (*wanted)(long number))
{
    warning_handler = wanted;
}

int dt_kernel_warning(long number)
{
    return warning_handler ? warning_handler(number) : 0;
}
