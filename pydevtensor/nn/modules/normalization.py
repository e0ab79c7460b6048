"""Layers that normalize rows and groups of channels."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer
from pydevtensor.nn.modules._layer import Layer, explain
from pydevtensor.nn.parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape_of(normalized_shape: Any) -> tuple[int, ...]:
    whole = isinstance(normalized_shape, int)
    return (normalized_shape,) if whole else tuple(normalized_shape)


class LayerNorm(Layer):
    """Normalizes over the last dimensions.

    Raises RuntimeError if input's shape ends differently.

    normalized_shape    sizes of these dimensions, or an int for one
    eps                 added to the variance, against a division by 0
    elementwise_affine  multiply the result by a weight of that shape, ones at first
    bias                add a bias of that shape, zeros at first, if elementwise_affine
    device, dtype       of the parameters

    >>> nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        shape = _shape_of(normalized_shape)
        self.normalized_shape = shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(
            shape if elementwise_affine else None,
            shape if elementwise_affine and bias else None,
            device,
            dtype,
        )

    def forward(self, input: Any) -> Any:
        shape = self.normalized_shape
        try:
            return F.layer_norm(input, shape, self.weight, self.bias, self.eps)
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Layer):
    """Divides by the root of the mean of squares over the last dimensions.

    Raises RuntimeError if input's shape ends differently.

    normalized_shape    sizes of these dimensions, or an int for one
    eps                 added to the mean; None: the least step from 1 of input's type
    elementwise_affine  multiply the result by a weight of that shape, ones at first
    device, dtype       of the parameters

    >>> nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
    tensor([[0.8485, 1.1314]])
    """

    bias: None = None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape: tuple[int, ...] = _shape_of(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            made = _C.empty(self.normalized_shape, device=device, dtype=dtype)
            weight = Parameter(made)
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        try:
            return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Layer):
    """Normalizes each group of channels of each sample of (N, C, ...).

    num_groups     how many groups; ValueError unless it divides num_channels
    num_channels   C, the number of channels
    eps            added to the variance, against a division by 0
    affine         multiply each channel by a weight, 1 at first
    device, dtype  of the parameters
    bias           add a bias to each, 0 at first, if affine

    >>> nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 5.0]])).detach()
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = num_channels if affine else None
        self._add_parameters(shape, shape if bias else None, device, dtype)

    def forward(self, input: Any) -> Any:
        try:
            return F.group_norm(
                input, self.num_groups, self.weight, self.bias, self.eps
            )
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}, bias={self.bias is not None}"
        )


class LocalResponseNorm(FunctionLayer, calls=F.local_response_norm):
    """Divides by (k + alpha * mean)^beta, the mean of squares over size channels.

    Raises ValueError for inputs of fewer than 3 dimensions.

    >>> norm = nn.LocalResponseNorm(2, alpha=1.0, beta=1.0, k=0.5)
    >>> norm(torch.tensor([[[1.0], [2.0]]])).flatten()
    tensor([1.0000, 0.6667])
    """

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
