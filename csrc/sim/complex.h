/* cuComplex.h: complex numbers as pairs, float2 and double2. */
#ifndef DT_SIM_COMPLEX_H
#define DT_SIM_COMPLEX_H

/* V: the pair, T: its components, f: the suffix of float's functions. */
#define SIM_COMPLEX_NAMES(V, T, f, make)                                               \
    inline V make(T x, T y)                                                            \
    {                                                                                  \
        return {x, y};                                                                 \
    }                                                                                  \
    inline T cuCreal##f(V a)                                                           \
    {                                                                                  \
        return a.x;                                                                    \
    }                                                                                  \
    inline T cuCimag##f(V a)                                                           \
    {                                                                                  \
        return a.y;                                                                    \
    }                                                                                  \
    inline V cuConj##f(V a)                                                            \
    {                                                                                  \
        return {a.x, -a.y};                                                            \
    }                                                                                  \
    inline T cuCabs##f(V a)                                                            \
    {                                                                                  \
        return (T)hypot((double)a.x, (double)a.y);                                     \
    }                                                                                  \
    inline V cuCadd##f(V a, V b)                                                       \
    {                                                                                  \
        return {a.x + b.x, a.y + b.y};                                                 \
    }                                                                                  \
    inline V cuCsub##f(V a, V b)                                                       \
    {                                                                                  \
        return {a.x - b.x, a.y - b.y};                                                 \
    }                                                                                  \
    inline V cuCmul##f(V a, V b)                                                       \
    {                                                                                  \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                         \
    }                                                                                  \
    inline V cuCfma##f(V a, V b, V c)                                                  \
    {                                                                                  \
        return cuCadd##f(cuCmul##f(a, b), c);                                          \
    }                                                                                  \
    /* Scales the divisor, whose square then does not overflow. */                     \
    inline V cuCdiv##f(V a, V b)                                                       \
    {                                                                                  \
        const T scale = 1 / (T)(fabs((double)b.x) + fabs((double)b.y));                \
        const V d = {b.x * scale, b.y * scale}, n = {a.x * scale, a.y * scale};        \
        const T square = d.x * d.x + d.y * d.y;                                        \
        return {(n.x * d.x + n.y * d.y) / square, (n.y * d.x - n.x * d.y) / square};   \
    }

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;
SIM_COMPLEX_NAMES(float2, float, f, make_cuFloatComplex)
SIM_COMPLEX_NAMES(double2, double, , make_cuDoubleComplex)
#undef SIM_COMPLEX_NAMES

inline cuComplex make_cuComplex(float x, float y)
{
    return {x, y};
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a)
{
    return {a.x, a.y};
}
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a)
{
    return {(float)a.x, (float)a.y};
}

#endif
