"""Activations as modules."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import give
from pydevtensor.nn import functional as F
from pydevtensor.nn.init import constant_
from pydevtensor.nn.modules._layer import explain
from pydevtensor.nn.modules.attention import MultiheadAttention
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


give(__name__, MultiheadAttention)


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

    inplace  write the result into the input

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

    inplace  write the result into the input

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

    negative_slope  what negative elements are multiplied by
    inplace         write the result into the input

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

    alpha    the limit is -alpha for large negative elements
    inplace  write the result into the input

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

    approximate  'none' or 'tanh', a faster formula; RuntimeError, when called, for
                 another

    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    _options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate)

    def forward(self, input: Any) -> Any:
        return F.gelu(input, self.approximate)


class Mish(_Activation):
    """x * tanh(log(1 + e^x)) of each element.

    inplace  write the result into the input

    >>> nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class SELU(_Activation):
    """1.0507 * x, or 1.7581 * (e^x - 1) where x is negative.

    inplace  write the result into the input

    >>> nn.SELU()(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class CELU(_Activation):
    """x, or alpha * (e^(x / alpha) - 1) where x is negative.

    alpha    the limit is -alpha for large negative elements; RuntimeError, when called,
             for 0
    inplace  write the result into the input

    >>> nn.CELU(0.5)(torch.tensor([-1.0, 2.0]))
    tensor([-0.4323,  2.0000])
    """

    _options = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class Hardswish(_Activation):
    """x * min(max(x + 3, 0), 6) / 6 of each element.

    inplace  write the result into the input

    >>> nn.Hardswish()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([-0.3333,  1.6667,  9.0000])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # PyTorch does not show inplace here


class Hardsigmoid(_Activation):
    """min(max(x + 3, 0), 6) / 6 of each element.

    inplace  write the result into the input

    >>> nn.Hardsigmoid()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0.3333, 0.8333, 1.0000])
    """

    _options = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # PyTorch does not show inplace here


class Threshold(_Activation):
    """Each element that is greater than threshold, and value for the others.

    threshold  elements up to this one are replaced
    value      what replaces them
    inplace    write the result into the input

    >>> nn.Threshold(0.5, 9)(torch.tensor([-1.0, 2.0]))
    tensor([9., 2.])
    """

    _options = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold, value, inplace)

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softshrink(_Activation):
    """x moved towards 0 by lambd, and 0 where it is nearer than that.

    lambd  the distance, 0 or more

    >>> nn.Softshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    _options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Activation):
    """x, and 0 where it is not beyond lambd on either side.

    lambd  the distance from 0

    >>> nn.Hardshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    _options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd)

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class GLU(_Activation):
    """The first half of input along dim, times the sigmoid of the second half.

    dim  the dimension that is halved; RuntimeError, when called, for an odd size

    >>> nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """

    _options = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)


class Hardtanh(_Activation):
    """Each element, or the bound that it exceeds.

    At a bound the gradient is 0. Raises AssertionError where min_val is not less than
    max_val.

    min_val, max_val      the bounds
    inplace               write the result into the input
    min_value, max_value  deprecated; use min_val, max_val

    >>> nn.Hardtanh()(torch.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    _options = ("min_val", "max_val", "inplace")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        low = min_val if min_value is None else min_value
        high = max_val if max_value is None else max_value
        for new, old in (("min_val", min_value), ("max_val", max_value)):
            if old is not None:
                warnings.warn(
                    f"keyword argument `{new}ue` is deprecated; give `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        if not high > low:
            raise AssertionError(
                f"Hardtanh: min_val is {low} and max_val {high}; give a min_val that "
                "is less than max_val"
            )
        super().__init__(low, high, inplace)

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6) of each element.

    inplace  write the result into the input

    >>> nn.ReLU6()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class RReLU(_Activation):
    """LeakyReLU with a slope of each element, random in training.

    After eval() all slopes are the mean of the bounds.

    lower, upper  bounds of the slopes
    inplace       write the result into the input

    >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    _options = ("lower", "upper", "inplace")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(lower, upper, inplace)

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """x, or weight * x where x is negative; weight is learned.

    Raises RuntimeError for inputs with another number of channels.

    num_parameters  1, or one for each channel (dimension 1)
    init            what they start as
    device, dtype   of the parameters

    >>> nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight: Parameter = Parameter(
            _C.empty(num_parameters, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight to init again."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        try:
            return F.prelu(input, self.weight)
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


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

    beta       how sharp the bend at 0 is
    threshold  where the formula would round to x

    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    _options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta, threshold)

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)


class LogSigmoid(Module):
    """log(sigmoid(x)) of each element, computed stably.

    >>> nn.LogSigmoid()(torch.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|) of each element.

    >>> nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x) of each element.

    >>> nn.Tanhshrink()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class Softmin(_Activation):
    """Softmax of -input.

    dim  the dimension along which the results add up to 1

    >>> nn.Softmin(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim)

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Raises ValueError for another number of dimensions.

    >>> nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        if input.ndim not in (3, 4):
            raise ValueError(
                f"Softmax2d: the input has {input.ndim} dimensions; give (N, C, H, W) "
                "or (C, H, W)"
            )
        return F.softmax(input, -3)


class Softmax(_Activation):
    """e^x divided by its sum along dim.

    Raises IndexError for a dim that the input does not have. See also LogSoftmax, for
    losses.

    dim  the dimension along which the results add up to 1; None chooses one, with a
         warning

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

    dim  the dimension along which the results add up to 1

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__(dim)

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim)
