/* For comparing declarations of ours with those of NVIDIA's headers. */
#ifndef DT_CUDA_RUNTIME_SIGNATURE_H
#define DT_CUDA_RUNTIME_SIGNATURE_H

#include <type_traits>

/* Enumerations compare as the integers that are passed, elements as void. */
template <class T>
struct plain {
    typedef typename std::conditional<std::is_enum<T>::value, int, T>::type type;
};
template <>
struct plain<float *> : plain<void *> {};
template <>
struct plain<double *> : plain<void *> {};
template <>
struct plain<const float *> : plain<const void *> {};
template <>
struct plain<const double *> : plain<const void *> {};
/* Tables of matrices. */
template <>
struct plain<float **> : plain<void **> {};
template <>
struct plain<double **> : plain<void **> {};
template <>
struct plain<float *const *> : plain<void *const *> {};
template <>
struct plain<double *const *> : plain<void *const *> {};
template <>
struct plain<const float *const *> : plain<const void *const *> {};
template <>
struct plain<const double *const *> : plain<const void *const *> {};
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
#define DT_SAME_TYPED(name, single, twofold, parameters)                               \
    DT_SAME_FUNCTION(name, single, parameters)                                         \
    DT_SAME_FUNCTION(name, twofold, parameters)

#endif
