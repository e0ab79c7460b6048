/* Complex numbers: the real part, then the imaginary part, as in NumPy, BLAS and C.
 *
 * In C they are only moved; C++ and CUDA compute with them. */
#ifndef DT_BASE_COMPLEX_H
#define DT_BASE_COMPLEX_H

#ifdef __cplusplus
#include <type_traits>

#ifdef __CUDACC__
#define DT_COMPLEX_FN __host__ __device__ __forceinline__
#else
/* Always inlined: the linker would keep one copy for all instruction sets. */
#define DT_COMPLEX_FN inline __attribute__((always_inline))
#endif

template <typename Part>
struct dt_complex {
    Part real, imag;

    dt_complex() = default;
    DT_COMPLEX_FN dt_complex(Part x, Part y) : real(x), imag(y) {}
    /* A real number. */
    template <typename Number,
              typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
    DT_COMPLEX_FN explicit dt_complex(Number x) : real((Part)x), imag(0)
    {
    }
    template <typename Other>
    DT_COMPLEX_FN explicit dt_complex(const dt_complex<Other> &z)
        : real((Part)z.real), imag((Part)z.imag)
    {
    }
    /* Whether it is not 0. */
    DT_COMPLEX_FN explicit operator bool() const { return real != 0 || imag != 0; }

    DT_COMPLEX_FN dt_complex operator-() const { return {-real, -imag}; }
    DT_COMPLEX_FN dt_complex operator+(dt_complex b) const
    {
        return {real + b.real, imag + b.imag};
    }
    DT_COMPLEX_FN dt_complex operator-(dt_complex b) const
    {
        return {real - b.real, imag - b.imag};
    }
    DT_COMPLEX_FN dt_complex operator*(dt_complex b) const
    {
        return {real * b.real - imag * b.imag, real * b.imag + imag * b.real};
    }
    /* Divided by the larger part of b first: its square may overflow (Smith, 1962). */
    DT_COMPLEX_FN dt_complex operator/(dt_complex b) const
    {
        const bool by_real =
            (b.real < 0 ? -b.real : b.real) >= (b.imag < 0 ? -b.imag : b.imag);
        const Part large = by_real ? b.real : b.imag, small = by_real ? b.imag : b.real;
        if (large == 0)
            return {real / large, imag / large};
        const Part ratio = small / large, whole = large + small * ratio;
        return by_real ? dt_complex((real + imag * ratio) / whole,
                                    (imag - real * ratio) / whole)
                       : dt_complex((real * ratio + imag) / whole,
                                    (imag * ratio - real) / whole);
    }
    DT_COMPLEX_FN bool operator==(dt_complex b) const
    {
        return real == b.real && imag == b.imag;
    }
    DT_COMPLEX_FN bool operator!=(dt_complex b) const { return !(*this == b); }
};
typedef dt_complex<float> dt_complex64;
typedef dt_complex<double> dt_complex128;

template <typename T>
constexpr bool is_complex =
    std::is_same_v<T, dt_complex64> || std::is_same_v<T, dt_complex128>;
#else
typedef struct dt_complex64 {
    float real, imag;
} dt_complex64;
typedef struct dt_complex128 {
    double real, imag;
} dt_complex128;
#endif

#endif
