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
