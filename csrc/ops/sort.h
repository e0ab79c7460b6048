/* Keys of elements: whole numbers in the order that is wanted, for both backends. The
 * includer has DT_FN, the qualifiers of functions. */
#ifndef DT_OPS_SORT_H
#define DT_OPS_SORT_H

#include <math.h>
#include <string.h>

#include "base/dtype.h"

typedef struct dt_key_order {
    uint64_t infinity; /* the bits of a float's infinity; 0: integers */
    uint64_t sign;     /* the sign bit of a float or a signed integer; 0: unsigned */
    bool descending;
} dt_key_order;

static inline dt_key_order dt_key_order_of(dt_dtype dtype, bool descending)
{
    uint64_t top = (uint64_t)1 << (8 * dt_dtype_size(dtype) - 1);
    dt_key_order order = {0, dt_dtype_is_signed(dtype) ? top : 0, descending};
    dt_element infinity = dt_element_from_scalar(dtype, dt_scalar_float(INFINITY));
    if (dt_dtype_is_float(dtype))
        memcpy(&order.infinity, infinity.bytes, dt_dtype_size(dtype));
    return order;
}

/* All NaNs have the greatest key, and -0 has that of 0, so a key does not determine these
 * elements. */
template <typename B>
DT_FN B dt_key_of(B bits, const dt_key_order &o)
{
    const B sign = (B)o.sign;
    if (o.infinity) {
        const B size = (B)(bits & (B)~sign);
        const B key = bits & sign ? (B)~bits : (B)(bits | sign);
        bits = size > (B)o.infinity ? (B) ~(B)0 : size == 0 ? sign : key;
    } else {
        bits = (B)(bits ^ sign);
    }
    return o.descending ? (B)~bits : bits;
}

/* The element x, by its key where that says all. */
template <typename B>
DT_FN B dt_element_of(B key, const dt_key_order &o, const B *x)
{
    const B sign = (B)o.sign;
    key = o.descending ? (B)~key : key;
    if (!o.infinity)
        return (B)(key ^ sign);
    if (key == sign || key == (B) ~(B)0)
        return *x;
    return key & sign ? (B)(key ^ sign) : (B)~key;
}

#endif
