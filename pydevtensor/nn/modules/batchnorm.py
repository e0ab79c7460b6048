"""Layers that normalize channels over a batch."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._layer import Layer, explain

__all__ = ["BatchNorm1d", "BatchNorm2d"]


class _BatchNorm(Layer):
    _dims: tuple[int, ...] = ()
    _version = 2  # since PyTorch counts batches

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        made = {"device": device, "dtype": dtype}
        for name in ("running_mean", "running_var"):
            buffer = _C.empty(num_features, **made) if track_running_stats else None
            self.register_buffer(name, buffer)
        count = _C.tensor(0, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        shape = num_features if affine else None
        self._add_parameters(shape, shape if bias else None, **made)

    def reset_running_stats(self) -> None:
        """Set the means and the number of batches to 0, the variances to 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the statistics, set weight to ones and bias to zeros."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_shape(self, input: Any) -> None:
        if input.ndim not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(
                f"{self}: expected {wanted} input (got {input.ndim}D input)"
            )
        if input.shape[1] != self.num_features:
            raise RuntimeError(
                f"{self}: the input of shape {[*input.shape]} has {input.shape[1]} "
                f"channels in dimension 1; it has to have {self.num_features}"
            )

    def forward(self, input: Any) -> Any:
        if isinstance(input, _C.Tensor):
            self._check_shape(input)
        tracks = self.training and self.track_running_stats
        momentum = self.momentum
        if momentum is None:  # the average of all batches
            count = self.num_batches_tracked
            momentum = 1 / (count.item() + 1) if tracks and count is not None else 0.0
        keeps = tracks or not self.training
        try:
            result = F.batch_norm(
                input,
                self.running_mean if keeps else None,
                self.running_var if keeps else None,
                self.weight,
                self.bias,
                self.training or self.running_mean is None,
                momentum,
                self.eps,
            )
        except Exception as error:
            explain(self, error, input=input)
            raise
        if tracks:
            self.num_batches_tracked.add_(1)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of (N, C) or (N, C, L).

    In training with the batch's statistics, with which running_mean and running_var are
    updated by momentum (None: their average over all batches); after eval() with those.
    Raises ValueError for another number of dimensions, and in training for one value
    per channel.

    >>> norm = nn.BatchNorm1d(1)
    >>> norm(torch.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    >>> norm.running_mean, norm.num_batches_tracked
    (tensor([0.2000]), tensor(1))
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of (N, C, H, W), as BatchNorm1d.

    >>> nn.BatchNorm2d(3)(torch.rand(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _dims = (4,)
