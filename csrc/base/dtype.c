#include "base/dtype.h"

#include <float.h>
#include <string.h>

const dt_dtype_info dt_dtypes[DT_NDTYPES] = {
/* Each expands the names itself: passed on, `bool` would be replaced as a macro. */
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    [DT_##ID] = {#name, #alias, sizeof(type), DT_KIND_BOOL},
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    [DT_##ID] = {#name, #alias, sizeof(type), DT_KIND_INTEGER},
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    [DT_##ID] = {#name, #alias, sizeof(type), DT_KIND_FLOAT},
#define DT_DTYPE_COMPLEX(ID, name, alias, type)                                        \
    [DT_##ID] = {#name, #alias, sizeof(type), DT_KIND_COMPLEX},
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
    case DT_COMPLEX128:
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
    /* No 8-bit type holds both ranges; uint8 is the only unsigned type. */
    if (low == DT_UINT8 && high == DT_INT8)
        return DT_INT16;
    /* float16 has more precision, bfloat16 more range: only float32 has both. */
    if (low == DT_FLOAT16 && high == DT_BFLOAT16)
        return DT_FLOAT32;
    if (low == DT_FLOAT64 && high == DT_COMPLEX64)
        return DT_COMPLEX128;
    return high;
}

/* Truncates toward zero. NaN and values outside of int64 give INT64_MIN, like
 * cvttsd2si on x86, and so PyTorch; the copy kernels of both backends agree. */
static int64_t truncated(double f)
{
    return f >= -9223372036854775808.0 && f < 9223372036854775808.0 ? (int64_t)f
                                                                    : INT64_MIN;
}

/* Narrower integer types convert through int32. */
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
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    case DT_##ID:                                                                      \
        element.as_##name.byte =                                                       \
            scalar.kind == DT_KIND_FLOAT ? scalar.f != 0 : i != 0;                     \
        break;
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    case DT_##ID:                                                                      \
        element.as_##name =                                                            \
            (type)(scalar.kind == DT_KIND_FLOAT && sizeof(type) < 8 ? narrow(scalar.f) \
                                                                    : i);              \
        break;
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    case DT_##ID:                                                                      \
        element.as_##name = scalar.kind == DT_KIND_FLOAT ? (type)scalar.f : (type)i;   \
        break;
#define DT_DTYPE_COMPLEX(ID, name, alias, type)                                        \
    case DT_##ID:                                                                      \
        return dt_element_from_complex(dtype, dt_scalar_as_double(scalar), 0);
/* Rounds through float32, as all kernels do. */
#define DT_DTYPE_HALF(ID, name, alias, type)                                           \
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
/* A fixed size each: no call. */
#define READ(name)                                                                     \
    (memcpy(&element.as_##name, bytes, sizeof element.as_##name), element.as_##name)
    switch (dtype) {
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    case DT_##ID:                                                                      \
        return dt_scalar_bool(*(const unsigned char *)bytes != 0);
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    case DT_##ID:                                                                      \
        return dt_scalar_int((int64_t)READ(name));
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    case DT_##ID:                                                                      \
        return dt_scalar_float((double)READ(name));
#define DT_DTYPE_COMPLEX(ID, name, alias, type)                                        \
    case DT_##ID:                                                                      \
        return dt_scalar_float((double)READ(name).real);
#define DT_DTYPE_HALF(ID, name, alias, type)                                           \
    case DT_##ID:                                                                      \
        return dt_scalar_float((double)dt_##name##_widen(READ(name).bits));
#include "ops/dtype.def"
#undef READ
    case DT_NDTYPES:
        break;
    }
    return dt_scalar_int(0);
}

dt_element dt_element_from_complex(dt_dtype dtype, double real, double imag)
{
    dt_element element;
    if (!dt_dtype_is_complex(dtype))
        return dt_element_from_scalar(dtype, dt_scalar_float(real));
    memset(&element, 0, sizeof element);
    if (dtype == DT_COMPLEX64)
        element.as_complex64 = (dt_complex64){(float)real, (float)imag};
    else
        element.as_complex128 = (dt_complex128){real, imag};
    return element;
}

double dt_element_imag(dt_dtype dtype, const void *bytes)
{
    dt_element element;
    if (!dt_dtype_is_complex(dtype))
        return 0;
    memcpy(element.bytes, bytes, dt_dtype_size(dtype));
    return dtype == DT_COMPLEX64 ? (double)element.as_complex64.imag
                                 : element.as_complex128.imag;
}

bool dt_scalar_fits(dt_dtype dtype, dt_scalar scalar)
{
    if (dt_dtype_is_inexact(dtype))
        return true;
    if (scalar.kind == DT_KIND_FLOAT)
        return false;
    if (dt_dtype_kind(dtype) == DT_KIND_BOOL)
        return scalar.i == 0 || scalar.i == 1;
    /* PyTorch lets negative numbers wrap into uint8. */
    if (dtype == DT_UINT8 && scalar.i < 0)
        return scalar.i >= -UINT8_MAX;
    dt_element element = dt_element_from_scalar(dtype, scalar);
    return dt_element_to_scalar(dtype, element.bytes).i == scalar.i;
}
