/* CUDA's vector types with CUDA's alignment: a misaligned float4 is undefined
 * behaviour here too, and UBSan reports it. */
#ifndef DT_SIM_VECTORS_H
#define DT_SIM_VECTORS_H

#include <stddef.h>

/* VECTOR(element, name, align1, align2, align3, align4) */
#define SIM_VECTORS(VECTOR)                                                            \
    VECTOR(signed char, char, 1, 2, 1, 4)                                              \
    VECTOR(unsigned char, uchar, 1, 2, 1, 4)                                           \
    VECTOR(short, short, 2, 4, 2, 8)                                                   \
    VECTOR(unsigned short, ushort, 2, 4, 2, 8)                                         \
    VECTOR(int, int, 4, 8, 4, 16)                                                      \
    VECTOR(unsigned, uint, 4, 8, 4, 16)                                                \
    VECTOR(long long, longlong, 8, 16, 8, 16)                                          \
    VECTOR(unsigned long long, ulonglong, 8, 16, 8, 16)                                \
    VECTOR(float, float, 4, 8, 4, 16)                                                  \
    VECTOR(double, double, 8, 16, 8, 16)

#define VECTOR(T, name, a1, a2, a3, a4)                                                \
    struct alignas(a1) name##1                                                         \
    {                                                                                  \
        T x;                                                                           \
    };                                                                                 \
    struct alignas(a2) name##2                                                         \
    {                                                                                  \
        T x, y;                                                                        \
    };                                                                                 \
    struct alignas(a3) name##3                                                         \
    {                                                                                  \
        T x, y, z;                                                                     \
    };                                                                                 \
    struct alignas(a4) name##4                                                         \
    {                                                                                  \
        T x, y, z, w;                                                                  \
    };                                                                                 \
    inline name##1 make_##name##1(T x)                                                 \
    {                                                                                  \
        return {x};                                                                    \
    }                                                                                  \
    inline name##2 make_##name##2(T x, T y)                                            \
    {                                                                                  \
        return {x, y};                                                                 \
    }                                                                                  \
    inline name##3 make_##name##3(T x, T y, T z)                                       \
    {                                                                                  \
        return {x, y, z};                                                              \
    }                                                                                  \
    inline name##4 make_##name##4(T x, T y, T z, T w)                                  \
    {                                                                                  \
        return {x, y, z, w};                                                           \
    }
SIM_VECTORS(VECTOR)
#undef VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

#endif
