"""Special functions, under torch.special's names.

Elements of integers and bools count as numbers of the default floating type. Where a
formula has no function of its own, its source is in csrc/ops/special.h, bessel.h or
polynomials.h; functions in
Python are in _functions.py.
"""

from pydevtensor import _C

# Functions of the package under a name of theirs are imported under it.
from pydevtensor._C import (
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    log1p,
    logit,
    logsumexp,
    polygamma,
    round,
    sinc,
    xlogy,
)
from pydevtensor._C import digamma as psi
from pydevtensor._C import igamma as gammainc
from pydevtensor._C import igammac as gammaincc
from pydevtensor._C import lgamma as gammaln
from pydevtensor._C import mvlgamma as multigammaln
from pydevtensor._C import sigmoid as expit
from pydevtensor._C import special_airy_ai as airy_ai
from pydevtensor._C import special_bessel_j0 as bessel_j0
from pydevtensor._C import special_bessel_j1 as bessel_j1
from pydevtensor._C import special_bessel_y0 as bessel_y0
from pydevtensor._C import special_bessel_y1 as bessel_y1
from pydevtensor._C import special_chebyshev_polynomial_t as chebyshev_polynomial_t
from pydevtensor._C import special_chebyshev_polynomial_u as chebyshev_polynomial_u
from pydevtensor._C import special_chebyshev_polynomial_v as chebyshev_polynomial_v
from pydevtensor._C import special_chebyshev_polynomial_w as chebyshev_polynomial_w
from pydevtensor._C import special_entr as entr
from pydevtensor._C import special_erfcx as erfcx
from pydevtensor._C import special_hermite_polynomial_h as hermite_polynomial_h
from pydevtensor._C import special_hermite_polynomial_he as hermite_polynomial_he
from pydevtensor._C import special_i0e as i0e
from pydevtensor._C import special_i1 as i1
from pydevtensor._C import special_i1e as i1e
from pydevtensor._C import special_laguerre_polynomial_l as laguerre_polynomial_l
from pydevtensor._C import special_legendre_polynomial_p as legendre_polynomial_p
from pydevtensor._C import special_log_ndtr as log_ndtr
from pydevtensor._C import special_modified_bessel_i0 as modified_bessel_i0
from pydevtensor._C import special_modified_bessel_i1 as modified_bessel_i1
from pydevtensor._C import special_modified_bessel_k0 as modified_bessel_k0
from pydevtensor._C import special_modified_bessel_k1 as modified_bessel_k1
from pydevtensor._C import special_ndtri as ndtri
from pydevtensor._C import (
    special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
)
from pydevtensor._C import (
    special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
)
from pydevtensor._C import (
    special_shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
)
from pydevtensor._C import (
    special_shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
)
from pydevtensor._C import (
    special_shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
)
from pydevtensor._C import (
    special_shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from pydevtensor._C import special_spherical_bessel_j0 as spherical_bessel_j0
from pydevtensor._C import special_xlog1py as xlog1py
from pydevtensor._C import special_zeta as zeta
from pydevtensor._names import publish as _publish

globals().update(_C._namespace("special"))
_publish(__name__)
