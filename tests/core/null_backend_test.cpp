/* A third type of devices, registered as any is, and its backend under the checks of every
 * backend. */
#include "backend_checks.h"

#include "null_backend.h"

extern "C" const dt_backend *dt_cpu_backend(void);

int main()
{
    FINE(dt_registry_start(dt_cpu_backend(), ".", ""));
    const int type = dt_registry_add(&null_row);
    CHECK(type >= DT_NDEVICE_TYPES);
    EQUAL(dt_device_type_find("null", 4), type);
    EQUAL(dt_device_type_find("nul", 3), -1);
    FAILS(dt_registry_add(&null_row), DT_ERROR_VALUE);
    CHECK(dt_backends[type] == nullptr);
    backend = dt_backend_get((dt_device_type)type);
    CHECK(backend && backend == dt_backends[type]);
    EQUAL(dt_device_count((dt_device_type)type), NULL_DEVICES);
    EQUAL(strlen(dt_device_why((dt_device_type)type)), 0);
    zero_divides = false;
    check_transfers();
    check_all_elementwise();
    check_reductions();
    check_extremes();
    check_conversions();
    check_constants();
    check_integer_products();
    check_float_products();
    return finish();
}
