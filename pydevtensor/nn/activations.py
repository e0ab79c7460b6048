"""Activations as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.module import Module


class _InPlace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """inplace, where it is set."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """Each element, or 0 where it is negative. Any shape.

    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        """max(x, 0)."""
        return F.relu(input, self.inplace)


class SiLU(_InPlace):
    """x times its sigmoid. Any shape.

    >>> nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Any) -> Any:
        """x * sigmoid(x)."""
        return F.silu(input, self.inplace)


class LeakyReLU(Module):
    """Each element, times negative_slope where it is negative. Any shape.

    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """x, or negative_slope * x."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}" + (
            ", inplace=True" if self.inplace else ""
        )


class ELU(Module):
    """Each element, or alpha * (e^x - 1) where it is negative. Any shape.

    >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """x, or alpha * (e^x - 1)."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """alpha."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x times the normal distribution function of x. Any shape.

    approximate: 'none', or 'tanh' for a formula that is quicker to compute; for
    another word RuntimeError.

    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """x * Phi(x)."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The approximation."""
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """1 / (1 + e^-x). Any shape.

    >>> nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Any) -> Any:
        """The sigmoid."""
        return input.sigmoid()


class Tanh(Module):
    """Hyperbolic tangent. Any shape.

    >>> nn.Tanh()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """

    def forward(self, input: Any) -> Any:
        """The hyperbolic tangent."""
        return input.tanh()


class Softplus(Module):
    """log(1 + e^(beta x)) / beta. Any shape.

    x itself where beta x is above threshold.

    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        """The softplus."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The constants."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """e^x divided by its sum along dim.

    IndexError for a dim that is not there; None chooses one, with a warning.

    >>> nn.Softmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        """The softmax."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of softmax.

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Any) -> Any:
        """The logarithm of the softmax."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"
