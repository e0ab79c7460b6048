"""Special functions, under torch.special's names.

Elements of integers and bools count as numbers of the default floating type. Where a
formula has no function of its own, its source is in csrc/ops/special.h.
"""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C

# Functions of the package under a name of theirs are imported under it.
from pydevtensor._C import (
    Tensor,
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
from pydevtensor._C import (
    digamma as psi,
)
from pydevtensor._C import (
    igamma as gammainc,
)
from pydevtensor._C import (
    igammac as gammaincc,
)
from pydevtensor._C import (
    lgamma as gammaln,
)
from pydevtensor._C import (
    mvlgamma as multigammaln,
)
from pydevtensor._C import (
    sigmoid as expit,
)
from pydevtensor._C import (
    special_entr as entr,
)
from pydevtensor._C import (
    special_erfcx as erfcx,
)
from pydevtensor._C import (
    special_i0e as i0e,
)
from pydevtensor._C import (
    special_i1 as i1,
)
from pydevtensor._C import (
    special_i1e as i1e,
)
from pydevtensor._C import (
    special_log_ndtr as log_ndtr,
)
from pydevtensor._C import (
    special_ndtri as ndtri,
)
from pydevtensor._C import (
    special_xlog1py as xlog1py,
)
from pydevtensor._C import (
    special_zeta as zeta,
)
from pydevtensor._functions.checks import named
from pydevtensor._names import publish as _publish
from pydevtensor._output import write as _write

__all__ = ["digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit"]
__all__ += ["expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e"]
__all__ += ["log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln"]
__all__ += ["ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py"]
__all__ += ["xlogy", "zeta"]


@named
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The part of the normal distribution that lies below each element.

    >>> import pydevtensor as torch
    >>> torch.special.ndtr(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return _write(_C.mul(_C.erfc(input * -math.sqrt(0.5)), 0.5), out)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The same as torch.softmax().

    >>> torch.special.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The same as torch.log_softmax().

    >>> torch.special.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    return _C.log_softmax(input, dim, dtype=dtype)


_publish(__name__)
