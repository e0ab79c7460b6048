/* Element types: sizes, kinds, promotion, and scalars by value. */
#ifndef DT_BASE_DTYPE_H
#define DT_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bool.h"
#include "base/complex.h"
#include "base/half.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_dtype {
#define DT_DTYPE(ID, name, alias, type) DT_##ID,
#include "ops/dtype.def"
    DT_NDTYPES
} dt_dtype;

/* Kinds in order of promotion: an operand of a lower kind never decides the result's
 * type. */
typedef enum dt_kind {
    DT_KIND_BOOL,
    DT_KIND_INTEGER,
    DT_KIND_FLOAT,
    DT_KIND_COMPLEX,
    DT_NKINDS
} dt_kind;

typedef struct dt_dtype_info {
    const char *name;  /* "float32" */
    const char *alias; /* "float" */
    uint8_t size;      /* bytes of an element */
    uint8_t kind;      /* a dt_kind */
} dt_dtype_info;

extern const dt_dtype_info dt_dtypes[DT_NDTYPES];

static inline size_t dt_dtype_size(dt_dtype dtype)
{
    return dt_dtypes[dtype].size;
}
static inline dt_kind dt_dtype_kind(dt_dtype dtype)
{
    return (dt_kind)dt_dtypes[dtype].kind;
}
static inline const char *dt_dtype_name(dt_dtype dtype)
{
    return dt_dtypes[dtype].name;
}
/* Whether elements are real numbers with fractions, which have an order, limits and the
 * values NaN and infinity. */
static inline bool dt_dtype_is_float(dt_dtype dtype)
{
    return dt_dtype_kind(dtype) == DT_KIND_FLOAT;
}
/* Whether quotients, roots, means and sums of elements have the elements' own type;
 * those of integers and bools have another one. */
static inline bool dt_dtype_is_inexact(dt_dtype dtype)
{
    return dt_dtype_kind(dtype) >= DT_KIND_FLOAT;
}
static inline bool dt_dtype_is_complex(dt_dtype dtype)
{
    return dtype == DT_COMPLEX64 || dtype == DT_COMPLEX128;
}
/* Whether a tensor of the type may require a gradient. */
static inline bool dt_dtype_is_differentiable(dt_dtype dtype)
{
    return dt_dtype_kind(dtype) >= DT_KIND_FLOAT;
}

/* Whether the type can represent -1. */
static inline bool dt_dtype_is_signed(dt_dtype dtype)
{
    return dtype != DT_BOOL && dtype != DT_UINT8;
}

/* Whether the type is half precision (float16 or bfloat16), a storage format only. */
static inline bool dt_dtype_is_half(dt_dtype dtype)
{
    return dtype == DT_FLOAT16 || dtype == DT_BFLOAT16;
}
/* The type that kernels compute in: float32 for half precision, else dtype itself. */
static inline dt_dtype dt_dtype_compute(dt_dtype dtype)
{
    return dt_dtype_is_half(dtype) ? DT_FLOAT32 : dtype;
}

/* The type of the two parts of a complex type; another type itself. */
static inline dt_dtype dt_dtype_part(dt_dtype dtype)
{
    return dtype == DT_COMPLEX64    ? DT_FLOAT32
           : dtype == DT_COMPLEX128 ? DT_FLOAT64
                                    : dtype;
}
/* The complex type that has parts of a type, or wider ones. */
static inline dt_dtype dt_dtype_to_complex(dt_dtype dtype)
{
    return dtype == DT_FLOAT64 || dtype == DT_COMPLEX128 ? DT_COMPLEX128 : DT_COMPLEX64;
}

/* The range and precision of a floating type (torch.finfo). */
typedef struct dt_float_limits {
    double max;        /* largest number; the smallest is -max */
    double eps;        /* distance from 1 to the next number */
    double tiny;       /* smallest positive normal number */
    double resolution; /* 10 to the power of minus the decimal digits */
} dt_float_limits;
/* dtype must be floating. Cannot fail. */
dt_float_limits dt_dtype_limits(dt_dtype dtype);

/* The common type of two tensors that have dimensions. Cannot fail. */
dt_dtype dt_dtype_promote(dt_dtype a, dt_dtype b);

/* One element in the representation of its type, as in a tensor's memory. */
typedef union dt_element {
#define DT_DTYPE(ID, name, alias, type) type as_##name;
#include "ops/dtype.def"
    unsigned char bytes[16];
} dt_element;

/* A Python number: a kind and a value, no element type. */
typedef struct dt_scalar {
    dt_kind kind;
    union {
        int64_t i; /* DT_KIND_BOOL and DT_KIND_INTEGER */
        double f;  /* DT_KIND_FLOAT; of DT_KIND_COMPLEX the real part */
    };
} dt_scalar;

static inline dt_scalar dt_scalar_int(int64_t i)
{
    dt_scalar s;
    s.kind = DT_KIND_INTEGER;
    s.i = i;
    return s;
}
static inline dt_scalar dt_scalar_float(double f)
{
    dt_scalar s;
    s.kind = DT_KIND_FLOAT;
    s.f = f;
    return s;
}
static inline dt_scalar dt_scalar_bool(bool b)
{
    dt_scalar s;
    s.kind = DT_KIND_BOOL;
    s.i = b;
    return s;
}
static inline double dt_scalar_as_double(dt_scalar s)
{
    return s.kind >= DT_KIND_FLOAT ? s.f : (double)s.i;
}

/* Converts as an assignment to an element would: integers wrap, floats are truncated
 * and clamped to integers (never undefined behaviour). Cannot fail. */
dt_element dt_element_from_scalar(dt_dtype dtype, dt_scalar scalar);

/* A complex number as an element; of a real type its real part. Cannot fail. */
dt_element dt_element_from_complex(dt_dtype dtype, double real, double imag);

/* The element at `bytes`, which need not be aligned, as a number: of a complex one the
 * real part. */
dt_scalar dt_element_to_scalar(dt_dtype dtype, const void *bytes);

/* The imaginary part of the element at `bytes`; of a real one 0. */
double dt_element_imag(dt_dtype dtype, const void *bytes);

/* The element at `bytes` in another type. */
static inline dt_element dt_element_cast(dt_dtype to, dt_dtype from, const void *bytes)
{
    return dt_dtype_is_complex(from)
               ? dt_element_from_complex(to, dt_element_to_scalar(from, bytes).f,
                                         dt_element_imag(from, bytes))
               : dt_element_from_scalar(to, dt_element_to_scalar(from, bytes));
}

/* Whether dtype can hold the number: integers within range (negative ones wrap into
 * uint8), any float in a float type, no float in an integer type. */
bool dt_scalar_fits(dt_dtype dtype, dt_scalar scalar);

#ifdef __cplusplus
}
/* The type that elements of T are computed in. */
template <typename T>
using Compute =
    std::conditional_t<is_half<T>, float,
                       std::conditional_t<std::is_same_v<T, dt_bool>, bool, T>>;
/* The kind of an element's C type. */
template <typename T>
constexpr dt_kind dt_kind_of = std::is_same_v<Compute<T>, bool> ? DT_KIND_BOOL
                               : std::is_integral_v<Compute<T>> ? DT_KIND_INTEGER
                               : is_complex<T>                  ? DT_KIND_COMPLEX
                                                                : DT_KIND_FLOAT;
#endif
#endif
