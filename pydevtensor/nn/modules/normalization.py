"""Layers that normalize the last dimensions."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._layer import Layer, explain

__all__ = ["LayerNorm"]


class LayerNorm(Layer):
    """Normalizes over the last dimensions, whose shape is normalized_shape.

    With elementwise_affine the result is multiplied by weight and, with bias, bias is
    added, both of that shape. Raises RuntimeError if input's shape ends differently.

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
        whole = isinstance(normalized_shape, int)
        shape = (normalized_shape,) if whole else tuple(normalized_shape)
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
