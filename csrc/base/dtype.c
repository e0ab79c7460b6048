#include "base/dtype.h"

#include <float.h>
#include <string.h>

const dt_dtype_info dt_dtypes[DT_NDTYPES] = {
/* Each turns the names into text itself: passed on, `bool` would be replaced as a
 * macro. */
#define DT_DTYPE_BOOL(ID, name, alias, type, class)                                    \
    [DT_##ID] = {#name, #alias, #class, sizeof(type), DT_KIND_BOOL},
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    [DT_##ID] = {#name, #alias, #class, sizeof(type), DT_KIND_INTEGER},
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    [DT_##ID] = {#name, #alias, #class, sizeof(type), DT_KIND_FLOAT},
#include "ops/dtype.def"
};

dt_float_limits dt_dtype_limits(dt_dtype dtype)
{
    switch (dtype) {
    case DT_FLOAT16:
        return (dt_float_limits){65504, 0x1p-10, 0x1p-14, 1e-3};
    case DT_BFLOAT16:
        return (dt_float_limits){0x1.fep127, 0x1p-7, FLT_MIN, 1e-2};
    case DT_FLOAT64:
        return (dt_float_limits){DBL_MAX, DBL_EPSILON, DBL_MIN, 1e-15};
    default:
        return (dt_float_limits){FLT_MAX, FLT_EPSILON, FLT_MIN, 1e-6};
    }
}

dt_dtype dt_dtype_promote(dt_dtype a, dt_dtype b)
{
    if (a == b)
        return a;
    dt_dtype low = a < b ? a : b, high = a < b ? b : a;
    /* uint8 is the one unsigned type: with a signed byte neither holds the other. */
    if (low == DT_UINT8 && high == DT_INT8)
        return DT_INT16;
    /* One has the greater range, the other the finer steps. */
    if (low == DT_FLOAT16 && high == DT_BFLOAT16)
        return DT_FLOAT32;
    return high;
}

/* Without its fraction; what 64 bits do not hold, and NaN, is the least integer: what
 * x86's instruction gives, and so PyTorch. The copy kernels of both backends agree. */
static int64_t truncated(double f)
{
    return f >= -9223372036854775808.0 && f < 9223372036854775808.0 ? (int64_t)f
                                                                    : INT64_MIN;
}

/* To types below 64 bits it goes through 32. */
static int64_t narrow(double f)
{
    return f > -2147483649.0 && f < 2147483648.0 ? (int64_t)f : INT32_MIN;
}

dt_element dt_element_from_scalar(dt_dtype dtype, dt_scalar scalar)
{
    dt_element element;
    memset(&element, 0, sizeof element);
    int64_t i = scalar.kind == DT_KIND_FLOAT ? truncated(scalar.f) : scalar.i;
    switch (dtype) {
#define DT_DTYPE_BOOL(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        element.as_##name = scalar.kind == DT_KIND_FLOAT ? scalar.f != 0 : i != 0;     \
        break;
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    case DT_##ID:                                                                      \
        element.as_##name =                                                            \
            (type)(scalar.kind == DT_KIND_FLOAT && sizeof(type) < 8 ? narrow(scalar.f) \
                                                                    : i);              \
        break;
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        element.as_##name = scalar.kind == DT_KIND_FLOAT ? (type)scalar.f : (type)i;   \
        break;
/* By way of float32, as everywhere. */
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        element.as_##name.bits = dt_##name##_narrow(                                   \
            scalar.kind == DT_KIND_FLOAT ? (float)scalar.f : (float)i);                \
        break;
#include "ops/dtype.def"
    case DT_NDTYPES:
        break;
    }
    return element;
}

dt_scalar dt_element_to_scalar(dt_dtype dtype, const void *bytes)
{
    dt_element element;
    memcpy(&element, bytes, dt_dtype_size(dtype));
    switch (dtype) {
#define DT_DTYPE_BOOL(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        return dt_scalar_bool(element.bytes[0] != 0);
#define DT_DTYPE_INTEGER(ID, name, alias, type, class)                                 \
    case DT_##ID:                                                                      \
        return dt_scalar_int((int64_t)element.as_##name);
#define DT_DTYPE_FLOAT(ID, name, alias, type, class)                                   \
    case DT_##ID:                                                                      \
        return dt_scalar_float((double)element.as_##name);
#define DT_DTYPE_HALF(ID, name, alias, type, class)                                    \
    case DT_##ID:                                                                      \
        return dt_scalar_float((double)dt_##name##_widen(element.as_##name.bits));
#include "ops/dtype.def"
    case DT_NDTYPES:
        break;
    }
    return dt_scalar_int(0);
}

bool dt_scalar_fits(dt_dtype dtype, dt_scalar scalar)
{
    if (dt_dtype_kind(dtype) == DT_KIND_FLOAT)
        return true;
    if (scalar.kind == DT_KIND_FLOAT)
        return false;
    if (dt_dtype_kind(dtype) == DT_KIND_BOOL)
        return scalar.i == 0 || scalar.i == 1;
    /* A negative number wraps into an unsigned type, as PyTorch has it. */
    if (dtype == DT_UINT8 && scalar.i < 0)
        return scalar.i >= -UINT8_MAX;
    dt_element element = dt_element_from_scalar(dtype, scalar);
    return dt_element_to_scalar(dtype, element.bytes).i == scalar.i;
}
