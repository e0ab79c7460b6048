"""Special functions, under torch.special's names.

Elements of integers and bools count as numbers of the default floating type. Where a
formula has no function of its own, its source is in csrc/ops/special.h.
"""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C
from pydevtensor._C import Tensor
from pydevtensor._functions.checks import named
from pydevtensor._names import publish as _publish
from pydevtensor._output import write as _write

__all__ = ["digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit"]
__all__ += ["expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e"]
__all__ += ["log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln"]
__all__ += ["ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py"]
__all__ += ["xlogy", "zeta"]

# Functions of the package under a name of theirs.
digamma = psi = _C.digamma
erf, erfc, erfinv = _C.erf, _C.erfc, _C.erfinv
exp2, expm1, log1p = _C.exp2, _C.expm1, _C.log1p
expit = _C.sigmoid
gammaln = _C.lgamma
gammainc, gammaincc = _C.igamma, _C.igammac
i0, i0e, i1, i1e = _C.i0, _C.special_i0e, _C.special_i1, _C.special_i1e
entr, erfcx = _C.special_entr, _C.special_erfcx
ndtri, log_ndtr = _C.special_ndtri, _C.special_log_ndtr
logit, sinc, round = _C.logit, _C.sinc, _C.round
logsumexp = _C.logsumexp
polygamma, multigammaln = _C.polygamma, _C.mvlgamma
xlogy, xlog1py, zeta = _C.xlogy, _C.special_xlog1py, _C.special_zeta


@named
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The part of the normal distribution that lies below each element.

    >>> import pydevtensor as torch
    >>> torch.special.ndtr(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return _write(_C.mul(_C.erfc(input * -math.sqrt(0.5)), 0.5), out)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """torch.softmax().

    >>> torch.special.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """torch.log_softmax().

    >>> torch.special.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    return _C.log_softmax(input, dim, dtype=dtype)


_publish(__name__)
