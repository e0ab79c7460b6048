/* The special functions that share a row, and so a kernel: its last operand says which. */
#ifndef DT_OPS_SPECIAL_CODES_H
#define DT_OPS_SPECIAL_CODES_H

/* Codes of the row `bessel`. */
enum {
    DT_AIRY_AI,
    DT_BESSEL_J0,
    DT_BESSEL_J1,
    DT_BESSEL_Y0,
    DT_BESSEL_Y1,
    DT_BESSEL_I0,
    DT_BESSEL_I1,
    DT_BESSEL_K0,
    DT_BESSEL_K1,
    DT_SCALED_K0,
    DT_SCALED_K1,
    DT_SPHERICAL_J0
};

/* Codes of the row `polynomial`. The shifted ones are Chebyshev's of 2x - 1. */
enum {
    DT_CHEBYSHEV_T,
    DT_CHEBYSHEV_U,
    DT_CHEBYSHEV_V,
    DT_CHEBYSHEV_W,
    DT_HERMITE_H,
    DT_HERMITE_HE,
    DT_LAGUERRE_L,
    DT_LEGENDRE_P,
    DT_SHIFTED_T,
    DT_SHIFTED_U,
    DT_SHIFTED_V,
    DT_SHIFTED_W
};

#endif
