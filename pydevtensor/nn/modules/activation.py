"""Activations as modules."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import give
from pydevtensor.nn import functional as F
from pydevtensor.nn.init import constant_
from pydevtensor.nn.modules._function_layer import FunctionLayer
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


class _Activation(FunctionLayer):
    def extra_repr(self) -> str:
        shown = super().extra_repr()
        return shown.removesuffix("inplace=False").removesuffix(", ")


class _Softmax(FunctionLayer, takes="dim"):
    pass


class ReLU(_Activation, calls=F.relu):
    """max(x, 0) of each element.

    >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class SiLU(_Activation, calls=F.silu):
    """x * sigmoid(x) of each element.

    >>> nn.SiLU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """


class LeakyReLU(_Activation, calls=F.leaky_relu):
    """x, or negative_slope * x where x is negative.

    negative_slope  what negative elements are multiplied by

    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """


class ELU(_Activation, calls=F.elu):
    """x, or alpha * (e^x - 1) where x is negative.

    >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """


class GELU(_Activation, calls=F.gelu):
    """x * Phi(x), with Phi the cumulative distribution function of the normal.

    >>> nn.GELU()(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """


class Mish(_Activation, calls=F.mish):
    """x * tanh(log(1 + e^x)) of each element.

    >>> nn.Mish()(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """


class SELU(_Activation, calls=F.selu):
    """1.0507 * x, or 1.7581 * (e^x - 1) where x is negative.

    >>> nn.SELU()(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """


class CELU(_Activation, calls=F.celu):
    """x, or alpha * (e^(x / alpha) - 1) where x is negative.

    >>> nn.CELU(0.5)(torch.tensor([-1.0, 2.0]))
    tensor([-0.4323,  2.0000])
    """


class Hardswish(_Activation, calls=F.hardswish):
    """x * min(max(x + 3, 0), 6) / 6 of each element.

    >>> nn.Hardswish()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([-0.3333,  1.6667,  9.0000])
    """

    _shown = ()  # as in PyTorch


class Hardsigmoid(_Activation, calls=F.hardsigmoid):
    """min(max(x + 3, 0), 6) / 6 of each element.

    >>> nn.Hardsigmoid()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0.3333, 0.8333, 1.0000])
    """

    _shown = ()  # as in PyTorch


class Threshold(_Activation, calls=F.threshold):
    """Each element that is greater than threshold, and value for the others.

    threshold  elements up to this one are replaced
    value      what replaces them

    >>> nn.Threshold(0.5, 9)(torch.tensor([-1.0, 2.0]))
    tensor([9., 2.])
    """


class Softshrink(_Activation, calls=F.softshrink):
    """x moved towards 0 by lambd, and 0 where it is nearer than that.

    lambd  the distance, 0 or more

    >>> nn.Softshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Activation, calls=F.hardshrink):
    """x, and 0 where it is not beyond lambd on either side.

    lambd  the distance from 0

    >>> nn.Hardshrink()(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def extra_repr(self) -> str:
        return str(self.lambd)


class GLU(_Activation, calls=F.glu):
    """The first half of input along dim, times the sigmoid of the second half.

    dim  the dimension that is halved; RuntimeError, when called, for an odd size

    >>> nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """


class Hardtanh(_Activation, calls=F.hardtanh):
    """Each element, or the bound that it exceeds.

    At a bound the gradient is 0. Raises AssertionError where min_val is not less than
    max_val.

    min_val, max_val      the bounds
    min_value, max_value  deprecated; use min_val, max_val

    >>> nn.Hardtanh()(torch.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    _shown = ("min_val", "max_val", "inplace")

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
        super().__init__()
        self._set_options(min_val=low, max_val=high, inplace=inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6) of each element.

    inplace  write the result into the input

    >>> nn.ReLU6()(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class RReLU(_Activation, calls=F.rrelu):
    """LeakyReLU with a slope of each element, random in training.

    After eval() all slopes are the mean of the bounds.

    >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """


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


class Sigmoid(FunctionLayer, calls=F.sigmoid):
    """1 / (1 + e^-x) of each element.

    >>> nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """


class Tanh(FunctionLayer, calls=F.tanh):
    """The hyperbolic tangent of each element.

    >>> nn.Tanh()(torch.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """


class Softplus(_Activation, calls=F.softplus):
    """log(1 + e^(beta x)) / beta, or x itself where beta x is above threshold.

    beta       how sharp the bend at 0 is
    threshold  where the formula would round to x

    >>> nn.Softplus()(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """


class LogSigmoid(FunctionLayer, calls=F.logsigmoid):
    """log(sigmoid(x)) of each element, computed stably.

    >>> nn.LogSigmoid()(torch.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """


class Softsign(FunctionLayer, calls=F.softsign):
    """x / (1 + |x|) of each element.

    >>> nn.Softsign()(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """


class Tanhshrink(FunctionLayer, calls=F.tanhshrink):
    """x - tanh(x) of each element.

    >>> nn.Tanhshrink()(torch.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """


class Softmin(_Softmax, calls=F.softmin):
    """Softmax of -input.

    >>> nn.Softmin(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


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


class Softmax(_Softmax, calls=F.softmax):
    """e^x divided by its sum along dim.

    Raises IndexError for a dim that the input does not have. See also LogSoftmax, for
    losses.

    dim  the dimension along which the results add up to 1; None chooses one, with a
         warning

    >>> nn.Softmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """


class LogSoftmax(_Softmax, calls=F.log_softmax):
    """The logarithm of Softmax.

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """
