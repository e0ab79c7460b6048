/* The parameters of a kernel as numbers that templates compute from its type.
 *
 * For the host's compiler (sim/module.h) and for NVRTC, which has no standard headers: so
 * this uses none. It precedes the program's source, whose macros may have any name; that
 * of 16-bit floats is known after it: DT_HALVES. */
#ifndef DT_DEVICE_DESCRIBE_H
#define DT_DEVICE_DESCRIBE_H

namespace dt {

template <class T>
struct Bare {
    using type = T;
    enum { constant = false };
};
template <class T>
struct Bare<const T> {
    using type = T;
    enum { constant = true };
};
template <class T>
struct Bare<volatile T> : Bare<T> {};
template <class T>
struct Bare<const volatile T> : Bare<const T> {};

template <class T>
struct Pointed {
    using type = T;
    enum { pointer = false };
};
template <class T>
struct Pointed<T *> {
    using type = T;
    enum { pointer = true };
};

/* The kinds of device/module.h. */
template <class T>
struct Kind {
    enum { kind = __is_enum(T) ? 'i' : 's' };
};
template <class T>
struct Kind<T *> {
    enum { kind = 'p' };
};
#define DT_KIND(T, letter)                                                             \
    template <>                                                                        \
    struct Kind<T> {                                                                   \
        enum { kind = letter };                                                        \
    };
DT_KIND(void, 'v')
DT_KIND(bool, 'b')
DT_KIND(char, 'c')
DT_KIND(float, 'f')
DT_KIND(double, 'f')
DT_KIND(signed char, 'i')
DT_KIND(short, 'i')
DT_KIND(int, 'i')
DT_KIND(long, 'i')
DT_KIND(long long, 'i')
DT_KIND(unsigned char, 'u')
DT_KIND(unsigned short, 'u')
DT_KIND(unsigned, 'u')
DT_KIND(unsigned long, 'u')
DT_KIND(unsigned long long, 'u')
#undef DT_KIND

/* float4 and its kin: their components. */
template <class T>
struct Components {
    using type = T;
    enum { count = 1 };
};
#define DT_VECTOR(T)                                                                   \
    template <>                                                                        \
    struct Components<T> {                                                             \
        using type = decltype(T::x);                                                   \
        enum { count = sizeof(T) / sizeof(type) };                                     \
    };
#define DT_VECTORS(name)                                                               \
    DT_VECTOR(name##1) DT_VECTOR(name##2) DT_VECTOR(name##3) DT_VECTOR(name##4)
DT_VECTORS(char)
DT_VECTORS(uchar)
DT_VECTORS(short)
DT_VECTORS(ushort)
DT_VECTORS(int)
DT_VECTORS(uint)
DT_VECTORS(long)
DT_VECTORS(ulong)
DT_VECTORS(longlong)
DT_VECTORS(ulonglong)
DT_VECTORS(float)
DT_VECTORS(double)
DT_VECTOR(dim3)
#undef DT_VECTORS
#undef DT_VECTOR
#define DT_HALVES(letter, one, two)                                                    \
    template <>                                                                        \
    struct dt::Kind<one> {                                                             \
        enum { kind = letter };                                                        \
    };                                                                                 \
    template <>                                                                        \
    struct dt::Components<two> {                                                       \
        using type = one;                                                              \
        enum { count = 2 };                                                            \
    };

/* Zero for void, and for a struct that is declared only. */
template <class T, class = void>
struct Extent {
    enum : unsigned long long { size = 0, alignment = 1 };
};
template <class T>
struct Extent<T, decltype((void)sizeof(T))> {
    enum : unsigned long long { size = sizeof(T), alignment = alignof(T) };
};
template <>
struct Extent<void, void> {
    enum : unsigned long long { size = 0, alignment = 1 };
};

/* Bits: 0 the kind, 8 a pointer, 9 to what is const, 16 components, 24 the alignment, 40
 * the bytes of a component. */
template <class P>
struct Row {
    using V = typename Bare<P>::type;
    using T = typename Pointed<V>::type;
    using B = typename Bare<T>::type;
    using C = typename Components<B>::type;
    enum : unsigned long long {
        pointer = Pointed<V>::pointer,
        constant = pointer && Bare<T>::constant,
        value = (unsigned long long)Kind<C>::kind | pointer << 8 | constant << 9 |
            (unsigned long long)Components<B>::count << 16 |
            (unsigned long long)Extent<B>::alignment << 24 |
            (unsigned long long)Extent<C>::size << 40
    };
};

} /* namespace dt */
#endif
