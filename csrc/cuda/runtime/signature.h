/* For comparing declarations of ours with those of NVIDIA's headers. */
#ifndef DT_CUDA_RUNTIME_SIGNATURE_H
#define DT_CUDA_RUNTIME_SIGNATURE_H

#include <vector_types.h>

#include <type_traits>

/* Enumerations compare as the integers that are passed, elements as void. */
template <class T>
struct plain {
    typedef typename std::conditional<std::is_enum<T>::value, int, T>::type type;
};
/* Matrices and tables of them. */
#define DT_PLAIN(type)                                                                 \
    template <>                                                                        \
    struct plain<type *> : plain<void *> {};                                           \
    template <>                                                                        \
    struct plain<const type *> : plain<const void *> {};                               \
    template <>                                                                        \
    struct plain<type **> : plain<void **> {};                                         \
    template <>                                                                        \
    struct plain<type *const *> : plain<void *const *> {};                             \
    template <>                                                                        \
    struct plain<const type *const *> : plain<const void *const *> {};
DT_PLAIN(float)
DT_PLAIN(double)
DT_PLAIN(float2) /* NVIDIA's complex numbers */
DT_PLAIN(double2)
#undef DT_PLAIN
template <class F>
struct signature;
template <class F>
struct signature<F &> : signature<F> {};
template <class R, class... P>
struct signature<R(P...)> {
    typedef typename plain<R>::type type(typename plain<P>::type...);
};

/* Whether a function takes elements of type X: in matrices, or tables of them. */
template <class T>
struct innermost {
    typedef typename std::remove_cv<T>::type type;
};
template <class T>
struct innermost<T *> : innermost<T> {};
template <class T>
struct innermost<T *const> : innermost<T> {};
template <class F, class X>
struct takes;
template <class F, class X>
struct takes<F &, X> : takes<F, X> {};
template <class R, class... P, class X>
struct takes<R(P...), X> {
    static constexpr bool value =
        (std::is_same<typename innermost<P>::type, X>::value || ...);
};

/* FUNCTION and TYPED of the lists in cublas.h and cusolver.h. */
#define DT_SAME_FUNCTION(name, symbol, parameters)                                     \
    static_assert(std::is_same<signature<decltype(symbol)>::type,                      \
                               signature<int parameters>::type>::value,                \
                  #symbol " is declared otherwise by NVIDIA");
#define DT_SAME_OF_TYPE(name, symbol, parameters, other, others)                       \
    DT_SAME_FUNCTION(name, symbol, parameters)                                         \
    static_assert(!takes<decltype(symbol), other>::value &&                            \
                      !takes<decltype(symbol), others>::value,                         \
                  #symbol " is of another type of elements");
#define DT_SAME_TYPED(name, s, d, c, z, parameters)                                    \
    DT_SAME_OF_TYPE(name, s, parameters, double, float2)                               \
    DT_SAME_OF_TYPE(name, d, parameters, float, double2)                               \
    DT_SAME_OF_TYPE(name, c, parameters, double, double2)                              \
    DT_SAME_OF_TYPE(name, z, parameters, float, float2)

#endif
