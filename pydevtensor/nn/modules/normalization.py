"""Layers that normalize rows and groups of channels."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer
from pydevtensor.nn.modules._layer import Layer

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _RowNorm(Layer):
    """Base of layers that normalize over the last dimensions.

    normalized_shape    sizes of these dimensions, or an int for one
    elementwise_affine  multiply the result by a weight of that shape, ones at first
    """

    _repr = "normalized_shape eps= elementwise_affine="
    _kept: tuple[str, ...] = ("weight", "bias")

    def _make(self, *, normalized_shape: Any, **options: Any) -> None:
        whole = isinstance(normalized_shape, int)
        shape = (normalized_shape,) if whole else tuple(normalized_shape)
        super()._make(normalized_shape=shape, **options)

    def _shapes(self) -> dict[str, Any]:
        shape = self.normalized_shape if self.elementwise_affine else None
        return dict.fromkeys(self._kept, shape)


class LayerNorm(
    _RowNorm,
    calls=F.layer_norm,
    takes="normalized_shape: Any, eps, elementwise_affine: bool = True, bias, device, "
    "dtype",
):
    """Normalizes over the last dimensions.

    Raises RuntimeError if input's shape ends differently.

    eps   added to the variance, against a division by 0
    bias  add a bias of that shape, zeros at first, if elementwise_affine

    >>> nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    _repr = "normalized_shape eps= elementwise_affine= bias="


class RMSNorm(
    _RowNorm,
    calls=F.rms_norm,
    takes="normalized_shape: Any, eps: float | None = None, elementwise_affine: bool "
    "= True, device, dtype",
):
    """Divides by the root of the mean of squares over the last dimensions.

    Raises RuntimeError if input's shape ends differently.

    eps  added to the mean; None: the least step from 1 of input's type

    >>> nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
    tensor([[0.8485, 1.1314]])
    """

    bias: None = None
    _kept = ("weight",)


class GroupNorm(
    Layer,
    calls=F.group_norm,
    takes="num_groups: int, num_channels: int, eps, affine: bool = True, device, "
    "dtype, *, bias",
):
    """Normalizes each group of channels of each sample of (N, C, ...).

    num_groups    how many groups; ValueError unless it divides num_channels
    num_channels  C, the number of channels
    eps           added to the variance, against a division by 0
    affine        multiply each channel by a weight, 1 at first
    bias          add a bias to each, 0 at first, if affine

    >>> nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 5.0]])).detach()
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """

    _repr = "num_groups num_channels eps= affine= bias="

    def _make(self, **options: Any) -> None:
        groups, channels = options["num_groups"], options["num_channels"]
        if channels % groups:
            raise ValueError(
                f"num_channels ({channels}) must be divisible by num_groups ({groups})"
            )
        super()._make(**options)

    def _shapes(self) -> dict[str, Any]:
        shape = self.num_channels if self.affine else None
        return {"weight": shape, "bias": shape}


class LocalResponseNorm(FunctionLayer, calls=F.local_response_norm):
    """Divides by (k + alpha * mean)^beta, the mean of squares over size channels.

    Raises ValueError for inputs of fewer than 3 dimensions.

    >>> norm = nn.LocalResponseNorm(2, alpha=1.0, beta=1.0, k=0.5)
    >>> norm(torch.tensor([[[1.0], [2.0]]])).flatten()
    tensor([1.0000, 0.6667])
    """

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
