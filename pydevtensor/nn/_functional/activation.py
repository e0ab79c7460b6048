"""Activations, an element or a row at a time."""

from __future__ import annotations

import math
import warnings
from typing import Any

from pydevtensor import _C

__all__ = [
    "elu",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "tanh",
]


def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0) of each element.

    >>> nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else input.relu()


def _widened(input: Any) -> Any:
    """The input, in float32 if it is half-precision: rounds the result only once."""
    half = getattr(input, "dtype", None) in (_C.float16, _C.bfloat16)
    return input.float() if half else input


def _finished(name: str, result: Any, input: Any, inplace: bool = False) -> Any:
    """The result of an activation, in the input's type, named by its derivative."""
    result = result.to(input.dtype)
    return input.copy_(result) if inplace else _C._named(result, name + "Backward0")


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x, or negative_slope * x where x is negative.

    >>> nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    result = _C.where(input > 0, input, input * negative_slope)
    return _finished("LeakyRelu", result, input, inplace)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x, or alpha * (e^x - 1) where x is negative.

    >>> nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    # The exponential of a large x would overflow, and so would its gradient.
    x = _widened(input)
    low = _C.minimum(x, _C.zeros_like(x))
    result = _C.where(x > 0, x, alpha * low.expm1())
    return _finished("Elu", result, input, inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """x * Phi(x), Phi the normal's CDF; approximate: 'none' or 'tanh'.

    >>> nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    x = _widened(input)
    if approximate == "none":
        twice = 1 + _C.erf(x * math.sqrt(0.5))
    elif approximate == "tanh":
        twice = 1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh()
    else:
        raise RuntimeError(
            f"gelu: approximate is {approximate!r}; give 'none' or 'tanh'"
        )
    return _finished("Gelu", 0.5 * x * twice, input)


def silu(input: Any, inplace: bool = False) -> Any:
    """x * sigmoid(x).

    >>> nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    x = _widened(input)
    return _finished("Silu", x * x.sigmoid(), input, inplace)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e^(beta x)) / beta, or x where beta x is above threshold.

    >>> nn.functional.softplus(torch.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """
    x = _widened(input)
    scaled = x * beta
    low = _C.minimum(scaled, _C.full_like(scaled, threshold))
    result = _C.where(scaled > threshold, x, low.exp().log1p() / beta)
    return _finished("Softplus", result, input)


def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)), computed stably.

    >>> nn.functional.logsigmoid(torch.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """
    x = _widened(input)
    result = _C.minimum(x, _C.zeros_like(x)) - (-x.abs()).exp().log1p()
    return _finished("LogSigmoid", result, input)


def sigmoid(input: Any) -> Any:
    """1 / (1 + e^-x).

    >>> nn.functional.sigmoid(torch.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """
    return input.sigmoid()


def tanh(input: Any) -> Any:
    """The hyperbolic tangent.

    >>> nn.functional.tanh(torch.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """
    return input.tanh()


def softmax_dim(name: str, dim: Any, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}: without dim, one is chosen by the number of dimensions; give dim",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """e^x divided by its sum along dim, converted to dtype first if it is given.

    >>> nn.functional.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    dim = softmax_dim("softmax", dim, input.ndim)
    return _C.softmax(input, dim, dtype)


def softmin(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """softmax of -input.

    >>> nn.functional.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, softmax_dim("softmin", dim, input.ndim), dtype=dtype)


def log_softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """log(softmax(input)), computed stably.

    >>> nn.functional.log_softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([-2.4076, -1.4076, -0.4076])
    """
    dim = softmax_dim("log_softmax", dim, input.ndim)
    return _C.log_softmax(input, dim, dtype)
