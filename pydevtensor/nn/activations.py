"""Activations as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.forward import OptionModule, calls
from pydevtensor.nn.module import Module


@calls(F.relu)
class ReLU(OptionModule):
    """max(x, 0) of each element.

    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


@calls(F.silu)
class SiLU(OptionModule):
    """x * sigmoid(x) of each element.

    >>> nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    inplace: bool = False


@calls(F.leaky_relu)
class LeakyReLU(OptionModule):
    """x, or negative_slope * x where x is negative.

    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False


@calls(F.elu)
class ELU(OptionModule):
    """x, or alpha * (e^x - 1) where x is negative.

    >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


@calls(F.gelu)
class GELU(OptionModule):
    """x * Phi(x), with Phi the cumulative distribution function of the normal.

    approximate: 'none' or 'tanh', a faster formula; RuntimeError for another value.

    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str = "none"


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


@calls(F.softplus)
class Softplus(OptionModule):
    """log(1 + e^(beta x)) / beta, or x itself where beta x is above threshold.

    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    beta: float = 1.0
    threshold: float = 20.0


@calls(F.softmax)
class Softmax(OptionModule):
    """e^x divided by its sum along dim.

    dim=None chooses a dimension, with a warning. Raises IndexError for a dim that the
    input does not have.

    >>> nn.Softmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None


@calls(F.log_softmax)
class LogSoftmax(OptionModule):
    """The logarithm of Softmax.

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    dim: int | None = None
