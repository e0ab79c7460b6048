"""Activations as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSoftmax",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]


class _Activation(Module):
    _options: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        super().__init__()
        for name, value in zip(self._options, values, strict=True):
            setattr(self, name, value)

    def extra_repr(self) -> str:
        values = ((name, getattr(self, name)) for name in self._options)
        shown = (f"{n}={v!r}" for n, v in values if v or n != "inplace")
        return ", ".join(shown)


class ReLU(_Activation):
    """max(x, 0) of each element.

    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)


class SiLU(_Activation):
    """x * sigmoid(x) of each element.

    >>> nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class LeakyReLU(_Activation):
    """x, or negative_slope * x where x is negative.

    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    _options = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Activation):
    """x, or alpha * (e^x - 1) where x is negative.

    >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _options = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class GELU(_Activation):
    """x * Phi(x), with Phi the cumulative distribution function of the normal.

    approximate: 'none' or 'tanh', a faster formula; RuntimeError for another value.

    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate)

    def forward(self, input: Any) -> Any:
        return F.gelu(input, self.approximate)


class Sigmoid(Module):
    """1 / (1 + e^-x) of each element.

    >>> nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Any) -> Any:
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent of each element.

    >>> nn.Tanh()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """

    def forward(self, input: Any) -> Any:
        return input.tanh()


class Softplus(_Activation):
    """log(1 + e^(beta x)) / beta, or x itself where beta x is above threshold.

    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    _options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta, threshold)

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)


class Softmax(_Activation):
    """e^x divided by its sum along dim.

    dim=None chooses a dimension, with a warning. Raises IndexError for a dim that the
    input does not have.

    >>> nn.Softmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim)

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim)


class LogSoftmax(_Activation):
    """The logarithm of Softmax.

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim)

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)
