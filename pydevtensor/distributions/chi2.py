"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers.

    df  how many, positive, a number or a Tensor

    >>> torch.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """How many degrees of freedom."""
        return self.concentration * 2


_publish(__name__, described=True)
