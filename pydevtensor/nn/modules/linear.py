"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn.modules._layer import Layer
from pydevtensor.nn.modules.lazy import Lazy
from pydevtensor.nn.modules.module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; accepts any arguments.

    >>> nn.Identity()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(
    Layer,
    calls=F.linear,
    takes="in_features: int, out_features: int, bias, device, dtype",
):
    """x @ weight.T + bias, from (..., in_features) to (..., out_features).

    weight and bias start uniform between -k and k, k = 1 / sqrt(in_features). Raises
    RuntimeError for another last size, dtype or device.

    in_features   last size of the input
    out_features  last size of the result

    >>> nn.Linear(3, 2)(torch.ones(5, 4, 3)).shape
    torch.Size([5, 4, 2])
    """

    _ints = ("in_features", "out_features")
    _repr = "in_features= out_features= bias="

    def _shapes(self) -> dict[str, Any]:
        shape = self.out_features, self.in_features
        return {"weight": shape, "bias": shape[:1]}

    def reset_parameters(self) -> None:
        """Initialize weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear, under the name that PyTorch shows for the last one of attention."""


class LazyLinear(Lazy, Linear, takes="out_features: int, bias, device, dtype"):
    """A Linear that takes in_features from its first input, then becomes a Linear.

    Until then its parameters have no shape, and reading it raises RuntimeError.

    >>> net = nn.LazyLinear(2)
    >>> net(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    >>> net
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = Linear

    def _make(self, *, bias: Any, device: Any, dtype: Any, **options: Any) -> None:
        Module.__init__(self)
        self.in_features = 0
        self.out_features = options["out_features"]
        self._make_lazy(bias, device, dtype)

    def _shapes_for(self, input: Any) -> dict[str, Any]:
        self.in_features = input.shape[-1]
        return self._shapes()

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        super()._load_one(name, value, given, assign)
        if name == "weight":
            self.in_features: Any = given.shape[1]


class Bilinear(
    Layer,
    calls=F.bilinear,
    inputs="input1, input2",
    takes="in1_features: int, in2_features: int, out_features: int, bias, device, "
    "dtype",
):
    """x1 @ A @ x2 + bias, with one matrix A for each of out_features.

    From (..., in1_features) and (..., in2_features) to (..., out_features); weight has
    shape (out_features, in1_features, in2_features).

    in1_features, in2_features  last sizes of the two inputs; ValueError for an
                                in1_features below 1
    out_features                last size of the result

    >>> nn.Bilinear(3, 4, 2)(torch.ones(5, 3), torch.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    _repr = "in1_features= in2_features= out_features= bias="

    def _make(self, **options: Any) -> None:
        if options["in1_features"] <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got {options['in1_features']}"
            )
        super()._make(**options)

    def _shapes(self) -> dict[str, Any]:
        shape = self.out_features, self.in1_features, self.in2_features
        return {"weight": shape, "bias": shape[:1]}

    def reset_parameters(self) -> None:
        """Initialize weight and bias, uniform within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)
