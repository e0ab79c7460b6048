/* Keys of elements: whole numbers in the order that is wanted, for both backends. The
 * includer has DT_FN, the qualifiers of functions. */
#ifndef DT_OPS_SORT_H
#define DT_OPS_SORT_H

#include <math.h>
#include <string.h>

#include "base/dtype.h"

/* How bits become keys, without a branch: a kernel makes a key for each element. */
typedef struct dt_key_order {
    uint64_t all;        /* the bits of an element */
    uint64_t sign;       /* the sign bit of a float or a signed integer; 0: unsigned */
    uint64_t negative;   /* the bits in which a negative element and its key differ */
    uint64_t minus_zero; /* the bits of -0; 0: integers */
    uint64_t greatest;   /* of the bits but the sign: a NaN has more */
    uint64_t flipped;    /* all bits: descending; else 0 */
} dt_key_order;

static inline dt_key_order dt_key_order_of(dt_dtype dtype, bool descending)
{
    uint64_t top = (uint64_t)1 << (8 * dt_dtype_size(dtype) - 1);
    uint64_t all = top | (top - 1), sign = dt_dtype_is_signed(dtype) ? top : 0;
    dt_key_order order = {all, sign, sign, 0, all, descending ? all : 0};
    if (dt_dtype_is_float(dtype)) {
        dt_element infinity = dt_element_from_scalar(dtype, dt_scalar_float(INFINITY));
        order.negative = all;
        order.minus_zero = sign;
        order.greatest = 0;
        memcpy(&order.greatest, infinity.bytes, dt_dtype_size(dtype));
    }
    return order;
}

/* The key of bits in a B of the element's size or a greater one. All NaNs have the greatest
 * key, and -0 has that of 0, so a key does not determine these elements. */
template <typename B>
DT_FN B dt_key_of(B bits, const dt_key_order &o)
{
    const B sign = (B)o.sign;
    bits &= (B)(0 - (B)(bits != (B)o.minus_zero)); /* all bits where it holds */
    const B negative = (B)(0 - (B)((bits & sign) != 0));
    const B key = (B)(bits ^ (sign | (negative & (B)o.negative)));
    const B nan = (B)(0 - (B)((B)(bits & (B)~sign) > (B)o.greatest));
    return (B)(((key | nan) & (B)o.all) ^ (B)o.flipped);
}

/* The element x, by its key where that says all. */
template <typename B>
DT_FN B dt_element_of(B key, const dt_key_order &o, const B *x)
{
    const B sign = (B)o.sign;
    key = (B)(key ^ (B)o.flipped);
    if (o.minus_zero && (key == sign || key == (B)o.all))
        return *x;
    const B negative = (B)(0 - (B)((key & sign) == 0));
    return (B)(key ^ (sign | (negative & (B)o.negative)));
}

#endif
