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

/* FUNCTION and TYPED of the lists in cublas.h and cusolver.h. */
#define DT_SAME_FUNCTION(name, symbol, parameters)                                     \
    static_assert(std::is_same<signature<decltype(symbol)>::type,                      \
                               signature<int parameters>::type>::value,                \
                  #symbol " is declared otherwise by NVIDIA");
#define DT_SAME_TYPED(name, s, d, c, z, parameters)                                    \
    DT_SAME_FUNCTION(name, s, parameters)                                              \
    DT_SAME_FUNCTION(name, d, parameters)                                              \
    DT_SAME_FUNCTION(name, c, parameters)                                              \
    DT_SAME_FUNCTION(name, z, parameters)

#endif
