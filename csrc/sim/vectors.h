/* CUDA's vector types and their make functions: float4 and its kin. */
#ifndef DT_SIM_VECTORS_H
#define DT_SIM_VECTORS_H

#define SIM_VECTOR1(name, T)                                                           \
    struct name##1                                                                     \
    {                                                                                  \
        T x;                                                                           \
    };                                                                                 \
    inline name##1 make_##name##1(T x)                                                 \
    {                                                                                  \
        return {x};                                                                    \
    }
#define SIM_VECTOR2(name, T)                                                           \
    struct alignas(2 * sizeof(T)) name##2                                              \
    {                                                                                  \
        T x, y;                                                                        \
    };                                                                                 \
    inline name##2 make_##name##2(T x, T y)                                            \
    {                                                                                  \
        return {x, y};                                                                 \
    }
#define SIM_VECTOR3(name, T)                                                           \
    struct name##3                                                                     \
    {                                                                                  \
        T x, y, z;                                                                     \
    };                                                                                 \
    inline name##3 make_##name##3(T x, T y, T z)                                       \
    {                                                                                  \
        return {x, y, z};                                                              \
    }
#define SIM_VECTOR4(name, T)                                                           \
    struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4                         \
    {                                                                                  \
        T x, y, z, w;                                                                  \
    };                                                                                 \
    inline name##4 make_##name##4(T x, T y, T z, T w)                                  \
    {                                                                                  \
        return {x, y, z, w};                                                           \
    }
#define SIM_VECTORS(name, T)                                                           \
    SIM_VECTOR1(name, T)                                                               \
    SIM_VECTOR2(name, T)                                                               \
    SIM_VECTOR3(name, T)                                                               \
    SIM_VECTOR4(name, T)

SIM_VECTORS(char, signed char)
SIM_VECTORS(uchar, unsigned char)
SIM_VECTORS(short, short)
SIM_VECTORS(ushort, unsigned short)
SIM_VECTORS(int, int)
SIM_VECTORS(long, long)
SIM_VECTORS(ulong, unsigned long)
SIM_VECTORS(longlong, long long)
SIM_VECTORS(ulonglong, unsigned long long)
SIM_VECTORS(float, float)
SIM_VECTORS(double, double)
/* uint3 is in intrinsics.h. */
SIM_VECTOR1(uint, unsigned)
SIM_VECTOR2(uint, unsigned)
SIM_VECTOR4(uint, unsigned)
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z)
{
    return {x, y, z};
}

#endif
